"""One run of a job, as its page shows it: what its pods did, how far they came and how they failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from cluster.rules import simulation
from dashboard.live import Watch
from dashboard.live.topics import address
from jobs.lifecycle import progress
from jobs.lifecycle.causes import Failure
from jobs.pages.job import chapters, milestones, past_runs, pods, timeline
from jobs.pages.job.chapters import Chapter
from jobs.pages.job.job_record import JobRecord
from kube import lenient
from kube.kinds.batch import JobPhase
from kube.kinds.core import PodPhase
from kube.resources import JOBS, POD_GROUPS, PODS

# Phases in which no run goes on once the newest has ended.
_BETWEEN = progress.ENDING | {JobPhase.RESTARTING}


@dataclass(frozen=True)
class RunRecord(JobRecord):
    """A job's record with the run that is displayed: the newest, unless `run` is the number of another."""

    @cached_property
    def chapters(self) -> list[Chapter]:
        """The job's runs, oldest first; at least one."""
        needed = self.job.spec.min_available
        if self.deleted:
            return chapters.of_deleted(self.history.runs, needed, self.deleted)
        over = [run for run in self.history.runs if run.phase]
        ended = chapters.of_runs(over, needed)
        # A group that belongs to no ended run means that a run goes on: some of its pods may be restarted.
        goes_on = self.group is not None and self.group.metadata.uid not in {run.group for run in over}
        if ended and self.job.phase in _BETWEEN and not goes_on:
            return [*ended[:-1], replace(ended[-1], next=self.job.status.state.next)]
        created = self.stored.created
        pods_read = [pod for _, pod in self.pods] if self.reads_all else []
        times = milestones.times(self.job, None if ended else created, created, self.group, pods_read)
        phase = self.job.phase if self.job.phase in progress.STOPPED else ""
        opening = chapters.opening(ended[-1] if ended else None)
        state = self.job.status.state
        return [*ended, Chapter(len(ended) + 1, times, opening, phase, state.message, next=state.next)]

    @property
    def chapter(self) -> Chapter:
        chosen = [each for each in self.chapters if each.number == self.run]
        return chosen[0] if chosen else self.chapters[-1]

    @property
    def is_past(self) -> bool:
        """Whether another run came after the displayed one."""
        return self.chapter is not self.chapters[-1]

    @property
    def phase(self) -> str:
        """The phase of the job, or of the displayed run if that is past."""
        return self.chapter.over if self.is_past else progress.display_phase(self.job, self.deleted)

    @property
    def gang(self) -> progress.Progress | None:
        """The progress of the displayed run's pods; None if it is past and the reader may not see pods."""
        if not self.is_past:
            return progress.of_job(self.job, self.deleted, self.health)
        return progress.of_past(self.tasks, self.job.spec.min_available) if self.sees.pods else None

    @property
    def ran(self) -> progress.Ran:
        # A job's status keeps only the last time of each phase.
        phases: list[tuple[str, int]] = []
        if self.deleted:
            phases = [(each.phase, each.at) for each in self.deleted_history.phases]
        elif len(self.chapters) > 1 or progress.came_back(self.job, self.stored.created):
            phases = past_runs.phases([self.stored]).get(self.stored.uid, [])
        if not phases:
            return progress.last_ran(progress.phases_of(self.job), self.deleted)
        return progress.ran(phases, self.chapter.times.begun, self.chapter.times.ended)

    @property
    def shows_living(self) -> bool:
        """Whether the displayed pods are the existing ones."""
        if self.is_past or not self.chapter.spans:
            return not self.is_past
        is_over = self.job.phase in progress.STOPPED
        return bool(self.counts) and not (is_over and sum(self.counts.values()) < len(self.chapter.spans))

    @cached_property
    def recorded_bars(self) -> list[timeline.Bar]:
        """All pods of a past run, from its record."""
        return [timeline.bar_of_span(span) for span in self.chapter.spans] if self.sees.pods else []

    @cached_property
    def bars(self) -> Sequence[timeline.Bar]:
        """The pods of the displayed run; if too many, the most important."""
        if not self.shows_living:
            return timeline.chosen(self.recorded_bars)
        ran = past_runs.stretches(self.stored.namespace, self.stored.uid, [pod for _, pod in self.pods])
        return [timeline.bar_of(pod, stored.created, ran.get(stored.uid, ())) for stored, pod in self.pods]

    @property
    def total(self) -> int:
        return sum(self.counts.values()) if self.shows_living else len(self.recorded_bars)

    @cached_property
    def tasks(self) -> list[tuple[str, progress.Progress]]:
        """Each task's name and progress in the displayed run."""
        if self.shows_living:
            return progress.of_tasks(self.job, pods.idle(self.stored) if self.health.troubled else ())
        # Of several pods of one name, the last one counts.
        last = {bar.pod.metadata.name: bar for bar in sorted(self.recorded_bars, key=lambda bar: bar.created)}
        phases: dict[str, list[str]] = {}
        for bar in last.values():
            phases.setdefault(bar.pod.task, []).append(bar.phase)
        return progress.of_past_tasks(self.job, phases)

    @cached_property
    def failures(self) -> list[Failure]:
        """How pods of the displayed run failed."""
        if not self.shows_living:
            return [bar.pod.failure for bar in self.recorded_bars if bar.state == "failed"]
        if self.reads_all:
            failed = self.pods
        else:
            failed = pods.failed(self.stored) if PodPhase.FAILED in self.counts else []
        bars = (timeline.bar_of(pod, stored.created) for stored, pod in failed)
        return [bar.pod.failure for bar in bars if bar.state == "failed"]

    @property
    def simulated(self) -> int:
        """How many pods of the run are simulated; if too many to read, how many request it."""
        if self.reads_all:
            return sum(bar.pod.is_simulated for bar in self.bars)
        return sum(
            lenient.whole(task, "replicas") or 0
            for task in lenient.sequence(self.stored.object, "spec", "tasks")
            if simulation.asks(lenient.mapping(task, "template", "spec"))
        )

    # Its address

    def topic(self, name: str) -> str:
        """Return the canonical spelling of a topic of the page; "" for a deleted job, which does not change."""
        return "" if self.deleted else address(name, self.address_params)

    @property
    def address_params(self) -> dict[str, str]:
        """The parameters that name the job and run."""
        run = {"run": str(self.run)} if self.run else {}
        return {"namespace": self.stored.namespace, "name": self.stored.name, **run}

    @property
    def query(self) -> dict[str, str]:
        """The page's parameters for which job of the name and which run is displayed."""
        of = {"of": self.stored.uid} if self.deleted else {}
        return {**of, **({"run": str(self.run)} if self.run else {})}

    def log_url(self, pod: str, run: int = 0) -> str:
        """Return the URL of the log of a pod; run 0 is the displayed run."""
        url = reverse("jobs:detail", args=[self.stored.namespace, self.stored.name])
        other = {"run": str(run)} if run else {}
        return f"{url}?{urlencode({'tab': 'logs', **self.query, **other, 'pod': pod})}"

    @property
    def watches(self) -> list[Watch]:
        """The changes that make the head of the page stale."""
        namespace, name, uid = self.stored.namespace, self.stored.name, self.stored.uid
        return [
            Watch(JOBS.id, namespace=namespace, name=name),
            Watch(POD_GROUPS.id, namespace=namespace, owner=uid),
            Watch(PODS.id, namespace=namespace, owner=uid),
        ]
