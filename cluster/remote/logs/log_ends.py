"""How far the logs of a cluster go, which its API tells log by log: when each is checked, and what an answer means.

Of a log that goes on the last line is requested. Many of them take turns, so that who follows two hundred
costs the cluster no more than who follows some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cluster.remote.logs.log_offsets import TimedLine, offset_of

LOOK_S = 0.2  # a log is not checked more often
RATE = 40  # requests a second for how far logs go that go on
RETRY_S = 3.0  # when there was no answer
MAX_NEW = 400  # looked at for the first time at once; of more is said only that they may go on until now


class Instance(NamedTuple):
    """One run of a container: its number, whether it is the one before the present, and whether it has ended."""

    attempt: int
    is_previous: bool
    has_ended: bool


class LogName(NamedTuple):
    """Whose log it is: a pod's uid, a container's name and the number of the attempt to run it."""

    uid: str
    container: str
    attempt: int


class End(NamedTuple):
    """The end of a log, when it was checked, and whether more can come.

    `last` is its last line and `end` the offset behind it, or a later one when the line was seen and not counted: it
    is behind the place of whoever has not read that line. `why` says why there is no log, "" where there is one.
    """

    end: int
    last: TimedLine | None
    checked_at: float  # by the monotonic clock
    is_final: bool = False
    why: str = ""


def due(ends: Mapping[LogName, End], logs: Mapping[LogName, Instance], now: float) -> list[LogName]:
    """Return the logs whose ends are to be checked now."""
    new = [log for log in logs if log not in ends][:MAX_NEW]
    ended: list[LogName] = []
    going: list[LogName] = []
    for log, instance in logs.items():
        end = ends.get(log)
        if end is None or end.is_final or now - end.checked_at < (RETRY_S if end.why else LOOK_S):
            continue
        # Nobody looks again at a log that has ended, so its end must not wait for its turn.
        (ended if instance.has_ended else going).append(log)
    recent = sum(now - end.checked_at < 1 for end in ends.values())
    going.sort(key=lambda log: ends[log].checked_at)
    return [*new, *ended, *going[: max(0, RATE - recent)]]


def after_answer(before: End | None, last: TimedLine | None, now: float, *, is_final: bool) -> End:
    """Return a log's end after its last line was read; None stands for a log without lines."""
    if before is not None and last == before.last and not before.why:
        return before._replace(checked_at=now, is_final=is_final)
    behind = 0 if last is None else offset_of(last.moment + 1)
    passed = 0 if before is None else before.end + 1
    return End(max(behind, passed), last, now, is_final)


def after_failure(before: End | None, why: str, now: float) -> End:
    """Return a log's end after there was no answer: one that has been read stays as it is."""
    if before is not None and not before.why:
        return before._replace(checked_at=now)
    return End(0, None, now, why=why)


def reasons(ends: Mapping[LogName, End], uid: str) -> list[str]:
    """Return why there are no logs of a pod's containers, each reason once."""
    return [*dict.fromkeys(end.why for log, end in ends.items() if log.uid == uid and end.why)]
