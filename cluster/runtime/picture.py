"""What a process knows of some kinds of objects: loaded once, then kept up to date from the log.

Pages ask such questions far more often than objects change, and reading all of them for each answer would be slow. So being asked costs
nothing while nothing changed, and otherwise one query for the changes. Nothing of it is stored.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import msgspec

from cluster.store import Change, store
from cluster.store.types import Single
from kube.errors import Expired
from kube.resources import Resource

log = logging.getLogger(__name__)
MOST_CHANGES = 20_000  # beyond that many, loading anew is quicker


class Picture(Protocol):
    """What is known at one revision."""

    revision: int

    def take(self, change: Change) -> None:
        """Take over one change."""


P = TypeVar("P", bound=Picture)


class Kept(Generic[P]):
    """One picture of this process, which its threads share."""

    def __init__(self, kinds: Sequence[Resource | Single], load: Callable[[int], P]) -> None:
        """load makes the picture of what is stored at a revision; kinds are those whose changes it takes over."""
        self._kinds, self._load = kinds, load
        self._known: P | None = None
        self._lock = threading.Lock()

    @contextmanager
    def current(self, head: int) -> Iterator[P]:
        """Yield the picture at a revision or a newer one; nobody changes it inside the block.

        head is the newest revision that the caller can see, as `store.reading()` yields it.
        """
        with self._lock:
            if self._known is None or head > self._known.revision:
                self._known = self._followed(head)
            yield self._known

    def forget(self) -> None:
        """Throw the picture away; for tests, where the store becomes empty behind its back."""
        with self._lock:
            self._known = None

    def _followed(self, head: int) -> P:
        """Return the picture at a newer revision: this one with the changes or, where they are too many, a new one."""
        known = self._known
        if known is None or head - known.revision > MOST_CHANGES:
            return self._load(head)
        try:
            changes = store.changes(known.revision, self._kinds, limit=MOST_CHANGES, until=head)
        except Expired:
            return self._load(head)
        for change in changes:
            try:
                known.take(change)
            except msgspec.ValidationError as error:
                log.error("ignored %s %s, which cannot be read: %s", change.resource, change.key, error)
        known.revision = head
        return known
