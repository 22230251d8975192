"""The log itself: nothing is missing from it, and each object has one life."""

from __future__ import annotations

from kube.meta import parse_time
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import key_of


class NoGaps(Invariant):
    """Source: docs/design/store.md, "one lock puts writers in order, so the log has no gaps"."""

    name = "log without gaps"
    meaning = "The revisions of the log are 1, 2, 3 …"
    kinds = None

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._next = 1

    def take(self, step: Step) -> None:
        change = step.change
        if change.revision != self._next:
            raise self.broken(key_of(change), f"revision {self._next} is missing from the log", change.revision)
        self._next += 1


class OneLife(Invariant):
    """Source: reference kubernetes-api-and-batch-job §2.4 and §4.5: watches see ADDED, MODIFIED …, DELETED; uids are unique."""

    name = "one life of each object"
    meaning = "ADDED, MODIFIED … and DELETED alternate; a uid stays while its object lives and is never given again."
    kinds = None

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._uids: set[str] = set()

    def take(self, step: Step) -> None:
        change, before = step.change, step.before
        if change.verb == "ADDED":
            self._begin(step)
        elif before is None:
            raise self.broken(key_of(change), f"{change.verb}, but there is no such object")
        elif change.uid != before.metadata.uid:
            raise self.broken(key_of(change), f"the uid {before.metadata.uid} became {change.uid}")
        if step.seen.metadata.uid != change.uid:
            raise self.broken(key_of(change), f"the row says {change.uid}, its JSON {step.seen.metadata.uid}")

    def _begin(self, step: Step) -> None:
        change = step.change
        if step.before is not None:
            raise self.broken(key_of(change), "ADDED, but it is there already")
        if change.uid in self._uids:
            raise self.broken(key_of(change), f"the uid {change.uid} is given a second time")
        self._uids.add(change.uid)


class VersionsGrow(Invariant):
    """Source: reference kubernetes-api-and-batch-job §4.5, resourceVersion and generation."""

    name = "versions never go back"
    meaning = "resourceVersion and generation of an object never fall."
    kinds = None

    def take(self, step: Step) -> None:
        if step.before is None or step.change.verb == "ADDED":
            return
        before, seen = step.before.metadata, step.seen.metadata
        if seen.generation < before.generation:
            raise self.broken(key_of(step.change), f"generation went from {before.generation} to {seen.generation}")
        old, new = before.resource_version, seen.resource_version
        if len(new) == len(old) and new >= old:
            return  # as text is quicker, and nearly always enough
        # Clients must take it for opaque; on clusters that are mirrored here it may be no number.
        if old.isdigit() and new.isdigit() and int(new) < int(old):
            raise self.broken(key_of(step.change), f"resourceVersion went from {old} to {new}")


class DeletionStays(Invariant):
    """Source: reference kubernetes-api-and-batch-job §2.4: a deletion cannot be undone; a second one may only come sooner."""

    name = "deletion is never taken back"
    meaning = "A deletionTimestamp, once set, stays and is never put off."
    kinds = None

    def take(self, step: Step) -> None:
        if step.before is None or step.change.verb == "ADDED":
            return
        before, seen = step.before.metadata.deletion_timestamp, step.seen.metadata.deletion_timestamp
        if before == seen or not before:
            return
        if not seen:
            raise self.broken(key_of(step.change), f"deletionTimestamp {before} was taken back")
        if parse_time(seen) > parse_time(before):
            raise self.broken(key_of(step.change), f"deletionTimestamp was put off from {before} to {seen}")


INVARIANTS = (NoGaps, OneLife, VersionsGrow, DeletionStays)
