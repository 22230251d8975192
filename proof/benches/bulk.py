"""Five thousand running jobs are suspended, resumed and deleted by filter, while somebody else submits and looks.

The operation goes the way of the page: prepared with "all that match", confirmed, carried out by the worker. It is
over when each job has its result, judged on what was observed of it: its pods are gone, run again, the job is gone.
Beside it one person submits a job and opens the list of jobs, again and again; the same before, while nothing runs.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from cluster import access, api
from cluster.store import store
from jobs.models import Operation
from kube.errors import ApiError
from kube.resources import JOBS
from proof.benches import shapes
from proof.benches.measure import Processors, percentile
from proof.harness.waiting import until
from proof.systems.system import System
from proof.systems.work import Person, job, task

COUNT = 5_000
PREFIX, HOLD = "many", "never"  # no ConfigMap of this name is made: the pods run on
ACTIONS = ("suspend", "resume", "delete")
QUIET_S = 10.0


def run(system: System) -> dict[str, Any]:
    """Return seconds of each operation, and how long submitting and looking take without and beside it."""
    _start()
    figures: dict[str, Any] = {}
    with Person(system) as person, Bystander(system) as bystander:
        time.sleep(QUIET_S)  # the length of the measurement, not a wait for something
        figures["beside_nothing"] = bystander.figures()
        for action in ACTIONS:
            processors = Processors(system)
            seconds, results = _operate(person, action)
            figures[action] = {
                "seconds": round(seconds, 1),
                "results": results,
                "beside_it": bystander.figures(),
                "cpu_s": processors.used(),
            }
    return figures


def _start() -> None:
    """Have all jobs run."""
    for at in range(0, COUNT, shapes.CHUNK):
        jobs = [shapes.job(f"{PREFIX}-{number}", 1, HOLD) for number in range(at, at + shapes.CHUNK)]
        refused = [o for o in api.create_many(access.SYSTEM, JOBS, jobs) if isinstance(o, ApiError)]
        assert not refused, refused[0]
    until(_all_run, within_s=shapes.LIMIT_S, every_s=1, what="all jobs Running")


def _all_run() -> bool:
    return store.count(JOBS, by="phase", text=f"{PREFIX}-").get("Running") == COUNT


def _operate(person: Person, action: str) -> tuple[float, dict[str, int]]:
    """Return the seconds from the confirmation until each job has its result, and how many jobs had which."""
    answer = person.post("/jobs/-/operations/", action=action, which="all", q=f"{PREFIX}-")
    assert answer.status_code == 302, answer.text[:500]
    number = int(answer.headers["location"].rstrip("/").rpartition("/")[2])
    begun = time.monotonic()
    answer = person.post(f"/jobs/-/operations/{number}/confirm/")
    assert answer.status_code == 302, answer.text[:500]
    operation = until(
        lambda: Operation.objects.filter(pk=number).exclude(over=0).first(),
        within_s=shapes.LIMIT_S,
        every_s=0.1,
        what=f"the end of {action}",
    )
    seconds = time.monotonic() - begun
    results = list(operation.items.values_list("result", flat=True))
    return seconds, {result: results.count(result) for result in sorted(set(results))}


class Bystander(threading.Thread):
    """Somebody who submits a job and opens the list of jobs, one after the other, until told to stop."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        self.person = Person(system)
        self.stopped = threading.Event()
        self.submitted: list[float] = []
        self.looked: list[float] = []

    def run(self) -> None:
        self.person.get("/jobs/new/")
        while not self.stopped.is_set():
            obj = job(f"beside-{secrets.token_hex(4)}", task(["true"], cpu="1m"))
            self.submitted.append(self._timed(partial(self.person.create, obj)))
            self.looked.append(self._timed(lambda: self.person.get("/jobs/").raise_for_status()))
            self.stopped.wait(0.25)  # a person, and no load of its own

    @staticmethod
    def _timed(act: Callable[[], object]) -> float:
        begun = time.monotonic()
        act()
        return time.monotonic() - begun

    def figures(self) -> dict[str, int]:
        """Return p50 and p95 in ms of what was done since the last call."""
        submitted, self.submitted = self.submitted, []
        looked, self.looked = self.looked, []
        return {
            f"{what}_{name}_ms": round(percentile(values, share) * 1000)
            for what, values in (("submit", submitted), ("list", looked))
            for name, share in (("p50", 0.5), ("p95", 0.95))
            if values
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.join()
        self.person.client.close()
