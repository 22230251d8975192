"""What a job's page shows, read once for all of its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.template.loader import render_to_string

from cluster import access
from cluster.rules import simulation
from cluster.store import Stored, store
from dashboard.live import Watch
from dashboard.live.topics import address
from jobs.history import record
from jobs.history.record import History
from jobs.operations import outcomes
from jobs.pages import (
    chapters,
    delayed,
    milestones,
    past,
    plugin_sentences,
    policy_sentences,
    progress,
    timeline,
)
from jobs.pages.chapters import Chapter
from jobs.pages.reading import Job, Pod, PodGroup
from jobs.rules import actions, allowed_actions
from jobs.sweeps.record import sweep_of
from kube.errors import NotFound
from kube.kinds.batch import JobPhase
from kube.kinds.core import Event
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cluster.access import Actor

MOST_EVENTS = 200
# What Volcano's own scheduler says, after the sentence for people.
_GANG_TEXT = re.compile(r"\s+(?=\d+/\d+ tasks in gang unschedulable)")
# Phases in which no run goes on, once something has ended the newest.
_BETWEEN = progress.ENDING | {JobPhase.RESTARTING}


@dataclass(frozen=True)
class Detail:
    """One job with everything that belongs to it; each part is read when it is asked for.

    `run` is the number of the run that is shown, 0 for the newest. `deleted` is when the job was deleted, in ms,
    and 0 while it lives; then `told` holds all that is known of it.
    """

    stored: Stored
    run: int = 0
    deleted: int = 0
    told: History = field(default_factory=History)

    @classmethod
    def of(cls, actor: Actor, namespace: str, name: str, run: int = 0) -> Detail:
        """Read the job; Forbidden or NotFound says why there is nothing to show."""
        access.require(actor, "get", JOBS, namespace, name)
        return cls(store.get(JOBS, namespace, name), run)

    @classmethod
    def of_deleted(cls, actor: Actor, namespace: str, name: str, uid: str = "", run: int = 0) -> Detail:
        """Read what is known of a job that was deleted, by its uid or the last of the name.

        Who might have seen the job may see it; NotFound says that nothing is known.
        """
        access.require(actor, "get", JOBS, namespace, name)
        kept = past.of_deleted(namespace, name, uid)
        if kept is None:
            raise NotFound.of(JOBS.id, name)
        return cls(past.stored_of(kept), run, kept.deleted, record.read(kept.history))

    @cached_property
    def job(self) -> Job:
        return self.stored.read(Job)

    @cached_property
    def pods(self) -> list[tuple[Stored, Pod]]:
        """The pods that there are."""
        if self.deleted:
            return []
        found = store.find(PODS, namespace=self.stored.namespace, owner=self.stored.uid, order="created")
        return [(stored, stored.read(Pod)) for stored in found]

    @cached_property
    def history(self) -> History:
        """What is told of the job beyond its objects: of one that lives, of its runs if it has had several."""
        return self.told if self.deleted else past.of_living(self.stored, self.job)

    @cached_property
    def chapters(self) -> list[Chapter]:
        """The job's runs, the oldest first; there is one at least."""
        needed = self.job.spec.min_available
        if self.deleted:
            return chapters.of_deleted(self.history.runs, needed, self.deleted)
        ended = chapters.of_runs([run for run in self.history.runs if run.phase], needed)
        if ended and self.job.phase in _BETWEEN and not self._has_group_beside(self.history):
            return ended
        return [*ended, self._newest(ended)]

    def _has_group_beside(self, history: History) -> bool:
        """Whether there is a pod group, so a run, that nothing has ended: some of its pods may be restarted."""
        ended = {run.group for run in history.runs if run.phase}
        return self.group is not None and self.group.metadata.uid not in ended

    def _newest(self, ended: list[Chapter]) -> Chapter:
        created = self.stored.created
        pods = [pod for _, pod in self.pods]
        times = milestones.times(self.job, None if ended else created, created, self.group, pods)
        phase = self.job.phase if self.job.phase in progress.STOPPED else ""
        opening = chapters.opening(ended[-1] if ended else None)
        return Chapter(len(ended) + 1, times, opening, phase, self.job.status.state.message)

    @property
    def chapter(self) -> Chapter:
        """The run that is shown."""
        chosen = [each for each in self.chapters if each.number == self.run]
        return chosen[0] if chosen else self.chapters[-1]

    @property
    def shows_living(self) -> bool:
        """Whether the pods that are shown are those that there are."""
        return self.chapter is self.chapters[-1] and (bool(self.pods) or not self.chapter.spans)

    @cached_property
    def bars(self) -> list[timeline.Bar]:
        if not self.shows_living:
            return [timeline.bar_of_span(span) for span in self.chapter.spans]
        pods = [pod for _, pod in self.pods]
        ran = past.stretches(self.stored.namespace, self.stored.uid, pods)
        return [timeline.bar_of(pod, stored.created, ran.get(stored.uid, ())) for stored, pod in self.pods]

    @cached_property
    def group(self) -> PodGroup | None:
        if self.deleted:
            return None
        found = store.find(POD_GROUPS, namespace=self.stored.namespace, owner=self.stored.uid, limit=1)
        return found[0].read(PodGroup) if found else None

    @cached_property
    def marks(self) -> list[timeline.Mark]:
        """What policies and Commands did to the job during the run that is shown."""
        found = store.find(
            EVENTS,
            namespace=self.stored.namespace,
            owner=self.stored.uid,
            order="-created",
            limit=MOST_EVENTS,
        )
        events = self._with_told({stored.name: stored.read(Event) for stored in found})
        of_job = [event for event in events.values() if event.involved_object.kind == JOBS.kind]
        return [mark for mark in timeline.marks_of(of_job) if self._is_in_chapter(mark)]

    def _is_in_chapter(self, mark: timeline.Mark) -> bool:
        """What was done at the moment when a run ended ended it."""
        times = self.chapter.times
        is_first = self.chapter is self.chapters[0]
        is_last = self.chapter is self.chapters[-1]
        return (is_first or mark.at >= times.begun) and (
            is_last or times.ended is None or mark.at <= times.ended
        )

    def _with_told(self, events: Mapping[str, Event]) -> dict[str, Event]:
        """Return events by their names with those that the record has and that are no objects any more."""
        return {**record.events(self.history), **events}

    @cached_property
    def delayed_actions(self) -> list[delayed.Delayed]:
        """What policies will do when their delay is over."""
        return [] if self.deleted else delayed.of_job(self.stored)

    @property
    def why(self) -> str:
        """Why the job waits, in a sentence with numbers; empty when it does not wait."""
        if self.deleted or self.job.phase not in ("Pending", "Restarting"):
            return ""
        group = self.group
        return (group.why if group else "") or self.job.status.state.message

    @property
    def reasons(self) -> list[str]:
        """Why the job waits: the sentence for people, and if there is more what Volcano's scheduler would say."""
        return _GANG_TEXT.split(self.why, maxsplit=1)

    @property
    def wish(self) -> str:
        """What the pods would say to run on simulated nodes, if the taint of these is among the reasons."""
        return simulation.WISH if f"{simulation.SIMULATED}=" in self.why else ""

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
        return "" if self.deleted else address(name, self.place)

    @property
    def place(self) -> dict[str, str]:
        """What names the job and the run that is shown."""
        run = {"run": str(self.run)} if self.run else {}
        return {"namespace": self.stored.namespace, "name": self.stored.name, **run}

    @property
    def query(self) -> dict[str, str]:
        """What of the page's address says which job of the name and which run is shown."""
        of = {"of": self.stored.uid} if self.deleted else {}
        return {**of, **({"run": str(self.run)} if self.run else {})}

    def head_parts(self) -> dict[str, str]:
        """Return the phase with its gang, the runs, why the job waits, and the steps."""
        began, ended = progress.duration(self.job)
        pods = [bar.pod for bar in self.bars]
        context = {
            "job": self.job,
            "stored": self.stored,
            "deleted": self.deleted,
            "looping": sum(pod.is_crash_looping for _, pod in self.pods),
            "progress": progress.of_job(self.job),
            "why": self.reasons,
            "wish": self.wish,
            "steps": milestones.steps(self.chapter),
            "chapters": self.chapters,
            "chapter": self.chapter,
            "of": self.stored.uid if self.deleted else "",
            "kept_days": settings.JOB_HISTORY_DAYS,
            "began": began,
            "ran": None if began is None or ended is None else max(ended - began, 0),
            "simulated": sum(pod.is_simulated for pod in pods),
            "pods": len(pods),
            "sweep": sweep_of(self.stored.object),
        }
        return _render(context, "head", "why", "runs", "steps")

    def actions_html(self, actor: Actor) -> str:
        """Return the buttons for what the actor may do with the job as it is, each with what it would do."""
        allowed = allowed_actions.allowed(actor, self.job)
        if self.deleted:
            allowed = [action for action in allowed if action is actions.CLONE]
        about = actions.extent([self.job])
        context = {
            "job": self.job,
            "stored": self.stored,
            "deleted": self.deleted,
            "names": [action.name for action in allowed],
            "confirmed": [
                (action, actions.effect(action, about)) for action in allowed if action in actions.CONFIRMED
            ],
        }
        return _render(context, "actions")["job-actions"]

    def asked_part(self, now: int) -> tuple[str, int | None]:
        """Return what became of the last action that was asked of the job, and when (epoch ms) that reads otherwise."""
        item = outcomes.latest(self.stored.uid, now)
        living = None if self.deleted else self.job
        verdict = None if item is None else outcomes.verdict(item, living, now)
        html = _render({"item": item, "verdict": verdict, "stored": self.stored}, "asked")["job-asked"]
        return html, None if item is None else outcomes.again(item, verdict, now)

    def timeline_parts(self) -> dict[str, str]:
        """Return the tasks with their gangs, the timeline, and what policies and plugins do."""
        bars, marks, chapter = self.bars, self.marks, self.chapter
        waits = chapters.waits(chapter.times)
        context = {
            "job": self.job,
            "tasks": self._tasks(),
            "summaries": timeline.summaries(bars),
            "timeline": timeline.data(self.job, bars, chapter.times.begun, marks, waits),
            "waits": waits,
            "marks": marks,
            "most_bars": timeline.MOST_BARS,
            "pods": len(bars),
        }
        context |= {
            "delayed": self.delayed_actions,
            "policies": policy_sentences.of_job(self.stored.object),
            "restarts": policy_sentences.restarts(self.stored.object),
            "plugins": plugin_sentences.of_job(self.stored.object),
        }
        return _render(context, "tasks", "timeline", "policies", "plugins")

    def _tasks(self) -> list[tuple[str, progress.Progress]]:
        if self.shows_living:
            return progress.of_tasks(self.job)
        phases: dict[str, list[str]] = {}
        for bar in self.bars:
            phases.setdefault(bar.pod.task, []).append(bar.phase)
        return progress.of_past_tasks(self.job, phases)

    def events(self) -> list[Event]:
        """Return the newest events of the job, its group and its pods, newest first."""
        name = self.stored.name
        # An event's name begins with that of its object, and those of a job's objects with the job's.
        found = store.find(
            EVENTS, namespace=self.stored.namespace, text=name, order="-created", limit=4 * MOST_EVENTS
        )
        living = {stored.name: stored.read(Event) for stored in found}
        ours = {key: event for key, event in living.items() if self._is_ours(event)}
        events = self._with_told(ours).values()
        return sorted(events, key=lambda event: event.seen, reverse=True)[:MOST_EVENTS]

    def _is_ours(self, event: Event) -> bool:
        about, name = event.involved_object, self.stored.name
        if about.kind == "Job":
            return about.uid == self.stored.uid if about.uid else about.name == name
        if about.kind == "PodGroup":
            return about.name == f"{name}-{self.stored.uid}"
        if self.deleted:
            return False  # another job of the name may have pods; the record tells of this one's
        tasks = [task_name for task_name, _ in progress.of_tasks(self.job)]
        return about.kind == "Pod" and any(about.name.startswith(f"{name}-{task}-") for task in tasks)


def _render(context: dict[str, Any], *parts: str) -> dict[str, str]:
    return {f"job-{part}": render_to_string(f"jobs/_{part}.html", context) for part in parts}
