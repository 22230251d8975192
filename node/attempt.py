"""One attempt to run a container, as the node has it.

Times in this package are whole microseconds since the epoch, named `_us`: a
status shows microseconds, and two pods started in one millisecond keep their
order.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from kube.meta import now_text, parse_time

UNKNOWN_REASON = "ContainerStatusUnknown"
SHUTDOWN = "NodeShutdown"
DEADLINE = "DeadlineExceeded"
EVICTED = "Evicted"
UNHEALTHY = "Unhealthy"  # a startup or liveness probe has failed
POST_START = "FailedPostStartHook"


class AttemptState(StrEnum):
    """Where an attempt is in its life."""

    ORDERED = "ordered"  # a start was requested and is not confirmed
    RUNNING = "running"
    ENDED = "ended"


class Attempt(NamedTuple):
    """The state of one attempt; numbers count from 0, so the number is also how often the container restarted."""

    number: int
    state: AttemptState
    streak: int = 0
    started_us: int = 0
    finished_us: int = 0
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    stopped: str = ""
    hook: str = ""  # how a hook of it failed
    started: bool = True  # as its probes say while it runs
    ready: bool = True
    engine_id: str = ""  # as a status names a container of an engine: "podman://…"
    image_id: str = ""

    @property
    def active(self) -> bool:
        """Whether it runs or may be about to."""
        return self.state is not AttemptState.ENDED

    @property
    def failed(self) -> bool:
        """Whether it ended badly."""
        return self.state is AttemptState.ENDED and self.exit_code != 0


class Run(NamedTuple):
    """The attempts of one container that matter: the latest, and the one before."""

    current: Attempt | None = None
    last: Attempt | None = None


NEVER_RAN = Run()


def unknown(number: int, streak: int, started_us: int, now_us: int) -> Attempt:
    """Return an attempt whose shim was killed, so that its exit code is lost."""
    return Attempt(
        number,
        AttemptState.ENDED,
        streak,
        started_us,
        now_us,
        exit_code=137,
        reason=UNKNOWN_REASON,
        message="The process that watched over the container was killed, so how the container ended is not known.",
    )


def time_text(time_us: int) -> str:
    """Write a time as statuses show it, with microseconds."""
    seconds, micros = divmod(time_us, 1_000_000)
    return f"{_second_text(seconds)}.{micros:06d}Z"


@lru_cache(maxsize=64)
def _second_text(second: int) -> str:
    return now_text(second * 1000)[:19]


def parse_us(text: str, default: int) -> int:
    """Read a time that time_text() wrote, to the microsecond; default when it is none."""
    try:
        base = parse_time(text) // 1000 * 1_000_000
    except ValueError:
        return default
    fraction = text.partition(".")[2].rstrip("Z")
    return base + (int(fraction.ljust(6, "0")[:6]) if fraction.isdecimal() else 0)
