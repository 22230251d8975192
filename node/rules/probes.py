"""Whether a container has started, is ready and healthy, by the results of its probes: a pure rule.

The rules are a kubelet's (pod lifecycle, container probes): until the startup
probe has succeeded no other is run, and the container counts neither as
started nor as ready; a probe has an effect when its result was the same as often
as its threshold says; a container whose startup or liveness probe has failed is
ended and started again by its restart policy; the readiness probe goes on while
a pod is being deleted, the others do not.

The health belongs to one attempt, and is in memory only. An agent that
starts takes from the pod's status whether the attempt had started and was
ready, and runs every probe again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from kube.kinds.pod import Container, ContainerStatus, Probe
from node.attempt import Attempt

SECOND = 1_000_000
PERIOD_S, TIMEOUT_S, SUCCESSES, FAILURES = 10, 1, 1, 3  # what 0 stands for


class Kind(StrEnum):
    """The three probes, as events name them."""

    STARTUP = "Startup"
    LIVENESS = "Liveness"
    READINESS = "Readiness"


class Tally(NamedTuple):
    """The results of one probe: when it is due, whether a result is pending, and how often the last one came in a row."""

    due_us: int
    pending: bool = False
    passed: bool = False
    streak: int = 0


class Health(NamedTuple):
    """The health of one attempt by its probes."""

    number: int
    started: bool
    ready: bool
    tallies: Mapping[Kind, Tally]
    failed: Kind | None = None  # the probe for which the attempt is to end


def of(container: Container) -> dict[Kind, Probe]:
    """Return the probes that a container has."""
    by_kind = {
        Kind.STARTUP: container.startup_probe,
        Kind.LIVENESS: container.liveness_probe,
        Kind.READINESS: container.readiness_probe,
    }
    return {kind: probe for kind, probe in by_kind.items() if probe is not None}


def begin(probes: Mapping[Kind, Probe], attempt: Attempt, status: ContainerStatus | None = None) -> Health:
    """Return the health of an attempt before its first probe; `status` is its entry in the pod's status, if any."""
    return Health(
        attempt.number,
        Kind.STARTUP not in probes or (status is not None and status.started is True),
        Kind.READINESS not in probes or (status is not None and status.ready),
        {kind: Tally(attempt.started_us + probe.initial_delay_seconds * SECOND) for kind, probe in probes.items()},
    )


def due(
    health: Health, probes: Mapping[Kind, Probe], now_us: int, *, deleted: bool = False
) -> tuple[list[Kind], int | None]:
    """Return the probes to run now, and when the next is due; None: none before something else happens."""
    if health.failed:
        return [], None
    if not health.started:
        kinds = [] if deleted else [Kind.STARTUP]
    else:
        kinds = [Kind.READINESS] if deleted else [Kind.LIVENESS, Kind.READINESS]
    waiting = {
        kind: _bounded(health.tallies[kind].due_us, probes[kind], now_us)
        for kind in kinds
        if kind in probes and not health.tallies[kind].pending
    }
    now = [kind for kind, due_us in waiting.items() if due_us <= now_us]
    return now, min((due_us for due_us in waiting.values() if due_us > now_us), default=None)


def _bounded(due_us: int, probe: Probe, now_us: int) -> int:
    """A clock that was set back must not put a probe off for longer than it would wait anyway."""
    most_us = (probe.initial_delay_seconds + (probe.period_seconds or PERIOD_S)) * SECOND
    return due_us if due_us <= now_us + most_us else now_us


def with_pending(health: Health, kind: Kind, probe: Probe, now_us: int) -> Health:
    """Return the health when a probe was started."""
    next_us = now_us + (probe.period_seconds or PERIOD_S) * SECOND
    return _with(health, kind, health.tallies[kind]._replace(pending=True, due_us=next_us))


def with_result(health: Health, kind: Kind, probe: Probe, *, passed: bool | None) -> Health:
    """Return the health after a result of a probe; `passed` is None when nothing could be found out, which changes nothing."""
    previous = health.tallies[kind]._replace(pending=False)
    if passed is None or health.failed:
        return _with(health, kind, previous)
    tally = previous._replace(passed=passed, streak=previous.streak + 1 if passed == previous.passed else 1)
    health = _with(health, kind, tally)
    needed = (probe.success_threshold or SUCCESSES) if passed else (probe.failure_threshold or FAILURES)
    if tally.streak < needed:
        return health
    if kind is Kind.READINESS:
        return health._replace(ready=passed)
    if not passed:
        return health._replace(failed=kind)
    return health._replace(started=True)


def is_worth_event(health: Health, kind: Kind, probe: Probe) -> bool:
    """Whether a failure gets an event: the first in a row does, and the one that has an effect.

    A kubelet writes one for each. Here each event is a row in the log, and one that repeats itself for ever says nothing new.
    """
    tally = health.tallies[kind]
    return not tally.passed and tally.streak in (1, probe.failure_threshold or FAILURES)


def grace_s(health: Health, probes: Mapping[Kind, Probe], pod_grace_s: float) -> float:
    """Return how many seconds an attempt has to end whose probe has failed."""
    own = probes[health.failed].termination_grace_period_seconds if health.failed else None
    return pod_grace_s if own is None else float(own)


def _with(health: Health, kind: Kind, tally: Tally) -> Health:
    return health._replace(tallies={**health.tallies, kind: tally})
