"""Ten thousand simulated pods in different shapes of jobs, from the first submit to the last completion.

All pods hold their node until every one of them runs, then run for a second.
Times are read from the log of the system itself: each row says when it was
committed.
"""

from __future__ import annotations

import time
from typing import Any

from cluster import access, api, clock
from cluster.store import Change, Create, store
from kube.errors import ApiError
from kube.kinds.fields import View
from kube.meta import Object
from kube.resources import CONFIGMAPS, JOBS, PODS
from proof.benches.measure import PeakMemory, Processors
from proof.harness.waiting import until
from proof.invariants import Judge
from proof.systems.system import System

SHAPES = {"10000x1": (10_000, 1), "500x20": (500, 20), "20x500": (20, 500), "1x10000": (1, 10_000)}
SIMULATED = {"ui.volcano.sh/simulated": "true"}
STAGES = ("created", "bound", "running", "completed")
CHUNK = 500
LIMIT_S = 600


def job(name: str, replicas: int, hold: str) -> Object:
    """Return a job of simulated pods, which run until there is a ConfigMap named `hold`, and for a second after that."""
    annotations = {"ui.volcano.sh/duration-seconds": "1", "ui.volcano.sh/hold": hold}
    container = {"name": "main", "command": ["true"], "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [container], "restartPolicy": "Never", "nodeSelector": SIMULATED},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": replicas, "tasks": [{"name": "main", "replicas": replicas, "template": template}]},
    }


def run(system: System, shape: str, judge: Judge) -> dict[str, Any]:
    """Run one shape; return seconds from the first submit and pods per second for each stage, and what it cost.

    That are the processor seconds until all pods run, with this process as "client", and the rows of the log until all
    jobs are completed. Afterwards the judge hears what the log says of it.
    """
    count, replicas = SHAPES[shape]
    hold = f"release-{shape}"
    start, first, processors = store.revision(), clock.milliseconds(), Processors(system)
    own = time.process_time()
    with PeakMemory(system) as memory:
        for at in range(0, count, CHUNK):
            jobs = [job(f"b{shape}-{i}", replicas, hold) for i in range(at, min(at + CHUNK, count))]
            refused = [o for o in api.create_many(access.SYSTEM, JOBS, jobs) if isinstance(o, ApiError)]
            assert not refused, refused[0]
        submitted = clock.milliseconds()
        log = Stages(start, f"b{shape}-")
        until(
            lambda: log.read() and len(log.at["running"]) == count * replicas, within_s=LIMIT_S, what=f"{shape} Running"
        )
        used = processors.used() | {"client": round(time.process_time() - own, 1)}
        store.write(Create(CONFIGMAPS, {"metadata": {"name": hold, "namespace": "default"}}))
        until(
            lambda: log.read() and len(log.at["completed"]) == count * replicas,
            within_s=LIMIT_S,
            what=f"{shape} Completed",
        )
        until(
            lambda: store.count(JOBS, text=f"b{shape}-").get("Completed") == count,
            within_s=LIMIT_S,
            what="jobs Completed",
        )
    result: dict[str, Any] = {"submit_s": round((submitted - first) / 1000, 2)}
    for stage in STAGES:
        seconds = (max(log.at[stage].values()) - first) / 1000
        result[f"{stage}_s"] = round(seconds, 2)
        result[f"{stage}_pods_per_s"] = round(count * replicas / seconds)
    result["jobs_completed_s"] = round((clock.milliseconds() - first) / 1000, 2)
    result["cpu_s_until_running"] = used
    result["rows_per_job"] = round((store.revision() - start) / count, 1)
    result["peak_memory_mb"] = {name: round(value) for name, value in memory.peak.items()}
    result["peak_memory_total_mb"] = round(memory.total)
    result["log"] = judged(judge)
    return result


def judged(judge: Judge) -> str:
    """Let a judge hear the rest of the log; say how much that was. Broken stops the benchmark."""
    first, begun = judge.revision, time.monotonic()
    while changes := store.changes(judge.revision, limit=4000):
        for change in changes:
            judge.take(change)
    seconds = time.monotonic() - begun
    return f"{judge.revision - first} changes judged in {seconds:.1f} s, every invariant holds"


class _Spec(View):
    node_name: str = ""


class _Status(View):
    phase: str = ""


class _Pod(View):
    """As much of a pod as a benchmark that shares the processors may read."""

    spec: _Spec = _Spec()
    status: _Status = _Status()


class Stages:
    """When each pod of some jobs reached each stage, read from the log bit by bit."""

    def __init__(self, revision: int, prefix: str) -> None:
        self.position = revision
        self.prefix = prefix
        self.at: dict[str, dict[str, int]] = {stage: {} for stage in STAGES}

    def read(self) -> bool:
        """Read the rest of the log; true, for whoever goes on to ask what it says."""
        while changes := store.changes(self.position, [PODS], limit=4000):
            for change in changes:
                self._note(change)
            self.position = changes[-1].revision
        time.sleep(0.1)  # do not compete with what is measured
        return True

    def _note(self, change: Change) -> None:
        if not change.name.startswith(self.prefix):
            return  # what another part of the benchmark began may end in this one
        pod = change.read(_Pod)
        phase = pod.status.phase
        reached = {
            "created": change.verb == "ADDED",
            "bound": bool(pod.spec.node_name),
            "running": phase == "Running",
            "completed": phase == "Succeeded",
        }
        for stage, yes in reached.items():
            if yes:
                self.at[stage].setdefault(change.uid, change.at)
