"""A job's pods compared with its spec: which are missing, surplus, left over from an earlier run, or not the job's."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec import Struct, field

from jobs.controller.facts import JobFact, PodFact
from jobs.lifecycle import dependencies
from jobs.lifecycle.counts import Counts
from kube.kinds.core import PodPhase


class PodDiff(Struct):
    """How a job's pods differ from its spec."""

    counts: Counts
    surplus: list[PodFact] = field(default_factory=list)  # to be deleted
    leftovers: dict[str, PodFact] = field(default_factory=dict)  # of a run that was ended, to be deleted first
    named: dict[str, int] = field(default_factory=dict)  # task → how many of its pod names its own pods take
    ready: dict[str, int] = field(default_factory=dict)  # task → how many of its pods let dependent tasks start
    failed: list[PodFact] = field(default_factory=list)
    stuck: list[PodFact] = field(default_factory=list)  # bound to a node, but kept from running
    foreign: list[str] = field(default_factory=list)  # names taken by pods of another owner


def compare(job: JobFact, pods: Iterable[PodFact]) -> PodDiff:
    """Count a job's pods and find those it does not want (reference: volcano-job §2.4, step 7).

    Pods of an earlier job of the same name are not counted: they only occupy their names until they are gone. Pods of
    an earlier run of this job, too many to have been ended in one round, count as terminating.
    """
    diff = PodDiff(Counts({task.name: {} for task in job.tasks}))
    replicas = {task.name: task.replicas for task in job.tasks}
    tasks, named, ready = diff.counts.tasks, diff.named, diff.ready
    has_waiting = bool(job.dependencies)
    uid, failed = job.uid, PodPhase.FAILED.value
    version = job.version if job.runs_on else 0
    for pod in pods:
        if pod.owner != uid:
            diff.foreign.append(pod.name)
            continue
        task = pod.task
        wanted = pod.index < replicas.get(task, 0)
        if wanted:
            named[task] = named.get(task, 0) + 1
        if pod.deleting:
            diff.counts.terminating += 1
            continue
        if -1 < pod.version < version:
            diff.leftovers[pod.name] = pod
            diff.counts.terminating += 1
            continue
        if not wanted or pod.out_of_sync:
            diff.surplus.append(pod)
            continue
        phases = tasks[task]
        phases[pod.phase] = phases.get(pod.phase, 0) + 1
        if pod.phase == failed:
            diff.failed.append(pod)
        if pod.obstacle is not None:
            diff.stuck.append(pod)
            diff.counts.idle += pod.phase == PodPhase.RUNNING
        if has_waiting and pod.is_ready_for_others:
            ready[task] = ready.get(task, 0) + 1
    diff.counts.sum_up()
    return diff


def lacks(job: JobFact, pods: Container[str]) -> bool:
    """Tell whether any pod that the job wants is missing from these pod names."""
    return any(f"{job.name}-{task.name}-{index}" not in pods for task in job.tasks for index in range(task.replicas))


def missing(job: JobFact, pods: Mapping[str, PodFact], diff: PodDiff) -> Iterator[tuple[int, int]]:
    """Yield the task number and index of every pod that should exist and whose name is free."""
    tasks = {task.name: task for task in job.tasks}
    for number, task in enumerate(job.tasks):
        if diff.named.get(task.name, 0) >= task.replicas:
            continue
        if not dependencies.may_start(task.name, job.dependencies, tasks, diff.ready):
            continue
        prefix = f"{job.name}-{task.name}-"
        for index in range(task.replicas):
            if f"{prefix}{index}" not in pods:
                yield number, index
