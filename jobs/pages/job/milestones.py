"""The steps of a run from start to end, with the time of each and the wait before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.store import Change, store
from jobs.lifecycle.progress import STOPPED
from jobs.lifecycle.reading import Job, Pod, PodGroup
from jobs.pages.job import chapters
from jobs.pages.job.chapters import Chapter, Times
from kube.kinds.batch import JobPhase
from kube.resources import POD_GROUPS

MAX_CHANGES = 500  # of a pod group that are read: the scheduler updates its pod counts each second
LAST = 5  # the index of the step that ends a run
# How a run ended by itself; any other end was requested by a person or a policy, and is no failure.
_ENDS: dict[str, str] = {JobPhase.COMPLETED: "done", JobPhase.FAILED: "failed"}
_OPENINGS = {
    chapters.CREATED: "The job was accepted.",
    chapters.RESUMED: "The job was resumed after it had been suspended; it runs from the start.",
    chapters.RESTARTED: "All pods of the run before were ended; the job runs from the start.",
}


@dataclass(frozen=True, slots=True)
class Milestone:
    """One step: at is when it was reached, wait the time since the one before, both in ms."""

    title: str
    at: int | None
    wait: int | None
    state: str  # done, failed, stopped, current, todo
    hint: str = ""


def steps(chapter: Chapter) -> list[Milestone]:
    """Return the steps of a run in order; the first one not reached is current."""
    end = chapters.RESTARTED if chapter.phase == JobPhase.RESTARTING else chapter.phase or "Finished"
    titles = [chapter.opening, "Group created", "In queue", "Gang placed", "Running", end]
    hints = [
        _OPENINGS[chapter.opening],
        "Its pods were made one group, which starts together or not at all.",
        "The scheduler let the group into its queue; its pods exist.",
        "The last of the pods that are needed got its node.",
        "As many pods as are needed run.",
        chapter.message or "The run is over.",
    ]
    reached = max(index for index, at in enumerate(chapter.times) if at is not None)
    milestones, before = [], chapter.times.begun
    for index, (title, at, hint) in enumerate(zip(titles, chapter.times, hints, strict=True)):
        wait = None if at is None or index == 0 else max(at - before, 0)
        before = at if at is not None else before
        if index <= reached:
            state = _ENDS.get(chapter.phase, "stopped") if index == LAST else "done"
        else:  # steps that were skipped on the way to the end are not waited for
            state = "current" if index == reached + 1 and not chapter.phase else "todo"
        milestones.append(Milestone(title, at, wait, state, hint))
    return milestones


def times(job: Job, begun: int | None, created: int, group: PodGroup | None, pods: Sequence[Pod]) -> Times:
    """Return when a job's newest run reached its steps; `begun` is None if it began with its pod group.

    `pods` are all existing pods, or none if there are too many to read: then the pod group's history is used. A waiting job
    has no gang in place, even if it had one whose pods were evicted.
    """
    # The log has when the pod group was created, admitted and bound, also after its deletion.
    name = f"{job.metadata.name}-{job.metadata.uid}" if group is None else group.metadata.name
    history = store.history(POD_GROUPS, job.metadata.namespace, name, limit=MAX_CHANGES)
    group_created = next((change.at for change in history if change.verb == "ADDED"), None)
    in_queue, placed = _first_in(history, "Inqueue", "Running"), _first_in(history, "Running")
    is_waiting = job.phase == JobPhase.PENDING
    if pods:
        placed = chapters.placed(pods, job.spec.min_available)
    elif is_waiting and job.since(JobPhase.RUNNING) is not None:
        placed = None
    return Times(
        begun if begun is not None else group_created or created,
        group_created,
        in_queue if in_queue is not None else chapters.placed(pods, 1),
        placed,
        None if is_waiting else job.since(JobPhase.RUNNING),
        job.since(*STOPPED) if job.phase in STOPPED else None,
    )


def _first_in(history: Sequence[Change], *phases: str) -> int | None:
    """Return when the group was first in one of the phases; history has its changes, newest first."""
    first = None
    for change in history:
        if change.read(PodGroup).status.phase in phases:
            first = change.at
        if change.verb == "ADDED":
            break
    return first
