"""The evictions from the displayed run of a job."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cluster import clock
from jobs.pages.job import chapters, evictions, past_runs, timeline
from jobs.pages.job.evictions import Eviction
from jobs.pages.job.run_record import RunRecord
from kube import lenient
from kube.kinds.pod import ENDED
from kube.volcano import intake_times
from kube.volcano.evictions import FIRST_EVICTED
from scheduler import in_force


@dataclass(frozen=True)
class RunEvictions:
    """The evictions of a job's pods: `every` are the newest in all of its runs, oldest first, `record` has the displayed run."""

    record: RunRecord
    every: list[Eviction]

    @property
    def times(self) -> int:
        """In how many cycles the run lost pods."""
        record = self.record
        here = record.chapters.index(record.chapter)
        cycles = {each.at for each in self.every}
        return sum(chapters.index_at(record.chapters, at) == here for at in cycles)

    @cached_property
    def bars(self) -> list[timeline.Bar]:
        """The pods that were evicted from a run that goes on, and are gone; none if there are too many pods."""
        record = self.record
        begun = record.chapter.times.begun
        has_evictions = record.sees.pods and any(each.at >= begun for each in self.every)
        if not has_evictions or not record.shows_living or not record.reads_all:
            return []
        names = [f"{record.stored.name}-{task}-{n}" for task, each in record.tasks for n in range(each.total)]
        living = {stored.uid for stored, _ in record.pods}
        replaced = past_runs.replaced(record.stored, names[: timeline.MAX_BARS], living, begun)
        return [timeline.bar_of_span(span) for span in replaced if span.pod.evicted is not None]

    @cached_property
    def left_alone_until(self) -> int | None:
        """Until when (ms) reclaim spares the job, because it was evicted and has started again; None if it does not."""
        record = self.record
        group = record.stored_group if self.every and not record.is_past else None
        annotations = {} if group is None else lenient.mapping(group.object, "metadata", "annotations")
        first = intake_times.moment(str(annotations.get(FIRST_EVICTED) or ""))
        if first is None:
            return None
        holders = [pod for _, pod in record.pods if pod.evicted is None and pod.status.phase not in ENDED]
        started = [pod.scheduled for pod in holders if pod.scheduled is not None]
        needed = record.job.spec.min_available
        until = evictions.left_alone_until(first, started, in_force.policy(), needed=needed)
        return until if until is not None and until > clock.milliseconds() else None
