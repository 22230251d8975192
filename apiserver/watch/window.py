"""The recent past in memory, so that a watch that begins there asks the database nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from apiserver.watch.selection import WatchedChange

MAX_ENTRIES = 1000  # of one kind
MAX_BYTES = 1 << 20  # of one kind


class _Kind:
    """The recent entries of one kind; complete after `floor`."""

    __slots__ = ("entries", "floor", "size")

    def __init__(self, floor: int) -> None:
        self.entries: deque[WatchedChange] = deque()
        self.floor = floor
        self.size = 0

    def add(self, entry: WatchedChange) -> None:
        self.entries.append(entry)
        self.size += entry.size
        while len(self.entries) > MAX_ENTRIES or self.size > MAX_BYTES:
            gone = self.entries.popleft()
            self.size -= gone.size
            self.floor = gone.change.revision


class Window:
    """The newest entries of the kinds that are followed, as many as a bound allows."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}

    def __contains__(self, resource: str) -> bool:
        return resource in self._kinds

    def open(self, resource: str, floor: int) -> None:
        """Begin to keep a kind, all of whose entries after a revision will be added; nothing happens if it is kept."""
        self._kinds.setdefault(resource, _Kind(floor))

    def close(self, resource: str) -> None:
        """Forget a kind."""
        self._kinds.pop(resource, None)

    def add(self, entries: Iterable[WatchedChange]) -> None:
        """Take in what follows in the log; what is not kept is passed over."""
        for entry in entries:
            kind = self._kinds.get(entry.change.resource)
            if kind is not None:
                kind.add(entry)

    def since(self, resource: str, after: int) -> list[WatchedChange] | None:
        """Return a kind's entries after a revision; None when some of them are not here any more."""
        kind = self._kinds.get(resource)
        if kind is None or after < kind.floor:
            return None
        newer = []
        for entry in reversed(kind.entries):
            if entry.change.revision <= after:
                break
            newer.append(entry)
        newer.reverse()
        return newer
