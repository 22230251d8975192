"""What an answer of an API server means for a write of a plan: pure functions.

A write may have been sent before by somebody who did not hear the answer: this process, before a connection was cut,
or one that was killed. Then a refusal can be the echo of one's own success, and what the server has now decides.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from cluster.writes import Create, Delete, Patch, Update, Write
from kube import errors, patch
from kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound, TooManyRequests, Unauthorized
from kube.kinds.pod import OUT_OF_SYNC
from kube.meta import Object
from kube.owners import controller_of
from kube.resources import COMMANDS, EVENTS

AWAY = frozenset({502, 503})  # what stands before a server that is away, or it itself, answers
FAILED = frozenset({500, 504})  # the server met a failure of its own; perhaps only with this object


class Done(NamedTuple):
    """The write is done. `object` is the object as the server has it now, None where the answer has none."""

    object: Object | None = None


class Refused(NamedTuple):
    """The write is refused for good; `current` is the object that stands in its way, where that was read."""

    error: ApiError
    current: Object | None = None


class Again(NamedTuple):
    """The write is to be sent again. `is_away` says that the server answers nobody; after_s is the wait that it asks for."""

    error: ApiError
    may_be_done: bool = True
    is_away: bool = False
    after_s: float = 0.0


class Look(NamedTuple):
    """What the server has now must be read first (`of_current`)."""

    error: ApiError


Verdict = Done | Refused | Again


def of_answer(write: Write, answer: Object) -> Done:
    """Return the verdict of a success. A Status tells no object, nor does the last state of one that went at once."""
    is_gone = isinstance(write, Delete) and not is_waiting(answer, write.grace)
    return Done(None if is_gone or answer.get("kind") == "Status" else answer)


def is_waiting(answer: Object, grace: int | None) -> bool:
    """Say whether a deletion with this grace was answered with an object that is still there, and waits to go.

    Kubernetes answers for some kinds, pods among them, with what an object was before it went.
    """
    metadata = answer.get("metadata") or {}
    return bool(metadata.get("finalizers") or (metadata.get("deletionTimestamp") and grace != 0))


def of_error(write: Write, error: ApiError, *, is_repeat: bool, is_doomed: bool = False) -> Verdict | Look:
    """Return what an error means.

    is_repeat: the write may have been carried out before. is_doomed: its object is deleted next anyway.
    """
    if passing := _passing(error):
        return passing
    if write.resource == EVENTS:
        return Done()  # news for people; nothing may depend on them
    if isinstance(error, NotFound):
        return _of_absence(write, error, is_repeat=is_repeat, is_doomed=is_doomed)
    if isinstance(error, AlreadyExists | Conflict | Invalid):
        return Refused(error) if isinstance(write, Create) and isinstance(error, Invalid) else Look(error)
    return Look(error) if is_repeat else Refused(error)


def of_current(
    write: Write, error: ApiError, current: Object | None, *, is_repeat: bool, is_doomed: bool = False
) -> Verdict:
    """Return what an error means, given what the server has now under the name of the write's object."""
    if current is None and not isinstance(write, Create):
        return _of_absence(write, error, is_repeat=is_repeat, is_doomed=is_doomed)
    if current is None:  # what had the name is gone again, unless it never was
        return Again(error) if isinstance(error, AlreadyExists) else Refused(error)
    if isinstance(write, Create):
        return Done(current) if is_repeat and is_what_was_sent(write.object, current) else Refused(error, current)
    uid = _uid(write)
    if uid and current["metadata"].get("uid") != uid:
        return _of_absence(write, error, is_repeat=is_repeat, is_doomed=is_doomed)
    return Done(current) if is_as_wanted(write, current) else Refused(error, current)


def of_look(write: Write, current: Object) -> Verdict:
    """Return whether the object that a write is about is there, given what has its name."""
    uid = _uid(write)
    if uid and current["metadata"].get("uid") != uid:
        return Refused(NotFound("Another object has this name now."), current)
    return Done(current)


def of_unreadable(error: ApiError, why: ApiError) -> Verdict:
    """Return what an error means when the server does not let us see what it has now, and says why."""
    return _passing(why) or Refused(error)


def _passing(error: ApiError) -> Again | None:
    """Return the verdict where the answer is about the server, and not about the write."""
    if isinstance(error, TooManyRequests):
        return Again(error, may_be_done=False, after_s=max(float(error.retry_after_s), 1.0))
    if isinstance(error, Unauthorized) or error.code in AWAY:
        return Again(error, is_away=True, after_s=float(error.retry_after_s))
    if error.code in FAILED:
        return Again(error, after_s=float(error.retry_after_s))
    return None


def _of_absence(write: Write, error: ApiError, *, is_repeat: bool, is_doomed: bool) -> Verdict:
    """Return the verdict when the object that a write is about is gone, or another one has its name.

    A Command is carried out by who deletes it: one that somebody else has deleted counts for nothing.
    """
    if is_doomed or (isinstance(write, Delete) and (is_repeat or not is_claim(write))):
        return Done()
    return Refused(error)


def is_claim(write: Write) -> TypeGuard[Delete]:
    """Whether a write deletes a Command, which is carried out by who does."""
    return isinstance(write, Delete) and write.resource == COMMANDS


def is_what_was_sent(sent: Object, current: Object) -> bool:
    """Say whether an object is the one that a creation has made: of the same controller, with all that was noted on it.

    Specs are no evidence: a server fills in defaults, writes quantities in another way, and its admission adds what it likes.
    """
    owner, other = controller_of(sent), controller_of(current)
    if (owner.uid if owner else "") != (other.uid if other else ""):
        return False
    mine, theirs = sent["metadata"], current["metadata"]
    return all(
        (theirs.get(field) or {}).get(key) == value
        for field in ("labels", "annotations")
        for key, value in (mine.get(field) or {}).items()
    )


def is_as_wanted(write: Write, current: Object) -> bool:
    """Say whether an object shows already what a change asks for."""
    match write:
        case Patch(subresource="binding"):
            is_bound = (current.get("spec") or {}).get("nodeName") == write.patch["spec"]["nodeName"]
            return bool(is_bound and not is_marked_for_rollback(current))
        case Patch():
            return patch.merge(current, write.patch) == current
        case Update(subresource="status"):
            return bool((write.object.get("status") or {}) == (current.get("status") or {}))
        case _:
            return False


def is_marked_for_rollback(pod: Object) -> bool:
    """Say whether a pod bears the mark of those whose binding is being taken back (`gangs.removal`).

    A process that sends a plan again may find what the one before it had begun to take back when it died. Such a pod still
    has its node, and loses it.
    """
    return (pod["metadata"].get("annotations") or {}).get(OUT_OF_SYNC) == "true"


def _uid(write: Write) -> str:
    if isinstance(write, Patch | Delete):
        return write.uid
    return str(write.object["metadata"].get("uid") or "") if isinstance(write, Update) else ""


def unknown_outcome(error: ApiError) -> ApiError:
    """Return the error for a write that is not sent again though nobody knows what came of it."""
    return errors.Timeout(f"It was sent several times, and the last answer was: {error.message}")
