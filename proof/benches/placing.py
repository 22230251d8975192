"""Jobs submitted to a kube-apiserver, and when their pods are bound and run and the jobs are over, as a watch tells it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import msgspec

from cluster import clock
from cluster.remote.http import paths
from kube.meta import Object
from kube.resources import JOBS, POD_GROUPS, PODS, Resource
from proof.harness.waiting import until
from proof.kubernetes.cluster import Kubernetes

WITHIN_S = 600
STAGES = ("bound", "running", "completed")
_BEGUN = ("Running", "Succeeded", "Failed")


class Seen(threading.Thread):
    """Watches one kind in a namespace from now on: when each object was first seen in a stage, by monotonic seconds."""

    def __init__(self, cluster: Kubernetes, kind: Resource, stages: Mapping[str, Callable[[Object], bool]]) -> None:
        super().__init__(daemon=True)
        self.cluster, self.kind, self.stages = cluster, kind, stages
        self.moments: dict[str, dict[str, float]] = {stage: {} for stage in stages}
        self.listening, self.done = threading.Event(), threading.Event()

    def run(self) -> None:
        path = f"{self.cluster.server}{paths.collection(self.kind, 'default')}"
        with self.cluster.administrator() as client:
            version = client.get(path, params={"limit": 1}).raise_for_status().json()["metadata"]["resourceVersion"]
            query = {"watch": "1", "resourceVersion": version}
            with client.stream("GET", path, params=query, timeout=None) as answer:
                self.listening.set()
                for line in answer.iter_lines():
                    if self.done.is_set():
                        return
                    self._note(msgspec.json.decode(line)["object"])

    def _note(self, obj: Object) -> None:
        now, name = clock.monotonic(), obj["metadata"]["name"]
        for stage, reached in self.stages.items():
            if reached(obj):
                self.moments[stage].setdefault(name, now)


def _is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _runs(pod: Object) -> bool:
    return pod["status"].get("phase") in _BEGUN


def _is_completed(job: Object) -> bool:
    return ((job.get("status") or {}).get("state") or {}).get("phase") == "Completed"


@contextmanager
def watched(cluster: Kubernetes) -> Iterator[dict[str, dict[str, float]]]:
    """Watch pods and jobs meanwhile; yield what is known of each stage."""
    pods = Seen(cluster, PODS, {"bound": _is_bound, "running": _runs})
    jobs = Seen(cluster, JOBS, {"completed": _is_completed})
    for each in (pods, jobs):
        each.start()
        assert each.listening.wait(WITHIN_S), "no watch"
    try:
        yield {**pods.moments, **jobs.moments}
    finally:
        for each in (pods, jobs):
            each.done.set()


def measure(cluster: Kubernetes, jobs: int, replicas: int) -> dict[str, float]:
    """Submit jobs one after the other; return after how many seconds from the first submission all was in each stage.

    Afterwards nothing of them is left.
    """
    wanted = {"bound": jobs * replicas, "running": jobs * replicas, "completed": jobs}
    with watched(cluster) as moments:
        begun = clock.monotonic()
        # A name for each shape: Volcano takes a job for the one of its name that was deleted shortly before.
        cluster.make(JOBS, [_job(f"bench-{jobs}x{replicas}-{number}", replicas) for number in range(jobs)])
        submitted = clock.monotonic()
        for stage in STAGES:
            until(
                partial(_are_in, moments[stage], wanted[stage]),
                every_s=0.2,
                within_s=WITHIN_S,
                what=f"{jobs} jobs of {replicas} pods: {stage}",
            )
        took = {stage: max(moments[stage].values()) - begun for stage in STAGES}
    _clear(cluster)
    return {"submitted": submitted - begun, **took}


def _are_in(moments: Mapping[str, float], count: int) -> bool:
    return len(moments) == count


def _are_gone(cluster: Kubernetes, kind: Resource) -> bool:
    return not cluster.get(kind.id)["items"]


def _clear(cluster: Kubernetes) -> None:
    cluster.clear(JOBS)
    for kind in (PODS, POD_GROUPS):
        until(
            partial(_are_gone, cluster, kind), every_s=0.5, within_s=WITHIN_S, what=f"that the {kind.plural} are gone"
        )


def pod(name: str) -> Object:
    """Return a pod that no scheduler takes."""
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "10m"}}}
    spec = {"containers": [container], "schedulerName": "nobody"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _job(name: str, replicas: int) -> Object:
    template = {"spec": {**pod(name)["spec"], "restartPolicy": "Never", "schedulerName": "volcano"}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    spec = {"minAvailable": replicas, "schedulerName": "volcano", "queue": "default", "tasks": [task]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}
