"""A thousand jobs of twenty pods lose a pod each in one moment, and their policies restart them all.

Every job's policy answers PodEvicted with RestartJob. A job is back when as
many pods of its second run are Running as it wants.
"""

from __future__ import annotations

import time
from typing import Any

from cluster import access, api, clock
from cluster.store import Change, Delete, Group, store
from kube.errors import ApiError
from kube.meta import Object
from kube.resources import JOBS, PODS
from proof.benches import shapes
from proof.benches.measure import Processors
from proof.harness.waiting import until
from proof.invariants import Judge
from proof.systems.system import System

COUNT, REPLICAS = 1_000, 20
PREFIX, HOLD = "restarted", "never"  # no ConfigMap of this name is made: the pods run on
CHUNK = 100


def run(system: System, judge: Judge) -> dict[str, Any]:
    """Return seconds from the evictions to the last job's restart, and until all pods run again."""
    _start()
    start, first = store.revision(), clock.milliseconds()
    processors = Processors(system)
    _evict()
    log = Runs(start)
    until(lambda: log.read() and log.is_back, within_s=shapes.LIMIT_S, what="all jobs Running again")
    return {
        "jobs_restarting_s": round((max(log.restarting.values()) - first) / 1000, 2),
        "all_running_again_s": round((max(log.running.values()) - first) / 1000, 2),
        "cpu_s": processors.used(),
        "rows_per_job": round((store.revision() - start) / COUNT, 1),
        "log": shapes.judged(judge),
    }


def _start() -> None:
    """Have all pods of all jobs run."""
    for at in range(0, COUNT, CHUNK):
        jobs = [_job(number) for number in range(at, at + CHUNK)]
        refused = [o for o in api.create_many(access.SYSTEM, JOBS, jobs) if isinstance(o, ApiError)]
        assert not refused, refused[0]

    def all_run() -> bool:
        time.sleep(1)  # do not compete with what is waited for
        return store.count(PODS, text=f"{PREFIX}-").get("Running") == COUNT * REPLICAS

    until(all_run, within_s=shapes.LIMIT_S, what="all pods Running")


def _job(number: int) -> Object:
    job = shapes.job(f"{PREFIX}-{number}", REPLICAS, HOLD)
    job["spec"]["policies"] = [{"event": "PodEvicted", "action": "RestartJob"}]
    return job


def _evict() -> None:
    names = [f"{PREFIX}-{number}-main-0" for number in range(COUNT)]
    outcomes = store.commit([Group([Delete(PODS, "default", name)]) for name in names])
    assert not any(isinstance(outcome, ApiError) for outcome in outcomes), outcomes[0]


class Runs:
    """When each job said that it restarts, and when each pod of a second run was Running."""

    def __init__(self, revision: int) -> None:
        self.position = revision
        self.restarting: dict[str, int] = {}
        self.running: dict[str, int] = {}

    @property
    def is_back(self) -> bool:
        return len(self.running) == COUNT * REPLICAS

    def read(self) -> bool:
        """Read the rest of the log; true, for whoever goes on to ask what it says."""
        while changes := store.changes(self.position, [JOBS, PODS], limit=4000):
            for change in changes:
                if change.name.startswith(PREFIX):
                    self._note(change)
            self.position = changes[-1].revision
        time.sleep(0.1)  # do not compete with what is measured
        return True

    def _note(self, change: Change) -> None:
        obj = change.object
        status = obj.get("status") or {}
        if change.resource == JOBS.id:
            if (status.get("state") or {}).get("phase") == "Restarting":
                self.restarting.setdefault(change.uid, change.at)
        elif status.get("phase") == "Running" and _run_of(obj) > 0:
            self.running.setdefault(change.uid, change.at)


def _run_of(pod: Object) -> int:
    return int(pod["metadata"]["annotations"]["volcano.sh/job-version"])
