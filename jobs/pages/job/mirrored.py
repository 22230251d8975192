"""Jobs as pages show them where the job controller is not ours, as on a cluster with Volcano.

Volcano leaves empty what ours write: the counters of a job that has finished, and why a job waits. Both are filled in from the
pods and the pod groups that are mirrored, so that whoever shows a job reads it in one way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cluster.api import backend
from cluster.runtime import registry
from cluster.store import Stored, store
from dashboard.parts import pod_group_reasons
from jobs.lifecycle import progress
from jobs.lifecycle.reading import Job
from jobs.pages.job import pods
from kube.kinds.meta import Condition
from kube.resources import PODS


def of(stored: Stored) -> Job:
    """Return a job, with the counters of each task."""
    job = stored.read(Job)
    if _is_complete():
        return job
    tasks: dict[str, Counter[str]] = {}
    for name, phase in store.phases(PODS, namespace=stored.namespace, owner=stored.uid).items():
        tasks.setdefault(pods.task_of(name, stored.name), Counter())[phase] += 1
    return _filled(job, tasks, pod_group_reasons.of([stored]).get(stored.uid))


def of_many(stored: Sequence[Stored]) -> dict[str, Job]:
    """Return jobs by uid, without the counters of their tasks."""
    jobs = {each.uid: each.read(Job) for each in stored}
    if _is_complete() or not jobs:
        return jobs
    phases, reasons = store.count_owned(PODS, [*jobs]), pod_group_reasons.of(stored)
    return {
        uid: _filled(job, {"": phases[uid]} if uid in phases else {}, reasons.get(uid)) for uid, job in jobs.items()
    }


def _is_complete() -> bool:
    """Tell whether our job controller works here, which writes all of a status."""
    return backend.runs(registry.get("jobs"))


def _filled(job: Job, tasks: Mapping[str, Mapping[str, int]], reason: Condition | None) -> Job:
    return progress.recounted(job if reason is None else progress.explained(job, reason), tasks)
