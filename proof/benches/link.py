"""What it costs that a node is another machine: `python -m proof.benches.link`.

A system and a second agent on this machine, so what is measured is the work and not a network: a log's end, a command,
and what is kept of a log of 100 MB, of a pod here and of one there, through the API.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from proof.systems.second import Client

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "proof.settings")

TRIES = 40
MEGABYTES = 100


def main() -> None:
    """Measure and print."""
    import django

    django.setup()
    from proof.harness.waiting import until
    from proof.systems.second import Client, Linked
    from proof.systems.system import running

    with tempfile.TemporaryDirectory(prefix="volcano-link-") as name:
        folder = Path(name)
        with running(folder / "first", VOLCANO_UI_NODE_NAME="first") as system:
            machine = Linked(system, folder / "second", "second")
            try:
                machine.join().linked()
                client = Client(system, folder / "kubeconfig")
                script = f"yes {'x' * 99} | head -c {MEGABYTES * 10**6}; echo; echo done; sleep 1000"
                found = {}
                for node in ("first", "second"):
                    pod = client.run(f"on-{node}", script, node)
                    until(partial(_is_written, client, pod))
                    found[node] = measured(client, pod)
            finally:
                machine.close()
    here, there = found["first"], found["second"]
    for what in here:
        sys.stdout.write(f"{what:32} {here[what]:9.1f} {there[what]:9.1f}   {there[what] / here[what]:.1f} times\n")


def _is_written(client: Client, pod: str) -> bool:
    return client.log(pod, tailLines=1).text == "done\n"


def measured(client: Client, pod: str) -> dict[str, float]:
    """Return what takes how long with a pod, in ms."""
    return {
        "100 lines of a log, p50 ms": took(lambda: client.log(pod, tailLines=100).raise_for_status()),
        "a command to its exit code, p50 ms": took(lambda: client.exec(pod, "true").finish()),
        "ms for 1 MB of a long log": median(read(client, pod) for _ in range(3)),
    }


def took(work: Callable[[], object]) -> float:
    """Return the median time of some tries, in ms."""
    return 1000 * median(seconds(work) for _ in range(TRIES))


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def read(client: Client, pod: str) -> float:
    """Read all that is kept of a log; return how long each megabyte takes, in ms."""
    begun = time.perf_counter()
    with client.http.stream("GET", f"/api/v1/namespaces/default/pods/{pod}/log") as answer:
        size = sum(map(len, answer.iter_raw()))
    assert size > MEGABYTES * 10**6 // 4
    return 1000 * (time.perf_counter() - begun) / (size / 10**6)


if __name__ == "__main__":
    main()
