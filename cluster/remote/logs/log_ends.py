"""How far the logs of a cluster go, which its API tells only to those who ask for each: which is asked when, and what it means.

A log that goes on is asked for its last line. Many of them take turns, so that who follows two hundred
costs the cluster no more than who follows some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cluster.remote.logs.log_offsets import TimedLine, offset_of

LOOK_S = 0.2  # a log is not asked more often
RATE = 40  # requests a second for how far logs go that go on
RETRY_S = 3.0  # when there was no answer
MOST_NEW = 400  # looked at for the first time at once; of more is said only that they may go on until now


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
    """What is known of the end of a log, when it was asked for, and whether more can come.

    `last` is its last line and `end` the offset behind it, or a later one when the line was seen and not counted: it
    is behind the place of whoever has not read that line. `why` says why there is no log, "" where there is one.
    """

    end: int
    last: TimedLine | None
    asked: float  # by the monotonic clock
    is_final: bool = False
    why: str = ""


def due(known: Mapping[LogName, End], logs: Mapping[LogName, Instance], now: float) -> list[LogName]:
    """Return which logs are to be asked for their ends now."""
    new = [log for log in logs if log not in known][:MOST_NEW]
    ended: list[LogName] = []
    going: list[LogName] = []
    for log, instance in logs.items():
        end = known.get(log)
        if end is None or end.is_final or now - end.asked < (RETRY_S if end.why else LOOK_S):
            continue
        # Nobody looks again at a log that has ended, so its end must not wait for its turn.
        (ended if instance.has_ended else going).append(log)
    asked = sum(now - end.asked < 1 for end in known.values())
    going.sort(key=lambda log: known[log].asked)
    return [*new, *ended, *going[: max(0, RATE - asked)]]


def seen(before: End | None, last: TimedLine | None, now: float, *, is_final: bool) -> End:
    """Return what the last line of a log means for its end; None stands for a log without lines."""
    if before is not None and last == before.last and not before.why:
        return before._replace(asked=now, is_final=is_final)
    behind = 0 if last is None else offset_of(last.moment + 1)
    passed = 0 if before is None else before.end + 1
    return End(max(behind, passed), last, now, is_final)


def failed(before: End | None, why: str, now: float) -> End:
    """Return what it means that there was no answer: a log that is known stays as it is."""
    if before is not None and not before.why:
        return before._replace(asked=now)
    return End(0, None, now, why=why)


def reasons(known: Mapping[LogName, End], uid: str) -> list[str]:
    """Return why there are no logs of a pod's containers, each reason once."""
    return [*dict.fromkeys(end.why for log, end in known.items() if log.uid == uid and end.why)]
