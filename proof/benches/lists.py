"""How long the server takes for a page of the list of jobs among 100,000, whatever is filtered, sorted and turned to.

The jobs are written into a store that nobody else uses, and the pages are asked of Django in this
process, so what is measured is the work of one request: session, rights, queries, rows, template. Beside the
time it took stands how much processor it had, which other work on the machine adds less to.
Who asks sees all namespaces, or half of them by name, which is what costs more.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.test import Client

from kube.meta import Object
from proof.benches.measure import percentile
from proof.systems.system import PROJECT

COUNT = 100_000
BATCH = 1_000
TIMES = 3  # that each page is asked for, once before not counted
SEED = 7
NAMESPACES, QUEUES, OWNERS = 20, 30, 50
PHASES = ("Completed",) * 70 + ("Failed",) * 20 + ("Pending",) * 8 + ("Running",) * 2
START = 1_790_000_000_000
FILTERS = {
    "none": "",
    "phase": "phase=Failed",
    "pending": "phase=Pending",
    "namespace": "namespace=team-03",
    "queue": "queue=queue-7",
    "owner": "owner=user-11",
    "text": "q=model-0042",
    "common text": "q=model",
    "no such text": "q=nothing-of-that-name",
    "label": "label=team%3Dvision",
    "rare label": "label=experiment%3De42",
    "no such label": "label=team%3Dnobody",
    "labels": "label=team+in+(vision,ads),!gpu",
    "cause": "cause=QueueLimit",
    "exit code": "exit=137",
    "time": "from=2026-09-22T00:00&to=2026-09-22T06:00",
    "many": "namespace=team-03&phase=Failed&exit=1&label=team&q=train",
}
IN_EVERY_ORDER = ("none", "namespace", "label")  # the others in the list's own
SORTS = ("-created", "created", "name", "-phase", "queue", "creator")
PAGES = ("1", "middle", "last")


def run(data: Path) -> dict[str, Any]:
    """Return the figures, measured by a process of its own on a state directory of its own."""
    environment = os.environ | {"VOLCANO_UI_DATA": str(data), "DJANGO_SETTINGS_MODULE": "volcano_ui.settings"}
    result = subprocess.run(
        [sys.executable, "-m", "proof.benches.lists"],
        cwd=PROJECT, env=environment, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    figures: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Print the figures of the database that this process's settings name; it is made and filled."""
    import django
    from django.core.management import call_command

    django.setup()
    logging.disable(logging.WARNING)
    call_command("migrate", verbosity=0)
    began = time.perf_counter()
    _fill()
    filled = time.perf_counter() - began
    figures: dict[str, Any] = {"jobs": COUNT, "filled_s": round(filled, 1), "load": round(os.getloadavg()[0], 1)}
    for who, namespaces in (("everything", ["*"]), ("half", [f"team-{n:02}" for n in range(0, NAMESPACES, 2)])):
        figures[who] = _measured(_reader(who, namespaces))
    sys.stdout.write(json.dumps(figures) + "\n")


def _measured(browser: Client) -> dict[str, Any]:
    """Return the figures of all pages for one reader: each slow one by its address."""
    medians: dict[str, float] = {}
    every: list[float] = []
    processor: list[float] = []
    for address in _addresses(browser):
        _timed_get(browser, address)
        took = [_timed_get(browser, address) for _ in range(TIMES)]
        medians[address] = statistics.median(used for _, used in took)
        every += [wall for wall, _ in took]
        processor += [used for _, used in took]
    slowest = sorted(medians, key=lambda address: medians[address], reverse=True)[:5]
    return {
        "pages": len(medians),
        "p50_ms": round(1000 * percentile(every, 0.5), 1),
        "p95_ms": round(1000 * percentile(every, 0.95), 1),
        "processor_p50_ms": round(1000 * percentile(processor, 0.5), 1),
        "processor_p95_ms": round(1000 * percentile(processor, 0.95), 1),
        "slowest_processor": {address: f"{1000 * medians[address]:.0f} ms" for address in slowest},
        "processor_of_200_rows_ms": round(
            1000 * min(_timed_get(browser, "/jobs/?per=200")[1] for _ in range(TIMES)), 1
        ),
        "bytes_of_100_rows": _table_size(browser),
    }


def _addresses(browser: Client) -> Iterator[str]:
    for name, query in FILTERS.items():
        last = _last_page(browser, query)
        for sort in SORTS if name in IN_EVERY_ORDER else SORTS[:1]:
            for page in PAGES:
                number = {"1": 1, "middle": last // 2 or 1, "last": last}[page]
                yield f"/jobs/?{query}&sort={sort}&page={number}"


def _last_page(browser: Client, query: str) -> int:
    content = browser.get(f"/jobs/?{query}&page=9999999").content
    found = re.search(rb"Page \d+ of (\d+)", content)
    return int(found[1]) if found else 1


def _timed_get(browser: Client, address: str) -> tuple[float, float]:
    """Return how long a page took, and how much of the processor, in s."""
    began, used = time.perf_counter(), time.thread_time()
    response = browser.get(address)
    took = time.perf_counter() - began, time.thread_time() - used
    assert response.status_code == 200, (address, response.status_code)
    return took


def _table_size(browser: Client) -> int:
    content = browser.get("/jobs/?per=100").content
    return content.index(b"</table>") - content.index(b"<table")


def _reader(name: str, namespaces: Iterable[str]) -> Client:
    from django.contrib.auth.models import User
    from django.test import Client

    from cluster.models import RoleBinding

    user = User.objects.create_user(name)
    for namespace in namespaces:
        RoleBinding.objects.create(user=user, namespace=namespace, role="operator")
    browser = Client(SERVER_NAME="localhost")
    browser.force_login(user)
    return browser


def _fill() -> None:
    from cluster.store import Create, Group, store
    from kube.resources import JOBS

    draw = random.Random(SEED)
    for at in range(0, COUNT, BATCH):
        groups = [Group([Create(JOBS, _job(number, draw))]) for number in range(at, at + BATCH)]
        store.commit(groups, now=START + at * 100)


def _job(number: int, draw: random.Random) -> Object:
    phase = draw.choice(PHASES)
    name = f"train-model-{number:06}"
    labels = {"team": draw.choice(("vision", "nlp", "speech", "ads")), "app": "train", "experiment": f"e{number % 500}"}
    if number % 10 == 0:
        labels["gpu"] = "a100"
    return {
        "metadata": {
            "name": name,
            "namespace": f"team-{number % NAMESPACES:02}",
            "labels": labels,
            "annotations": {"ui.volcano.sh/created-by": f"user-{number % OWNERS}"},
        },
        "spec": {"minAvailable": 4, "queue": f"queue-{number % QUEUES}", "tasks": [_task()]},
        "status": _status(name, phase, draw),
    }


def _task() -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "trainer:7",
        "command": ["python", "train.py"],
        "env": [{"name": "A", "value": "b" * 800}],
    }
    return {"name": "worker", "replicas": 4, "template": {"spec": {"containers": [container]}}}


def _status(name: str, phase: str, draw: random.Random) -> dict[str, Any]:
    code = draw.choice((1, 1, 1, 2, 137))
    states = {
        "Failed": ("TooFewSucceeded", f"Exit {code} · worker-0, worker-3. 2 of 4 pods succeeded and 2 failed; minAvailable is 4."),
        "Pending": ("Unschedulable", "The queue is at its limit of 40 CPU. 0 of 4 pods are running; minAvailable is 4."),
        "Running": ("PodsRunning", "4 of 4 pods are running; minAvailable is 4."),
        "Completed": ("AllPodsEnded", "All 4 pods succeeded."),
    }  # fmt: skip
    reason, message = states[phase]
    more: dict[str, dict[str, Any]] = {
        "Failed": {"succeeded": 2, "failed": 2, "exitCodes": [code]},
        "Completed": {"succeeded": 4},
        "Running": {"running": 4},
    }
    seen = {"Pending": ["Pending"], "Running": ["Pending", "Running"]}.get(phase, ["Pending", "Running", phase])
    at = "2026-09-21T14:13:20Z"
    return {
        "state": {"phase": phase, "reason": reason, "message": message, "lastTransitionTime": at},
        "conditions": [{"status": each, "lastTransitionTime": at} for each in seen],
        **({"waitingReason": draw.choice(("QueueLimit", "NotEnoughResources"))} if phase == "Pending" else {}),
        **more.get(phase, {}),
    }


if __name__ == "__main__":
    main()
