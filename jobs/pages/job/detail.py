"""What a job's page shows, read once for all of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cluster.api import backend
from cluster.runtime import registry
from jobs.pages.job import chapters, event_list, evictions, timeline, why_waiting
from jobs.pages.job.run_evictions import RunEvictions
from jobs.pages.job.run_record import RunRecord
from jobs.pages.job.why_waiting import Wait


@dataclass(frozen=True)
class Detail(RunRecord):
    """The page of one job: the displayed run, what was done to it, and why it waits."""

    @property
    def has_decisions(self) -> bool:
        """Whether our scheduler decides here."""
        return backend.runs(registry.get("scheduler"))

    @cached_property
    def evictions(self) -> RunEvictions:
        """The evictions of the job's pods by our scheduler."""
        return RunEvictions(self, evictions.of_job(self.stored) if self.has_decisions else [])

    @cached_property
    def drawn_bars(self) -> Sequence[timeline.Bar]:
        """What the timeline draws: pods that were evicted from the displayed run, then the run's pods."""
        return timeline.chosen([*self.evictions.bars, *self.bars]) if self.evictions.bars else self.bars

    @cached_property
    def all_marks(self) -> list[timeline.Mark]:
        """What policies, Commands and evictions did to the job in all of its runs, oldest first."""
        events = event_list.of_job(self.stored, self.history) if self.sees.events else []
        marks = [*timeline.marks_of(events), *evictions.marks(self.evictions.every)]
        return sorted(marks, key=lambda mark: mark.at)

    @property
    def marks(self) -> list[timeline.Mark]:
        """Those of all_marks in the displayed run, at most the newest MAX_MARKS."""
        here = self.chapters.index(self.chapter)
        found = [mark for mark in self.all_marks if chapters.index_at(self.chapters, mark.at) == here]
        return found[-timeline.MAX_MARKS :]

    @cached_property
    def delayed_actions(self) -> list[event_list.Delayed]:
        """The delayed actions of policies."""
        return [] if self.deleted else event_list.delayed_of(self.stored)

    @cached_property
    def waiting(self) -> Wait:
        """Why the job, or part of it, waits."""
        return why_waiting.of_job(self)

    @property
    def reasons(self) -> list[str]:
        """Why the job waits: the sentence for people, "" if it does not, and the text of Volcano's scheduler if it has one."""
        return [self.waiting.why, *filter(None, [self.waiting.volcano_text])]
