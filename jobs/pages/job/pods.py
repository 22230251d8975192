"""Which pods of a living job its page reads: all or, if too many, the most important ones."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.store import Stored, store
from jobs.lifecycle.causes import MAX_FAILURES
from jobs.lifecycle.reading import Pod
from jobs.pages.job.timeline import IMPORTANCE, MAX_BARS
from kube import pod_health
from kube.kinds.core import PodPhase
from kube.resources import PODS

Read = list[tuple["Stored", Pod]]
TroubleCounts = dict[tuple[str, str], int]  # by phase and trouble, which may be a cause
CAUSES = tuple(pod_health.TEXTS)


def counts(job: Stored) -> TroubleCounts:
    """Return how many pods a job has by phase ("" if no node has reported one yet) and trouble ("" for none)."""
    tally = store.tally(PODS, ("phase", "trouble"), namespace=job.namespace, owner=job.uid)
    return {(phase, trouble): number for (phase, trouble), number in tally.items()}


def stuck_pods(jobs: Iterable[Stored]) -> dict[str, TroubleCounts]:
    """Return how many pods of jobs do not run although they are bound, by the uid of the job."""
    by_job: dict[str, TroubleCounts] = {}
    owners = [job.uid for job in jobs]
    tally = store.tally(PODS, ("owner", "phase", "trouble"), trouble=CAUSES, owner=owners) if owners else {}
    for (owner, phase, cause), number in tally.items():
        by_job.setdefault(owner, {})[phase, cause] = number
    return by_job


def idle(job: Stored) -> list[str]:
    """Return the task of each pod that is in phase Running but does not run; tasks can repeat."""
    keys = store.names(PODS, namespace=job.namespace, owner=job.uid, phase=PodPhase.RUNNING, trouble=CAUSES)
    return [task_of(key.partition("/")[2], job.name) for key in keys.values()]


def task_of(pod: str, job: str) -> str:
    """Return the task of a job's pod, by their names."""
    return pod.removeprefix(f"{job}-").rpartition("-")[0]


def every(job: Stored) -> Read:
    """Return all pods of a job, the oldest first."""
    return _read(store.find(PODS, namespace=job.namespace, owner=job.uid, order="created"))


def most_important(job: Stored, counted: dict[str, int]) -> Read:
    """Return MAX_BARS pods of a job that has more: the first to fail, then by phase the last to change."""
    pods: list[Stored] = []
    for phase in sorted(counted, key=lambda each: IMPORTANCE.get(each, 0)):
        if room := MAX_BARS - len(pods):
            order = "revision" if phase == PodPhase.FAILED else "-revision"
            pods += _of_phase(job, phase, order, room)
    return _read(pods)


def failed(job: Stored) -> Read:
    """Return the first MAX_FAILURES failed pods of a job."""
    return _read(_of_phase(job, PodPhase.FAILED, "revision", MAX_FAILURES))


def _of_phase(job: Stored, phase: str, order: str, limit: int) -> list[Stored]:
    return store.find(PODS, namespace=job.namespace, owner=job.uid, phase=phase, order=order, limit=limit)


def _read(pods: list[Stored]) -> Read:
    return [(stored, stored.read(Pod)) for stored in pods]
