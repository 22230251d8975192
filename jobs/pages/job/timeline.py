"""The timeline of a job's pods as data: the browser draws it, and a table says the same in words.

Times are ms since the first moment shown, so that a pod is a few short numbers. Of more than MOST_BARS pods
those have bars that matter most, and the lanes say how many others there are.
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

STOPPED = "Stopped"  # stands among the phases for pods that were asked to end, or removed, before they had
EVICTED = "Evicted"  # and for those that were asked to end for others' sake
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
USUAL: Final = ("waiting", "starting", "running", "succeeded", "failed")  # what most bars have or come to
MOST_BARS = 500
# How high the browser draws it, in px (frontend/modules/timeline-draw.js), so that the page has the room before the picture is there.
TOP, LANE, FOOT = 24, 22, 6
HIGHEST = 460  # and from then on it scrolls (frontend/styles/components/timeline.css)
MOST_EMPTY = 240  # of room for pods that are still to come, which a job that waits shows empty
# What is shown first where not all pods can be.
IMPORTANCE = {"Failed": 0, "Unknown": 1, EVICTED: 2, STOPPED: 2, "Running": 3, "Pending": 4, "": 4, "Succeeded": 5}
MOST_MARKS = 30
# The events of actions, of a policy and of a Command (reference: volcano-job §3.7).
MARKED = ("ExecuteAction", "CommandIssued")


@dataclass(frozen=True, slots=True)
class Bar:
    """One pod in time, in ms; None is what has not happened."""

    pod: Pod
    created: int
    scheduled: int | None
    started: int | None
    finished: int | None
    stretches: Sequence[Stretch] = ()  # what its containers ran, where some were started again
    is_stopped: bool = False  # it was asked to end, and ended by that

    @property
    def state(self) -> str:
        """One of HUES; stopped is what was asked to end, or removed, before it had.

        How a pod ended that was evicted or stopped says nothing of it: it was told to.
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
        """The pod's phase; Evicted or Stopped of one that was asked to end before it had."""
        return {"stopped": STOPPED, "evicted": EVICTED}.get(self.state, self.pod.status.phase)

    @property
    def left(self) -> int | None:
        """When the pod counted no more for its gang, in ms; who ended by itself still does."""
        return self.finished if self.state == "evicted" else None

    @property
    def waited(self) -> int | None:
        """How long the pod waited for its node, which may never have come, in ms; None while it waits."""
        until = self.scheduled if self.scheduled is not None else self.finished
        return None if until is None else max(until - self.created, 0)

    @property
    def ran(self) -> int | None:
        """How long the pod ran, in ms; None while it has not ended."""
        return None if self.started is None or self.finished is None else max(self.finished - self.started, 0)


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A task's times in words, for who does not see the picture; pods are those that were not evicted."""

    task: str
    pods: int
    evicted: int
    waited: int | None
    ran_least: int | None
    ran_most: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that was done to the whole job at a moment, in ms: by a policy, or asked for by a Command.

    `firing` is what the policy did.
    """

    at: int
    reason: str
    message: str
    times: int = 1
    firing: PolicyFiring | None = None


def marks_of(events: Sequence[Event]) -> list[Mark]:
    """Return what was done to the job, the oldest first."""
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
    """Return the bar of a pod; times that run backwards are straightened.

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
    """Return the bar of a pod as a record tells of it."""
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
    """Return what the browser draws of a run, as JSON: pods that failed in a lane of their own, the others by task.

    `met` is when the gang ran, in ms; `totals` how many pods each lane stands for, where not all are among the bars;
    `causes` why pods were evicted, by their uids; `room` how high it is at least, in px.
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
    """Return how high the picture is, in px; planned is how many pods each task is to have while they are still made.

    So what stands below has its place before the picture is drawn, and mostly before the pods are there.
    """
    lanes = {"failed" if bar.state == "failed" else bar.pod.task for bar in bars}
    drawn = _height(len(lanes), len(bars), bool(waits)) if bars else 0
    to_come = [task for task, pods in planned.items() if pods > 0]
    empty = _height(len(to_come), sum(planned[task] for task in to_come), True) if to_come else 0
    return min(max(drawn, min(empty, MOST_EMPTY)), HIGHEST)


def _height(lanes: int, bars: int, has_waits: bool) -> int:
    row = 6 if bars > 200 else 10 if bars > 60 else 20
    return TOP + LANE * (lanes + has_waits) + row * bars + FOOT


def legend(bars: Sequence[Bar]) -> list[tuple[str, str]]:
    """Return the states that the legend names, with their hues: the usual ones, and the others that a bar has."""
    states = {bar.state for bar in bars}
    return [(state, hue) for state, hue in HUES.items() if state in USUAL or state in states]


def chosen(bars: Sequence[Bar]) -> Sequence[Bar]:
    """Return the MOST_BARS bars that matter most: the first that failed, then of each phase the newest to change."""
    if len(bars) <= MOST_BARS:
        return bars

    def importance(bar: Bar) -> tuple[int, int]:
        last = next(time for time in (bar.finished, bar.started, bar.scheduled, bar.created) if time is not None)
        return IMPORTANCE.get(bar.phase, 0), last if bar.state == "failed" else -last

    return sorted(bars, key=importance)[:MOST_BARS]


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
    """Return a bar as its numbers; one of an evicted pod, whose name another may have by now, has its uid and why as well."""
    times = [bar.created, bar.scheduled, bar.started, bar.finished]
    # [from, to, exit code] of the container that was started most often; between it waited to be started again.
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
