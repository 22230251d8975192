"""What it costs that a commit survives a loss of power: the store's commits with both ways of SQLite (`VOLCANO_UI_SYNCHRONOUS`).

Each way has a process and a database of its own: `python -m proof.benches.durability DATA` is one of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from proof.benches.measure import percentile

WAYS = ("normal", "full")
ALONE, TOGETHER, BATCH = 500, 20, 1000


def run() -> dict[str, dict[str, float]]:
    """Return for each way how long one write alone takes, in ms, and how many a second there are in large transactions."""
    return {way: _of(way) for way in WAYS}


def _of(way: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="volcano-ui-bench-") as data:
        environment = {**os.environ, "VOLCANO_UI_SYNCHRONOUS": way, "VOLCANO_UI_DATA": data}
        for name in ("DATABASE_URL", "VOLCANO_UI_DATABASE_URL"):
            environment.pop(name, None)
        command = [sys.executable, "-m", "proof.benches.durability"]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        figures: dict[str, float] = json.loads(done.stdout)
        return figures


def _measured() -> dict[str, float]:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")
    django.setup()
    from django.core.management import call_command

    from cluster.store import Create, store
    from kube.resources import CONFIGMAPS

    def made(name: str) -> Create:
        metadata = {"name": name, "namespace": "d"}
        return Create(CONFIGMAPS, {"metadata": metadata, "data": {"fill": "x" * 1500}})

    call_command("migrate", verbosity=0)
    alone = [_took(store.write, made(f"alone-{number}")) for number in range(ALONE)]
    batches = ([made(f"in-{number}-{each}") for each in range(BATCH)] for number in range(TOGETHER))
    together = [_took(store.write, *batch) for batch in batches]
    return {
        "p50 ms": round(percentile(alone, 0.5) * 1000, 2),
        "p99 ms": round(percentile(alone, 0.99) * 1000, 2),
        "a second together": round(TOGETHER * BATCH / sum(together)),
    }


def _took(work: Callable[..., object], *arguments: object) -> float:
    begun = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begun


if __name__ == "__main__":
    json.dump(_measured(), sys.stdout)
