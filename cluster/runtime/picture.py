"""A process's copy of some kinds of objects: loaded once, then kept up to date from the log.

Pages ask such questions far more often than objects change, and reading all of them for each answer would be slow. So
a question costs nothing while nothing changed, and otherwise one query for the changes. Nothing of it is stored.
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
MAX_CHANGES = 20_000  # beyond that many, loading anew is quicker


class Picture(Protocol):
    """A copy of objects at one revision."""

    revision: int

    def take(self, change: Change) -> None:
        """Take over one change."""


P = TypeVar("P", bound=Picture)


class SharedPicture(Generic[P]):
    """One picture of this process, which its threads share."""

    def __init__(self, kinds: Sequence[Resource | Single], load: Callable[[int], P]) -> None:
        """load makes the picture of what is stored at a revision; kinds are those whose changes it takes over."""
        self._kinds, self._load = kinds, load
        self._picture: P | None = None
        self._free = threading.Condition()
        self._readers = 0

    @contextmanager
    def current(self, head: int) -> Iterator[P]:
        """Yield the picture at a revision or a newer one; nobody changes it inside the block, in which others may be as well.

        head is the newest revision that the caller can see, as `store.reading()` yields it.
        """
        with self._free:
            # Whoever needs a newer one waits until those are done who look at this one; all who come meanwhile need it, too.
            while (picture := self._picture) is None or head > picture.revision:
                if not self._readers:
                    self._picture = self._advanced(head)
                else:
                    self._free.wait()
            self._readers += 1
        try:
            yield picture
        finally:
            with self._free:
                self._readers -= 1
                self._free.notify_all()

    def forget(self) -> None:
        """Throw the picture away; for tests, where the store becomes empty behind its back."""
        with self._free:
            self._picture = None

    def _advanced(self, head: int) -> P:
        """Return the picture at a newer revision: this one with the changes or, where they are too many, a new one."""
        picture = self._picture
        if picture is None or head - picture.revision > MAX_CHANGES:
            return self._load(head)
        try:
            changes = store.changes(picture.revision, self._kinds, limit=MAX_CHANGES, until=head)
        except Expired:
            return self._load(head)
        for change in changes:
            try:
                picture.take(change)
            except msgspec.ValidationError as error:
                log.error("ignored %s %s, which cannot be read: %s", change.resource, change.key, error)
        picture.revision = head
        return picture
