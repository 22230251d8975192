"""The timeline of a job's pods as data: the browser draws it, and a table says the same in words.

Times are ms since the first displayed moment, so that a pod is a few short numbers. Of more than MAX_BARS
pods, the most important have bars, and the lanes say how many others there are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from jobs.history.record import PodSpan, Stretch
from jobs.lifecycle import policy_firings
from jobs.lifecycle.policy_firings import PolicyFiring
from jobs.lifecycle.reading import Job, Pod, moment
from jobs.pages.job.chapters import Wait
from kube.kinds.core import Event, PodPhase

STOPPED = "Stopped"  # the displayed phase of pods that were stopped or removed before they ended
EVICTED = "Evicted"  # and of those that were evicted
# The states of bars, in the order of the legend, and their hues.
HUES: Final = {
    "waiting": "amber",
    "starting": "yellow",
    "running": "blue",
    "succeeded": "green",
    "failed": "red",
    "evicted": "pink",
    "stopped": "grey",
    "unknown": "grey",
}
USUAL: Final = ("waiting", "starting", "running", "succeeded", "failed")  # the states of most bars
MAX_BARS = 500
# Heights in px as the browser draws it (frontend/modules/timeline-draw.js), so that the page reserves the space before.
TOP, LANE, FOOT = 24, 22, 6
HIGHEST = 460  # and from then on it scrolls (frontend/styles/components/timeline.css)
MAX_EMPTY = 240  # of empty space for pods that are still to come
# Which pods are shown first if not all can be.
IMPORTANCE = {"Failed": 0, "Unknown": 1, EVICTED: 2, STOPPED: 2, "Running": 3, "Pending": 4, "": 4, "Succeeded": 5}
MAX_MARKS = 30
# The events of actions, of a policy and of a Command (reference: volcano-job §3.7).
MARKED = ("ExecuteAction", "CommandIssued")


@dataclass(frozen=True, slots=True)
class Bar:
    """The times of one pod, in ms; None if not reached."""

    pod: Pod
    created: int
    scheduled: int | None
    started: int | None
    finished: int | None
    stretches: Sequence[Stretch] = ()  # what its containers ran, if some were restarted
    is_stopped: bool = False  # it was told to end, and ended because of that

    @property
    def state(self) -> str:
        """One of HUES; stopped is a pod that was stopped or removed before it ended.

        How an evicted or stopped pod ended does not matter: it was told to.
        """
        if self.finished is not None and self.pod.evicted is not None:
            return "evicted"
        if self.finished is not None and self.is_stopped:
            return "stopped"
        if self.pod.is_ended:
            return self.pod.status.phase.lower()
        if self.finished is not None:
            return "stopped"
        if self.pod.status.phase == "Unknown":
            return "unknown"
        if self.pod.status.phase == "Running":
            return "running"
        return "waiting" if self.scheduled is None and not self.pod.spec.node_name else "starting"

    @property
    def phase(self) -> str:
        """The pod's phase; Evicted or Stopped if its state is one of these."""
        return {"stopped": STOPPED, "evicted": EVICTED}.get(self.state, self.pod.status.phase)

    @property
    def left(self) -> int | None:
        """When an evicted pod stopped counting for its gang, in ms; None for others, which still count."""
        return self.finished if self.state == "evicted" else None

    @property
    def waited(self) -> int | None:
        """How long the pod waited for its node, or in vain until it ended, in ms; None while it waits."""
        until = self.scheduled if self.scheduled is not None else self.finished
        return None if until is None else max(until - self.created, 0)

    @property
    def ran(self) -> int | None:
        """How long the pod ran, in ms; None until it has ended."""
        return None if self.started is None or self.finished is None else max(self.finished - self.started, 0)


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A task's times in words, for people who do not see the picture; pods excludes evicted ones."""

    task: str
    pods: int
    evicted: int
    waited: int | None
    ran_least: int | None
    ran_most: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that was done to the whole job at a time, in ms: by a policy, a Command or an eviction.

    `firing` is what the policy did.
    """

    at: int
    reason: str
    message: str
    times: int = 1
    firing: PolicyFiring | None = None


def marks_of(events: Sequence[Event]) -> list[Mark]:
    """Return the marks of a job's events, oldest first."""
    times = [(moment(event.last_seen), event) for event in events if event.reason in MARKED]
    marks = [
        Mark(at, event.reason, event.message, event.times, policy_firings.of_event(event))
        for at, event in times
        if at is not None
    ]
    return sorted(marks, key=lambda mark: mark.at)


def bar_of(
    pod: Pod, created: int, stretches: Sequence[Stretch] = (), removed: int | None = None, *, is_stopped: bool = False
) -> Bar:
    """Return the bar of a pod; times that run backwards are corrected.

    A pod that was removed has ended by then, whatever its status says.
    """
    scheduled, started, finished = pod.scheduled, pod.started, pod.finished
    if stretches:
        started = min(stretches[0].started, started if started is not None else stretches[0].started)
    if finished is None:
        finished = removed
    if started is not None:
        # Some times of the API are whole seconds: a pod cannot start before it is placed.
        started = max(started, scheduled or created)
        scheduled = started if scheduled is None else scheduled
    if finished is not None:
        finished = max(finished, started or created)
    several = stretches if len(stretches) > 1 else ()
    return Bar(pod, created, scheduled, started, finished, several, is_stopped or pod.is_stopped)


def bar_of_span(span: PodSpan) -> Bar:
    """Return the bar of a recorded pod."""
    is_stopped = span.deletion_requested is not None
    return bar_of(span.pod, span.created, span.stretches, span.removed, is_stopped=is_stopped)


def data(
    job: Job,
    bars: Sequence[Bar],
    begun: int,
    marks: Sequence[Mark] = (),
    waits: Sequence[Wait] = (),
    *,
    met: int | None = None,
    totals: Mapping[str, int] | None = None,
    causes: Mapping[str, str] = MappingProxyType({}),
    room: int = 0,
) -> str:
    """Return what the browser draws of a run, as JSON: failed pods in a lane of their own, the others by task.

    `met` is when the gang ran, in ms; `totals` how many pods each lane stands for, if not all have bars;
    `causes` why pods were evicted, by their uids; `room` the minimum height, in px.
    """
    zero = min([begun, *(bar.created for bar in bars)])
    tasks = list(dict.fromkeys([task.name for task in job.spec.tasks] + [bar.pod.task for bar in bars]))
    lanes = [PodPhase.FAILED.value, *tasks]
    rows = []
    for position, bar in enumerate(bars):
        task = tasks.index(bar.pod.task)
        rows.append((0 if bar.state == "failed" else 1 + task, task, bar.pod.index, position))
    rows.sort()
    bars_by_lane = Counter(lanes[lane] for lane, _, _, position in rows if bars[position].state != "evicted")
    drawn: dict[str, Any] = {
        "job": job.metadata.name,
        "zero": zero,
        "needed": job.spec.min_available,
        "met": None if met is None else met - zero,
        "lanes": [[lane, bars_by_lane[lane], (totals or bars_by_lane).get(lane, 0)] for lane in lanes],
        "bars": [_row(bars[position], lane, zero, causes) for lane, _, _, position in rows],
        "marks": [[mark.at - zero, mark.message] for mark in marks],
        "waits": [[each.kind, each.begun - zero, _since(each.ended, zero)] for each in waits],
        "room": room,
    }
    return json.dumps(drawn, separators=(",", ":"))


def room(bars: Sequence[Bar], waits: Sequence[Wait], planned: Mapping[str, int]) -> int:
    """Return the height of the picture, in px; planned is how many pods each task is to have while it starts them.

    So what is below has its place before the picture is drawn, and mostly before the pods exist.
    """
    lanes = {"failed" if bar.state == "failed" else bar.pod.task for bar in bars}
    drawn = _height(len(lanes), len(bars), bool(waits)) if bars else 0
    to_come = [task for task, pods in planned.items() if pods > 0]
    empty = _height(len(to_come), sum(planned[task] for task in to_come), True) if to_come else 0
    return min(max(drawn, min(empty, MAX_EMPTY)), HIGHEST)


def _height(lanes: int, bars: int, has_waits: bool) -> int:
    row = 6 if bars > 200 else 10 if bars > 60 else 20
    return TOP + LANE * (lanes + has_waits) + row * bars + FOOT


def legend(bars: Sequence[Bar]) -> list[tuple[str, str]]:
    """Return the legend's states with their hues: the usual ones, and others that a bar has."""
    states = {bar.state for bar in bars}
    return [(state, hue) for state, hue in HUES.items() if state in USUAL or state in states]


def chosen(bars: Sequence[Bar]) -> Sequence[Bar]:
    """Return the MAX_BARS most important bars: the first to fail, then by phase the last to change."""
    if len(bars) <= MAX_BARS:
        return bars

    def importance(bar: Bar) -> tuple[int, int]:
        last = next(time for time in (bar.finished, bar.started, bar.scheduled, bar.created) if time is not None)
        return IMPORTANCE.get(bar.phase, 0), last if bar.state == "failed" else -last

    return sorted(bars, key=importance)[:MAX_BARS]


def summaries(bars: Sequence[Bar]) -> list[TaskSummary]:
    """Return each task's times: the longest wait, the shortest and the longest run."""
    found = []
    for task in dict.fromkeys(bar.pod.task for bar in bars):
        own = [bar for bar in bars if bar.pod.task == task]
        ran = [bar.ran for bar in own if bar.ran is not None]
        waited = [bar.waited for bar in own if bar.waited is not None]
        evicted = sum(bar.state == "evicted" for bar in own)
        found.append(
            TaskSummary(
                task,
                len(own) - evicted,
                evicted,
                max(waited, default=None),
                min(ran, default=None),
                max(ran, default=None),
            )
        )
    return found


def _row(bar: Bar, lane: int, zero: int, causes: Mapping[str, str]) -> list[Any]:
    """Return a bar as a list; that of an evicted pod, whose name another may have by now, also has its uid and why."""
    times = [bar.created, bar.scheduled, bar.started, bar.finished]
    # [from, to, exit code] of the container that was started most often; between them it waited for its restart.
    names = [each.container for each in bar.stretches]
    most = max(names, key=names.count, default="")
    runs = [
        [each.started - zero, _since(bar.finished if each.finished is None else each.finished, zero), each.exit_code]
        for each in bar.stretches
        if each.container == most
    ]
    return [
        bar.pod.metadata.name,
        lane,
        *(_since(time, zero) for time in times),
        bar.state,
        bar.pod.exit_code,
        bar.pod.spec.node_name,
        runs,
        *((bar.pod.metadata.uid, causes.get(bar.pod.metadata.uid, "")) if bar.state == "evicted" else ()),
    ]


def _since(time: int | None, zero: int) -> int | None:
    return None if time is None else time - zero
