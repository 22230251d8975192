"""What may become of a request: it is done and answered, or one of the ways in which that fails."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from cluster.remote.http.request import Unreachable
from kube.errors import ApiError, Conflict, Forbidden, InternalError, ServiceUnavailable, Timeout, TooManyRequests

T = TypeVar("T")


class Killed(BaseException):
    """The process is dead: nothing that it would have done is done."""


class Answer(Enum):
    """What becomes of a request."""

    DONE = "done"
    REFUSED = "refused"
    CONFLICT = "conflict"  # 409
    BUSY = "busy"  # 429
    NOT_SENT = "not sent"
    LOST = "lost"  # the request never came
    UNHEARD = "unheard"  # done, and the answer was lost
    TIMED_OUT = "timed out"  # 504, and done
    FAILED = "failed"  # 500, and not done
    AWAY = "away"  # 503
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"


# Of which who asked for it is told.
REFUSALS = (Answer.REFUSED, Answer.CONFLICT, Answer.FAILED, Answer.TIMED_OUT)

FAILURES: dict[Answer, ApiError] = {
    Answer.REFUSED: Forbidden("an administrator does not like it"),
    Answer.CONFLICT: Conflict("somebody else was faster"),
    Answer.BUSY: TooManyRequests("slowly"),
    Answer.FAILED: InternalError("a webhook does not answer"),
    Answer.AWAY: ServiceUnavailable("starting"),
}


def met(answer: Answer, do: Callable[[], T]) -> T:
    """Return what `do` gives, which carries a request out, or raise what its sender meets instead."""
    match answer:
        case Answer.NOT_SENT | Answer.LOST:
            raise Unreachable("https://model", "connection refused", sent=answer is Answer.LOST)
        case Answer.KILLED_BEFORE:
            raise Killed
    if answer in FAILURES:
        raise FAILURES[answer]
    done = do()
    match answer:
        case Answer.KILLED_AFTER:
            raise Killed
        case Answer.UNHEARD:
            raise Unreachable("https://model", "it closed the connection", sent=True)
        case Answer.TIMED_OUT:
            raise Timeout("too slow")
    return done
