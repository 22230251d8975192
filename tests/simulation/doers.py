"""Who wrote what: the log does not say it, and of deletions it matters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kube.meta import parse_time
from kube.resources import BATCH_JOBS, CLAIMS, CONFIGMAPS, JOBS, NAMESPACES, SECRETS
from tests.invariants import Broken
from tests.invariants.jobs import FINISHED

if TYPE_CHECKING:
    from cluster.store import Change
    from tests.simulation.faults import Steps

COLLECTORS = "controllers"  # the queue of the collector and of those who empty namespaces
# Kinds that no controller of this queue deletes for a reason of its own.
OWNED = frozenset(kind.id for kind in (CONFIGMAPS, CLAIMS, SECRETS, JOBS, BATCH_JOBS))
ENDS_JOBS = "jobs"  # the queue of the job controller
NAME = "nothing goes with somebody else"
IN_TIME = "jobs go when their time is over"


class Doers:
    """Judges what controllers delete.

    The collector: only what is in a namespace that goes, or whose owners all
    go. The job controller: only jobs that are finished, for as long as their
    `ttlSecondsAfterFinished` says (reference: volcano-job §6.2).
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.last: tuple[int, str] = (0, "")
        self.of: dict[int, str] = {}  # the last revision of each commit → who made it
        self.meta: dict[str, Any] = {}  # uid → metadata
        self.namespaces: dict[str, str] = {}  # name → uid

    def committed(self, touched: frozenset[str], revision: int) -> None:
        """Note who has written up to a revision: a listener of the store."""
        move = self.steps.taken[-1].move if self.steps.taken else None
        self.of[revision] = getattr(move, "process", "")

    def take(self, change: Change) -> None:
        """Judge a change."""
        doer, before = self._doer(change.revision), self.meta.get(change.uid, {})
        if change.resource == NAMESPACES.id:
            self.namespaces[change.name] = change.uid
        metadata = _metadata(change)
        is_end = change.verb == "DELETED" or "deletionTimestamp" in metadata
        if is_end and "deletionTimestamp" not in before and change.resource in OWNED:
            if doer == COLLECTORS:
                self._judge(change, before)
            elif doer == ENDS_JOBS and change.resource == JOBS.id:
                _judge_end(change)
        if change.verb == "DELETED":
            self.meta.pop(change.uid, None)
        else:
            self.meta[change.uid] = metadata

    def _doer(self, revision: int) -> str:
        """Return which kind of process wrote a revision; they come in order."""
        while self.last[0] < revision:
            later = min((r for r in self.of if r >= revision), default=None)
            if later is None:
                return ""
            self.last = later, self.of.pop(later)
        return self.last[1].partition("+")[0]

    def _judge(self, change: Change, before: Any) -> None:
        place = self.meta.get(self.namespaces.get(change.namespace, ""))
        if place is None or "deletionTimestamp" in place:
            return
        owners = [owner["uid"] for owner in before.get("ownerReferences") or ()]
        keeping = [uid for uid in owners if uid in self.meta and "deletionTimestamp" not in self.meta[uid]]
        if not owners or keeping:
            why = "an owner of it lives" if keeping else "it belongs to nobody"
            raise Broken(NAME, change.revision, f"{change.resource}/{change.key}", f"was deleted, and {why}")


def _judge_end(change: Change) -> None:
    """Judge the end of a job by its own TTL."""
    lasts = change.object["spec"].get("ttlSecondsAfterFinished")
    state = (change.object.get("status") or {}).get("state") or {}
    if state.get("phase") not in FINISHED or lasts is None:
        why = f"it is {state.get('phase') or 'new'}" if lasts is not None else "it has no TTL"
    elif parse_time(state["lastTransitionTime"]) + lasts * 1000 > change.at:
        why = f"its TTL of {lasts} s is not over"
    else:
        return
    raise Broken(IN_TIME, change.revision, f"{change.resource}/{change.key}", f"was deleted, and {why}")


def _metadata(change: Change) -> Any:
    """Return as much of an object's metadata as matters: of what is only an owner, whether it goes."""
    if change.resource in OWNED:
        return change.object["metadata"]
    return {"deletionTimestamp": ""} if b'"deletionTimestamp"' in change.body else {}
