"""When all pods of a job run: what pods with the annotation wait-for-job wait for."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from cluster.store import store
from kube.kinds.core import Pod, PodPhase
from kube.kinds.fields import View
from kube.resources import JOBS

WAIT = "ui.volcano.sh/wait-for-job"
JOB_NAME = "volcano.sh/job-name"


class _Task(View):
    replicas: int = 0


class _Spec(View):
    tasks: list[_Task] = []


class _Job(View):
    """As much of a job as says how many pods it has."""

    spec: _Spec = _Spec()


@dataclass(slots=True)
class Gathering:
    """One job: how many pods it has, which of them have run, and when they all did."""

    key: str  # namespace/name of the job, empty for a pod without one
    expected: int = 0  # 0: not looked up yet
    running: set[str] = field(default_factory=set)
    began_us: int | None = None


class Gatherings:
    """The jobs whose pods wait for each other, by the uid of the job."""

    def __init__(self) -> None:
        self._jobs: dict[str, Gathering] = {}
        self._job_of: dict[str, str] = {}
        self._touched: set[str] = set()

    def observe(self, pod: Pod) -> None:
        """Record a pod's phase."""
        if pod.metadata.annotations.get(WAIT) != "true":
            return
        owner = _owner(pod)
        job = self._jobs.get(owner)
        if job is None:
            name = pod.metadata.annotations.get(JOB_NAME)
            job = self._jobs[owner] = Gathering(f"{pod.metadata.namespace}/{name}" if name else "")
        if pod.status.phase not in (PodPhase.PENDING, "") and pod.metadata.uid not in job.running:
            job.running.add(pod.metadata.uid)
            self._job_of[pod.metadata.uid] = owner
            self._touched.add(owner)

    def leave(self, uid: str) -> None:
        """Record that a pod is gone; when all of a job are, its clock is reset."""
        owner = self._job_of.pop(uid, "")
        job = self._jobs.get(owner)
        if job is not None:
            job.running.discard(uid)
            if not job.running:
                del self._jobs[owner]

    def retain(self, uids: Container[str]) -> None:
        """Record that all other pods are gone."""
        for uid in [uid for uid in self._job_of if uid not in uids]:
            self.leave(uid)

    def begin(self, now_us: int) -> list[str]:
        """Start the clocks of the jobs that have come together; return their pods."""
        touched = [job for owner in self._touched if (job := self._jobs.get(owner)) and job.began_us is None]
        self._touched.clear()
        jobs = [job for job in touched if not job.expected]
        by_key = store.by_keys(JOBS, [job.key for job in jobs if job.key]) if jobs else {}
        for job in jobs:
            stored = by_key.get(job.key)
            job.expected = sum(task.replicas for task in stored.read(_Job).spec.tasks) if stored else 1
        pods: list[str] = []
        for job in touched:
            if len(job.running) >= job.expected:
                job.began_us = now_us
                pods += job.running
        return pods

    def began(self, pod: Pod) -> int | None:
        """Return when all pods of a pod's job ran, None while they do not."""
        job = self._jobs.get(_owner(pod))
        return None if job is None else job.began_us


def _owner(pod: Pod) -> str:
    return next((one.uid for one in pod.metadata.owner_references if one.controller), pod.metadata.uid)
