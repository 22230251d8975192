"""The way of a job from Created to Finished, with the time of each step and the wait before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.store import Change, store
from jobs.pages.progress import STOPPED
from jobs.pages.reading import Job, Pod, PodGroup
from kube.resources import POD_GROUPS

if TYPE_CHECKING:
    from collections.abc import Sequence


LAST = 5  # the index of the step that ends a job


@dataclass(frozen=True, slots=True)
class Milestone:
    """One step: at is when it was reached, wait how long after the one before, both in ms."""

    title: str
    at: int | None
    wait: int | None
    state: str  # done, failed, current, todo
    hint: str = ""


def steps(job: Job, created: int, group: PodGroup | None, pods: Sequence[Pod]) -> list[Milestone]:
    """Return the steps of a job, in order; the first that is not reached is the current one."""
    times = _times(job, created, group, pods)
    titles = ["Created", "Group created", "In queue", "Gang placed", "Running", _end(job)]
    hints = [
        "The job was accepted.",
        "Its pods were made one group, which starts together or not at all.",
        "The scheduler let the group into its queue; its pods exist.",
        "The last of the pods that are needed got its node.",
        "As many pods as are needed run.",
        "The job is over.",
    ]
    reached = max(index for index, at in enumerate(times) if at is not None)
    found, before = [], created
    for index, (title, at, hint) in enumerate(zip(titles, times, hints, strict=True)):
        wait = None if at is None or index == 0 else max(at - before, 0)
        before = at if at is not None else before
        found.append(Milestone(title, at, wait, _state(index, reached, job), hint))
    return found


def _state(index: int, reached: int, job: Job) -> str:
    if index <= reached:
        return "failed" if index == LAST and job.phase != "Completed" else "done"
    # Steps that were left out on the way to the end are not waited for.
    return "current" if index == reached + 1 and job.phase not in STOPPED else "todo"


def _end(job: Job) -> str:
    return job.phase if job.phase in STOPPED else "Finished"


def _times(job: Job, created: int, group: PodGroup | None, pods: Sequence[Pod]) -> list[int | None]:
    group_created, in_queue = _group_times(group, job)
    placed = _nth([pod.scheduled for pod in pods], job.spec.min_available)
    running = job.since("Running")
    return [
        created,
        group_created,
        in_queue if in_queue is not None else _nth([pod.scheduled for pod in pods], 1),
        placed,
        running,
        job.since(*STOPPED) if job.phase in STOPPED else None,
    ]


def _nth(times: Sequence[int | None], number: int) -> int | None:
    known = sorted(time for time in times if time is not None)
    return known[number - 1] if 0 < number <= len(known) else None


def _group_times(group: PodGroup | None, job: Job) -> tuple[int | None, int | None]:
    """Return when the pod group was made and when it was let in; the log knows, also after its deletion."""
    names = [f"{job.metadata.name}-{job.metadata.uid}"] if group is None else [group.metadata.name]
    for name in names:
        history = store.history(POD_GROUPS, job.metadata.namespace, name, limit=50)
        if history:
            return _first(history, {"ADDED"}), _first_let_in(history)
    return None, None


def _first(history: Sequence[Change], verbs: set[str]) -> int | None:
    return next((change.at for change in history if change.verb in verbs), None)


def _first_let_in(history: Sequence[Change]) -> int | None:
    let_in = None
    for change in history:
        if change.read(PodGroup).status.phase in ("Inqueue", "Running"):
            let_in = change.at
        if change.verb == "ADDED":
            break
    return let_in
