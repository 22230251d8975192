"""A job's runs as chapters: each with its own begin, steps, waits and pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import NamedTuple

from jobs.history.record import PodSpan, Run
from jobs.lifecycle import retries
from jobs.lifecycle.phases import DELETED
from jobs.lifecycle.reading import Pod
from kube.kinds.batch import JobPhase

WAITS = {
    "queue": "Waited to be let into the queue:",
    "gang": "Waited for the gang to be placed:",
    "starting": "Waited for the gang to start:",
}
CREATED, RESUMED, RESTARTED = "Created", "Resumed", "Restarted"
# The phase to show for a run that ended while the job goes on; others are shown as they are.
_OVER: dict[str, str] = {JobPhase.RESTARTING: RESTARTED, JobPhase.ABORTING: JobPhase.ABORTED}
# What ended a run, as people say it; of others, the phase.
_ENDS: dict[str, str] = {
    JobPhase.RESTARTING: "restarted",
    JobPhase.ABORTING: "suspended",
    JobPhase.ABORTED: "suspended",
}


class Restarts(NamedTuple):
    """How many restarts a job made, how many it may make, and how many restarted only some pods and began no run."""

    made: int
    allowed: int
    parts: int


def restarts(retry_count: int, max_retry: int, runs: Iterable[Chapter]) -> Restarts:
    """Return a job's restarts, by its status and its runs."""
    restarts_made = retries.restarts_made(retry_count, max_retry)
    whole = sum(run.phase == JobPhase.RESTARTING for run in runs)
    return Restarts(restarts_made, retries.allowed(max_retry), max(restarts_made - whole, 0))


class Times(NamedTuple):
    """When a run reached each of its steps, in ms; None if it has not, or if that is unknown."""

    begun: int
    group_created: int | None = None
    let_in: int | None = None
    placed: int | None = None
    running: int | None = None
    ended: int | None = None


class Wait(NamedTuple):
    """A time in which a run waited: in the queue, for nodes for the gang, or for the gang to start."""

    kind: str  # queue, gang, starting
    begun: int
    ended: int | None

    @property
    def label(self) -> str:
        """What the run waited for, as the start of a sentence that a duration ends."""
        return WAITS[self.kind]

    @property
    def lasted(self) -> int | None:
        """How long it took, in ms; None while it goes on."""
        return None if self.ended is None else self.ended - self.begun


@dataclass(frozen=True, slots=True)
class Chapter:
    """One run of a job. `phase` is what ended it, "" while it goes on; `opening` is how it began.

    `next` is what is still to happen or to be done, "" once the run is over for good.
    """

    number: int
    times: Times
    opening: str = CREATED
    phase: str = ""
    message: str = ""
    spans: Sequence[PodSpan] = field(default=())
    next: str = ""

    @property
    def end(self) -> str:
        """How the run ended, as one word."""
        return _ENDS.get(self.phase, self.phase.lower()) if self.phase else "goes on"

    @property
    def over(self) -> str:
        """The phase to show once another run goes on."""
        return _OVER.get(self.phase, self.phase)

    @property
    def lasted(self) -> int | None:
        """How long the run took from its begin, in ms; None while it goes on."""
        return None if self.times.ended is None else max(self.times.ended - self.times.begun, 0)


def of_runs(runs: Sequence[Run], needed: int) -> list[Chapter]:
    """Return the chapters of runs that ended; `needed` is how many pods start together."""
    chapters: list[Chapter] = []
    for number, run in enumerate(runs, 1):
        spans = list(run.pods.values())
        chapters.append(
            Chapter(
                number,
                times_of(run, needed),
                opening(chapters[-1] if chapters else None),
                run.phase,
                run.message,
                spans,
            )
        )
    return chapters


def of_deleted(runs: Sequence[Run], needed: int, deleted: int) -> list[Chapter]:
    """Return the chapters of a job deleted at a time in ms, which ended a run that still went on."""
    chapters = of_runs(runs, needed) or [Chapter(1, Times(deleted))]
    last = chapters[-1]
    if last.times.ended is None:
        phase = last.phase or DELETED
        chapters[-1] = replace(last, phase=phase, times=last.times._replace(ended=deleted))
    return chapters


def times_of(run: Run, needed: int) -> Times:
    """Return the times of a recorded run."""
    scheduled = [span.pod.scheduled for span in run.pods.values()]
    let_in = run.let_in if run.let_in is not None else nth(scheduled, 1)
    return Times(run.begun, run.group_created, let_in, nth(scheduled, needed), run.running, run.ended)


def opening(before: Chapter | None) -> str:
    """Return how a run began, given the one before."""
    if before is None:
        return CREATED
    return RESUMED if before.phase in (JobPhase.ABORTING, JobPhase.ABORTED) else RESTARTED


def index_at(runs: Sequence[Chapter], at: int) -> int:
    """Return the index of the run that a time (ms) belongs to; the time of its end still belongs to a run."""
    for index, (run, following) in enumerate(pairwise(runs)):
        if at <= (following.times.begun if run.times.ended is None else run.times.ended):
            return index
    return len(runs) - 1


def placed(pods: Sequence[Pod], needed: int) -> int | None:
    """Return when the last of the needed pods got its node."""
    return nth([pod.scheduled for pod in pods], needed)


def nth(times: Sequence[int | None], number: int) -> int | None:
    """Return the number-th earliest of the times that are not None, from 1; None if there are fewer."""
    ordered = sorted(time for time in times if time is not None)
    return ordered[number - 1] if 0 < number <= len(ordered) else None


def stretches_with(spans: Iterable[tuple[int, int | None]], needed: int) -> list[tuple[int, int | None]]:
    """Return the stretches (ms; an end of None is open) in which at least `needed` spans overlap."""
    steps = sorted((at, step) for begun, ended in spans for at, step in ((begun, 1), (ended, -1)) if at is not None)
    stretches: list[tuple[int, int | None]] = []
    count = 0
    for at, together in groupby(steps, key=lambda each: each[0]):
        before, count = count, count + sum(step for _, step in together)
        if before < needed <= count:
            stretches.append((at, None))
        elif count < needed <= before:
            stretches[-1] = stretches[-1][0], at
    return stretches


def waits_of_gang(
    times: Times, placed: Sequence[tuple[int, int | None]], ran: Sequence[tuple[int, int | None]]
) -> list[Wait]:
    """Return the waits of a run whose gang was placed more than once, because pods of it were evicted.

    `placed` and `ran` are the stretches (ms) in which enough of its pods had nodes, and ran.
    """
    let_in = times.let_in if times.let_in is not None else times.begun
    waits = [Wait("queue", times.begun, let_in)]
    without: int | None = let_in  # since when the gang has no nodes
    for begun, ended in placed:
        start = next((at for at, _ in ran if at >= begun and (ended is None or at <= ended)), None)
        if without is not None:
            waits.append(Wait("gang", without, begun))
        waits.append(Wait("starting", begun, next((at for at in (start, ended, times.ended) if at is not None), None)))
        without = ended
    if without is not None:
        waits.append(Wait("gang", without, times.ended))
    return [wait for wait in waits if wait.ended is None or wait.ended > wait.begun]


def waits(times: Times) -> list[Wait]:
    """Return the waits of a run, in order; the last goes on while nothing has ended it."""
    found, begun = [], times.begun
    for kind, reached in (("queue", times.let_in), ("gang", times.placed), ("starting", times.running)):
        ended = reached if reached is not None else times.ended
        if ended is None or ended > begun:
            found.append(Wait(kind, begun, ended))
        if reached is None:
            break
        begun = max(reached, begun)
    return found
