"""From the POST of a real one-pod job to its process started, two hundred times, one after the other.

The job is submitted as the editor does: over HTTP, in a logged-in session,
with the CSRF token. Its command is `date`, which prints the time at which it
began to run; what comes before its first instruction (the shim, the limits,
the mounts and one exec) is in the figure. The stages come from the log, whose
rows say when they were committed.

What the wall round a pod adds is measured by pairs: beside the system runs one
that can have no wall, and each job is submitted to one and then to the other, so that what
else the machine does troubles both alike.
"""

from __future__ import annotations

import secrets
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from cluster.store import store
from kube.resources import JOBS, PODS
from proof.benches.measure import percentile
from proof.harness.waiting import until
from proof.systems.system import UP, System
from proof.systems.work import Person, job, task

COUNT = 200
WARM_UP = 10
STAGES = ("answered", "job stored", "pod created", "bound", "started")


class Unwalled(System):
    """A system whose node finds no layer of a wall."""

    command = [sys.executable, "-m", "proof.benches.clients.unwalled", *UP]


def run(system: System) -> dict[str, Any]:
    """Return p50 and p99 in ms of each stage, counted from the moment before the POST, and what the wall has to do with it."""
    # Beside the state directory, which the processes of jobs do not see.
    output = Path(system.data).with_name("started")
    output.mkdir()
    times: dict[str, list[float]] = {stage: [] for stage in STAGES}
    unwalled: list[float] = []
    with (
        Unwalled(Path(system.data).with_name("unwalled")) as other,
        Person(system) as person,
        Person(other) as stranger,
    ):
        assert "There is no wall round pods" in "".join(other.output), "".join(other.output)
        for each in (person, stranger):
            each.get("/jobs/new/")
        for number in range(-WARM_UP, COUNT):
            name = f"quick-{secrets.token_hex(4)}"
            revision = store.revision()
            begun, at = _once(person, name, output)
            at |= _logged(revision, name)
            beside, there = _once(stranger, f"{name}-unwalled", output)
            if number >= 0:
                for stage in STAGES:
                    times[stage].append(at[stage] - begun)
                unwalled.append(there["started"] - beside)
    costs = statistics.median(one - two for one, two in zip(times["started"], unwalled, strict=True))
    return {
        stage.replace(" ", "_"): {"p50_ms": _ms(values, 0.5), "p99_ms": _ms(values, 0.99)}
        for stage, values in (*times.items(), ("started without a wall", unwalled))
    } | {"wall_costs_p50_ms": round(costs * 1000, 1)}


def _once(person: Person, name: str, output: Path) -> tuple[float, dict[str, float]]:
    """Submit one job and wait for its process; return when that began, and when it was answered and the process started."""
    file = output / name
    obj = job(name, task(["sh", "-c", f"date +%s%N > {file}"], cpu="10m"))
    begun = time.time()
    answer = person.post("/jobs/new/", text=msgspec.json.encode(obj).decode(), token=secrets.token_hex(8))
    answered = time.time()
    assert answer.status_code == 302, answer.text[:500]
    started = int(until(lambda: _written(file), within_s=30, every_s=0.005, what="the process"))
    return begun, {"answered": answered, "started": started / 1e9}


def _written(file: Path) -> str:
    text = file.read_text() if file.exists() else ""
    return text.strip() if text.endswith("\n") else ""


def _logged(revision: int, name: str) -> dict[str, float]:
    """When the log says that the job was stored and its pod created and bound, in seconds."""
    at: dict[str, float] = {}
    for change in store.changes(revision, [JOBS, PODS], limit=10_000):
        if not change.name.startswith(name):
            continue
        if change.resource == JOBS.id:
            at.setdefault("job stored", change.at / 1000)
        else:
            at.setdefault("pod created", change.at / 1000)
            if change.object["spec"].get("nodeName"):
                at.setdefault("bound", change.at / 1000)
    return at


def _ms(values: Iterable[float], share: float) -> float:
    return round(percentile(values, share) * 1000, 1)
