"""The tab of a job's logs: the pods to choose from, and the end of the chosen logs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.template.loader import render_to_string
from django.urls import reverse

from cluster.access import Actor
from cluster.api import backend
from cluster.store import store
from jobs.logs.merge import Log
from jobs.logs.text import PrintedLine, Run
from jobs.pages.job.detail import Detail
from jobs.pages.logs import pods, window
from jobs.pages.logs.follow import MAX_PODS
from jobs.pages.logs.pods import EVERY, TASK, LogPod, LogQuery
from jobs.pages.logs.window import Limits, Mark, Window
from kube.errors import Forbidden, NotFound
from kube.resources import PODS

MAX_NAMES = 1000  # of pods offered
PAGE = Limits(300, 256 * 1024)  # what a page without JavaScript shows at most


class Option(NamedTuple):
    """A choice of pods: its value in the address, and its text."""

    value: str
    words: str


class Row(NamedTuple):
    """A line as the page shows it without JavaScript, and whether the address names it."""

    lead: str
    is_marked: bool
    runs: Sequence[Run] = ()
    overwritten: str = ""  # its name in links, if it was overwritten


@dataclass(frozen=True)
class Tab:
    """What the tab shows: the options, the query, and the end of the logs or why there is none."""

    options: list[Option]
    query: LogQuery
    pods: Sequence[LogPod] = ()
    earlier: Sequence[tuple[str, int]] = ()  # (uid, creation) of the pods that have had the name, newest first
    attempts: Sequence[int] = ()
    rows: Sequence[Row] = ()
    why: str = ""
    line: str = ""

    @property
    def single(self) -> LogPod | None:
        return self.pods[0] if self.pods and not self.query.is_together else None

    @property
    def containers(self) -> list[str]:
        return list(dict.fromkeys(name for pod in self.pods for name in pod.containers))

    @property
    def whose(self) -> str:
        """The chosen pods, in words."""
        words = {option.value: option.words for option in self.options}
        return words.get(self.query.pod, self.query.pod)

    @property
    def download(self) -> str:
        if not self.pods:
            return ""
        query = self.query
        uid = self.single.uid if self.single else ""
        params = {"pod": query.pod, "uid": uid, "container": query.container, "of": query.of, "run": query.run}
        if query.attempt is not None:
            params["attempt"] = str(query.attempt)
        parameters = urlencode({name: value for name, value in params.items() if value})
        return f"{reverse('jobs:log', args=[query.namespace, query.job])}?{parameters}"


def show(actor: Actor, detail: Detail, params: Mapping[str, str]) -> Tab:
    """Return what the tab shows; without a choice, the most useful logs."""
    address = {**params, "of": detail.stored.uid, "run": str(detail.run or "")}
    query = LogQuery.read(detail.stored.namespace, detail.stored.name, address)
    listed = options(detail)
    if not query.pod:
        query = query._replace(pod=pods.interesting(detail))
    if not query.pod:
        why = detail.reasons[0] or "The job has no pods yet, so there is no output."
        return Tab(listed, query, why=why)
    if query.pod not in [option.value for option in listed]:
        listed = [Option(query.pod, query.pod), *listed]
    if not query.is_together and not query.uid and not detail.shows_living:
        query = query._replace(uid=_uids(detail).get(query.pod, ""))
    try:
        return _tab(actor, detail, query, listed, params.get("line", ""))
    except (Forbidden, NotFound) as error:
        return Tab(listed, query, why=error.message)


def _tab(actor: Actor, detail: Detail, query: LogQuery, listed: list[Option], line: str) -> Tab:
    chosen = pods.chosen(actor, query, detail)
    nodes = backend.nodes_for(actor)
    stored = nodes.log_extents({pod.uid: pod.node for pod in chosen[:MAX_PODS]})
    extents = [each for each in stored if query.wants(each)]
    mark = Mark.read(line)
    around = window.around(nodes, extents, mark, PAGE) if mark is not None else None
    end = around or window.tail(nodes, extents, PAGE)
    rows = _rows(chosen, end, line, together=query.is_together)
    notes = []
    for why, names in pods.absent(actor, query, chosen[:MAX_PODS], {each.uid for each in extents}):
        # Name the pods only if others have a log.
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        notes.append(why if len(names) == len(chosen) else f"{', '.join(names[:3])}{more}: {why}")
    if end.before != 0 or end.has_more:
        notes.append(f"{len(rows)} lines of the logs are shown; the download has them all.")
    if not rows and not notes:
        notes = ["Nothing has been printed so far."]
    if len(chosen) > MAX_PODS:
        notes.insert(0, f"The first {MAX_PODS} of {len(chosen):,} pods are shown; the download has them all.")
    is_single = not query.is_together
    earlier: dict[str, int] = {}
    if is_single and detail.shows_living:
        for change in store.history(PODS, query.namespace, query.pod, limit=500):
            earlier[change.uid] = change.at
    return Tab(
        listed,
        query,
        chosen,
        earlier=list(earlier.items()),
        attempts=sorted({each.attempt for each in stored}) if is_single else (),
        rows=rows,
        why=" ".join(notes),
        line=line,
    )


def _rows(chosen: Sequence[LogPod], end: Window, line: str, *, together: bool) -> list[Row]:
    names = {pod.uid: pod.name for pod in chosen}
    rows: list[tuple[str, str, PrintedLine]] = []
    unfinished: dict[tuple[Log, str], PrintedLine] = {}
    for log, entry in end.entries:
        drawn = unfinished.pop((log, entry.stream), None)
        if drawn is None:
            drawn = PrintedLine()
            rows.append((f"{names[log.uid]}  " if together else "", f"{'.'.join(map(str, log))}.{entry.offset}", drawn))
        drawn.feed(entry.data, whole=entry.whole)
        if not entry.whole:
            unfinished[log, entry.stream] = drawn
    return [Row(lead, key == line, drawn.runs(), key if drawn.states else "") for lead, key, drawn in rows]


def options(detail: Detail) -> list[Option]:
    """Return the choices: all pods of the run, all of a task, and each pod."""
    tasks = {name: progress.total for name, progress in detail.tasks if progress.total and detail.total}
    together = [
        Option(f"{TASK}{task}", f"task {task} · all {count:,} pods") for task, count in tasks.items() if count > 1
    ]
    if len(tasks) > 1:
        together.insert(0, Option(EVERY, f"all {sum(tasks.values()):,} pods of the job"))
    names = list(_uids(detail))[:MAX_NAMES]
    return [*together, *(Option(name, name) for name in names)]


def options_html(detail: Detail) -> str:
    """Return the part of the page with the options, the pods' uids, and the initial choice."""
    choices = {"options": options(detail), "uids": dict(list(_uids(detail).items())[:MAX_NAMES])}
    context = {"known": json.dumps(choices, separators=(",", ":")), "first": pods.interesting(detail)}
    return render_to_string("jobs/_log_pods.html", context)


def _uids(detail: Detail) -> dict[str, str]:
    """Return the uids of the run's pods by name; of several pods of one name, the last."""
    return {bar.pod.metadata.name: bar.pod.metadata.uid for bar in detail.bars}
