"""The rules of following one kind of another cluster: what an answer means, what to do next, how long to wait.

A kind is listed page by page and then watched from the list's version on. Each answer becomes an `Update`, which the
recorder writes down in order, each with the version that it reaches; so whoever starts again goes on there. The model
is client-go's reflector (reference: kubernetes-api §4.1 to 4.3).

Others write into the mirror too: what the API answered to a change made here is
there before the watch tells it. Versions say which of the two is newer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from cluster.remote.mirroring import kinds
from cluster.writes import Mirror
from kube import errors
from kube.errors import ApiError, Expired, Forbidden, NotFound, Timeout
from kube.meta import Object, is_older
from kube.resources import Resource

PAGE = 500  # objects asked for at a time
FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 8.0
# How long one watch lasts: at random, so that those of many kinds do not end together.
WATCH_S = (300, 600)


class Phase(StrEnum):
    """How far a kind's mirror is."""

    LOADING = "loading"  # it is being listed
    LIVE = "live"  # it is watched
    AWAY = "away"  # the server does not answer
    REFUSED = "refused"  # the server does not let us
    ABSENT = "absent"  # the server does not have the kind


class Step(StrEnum):
    """What an update reports of a kind."""

    BEGUN = "begun"  # a list begins; there is no version to go on from until its end
    PAGE = "page"
    LISTED = "listed"  # its end: what it did not name is gone
    WATCHED = "watched"  # the server has agreed to a watch
    CHANGED = "changed"
    AWAY = "away"
    REFUSED = "refused"
    ABSENT = "absent"


class Update(Struct, frozen=True):
    """A report on a kind: objects, the version that they reach ("" leaves it), or why the kind cannot be read.

    `uids` are those of a whole list. `anew` says that versions count for nothing.
    """

    kind: Resource
    step: Step
    writes: tuple[Mirror, ...] = ()
    version: str = ""
    uids: frozenset[str] = frozenset()
    anew: bool = False
    reason: str = ""


class KindStatus(Struct, frozen=True):
    """How far the mirror of a kind is; times in epoch ms. The fields are those of `cluster.models.MirroredKind`."""

    version: str = ""
    anew: bool = False
    phase: Phase = Phase.LOADING
    since: int = 0
    reason: str = ""
    objects_read: int = 0


_PHASES = {
    Step.BEGUN: Phase.LOADING,
    Step.PAGE: Phase.LOADING,
    Step.LISTED: Phase.LIVE,
    Step.WATCHED: Phase.LIVE,
    Step.AWAY: Phase.AWAY,
    Step.REFUSED: Phase.REFUSED,
    Step.ABSENT: Phase.ABSENT,
}


def status_after(before: KindStatus, update: Update, now: int) -> KindStatus:
    """Return the status of a kind after an update."""
    after = replace(
        before, version=update.version or before.version, anew=before.anew or update.anew, reason=update.reason
    )
    match update.step:
        case Step.BEGUN:
            after = replace(after, version="", objects_read=0)
            if before.phase in (Phase.AWAY, Phase.REFUSED):
                return replace(after, reason=before.reason)  # nothing has been read yet that would mend it
        case Step.PAGE:
            after = replace(after, objects_read=before.objects_read + len(update.writes))
        case Step.LISTED:
            after = replace(after, anew=False)
        case Step.ABSENT:
            after = replace(after, version="", anew=True)
    phase = _PHASES.get(update.step, before.phase)
    return replace(after, phase=phase, since=before.since if phase is before.phase and before.since else now)


def incomplete(statuses: Mapping[str, KindStatus], wanted: Collection[str]) -> list[str]:
    """Return those kinds, by their ids, whose mirror is not all that the cluster had at one time.

    Who decides by what is not there must not look at a list that is still read. A kind that the cluster does not have is whole.
    """
    return [
        kind
        for kind in wanted
        if (status := statuses.get(kind)) is None
        or (status.phase is not Phase.ABSENT and (status.anew or not status.version))
    ]


class GoneBack(Expired):
    """The cluster's versions have begun anew: its data were restored from a backup."""


class Event(NamedTuple):
    """What a line of a watch says: a write, the version reached, or the error with which the server ends it."""

    write: Mirror | None
    version: str = ""
    error: ApiError | None = None


def read_event(kind: Resource, line: Mapping[str, Any], *, after: str) -> Event:
    """Return what a line of a watch means, which has reached the version `after`.

    GoneBack is the error of a version that is older than that.
    """
    obj: Object = line.get("object") or {}
    if line.get("type") == "ERROR":
        return Event(None, error=errors.of_status(obj, int(obj.get("code") or 500)))
    version = str((obj.get("metadata") or {}).get("resourceVersion") or "")
    if is_older(version, after):
        return Event(None, error=GoneBack(f"The versions of {kind.plural} went back from {after} to {version}."))
    if line.get("type") == "BOOKMARK":
        return Event(None, version)
    return Event(Mirror(kind, kinds.stored_part(kind, obj), deleted=line.get("type") == "DELETED"), version)


def after_error(error: ApiError) -> Literal["list", "list anew", "absent", "refused", "again"]:
    """Say what to do when the server refuses a list or a watch; anew where versions count for nothing any more."""
    too_large = any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
    if isinstance(error, GoneBack) or (isinstance(error, Timeout) and too_large):
        return "list anew"
    if isinstance(error, Expired):
        return "list"
    if isinstance(error, NotFound):
        return "absent"
    return "refused" if isinstance(error, Forbidden) else "again"


def page(kind: Resource, answer: Mapping[str, Any], *, anew: bool) -> Update:
    """Return the update of one page of a list, all pages of which show the cluster at one version."""
    objects: Sequence[Object] = answer.get("items") or ()
    at = str((answer.get("metadata") or {}).get("resourceVersion") or "")
    return Update(
        kind, Step.PAGE, tuple(Mirror(kind, kinds.stored_part(kind, obj), at=at, anew=anew) for obj in objects)
    )


def vanished(
    stored: Mapping[str, str], listed: Collection[str], versions: Mapping[str, str], update: Update
) -> list[str]:
    """Return the uids of what a list did not name and is gone.

    stored are keys by uid, versions those of what was not listed. What is newer than the list came into being after it.
    """
    return [
        uid
        for uid in stored
        if uid not in listed and (update.anew or not is_older(update.version, versions.get(uid, "")))
    ]


def is_newer(version: str, status: KindStatus) -> bool:
    """Whether an object that the API answered with is newer than what the mirror has read.

    Up to the version that it has read the mirror knows better: the object may be gone again by now. While a list
    is read nobody knows what it will name, but then the list, or the watch after it, names this object too.
    """
    return not status.anew and (not status.version or is_older(status.version, version))


def wait_s(failures: int, luck: float) -> float:
    """Return how long to wait after so many failures in a row: twice as long each time, and between half and all of it.

    luck is a random number from 0 to 1.
    """
    longest = min(FIRST_WAIT_S * 2 ** min(failures - 1, 30), LONGEST_WAIT_S)
    return float(longest * (0.5 + luck / 2))
