"""The timeline of a job's pods as data: the browser draws it, and a table says the same in words.

Times are ms since the first moment shown, so that a pod is a few short numbers. Beyond MOST_BARS pods
each task becomes one band that says how many pods waited and ran at each moment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.pages.reading import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.history.record import PodSpan, Stretch
    from jobs.pages.chapters import Wait
    from jobs.pages.reading import Job, Pod
    from kube.kinds.core import Event

STOPPED = "Stopped"  # stands among the phases for pods that were removed before they had ended
MOST_BARS = 500
MOST_POINTS = 240
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

    @property
    def state(self) -> str:
        """waiting, starting, running, succeeded, failed, stopped (removed before it had ended) or unknown."""
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
        """The pod's phase, or Stopped when it was removed before it had ended."""
        return STOPPED if self.state == "stopped" else self.pod.status.phase

    @property
    def waited(self) -> int | None:
        """How long the pod waited for its node, in ms."""
        return None if self.scheduled is None else max(self.scheduled - self.created, 0)

    @property
    def ran(self) -> int | None:
        """How long the pod ran, in ms; None while it has not ended."""
        return None if self.started is None or self.finished is None else max(self.finished - self.started, 0)


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A task's times in words, for who does not see the picture."""

    task: str
    pods: int
    waited: int | None
    ran_least: int | None
    ran_most: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that was done to the whole job at a moment, in ms: by a policy, or asked for by a Command."""

    at: int
    reason: str
    message: str


def marks_of(events: Sequence[Event]) -> list[Mark]:
    """Return what was done to the job, the oldest first."""
    times = [(moment(event.seen), event) for event in events if event.reason in MARKED]
    found = [Mark(at, event.reason, event.message) for at, event in times if at is not None]
    return sorted(found, key=lambda mark: mark.at)[-MOST_MARKS:]


def bar_of(pod: Pod, created: int, stretches: Sequence[Stretch] = (), removed: int | None = None) -> Bar:
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
    return Bar(pod, created, scheduled, started, finished, stretches if len(stretches) > 1 else ())


def bar_of_span(span: PodSpan) -> Bar:
    """Return the bar of a pod as a record tells of it."""
    return bar_of(span.pod, span.created, span.stretches, span.removed)


def gang_met(job: Job, bars: Sequence[Bar]) -> int | None:
    """Return when as many pods as are needed ran."""
    starts = sorted(bar.started for bar in bars if bar.started is not None)
    needed = job.spec.min_available
    return starts[needed - 1] if 0 < needed <= len(starts) else None


def data(
    job: Job, bars: Sequence[Bar], begun: int, marks: Sequence[Mark] = (), waits: Sequence[Wait] = ()
) -> str:
    """Return what the browser draws of a run, as JSON."""
    zero = min([begun, *(bar.created for bar in bars)])
    tasks = list(dict.fromkeys([task.name for task in job.spec.tasks] + [bar.pod.task for bar in bars]))
    met = gang_met(job, bars)
    drawn: dict[str, Any] = {
        "job": job.metadata.name,
        "zero": zero,
        "needed": job.spec.min_available,
        "met": None if met is None else met - zero,
        "tasks": tasks,
        "pods": len(bars),
        "marks": [[mark.at - zero, mark.message] for mark in marks],
        "waits": [[each.kind, each.begun - zero, _since(each.ended, zero)] for each in waits],
    }
    if len(bars) > MOST_BARS:
        drawn["bands"] = [_band([bar for bar in bars if bar.pod.task == task], zero) for task in tasks]
    else:
        ordered = sorted(bars, key=lambda bar: (tasks.index(bar.pod.task), bar.pod.index))
        drawn["bars"] = [_row(bar, tasks, zero) for bar in ordered]
    return json.dumps(drawn, separators=(",", ":"))


def summaries(bars: Sequence[Bar]) -> list[TaskSummary]:
    """Return each task's times: the longest wait, the shortest and the longest run."""
    found = []
    for task in dict.fromkeys(bar.pod.task for bar in bars):
        own = [bar for bar in bars if bar.pod.task == task]
        ran = [bar.ran for bar in own if bar.ran is not None]
        waited = [bar.waited for bar in own if bar.waited is not None]
        summary = TaskSummary(
            task, len(own), max(waited, default=None), min(ran, default=None), max(ran, default=None)
        )
        found.append(summary)
    return found


def _row(bar: Bar, tasks: list[str], zero: int) -> list[Any]:
    times = [bar.created, bar.scheduled, bar.started, bar.finished]
    return [
        bar.pod.metadata.name,
        tasks.index(bar.pod.task),
        *(_since(time, zero) for time in times),
        bar.state,
        bar.pod.exit_code,
        bar.pod.spec.node_name,
        _runs(bar, zero),
    ]


def _runs(bar: Bar, zero: int) -> list[list[int | None]]:
    """Return [from, to, exit code] of the container that was started most often; between it waited to be started again."""
    names = [each.container for each in bar.stretches]
    most = max(names, key=names.count, default="")
    own = [each for each in bar.stretches if each.container == most]
    ends = [each.finished if each.finished is not None else bar.finished for each in own]
    return [
        [each.started - zero, _since(end, zero), each.exit_code] for each, end in zip(own, ends, strict=True)
    ]


def _since(time: int | None, zero: int) -> int | None:
    return None if time is None else time - zero


_BANDS = {
    "succeeded": 2,
    "failed": 3,
}  # how a pod that ended is counted; one that was removed is counted no more


def _band(bars: Sequence[Bar], zero: int) -> list[list[int]]:
    """Return points [time, waiting, running, succeeded, failed] at which the numbers of a task change."""
    deltas: dict[int, list[int]] = {}

    def change(time: int | None, leave: int | None, enter: int | None) -> None:
        if time is None:
            return
        row = deltas.setdefault(time - zero, [0, 0, 0, 0])
        if enter is not None:
            row[enter] += 1
        if leave is not None:
            row[leave] -= 1

    for bar in bars:
        change(bar.created, None, 0)
        change(bar.started, 0, 1)
        change(bar.finished, 0 if bar.started is None else 1, _BANDS.get(bar.state))
    points, counts = [], [0, 0, 0, 0]
    for time in sorted(deltas):
        counts = [count + delta for count, delta in zip(counts, deltas[time], strict=True)]
        points.append([time, *counts])
    return _thinned(points)


def _thinned(points: list[list[int]]) -> list[list[int]]:
    """Keep at most MOST_POINTS points, the first and the last among them."""
    if len(points) <= MOST_POINTS:
        return points
    step = (len(points) - 1) / (MOST_POINTS - 1)
    return [points[round(index * step)] for index in range(MOST_POINTS)]
