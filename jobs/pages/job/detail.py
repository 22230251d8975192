"""What a job's page shows, read once for all of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse

from cluster import clock
from cluster.api import backend
from cluster.rules import simulation
from cluster.runtime import registry
from cluster.store import decisions
from cluster.store.decisions import StoredDecision
from dashboard.live import Watch
from dashboard.live.topics import address
from jobs.lifecycle import causes, phases, progress
from jobs.lifecycle.causes import Failure
from jobs.operations import single
from jobs.pages.job import (
    chapters,
    event_list,
    evictions,
    fired_policies,
    milestones,
    past_runs,
    plugin_sentences,
    pods,
    policy_sentences,
    timeline,
    why_waiting,
)
from jobs.pages.job.chapters import Chapter
from jobs.pages.job.chapters import Wait as Stretch
from jobs.pages.job.evictions import Eviction, Notice, Summary
from jobs.pages.job.job_record import JobRecord
from jobs.pages.job.why_waiting import Wait
from jobs.sweeps.record import sweep_of
from kube import lenient, pod_health
from kube.kinds.batch import JobPhase
from kube.kinds.core import Event, PodPhase
from kube.kinds.pod import ENDED
from kube.resources import JOBS, POD_GROUPS, PODS
from kube.volcano import intake_times
from kube.volcano.evictions import FIRST_EVICTED
from scheduler import in_force
from scheduler.engine.cause import ExclusionKind

MOST_DECISIONS = 200

# Phases in which no run goes on, once something has ended the newest.
_BETWEEN = progress.ENDING | {JobPhase.RESTARTING}


@dataclass(frozen=True)
class Detail(JobRecord):
    """The page of one job: of what is read of it, what is shown."""

    @cached_property
    def chapters(self) -> list[Chapter]:
        """The job's runs, the oldest first; there is one at least."""
        needed = self.job.spec.min_available
        if self.deleted:
            return chapters.of_deleted(self.history.runs, needed, self.deleted)
        over = [run for run in self.history.runs if run.phase]
        ended = chapters.of_runs(over, needed)
        # A group beside the run that ended is a run that nothing has ended: some of its pods may be restarted.
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
        """Whether another run came after the one that is shown."""
        return self.chapter is not self.chapters[-1]

    @property
    def phase(self) -> str:
        """The phase of the job, or of the run that is shown once it is over."""
        return self.chapter.over if self.is_past else progress.display_phase(self.job, self.deleted)

    @property
    def gang(self) -> progress.Progress | None:
        """How far the pods of the run that is shown have come; None where the reader may not see how far they had."""
        if not self.is_past:
            return progress.of_job(self.job, self.deleted, self.health)
        return progress.of_past(self.tasks, self.job.spec.min_available) if self.sees.pods else None

    @property
    def ran(self) -> progress.Ran:
        # The status of a job keeps the last time of each phase alone.
        phases: list[tuple[str, int]] = []
        if self.deleted:
            phases = [(each.phase, each.at) for each in self.deleted_history.phases]
        elif len(self.chapters) > 1 or progress.came_back(self.job, self.stored.created):
            phases = past_runs.phases([self.stored]).get(self.stored.uid, [])
        if not phases:
            return progress.last_ran(progress.phases_of(self.job), self.deleted)
        return progress.ran(phases, self.chapter.times.begun, self.chapter.times.ended)

    @property
    def times_evicted(self) -> int:
        """How often pods were evicted from the run that is shown."""
        here = self.chapters.index(self.chapter)
        cycles = {each.at for each in self.evictions}
        return sum(chapters.index_at(self.chapters, at) == here for at in cycles)

    @property
    def shows_living(self) -> bool:
        """Whether the pods that are shown are those that there are."""
        if self.is_past or not self.chapter.spans:
            return not self.is_past
        is_over = self.job.phase in progress.STOPPED
        return bool(self.counts) and not (is_over and sum(self.counts.values()) < len(self.chapter.spans))

    @cached_property
    def recorded_bars(self) -> list[timeline.Bar]:
        """All pods of a run that is over, as its record tells of them."""
        return [timeline.bar_of_span(span) for span in self.chapter.spans] if self.sees.pods else []

    @cached_property
    def bars(self) -> Sequence[timeline.Bar]:
        """The pods of the run that is shown; of very many those that matter most."""
        if not self.shows_living:
            return timeline.chosen(self.recorded_bars)
        ran = past_runs.stretches(self.stored.namespace, self.stored.uid, [pod for _, pod in self.pods])
        return [timeline.bar_of(pod, stored.created, ran.get(stored.uid, ())) for stored, pod in self.pods]

    @cached_property
    def evictions(self) -> list[Eviction]:
        """The newest evictions of the job's pods by our scheduler, in all of its runs."""
        return evictions.of_job(self.stored) if self.has_decisions else []

    @cached_property
    def evicted_bars(self) -> list[timeline.Bar]:
        """The pods that were evicted from a run that goes on, and are gone; of a job of very many none."""
        begun = self.chapter.times.begun
        has_evictions = self.sees.pods and any(each.at >= begun for each in self.evictions)
        if not has_evictions or not self.shows_living or not self.reads_all:
            return []
        names = [f"{self.stored.name}-{task}-{n}" for task, each in self.tasks for n in range(each.total)]
        living = {stored.uid for stored, _ in self.pods}
        replaced = past_runs.replaced(self.stored, names[: timeline.MOST_BARS], living, begun)
        return [timeline.bar_of_span(span) for span in replaced if span.pod.evicted is not None]

    @cached_property
    def drawn_bars(self) -> Sequence[timeline.Bar]:
        """What the timeline draws: the pods of the run that is shown, before them those that were evicted from it."""
        return timeline.chosen([*self.evicted_bars, *self.bars]) if self.evicted_bars else self.bars

    @property
    def notice(self) -> Notice | None:
        """The last evictions, while they are why the job is as it is."""
        if self.deleted or not self.evictions:
            return None
        here = self.chapters[-1].number
        fired = [row for row in fired_policies.rows(self.all_marks, self.chapters) if row.run == here]
        # Pods of the job that were evicted may still end, or wait for a node again.
        misses = any(pod.evicted is not None for _, pod in self.pods)
        if not misses and self.waiting.pods:
            evicted = {bar.pod.metadata.name for bar in self.evicted_bars}
            lacking = [pod for _, pod in self.pods if not pod.spec.node_name and pod.metadata.name in evicted]
            misses = bool(lacking) or not self.reads_all
        return evictions.notice(self.job, self.evictions, fired, misses=misses)

    @property
    def eviction_summary(self) -> Summary | None:
        """How often the job was evicted in all of its runs, and for whom; None where that was once, which the notice tells."""
        if self.is_past:
            return None
        summary = evictions.summary(self.evictions, self.left_alone_until)
        return None if summary is not None and summary.times == 1 and self.notice else summary

    @cached_property
    def left_alone_until(self) -> int | None:
        """Until when reclaim leaves the job alone, as it was evicted before and has started again (ms); None where it does not."""
        group = self.stored_group if self.evictions and not self.is_past else None
        noted = {} if group is None else lenient.mapping(group.object, "metadata", "annotations")
        first = intake_times.moment(str(noted.get(FIRST_EVICTED) or ""))
        if first is None:
            return None
        holders = [pod for _, pod in self.pods if pod.evicted is None and pod.status.phase not in ENDED]
        started = [pod.scheduled for pod in holders if pod.scheduled is not None]
        needed = self.job.spec.min_available
        until = evictions.left_alone_until(first, started, in_force.policy(), needed=needed)
        return until if until is not None and until > clock.milliseconds() else None

    @property
    def total(self) -> int:
        return sum(self.counts.values()) if self.shows_living else len(self.recorded_bars)

    @cached_property
    def failures(self) -> list[Failure]:
        """How pods of the run that is shown failed."""
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
        """How many pods of the run run on a clock; of very many those that ask for it."""
        if self.reads_all:
            return sum(bar.pod.is_simulated for bar in self.bars)
        return sum(
            lenient.whole(task, "replicas") or 0
            for task in lenient.sequence(self.stored.object, "spec", "tasks")
            if simulation.asks(lenient.mapping(task, "template", "spec"))
        )

    @property
    def marks(self) -> list[timeline.Mark]:
        """What policies and Commands did to the job during the run that is shown."""
        here = self.chapters.index(self.chapter)
        found = [mark for mark in self.all_marks if chapters.index_at(self.chapters, mark.at) == here]
        return found[-timeline.MOST_MARKS :]

    @cached_property
    def all_marks(self) -> list[timeline.Mark]:
        """What policies, Commands and evictions did to the job during all of its runs, the oldest first."""
        events = event_list.of_job(self.stored, self.history) if self.sees.events else []
        marks = [*timeline.marks_of(events), *evictions.marks(self.evictions)]
        return sorted(marks, key=lambda mark: mark.at)

    @cached_property
    def delayed_actions(self) -> list[event_list.Delayed]:
        return [] if self.deleted else event_list.delayed_of(self.stored)

    @cached_property
    def waiting(self) -> Wait:
        """Why the job, or some of it, waits."""
        return why_waiting.of_job(self)

    @property
    def why(self) -> str:
        """Why the job waits, in a sentence with numbers; empty when it does not wait."""
        return self.waiting.why

    @property
    def reasons(self) -> list[str]:
        """Why the job waits: the sentence for people, and if there is more what Volcano's scheduler would say."""
        return [self.why, *filter(None, [self.waiting.volcano_text])]

    @property
    def wish(self) -> str:
        """What the pods would say to run on simulated nodes, if the taint of these is among the reasons."""
        cause = self.group.cause if self.group and self.why else None
        taints = [each.display for _, each in cause.excluded if each.kind == ExclusionKind.TAINT] if cause else []
        return simulation.WISH if any(each.startswith(f"{simulation.SIMULATED}=") for each in taints) else ""

    @property
    def watches(self) -> list[Watch]:
        """The changes that make the head of the page stale."""
        namespace, name, uid = self.stored.namespace, self.stored.name, self.stored.uid
        return [
            Watch(JOBS.id, namespace=namespace, name=name),
            Watch(POD_GROUPS.id, namespace=namespace, owner=uid),
            Watch(PODS.id, namespace=namespace, owner=uid),
        ]

    def topic(self, name: str) -> str:
        """Return the canonical spelling of one of the page's topics; a deleted job does not change."""
        return "" if self.deleted else address(name, self.address_params)

    @property
    def address_params(self) -> dict[str, str]:
        """What names the job and the run that is shown."""
        run = {"run": str(self.run)} if self.run else {}
        return {"namespace": self.stored.namespace, "name": self.stored.name, **run}

    @property
    def query(self) -> dict[str, str]:
        """What of the page's address says which job of the name and which run is shown."""
        of = {"of": self.stored.uid} if self.deleted else {}
        return {**of, **({"run": str(self.run)} if self.run else {})}

    def head_parts(self, *, was_alive: bool = False) -> dict[str, str]:
        """Return the phase with its gang, why pods failed or wait and the steps, and the runs.

        Somebody has seen the job alive, and is told that it is gone.
        """
        images = [] if self.deleted else why_waiting.images_of(pod for _, pod in self.pods)
        summed_up = causes.summed_up(self.failures)
        context = {
            "gone": was_alive,
            "namespace": self.stored.namespace,
            "name": self.stored.name,
            "job": self.job,
            "stored": self.stored,
            "deleted": self.deleted,
            "kept": () if self.is_past else self.health.words,
            "phase": self.phase,
            "now": self.job.phase if self.is_past else "",
            "progress": self.gang,
            "base": urlencode(self.query),
            "otherwise": summed_up.others,
            "causes": [(each, [(pod, self.log_url(pod.name)) for pod in each.pods]) for each in summed_up.groups],
            "message": self.message,
            "why": self.reasons,
            "waiting": self.waiting,
            "images": images,
            "told_of_images": bool(images)
            and self.waiting.reason == pod_health.Cause.IMAGE
            and len(self.health.troubled) < 2,
            "wish": self.wish,
            "notice": self.notice,
            "evictions": self.eviction_summary,
            "steps": milestones.steps(self.chapter),
            "chapters": self.chapters,
            "chapter": self.chapter,
            "of": self.stored.uid if self.deleted else "",
            "kept_days": settings.JOB_HISTORY_DAYS,
            "ran": self.ran,
            "restarts": chapters.restarts(self.job.status.retry_count, self.job.spec.max_retry, self.chapters),
            "evicted": self.times_evicted,
            "simulated": self.simulated,
            "pods": self.total,
            "sweep": sweep_of(self.stored.object),
        }
        return _render(context, "head", "runs")

    @property
    def message(self) -> str:
        """What the controller says of a job that is over or about to be, without what stands beside it as causes."""
        if self.is_past or self.job.phase in phases.RUNS:  # how far the pods have come stands beside the phase already
            return ""
        state = self.job.status.state
        message = (state.summary if self.failures else "") or state.message
        return message if self.deleted else f"{message} {state.next}".rstrip()

    def log_url(self, pod: str, run: int = 0) -> str:
        """Return the address of the log of a pod, of the run that is shown or of another."""
        url = reverse("jobs:detail", args=[self.stored.namespace, self.stored.name])
        other = {"run": str(run)} if run else {}
        return f"{url}?{urlencode({'tab': 'logs', **self.query, **other, 'pod': pod})}"

    def action_part(self, now: int) -> tuple[str, int | None]:
        """Return what became of the last action that was asked of the job, and when (epoch ms) that reads otherwise."""
        item = single.latest(self.stored.uid, now)
        living = None if self.deleted else self.job
        verdict = None if item is None else single.verdict(item, living, now)
        html = _render({"item": item, "verdict": verdict, "stored": self.stored}, "asked")["job-asked"]
        return html, None if item is None else single.again(item, verdict, now)

    def timeline_parts(self) -> dict[str, str]:
        """Return the tasks with their gangs, the timeline, and what policies and plugins do."""
        bars, marks, chapter = self.drawn_bars, self.marks, self.chapter
        total = self.total + len(self.evicted_bars)
        waits, needed = chapters.waits(chapter.times), self.job.spec.min_available
        if len(bars) == total and needed > 0 and any(bar.state == "evicted" for bar in bars):
            # All pods are known: what the run waited for between an eviction and the next start is, too.
            placed = chapters.stretches_with(
                [(bar.scheduled, bar.left) for bar in bars if bar.scheduled is not None], needed
            )
            ran = chapters.stretches_with([(bar.started, bar.left) for bar in bars if bar.started is not None], needed)
            waits = chapters.waits_of_gang(chapter.times, placed, ran)
        rows = [  # each with the pods that it names and the addresses of their logs in its run
            (row, [(pod, self.log_url(pod, 0 if row.run == chapter.number else row.run)) for pod in row.named])
            for row in fired_policies.rows(self.all_marks, self.chapters)
        ]
        goes_on = self.shows_living and self.sees.pods and chapter.times.ended is None
        planned = {task.name: task.replicas for task in self.job.spec.tasks} if goes_on else {}
        room = timeline.room(bars, waits, planned)
        context = {
            "job": self.job,
            "sees_pods": self.sees.pods,
            "tasks": self.tasks if len(self.tasks) > 1 or not self.shows_living else [],
            "summaries": timeline.summaries(bars),
            "timeline": self._drawn(marks, waits, room),
            "room": room,
            "waits": waits,
            "marks": [mark for mark in marks if mark.firing is None],
            "base": urlencode(self.query),
            "shown": len(bars),
            "pods": total,
            "legend": timeline.legend(bars),
            "fired": [each for each in rows if each[0].run == chapter.number],
            "elsewhere": [each for each in rows if each[0].run != chapter.number],
            "of": self.stored.uid if self.deleted else "",
            "delayed": self.delayed_actions,
            "policies": policy_sentences.of_job(self.stored.object),
            "restarts": policy_sentences.restarts(self.stored.object),
            "plugins": plugin_sentences.of_job(self.stored.object),
        }
        return _render(context, "timeline", "tasks", "policies", "plugins")

    def _drawn(self, marks: Sequence[timeline.Mark], waits: Sequence[Stretch], room: int) -> str:
        """Return what the browser draws; where not all pods have bars, the lanes say how many there are."""
        times, bars = self.chapter.times, self.drawn_bars
        causes = {
            bar.pod.metadata.uid: evictions.cause_of(bar.pod, self.evictions) for bar in bars if bar.state == "evicted"
        }
        if len(bars) == self.total + len(self.evicted_bars):
            met = chapters.nth([bar.started for bar in bars], self.job.spec.min_available)
            return timeline.data(self.job, bars, times.begun, marks, waits, met=met, causes=causes, room=room)
        totals = {name: each.total - each.failed for name, each in self.tasks}
        totals[PodPhase.FAILED.value] = sum(each.failed for _, each in self.tasks)
        return timeline.data(
            self.job, bars, times.begun, marks, waits, met=times.running, totals=totals, causes=causes, room=room
        )

    @cached_property
    def tasks(self) -> list[tuple[str, progress.Progress]]:
        """Each task's name and progress in the run that is shown."""
        if self.shows_living:
            return progress.of_tasks(self.job, pods.idle(self.stored) if self.health.troubled else ())
        # Of the pods that had one name in turn, the last says how far it came.
        last = {bar.pod.metadata.name: bar for bar in sorted(self.recorded_bars, key=lambda bar: bar.created)}
        phases: dict[str, list[str]] = {}
        for bar in last.values():
            phases.setdefault(bar.pod.task, []).append(bar.phase)
        return progress.of_past_tasks(self.job, phases)

    @property
    def has_decisions(self) -> bool:
        """Whether a scheduler of ours decides here."""
        return backend.runs(registry.get("scheduler"))

    def decisions(self) -> list[StoredDecision]:
        """Return what the scheduler decided about the job in all of its runs, newest first."""
        group = f"{self.stored.name}-{self.stored.uid}"
        about = decisions.Filters(namespaces=self.stored.namespace, name=group)
        return decisions.find(about, limit=MOST_DECISIONS)

    def events(self) -> list[Event]:
        """Return the newest events of the job, its group and its pods, newest first."""
        if not self.sees.events:
            return []
        tasks = [name for name, _ in progress.of_tasks(self.job)]
        return event_list.everything(self.stored, self.history, tasks, is_deleted=bool(self.deleted))


def _render(context: dict[str, Any], *parts: str) -> dict[str, str]:
    return {f"job-{part}": render_to_string(f"jobs/_{part}.html", context) for part in parts}
