"""What the tab of a job's logs shows: whose logs can be chosen, and the end of the chosen ones."""

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
from jobs.logs.text import Run, ShownLine
from jobs.pages.job.detail import Detail
from jobs.pages.logs import pods, window
from jobs.pages.logs.follow import MOST_PODS
from jobs.pages.logs.pods import EVERY, TASK, LogPod, LogQuery
from jobs.pages.logs.window import Limits, Mark, Window
from kube.errors import Forbidden, NotFound
from kube.resources import PODS

MOST_NAMES = 1000  # of pods that the box offers
PAGE = Limits(300, 256 * 1024)  # what a page without JavaScript shows at most


class Option(NamedTuple):
    """Whose logs can be chosen: the value for the address, and its words."""

    value: str
    words: str


class Row(NamedTuple):
    """A line as the page shows it without JavaScript, and whether it is the one that the address names."""

    lead: str
    is_marked: bool
    runs: Sequence[Run] = ()
    overwritten: str = ""  # how links name it, if there was something else in it before


@dataclass(frozen=True)
class Tab:
    """What the tab shows: the options, what is asked for, and the end of the logs or why there is none."""

    options: list[Option]
    asked: LogQuery
    pods: Sequence[LogPod] = ()
    earlier: Sequence[tuple[str, int]] = ()  # (uid, creation) of the pods that have had the name, newest first
    attempts: Sequence[int] = ()
    rows: Sequence[Row] = ()
    why: str = ""
    line: str = ""

    @property
    def single(self) -> LogPod | None:
        return self.pods[0] if self.pods and not self.asked.is_together else None

    @property
    def containers(self) -> list[str]:
        return list(dict.fromkeys(name for pod in self.pods for name in pod.containers))

    @property
    def whose(self) -> str:
        """Whose logs they are, in words."""
        words = {option.value: option.words for option in self.options}
        return words.get(self.asked.pod, self.asked.pod)

    @property
    def download(self) -> str:
        if not self.pods:
            return ""
        asked = self.asked
        uid = self.single.uid if self.single else ""
        query = {"pod": asked.pod, "uid": uid, "container": asked.container, "of": asked.of, "run": asked.run}
        if asked.attempt is not None:
            query["attempt"] = str(asked.attempt)
        kept = urlencode({name: value for name, value in query.items() if value})
        return f"{reverse('jobs:log', args=[asked.namespace, asked.job])}?{kept}"


def show(actor: Actor, shown: Detail, params: Mapping[str, str]) -> Tab:
    """Return what the tab shows; without a choice the logs that help most."""
    place = {**params, "of": shown.stored.uid, "run": str(shown.run or "")}
    asked = LogQuery.read(shown.stored.namespace, shown.stored.name, place)
    listed = options(shown)
    if not asked.pod:
        asked = asked._replace(pod=pods.interesting(shown))
    if not asked.pod:
        why = shown.reasons[0] or "The job has no pods yet, so there is no output."
        return Tab(listed, asked, why=why)
    if asked.pod not in [option.value for option in listed]:
        listed = [Option(asked.pod, asked.pod), *listed]
    if not asked.is_together and not asked.uid and not shown.shows_living:
        asked = asked._replace(uid=_uids(shown).get(asked.pod, ""))
    try:
        return _tab(actor, shown, asked, listed, params.get("line", ""))
    except (Forbidden, NotFound) as error:
        return Tab(listed, asked, why=error.message)


def _tab(actor: Actor, shown: Detail, asked: LogQuery, listed: list[Option], line: str) -> Tab:
    found = pods.chosen(actor, asked, shown)
    nodes = backend.nodes_for(actor)
    kept = nodes.log_extents({pod.uid: pod.node for pod in found[:MOST_PODS]})
    extents = [each for each in kept if asked.wants(each)]
    mark = Mark.read(line)
    around = window.around(nodes, extents, mark, PAGE) if mark is not None else None
    end = around or window.tail(nodes, extents, PAGE)
    rows = _rows(found, end, line, together=asked.is_together)
    said = []
    for why, names in pods.absent(actor, asked, found[:MOST_PODS], {each.uid for each in extents}):
        # Pods are named where others have a log.
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        said.append(why if len(names) == len(found) else f"{', '.join(names[:3])}{more}: {why}")
    if end.before != 0 or end.has_more:
        said.append(f"{len(rows)} lines of the logs are shown; the download has them all.")
    if not rows and not said:
        said = ["Nothing has been printed so far."]
    if len(found) > MOST_PODS:
        said.insert(0, f"The first {MOST_PODS} of {len(found):,} pods are shown; the download has them all.")
    is_single = not asked.is_together
    earlier: dict[str, int] = {}
    if is_single and shown.shows_living:
        for change in store.history(PODS, asked.namespace, asked.pod, limit=500):
            earlier[change.uid] = change.at
    return Tab(
        listed,
        asked,
        found,
        earlier=list(earlier.items()),
        attempts=sorted({each.attempt for each in kept}) if is_single else (),
        rows=rows,
        why=" ".join(said),
        line=line,
    )


def _rows(found: Sequence[LogPod], shown: Window, line: str, *, together: bool) -> list[Row]:
    names = {pod.uid: pod.name for pod in found}
    rows: list[tuple[str, str, ShownLine]] = []
    unfinished: dict[tuple[Log, str], ShownLine] = {}
    for log, entry in shown.entries:
        drawn = unfinished.pop((log, entry.stream), None)
        if drawn is None:
            drawn = ShownLine()
            rows.append((f"{names[log.uid]}  " if together else "", f"{'.'.join(map(str, log))}.{entry.offset}", drawn))
        drawn.feed(entry.data, whole=entry.whole)
        if not entry.whole:
            unfinished[log, entry.stream] = drawn
    return [Row(lead, key == line, drawn.runs(), key if drawn.states else "") for lead, key, drawn in rows]


def options(shown: Detail) -> list[Option]:
    """Return whose logs can be chosen: all of the run, all of a task, and each pod."""
    tasks = {name: progress.total for name, progress in shown.tasks if progress.total and shown.total}
    together = [
        Option(f"{TASK}{task}", f"task {task} · all {count:,} pods") for task, count in tasks.items() if count > 1
    ]
    if len(tasks) > 1:
        together.insert(0, Option(EVERY, f"all {sum(tasks.values()):,} pods of the job"))
    names = list(_uids(shown))[:MOST_NAMES]
    return [*together, *(Option(name, name) for name in names)]


def options_html(shown: Detail) -> str:
    """Return the options as a part of the page with the uids of the pods, and what to begin with."""
    known = {"options": options(shown), "uids": dict(list(_uids(shown).items())[:MOST_NAMES])}
    context = {"known": json.dumps(known, separators=(",", ":")), "first": pods.interesting(shown)}
    return render_to_string("jobs/_log_pods.html", context)


def _uids(shown: Detail) -> dict[str, str]:
    """Return the uids of the run's pods by their names; of several pods of a name the last."""
    return {bar.pod.metadata.name: bar.pod.metadata.uid for bar in shown.bars}
