"""What a job's page shows, read once for all of its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.template.loader import render_to_string

from cluster import access
from cluster.rules import simulation
from cluster.store import Change, Stored, store
from dashboard.live import Watch
from dashboard.live.topics import address
from dashboard.parts import paging
from dashboard.parts.phases import POD_PHASES
from dashboard.parts.table import Column, Filter, Spec, Table, TableView
from jobs.operations import outcomes
from jobs.pages import milestones, plugin_sentences, policy_sentences, progress, timeline
from jobs.pages.reading import Job, Pod, PodGroup
from jobs.rules import actions, allowed_actions
from jobs.sweeps.record import sweep_of
from kube.kinds.core import Event
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS

if TYPE_CHECKING:
    from cluster.access import Actor

MOST_EVENTS = 200
# What Volcano's own scheduler says, after the sentence for people.
_GANG_TEXT = re.compile(r"\s+(?=\d+/\d+ tasks in gang unschedulable)")
MOST_SORTED = 2000  # pods that are put in the order of their numbers; more come in the order of the database
PODS_SPEC = Spec(
    name="jobs:pods",
    columns=(
        Column("Pod", sort="name", kind="name"),
        Column("Task"),
        Column("Phase", sort="phase"),
        Column("Node"),
        Column("Exit code", kind="number"),
        Column("Restarts", kind="number", priority="low"),
        Column("Waited", kind="number", priority="low"),
        Column("Ran", kind="number"),
        Column("Created", sort="created", kind="time", priority="low"),
        Column("", kind="actions"),
    ),
    filters=(Filter("task", "Task"), Filter("phase", "Phase", choices=POD_PHASES)),
    order="name",
    search="Part of a pod's name",
    noun="pod",
    plural="pods",
)


@dataclass(frozen=True)
class Detail:
    """One job with everything that belongs to it; each part is read when it is asked for."""

    stored: Stored

    @classmethod
    def of(cls, actor: Actor, namespace: str, name: str) -> Detail:
        """Read the job; Forbidden or NotFound says why there is nothing to show."""
        access.require(actor, "get", JOBS, namespace, name)
        return cls(store.get(JOBS, namespace, name))

    @cached_property
    def job(self) -> Job:
        return self.stored.read(Job)

    @cached_property
    def pods(self) -> list[tuple[Stored, Pod]]:
        found = store.find(PODS, namespace=self.stored.namespace, owner=self.stored.uid, order="created")
        return [(stored, stored.read(Pod)) for stored in found]

    @cached_property
    def bars(self) -> list[timeline.Bar]:
        return [timeline.bar_of(pod, stored.created) for stored, pod in self.pods]

    @cached_property
    def group(self) -> PodGroup | None:
        found = store.find(POD_GROUPS, namespace=self.stored.namespace, owner=self.stored.uid, limit=1)
        return found[0].read(PodGroup) if found else None

    @cached_property
    def marks(self) -> list[timeline.Mark]:
        """What policies and Commands did to the job."""
        found = store.find(
            EVENTS,
            namespace=self.stored.namespace,
            owner=self.stored.uid,
            order="-created",
            limit=MOST_EVENTS,
        )
        return timeline.marks_of([stored.read(Event) for stored in found])

    @property
    def why(self) -> str:
        """Why the job waits, in a sentence with numbers; empty when it does not wait."""
        if self.job.phase not in ("Pending", "Restarting"):
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
        """Return the canonical spelling of one of the page's topics."""
        return address(name, {"namespace": self.stored.namespace, "name": self.stored.name})

    def head_parts(self) -> dict[str, str]:
        """Return the phase with its gang, why the job waits, and the steps."""
        began, ended = progress.duration(self.job)
        pods = [pod for _, pod in self.pods]
        context = {
            "job": self.job,
            "stored": self.stored,
            "progress": progress.of_job(self.job),
            "why": self.reasons,
            "wish": self.wish,
            "steps": milestones.steps(self.job, self.stored.created, self.group, pods),
            "began": began,
            "ran": None if began is None or ended is None else max(ended - began, 0),
            "simulated": sum(pod.is_simulated for pod in pods),
            "pods": len(pods),
            "sweep": sweep_of(self.stored.object),
        }
        return _render(context, "head", "why", "steps")

    def actions_html(self, actor: Actor) -> str:
        """Return the buttons for what the actor may do with the job as it is, each with what it would do."""
        allowed = allowed_actions.allowed(actor, self.job)
        about = actions.extent([self.job])
        context = {
            "job": self.job,
            "stored": self.stored,
            "names": [action.name for action in allowed],
            "confirmed": [
                (action, actions.effect(action, about)) for action in allowed if action in actions.CONFIRMED
            ],
        }
        return _render(context, "actions")["job-actions"]

    def asked_part(self, now: int) -> tuple[str, int | None]:
        """Return what became of the last action that was asked of the job, and when (epoch ms) that reads otherwise."""
        item = outcomes.latest(self.stored.uid, now)
        verdict = None if item is None else outcomes.verdict(item, self.job, now)
        html = _render({"item": item, "verdict": verdict, "stored": self.stored}, "asked")["job-asked"]
        return html, None if item is None else outcomes.again(item, verdict, now)

    def timeline_parts(self) -> dict[str, str]:
        """Return the tasks with their gangs, the timeline, and what policies and plugins do."""
        bars, marks = self.bars, self.marks
        context = {
            "job": self.job,
            "tasks": progress.of_tasks(self.job),
            "summaries": timeline.summaries(bars),
            "timeline": timeline.data(self.job, bars, self.stored.created, marks),
            "marks": marks,
            "most_bars": timeline.MOST_BARS,
            "pods": len(bars),
        }
        context |= {
            "policies": policy_sentences.of_job(self.stored.object),
            "restarts": policy_sentences.restarts(self.stored.object),
            "plugins": plugin_sentences.of_job(self.stored.object),
        }
        return _render(context, "tasks", "timeline", "policies", "plugins")

    def events(self) -> list[Event]:
        """Return the newest events of the job, its group and its pods, newest first."""
        name = self.stored.name
        # An event's name begins with that of its object, and those of a job's objects with the job's.
        found = store.find(
            EVENTS, namespace=self.stored.namespace, text=name, order="-created", limit=4 * MOST_EVENTS
        )
        events = [stored.read(Event) for stored in found]
        return [event for event in events if self._is_ours(event)][:MOST_EVENTS]

    def _is_ours(self, event: Event) -> bool:
        about, name = event.involved_object, self.stored.name
        if about.kind == "Job":
            return about.uid == self.stored.uid if about.uid else about.name == name
        if about.kind == "PodGroup":
            return about.name == f"{name}-{self.stored.uid}"
        tasks = [task_name for task_name, _ in progress.of_tasks(self.job)]
        return about.kind == "Pod" and any(about.name.startswith(f"{name}-{task}-") for task in tasks)


class PodTable(Table):
    """The pods of one job; its topic names the job as well."""

    detail: Detail

    @property
    def topic(self) -> str:
        job = self.detail.stored
        return address(
            self.view.spec.name, {**self.view.params(), "namespace": job.namespace, "name": job.name}
        )

    @property
    def obeyed(self) -> str:
        return super().obeyed if self.view.values else "Counts cover all pods of the job"


def pod_table(detail: Detail, view: TableView) -> PodTable:
    """Return a page of a job's pods."""
    job = detail.stored
    tasks = [name for name, _ in progress.of_tasks(detail.job)]
    filters: dict[str, Any] = {"namespace": job.namespace, "owner": job.uid, "text": view.q or None}
    if view.get("task"):
        filters["name"] = _names(detail, view.get("task"))
    counts = store.count(PODS, by="phase", **filters)
    phase = view.get("phase")
    page = paging.Page(view.page, view.per, counts.get(phase, 0) if phase else sum(counts.values()))
    found = _pods(view, page, {**filters, "phase": phase or None})
    table = PodTable(
        view=view,
        rows={f"pod-{stored.uid}": pod_row(stored) for stored in found},
        page=page,
        watches=[
            Watch(PODS.id, namespace=job.namespace, owner=job.uid),
            Watch(JOBS.id, namespace=job.namespace, name=job.name),
        ],
        counts=counts,
        phases=POD_PHASES,
        choices={"task": tasks},
        empty=_empty(detail),
    )
    table.detail = detail
    return table


def _pods(view: TableView, page: paging.Page, filters: dict[str, Any]) -> list[Stored]:
    """Return the pods of a page. In the order of names worker-2 comes before worker-10, unless there are very many."""
    if view.sort.removeprefix("-") == "name" and page.total <= MOST_SORTED:
        found = store.find(PODS, **filters)
        found.sort(key=lambda stored: _natural(stored.name), reverse=view.sort == "-name")
        return found[page.offset : page.offset + page.size]
    return store.find(PODS, order=view.sort, limit=page.size, offset=page.offset, **filters)


def _natural(name: str) -> tuple[str, int]:
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isascii() and number.isdigit() else (name, -1)


def pod_row(stored: Stored) -> str:
    """Return a pod's row; it depends on the pod alone."""
    pod = stored.read(Pod)
    context = {"pod": pod, "bar": timeline.bar_of(pod, stored.created), "job": _job_of(stored)}
    return render_to_string("jobs/_pod_row.html", context)


def _job_of(stored: Stored) -> str:
    for owner in stored.object["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("name", ""))
    return ""


def _names(detail: Detail, task: str) -> list[str]:
    replicas = next((each.replicas for each in detail.job.spec.tasks if each.name == task), 0)
    return [f"{detail.stored.name}-{task}-{index}" for index in range(replicas)]


def _empty(detail: Detail) -> dict[str, str]:
    text = (
        detail.why
        or detail.job.status.state.message
        or "The controller makes them once the scheduler lets the job in."
    )
    return {"symbol": "boxes", "title": "There are no pods", "text": text}


def _render(context: dict[str, Any], *parts: str) -> dict[str, str]:
    return {f"job-{part}": render_to_string(f"jobs/_{part}.html", context) for part in parts}


def gone(namespace: str, name: str) -> Change | None:
    """Return the last that the log knows of a job that is deleted."""
    history = store.history(JOBS, namespace, name, limit=1)
    return history[0] if history else None
