"""The table of a job's pods: existing ones, page by page from the store, or those of a past run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.template.loader import render_to_string
from django.urls import reverse

from cluster import access
from cluster.store import Stored, store
from dashboard.live import Watch
from dashboard.live.topics import address
from dashboard.parts import paging
from dashboard.parts.filters import Filter
from dashboard.parts.phases import POD_PHASES
from dashboard.parts.table import Column, Spec, Table, TableView
from jobs.lifecycle import progress
from jobs.lifecycle.reading import Pod
from jobs.pages import objects
from jobs.pages.job import timeline
from jobs.pages.job.detail import Detail
from jobs.pages.job.timeline import Bar
from kube.kinds.batch import JobPhase
from kube.owners import controller_of
from kube.resources import JOBS, PODS

MAX_SORTED = 2000  # pods sorted by their numbers; more are in the database's order
SPEC = Spec(
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
    filters=(
        Filter("task", "Task"),
        Filter("phase", "Phase", choices=(*POD_PHASES, timeline.EVICTED, timeline.STOPPED)),
    ),
    order="name",
    search="Part of a pod's name",
    noun="pod",
    plural="pods",
    of=("of", "run"),
)


_FAILED_FIRST = replace(SPEC, order="phase")  # Failed is first in the alphabet


def spec(detail: Detail) -> Spec:
    """Return the columns and filters of the table; in a failed run, failed pods come first."""
    return _FAILED_FIRST if detail.chapter.phase == JobPhase.FAILED else SPEC


class PodTable(Table):
    """The pods of one job; its topic names the job as well."""

    detail: Detail

    @property
    def topic(self) -> str:
        return address(self.view.spec.name, {**self.view.params(), **self.detail.address_params})

    @property
    def obeyed(self) -> str:
        if self.view.values:
            return super().obeyed
        several = len(self.detail.chapters) > 1
        return f"Counts cover all pods of {'the run' if several else 'the job'}"


def table(detail: Detail, view: TableView) -> PodTable:
    """Return a page of a job's pods."""
    if not detail.sees.pods:
        return _table(detail, view, {}, objects.page_of(view, {}), {})
    return _of_living(detail, view) if detail.shows_living else _of_past(detail, view)


def _of_living(detail: Detail, view: TableView) -> PodTable:
    job, task = detail.stored, view.get("task")
    filters: dict[str, Any] = {"namespace": job.namespace, "owner": job.uid, "text": view.q or None}
    if task:
        replicas = next((each.replicas for each in detail.job.spec.tasks if each.name == task), 0)
        filters["name"] = [f"{job.name}-{task}-{index}" for index in range(replicas)]
    counts = store.count(PODS, by="phase", **filters)
    page = objects.page_of(view, counts)
    pods = _pods(view, page, {**filters, "phase": view.get("phase") or None})
    table = _table(detail, view, {f"pod-{stored.uid}": row(stored) for stored in pods}, page, counts)
    table.watches = [
        Watch(PODS.id, namespace=job.namespace, owner=job.uid),
        Watch(JOBS.id, namespace=job.namespace, name=job.name),
    ]
    return table


def _of_past(detail: Detail, view: TableView) -> PodTable:
    """Return the pods of a past run: all are known, and none will change."""
    task, phase, text = view.get("task"), view.get("phase"), view.q.lower()
    bars = [bar for bar in detail.recorded_bars if task in ("", bar.pod.task) and text in bar.pod.metadata.name.lower()]
    counts = Counter(bar.phase for bar in bars)
    page = objects.page_of(view, counts)
    order = _ORDERS[view.sort.removeprefix("-")]
    chosen = sorted((bar for bar in bars if phase in ("", bar.phase)), key=order)
    if view.sort.startswith("-"):
        chosen.reverse()
    rows = {}
    for bar in chosen[page.offset : page.offset + page.size]:
        metadata = bar.pod.metadata
        query = {**detail.query, "pod": metadata.name, "uid": metadata.uid}
        rows[f"pod-{metadata.uid}"] = _row(bar, detail.stored.name, query)
    table = _table(detail, view, rows, page, counts)
    table.live = not detail.deleted
    table.watches = [Watch(JOBS.id, namespace=detail.stored.namespace, name=detail.stored.name)]
    return table


_ORDERS = {
    "name": lambda bar: _natural(bar.pod.metadata.name),
    "phase": lambda bar: (bar.phase, _natural(bar.pod.metadata.name)),
    "created": lambda bar: (bar.created, _natural(bar.pod.metadata.name)),
}


def _table(
    detail: Detail, view: TableView, rows: dict[str, str], page: paging.Page, counts: dict[str, int]
) -> PodTable:
    if detail.shows_living:
        tasks = [name for name, _ in progress.of_tasks(detail.job)]
    else:  # the job may lack some of them by now
        tasks = list(dict.fromkeys(bar.pod.task for bar in sorted(detail.recorded_bars, key=_ORDERS["name"])))
    table = PodTable(
        view=view, rows=rows, page=page, counts=counts, phases=POD_PHASES, choices={"task": tasks}, empty=_empty(detail)
    )
    table.detail = detail
    return table


def _pods(view: TableView, page: paging.Page, filters: dict[str, Any]) -> list[Stored]:
    """Return the pods of a page. By name, worker-2 comes before worker-10, up to MAX_SORTED pods."""
    column = view.sort.removeprefix("-")
    if column in ("name", "phase") and page.total <= MAX_SORTED:
        pods = store.find(PODS, **filters)
        pods.sort(key=lambda stored: _natural(stored.name), reverse=view.sort == "-name")
        if column == "phase":
            phases = store.phases(PODS, **filters)
            pods.sort(key=lambda stored: phases[stored.name], reverse=view.sort == "-phase")
        return pods[page.offset : page.offset + page.size]
    return store.find(PODS, order=view.sort, **page.span, **filters)


def _natural(name: str) -> tuple[str, int]:
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isascii() and number.isdigit() else (name, -1)


def row(stored: Stored) -> str:
    """Return the row of an existing pod; it depends on the pod alone."""
    pod = stored.read(Pod)
    owner = controller_of(stored.object)
    return _row(timeline.bar_of(pod, stored.created), owner.name if owner else "", {"pod": stored.name})


def _row(bar: Bar, job: str, query: dict[str, str]) -> str:
    url = reverse("jobs:detail", args=[bar.pod.metadata.namespace, job])
    context = {"pod": bar.pod, "bar": bar, "log_url": f"{url}?{urlencode({'tab': 'logs', **query})}"}
    return render_to_string("jobs/_pod_row.html", context)


def _empty(detail: Detail) -> dict[str, str]:
    if not detail.sees.pods:
        where = detail.stored.namespace
        text = access.remedy("list", PODS)
        return {"symbol": "boxes", "title": f"You may not see the pods of {where}", "text": text}
    text = (
        detail.reasons[0]
        or detail.job.status.state.text
        or "The controller makes them once the scheduler lets the job in."
    )
    return {"symbol": "boxes", "title": "There are no pods", "text": text}
