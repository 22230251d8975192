"""Room for what waits to be sent: bounded for the process and for each name, so that who does not read costs the others nothing.

Readers share bytes, so what they hold together counts once in each bound. When a bound is passed, those who hold most
are cut off, until a quarter of it is free: somebody who reads holds next to nothing and is the last to go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

PART_OF_ONE = 4  # one name may hold a quarter of the room


class Room:
    """The bounds of one process, in bytes (characters of text); used from one event loop."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._all = _Account()
        self._names: dict[str, _Account] = {}

    @property
    def size(self) -> int:
        """How much waits."""
        return self._all.size

    def shelf(self, name: str, cut: Callable[[], None]) -> Shelf:
        """Return a place for what waits for one reader; `cut` ends him, and need not empty it."""
        return Shelf(self, name, cut)

    def take(self, shelf: Shelf, chunk: bytes | str) -> None:
        """Count what was put on a shelf, and cut off who holds most where that is too much."""
        own = self._names.setdefault(shelf.name, _Account())
        for account in (self._all, own):
            account.shelves[shelf] = None
            account.add(chunk)
        for account, most in ((own, self.most // PART_OF_ONE), (self._all, self.most)):
            if account.size <= most:
                continue
            for largest in sorted(account.shelves, key=lambda each: each.size, reverse=True):
                largest.cut()
                if account.size <= most - most // 4:
                    break

    def give(self, shelf: Shelf, chunks: Iterable[bytes | str]) -> None:
        """Count no more what was taken from a shelf."""
        for chunk in chunks:
            for account in (self._all, self._names[shelf.name]):
                account.remove(chunk)

    def forget(self, shelf: Shelf) -> None:
        """Let an empty shelf go."""
        own = self._names.get(shelf.name)
        if own is None:
            return
        for account in (self._all, own):
            account.shelves.pop(shelf, None)
        if not own.shelves:
            del self._names[shelf.name]


class Shelf:
    """What waits for one reader, until it is sent."""

    __slots__ = ("_cut", "_held", "_is_closed", "_room", "name", "size")

    def __init__(self, room: Room, name: str, cut: Callable[[], None]) -> None:
        self.name = name
        self.size = 0
        self._room = room
        self._cut = cut
        self._held: deque[bytes | str] = deque()
        self._is_closed = False

    def put(self, chunk: bytes | str) -> None:
        """Hold a chunk; somebody may be cut off for it, be it its reader."""
        if self._is_closed:
            return
        self._held.append(chunk)
        self.size += len(chunk)
        self._room.take(self, chunk)

    def remove(self, chunk: bytes | str) -> None:
        """Let go of a chunk, the very one that was put, because it is sent; nothing happens if it is not held any more."""
        for index, held in enumerate(self._held):
            if held is chunk:
                del self._held[index]
                self.size -= len(chunk)
                self._room.give(self, (chunk,))
                return

    def clear(self) -> None:
        """Let go of everything."""
        held, self._held = self._held, deque()
        self.size = 0
        self._room.give(self, held)

    def close(self) -> None:
        """Let go of everything, and hold nothing more."""
        self.clear()
        self._is_closed = True
        self._room.forget(self)

    def cut(self) -> None:
        """End the reader."""
        self._cut()
        self.clear()


class _Account:
    """Chunks that are held, each counted once, and the shelves they lie on."""

    __slots__ = ("_holders", "shelves", "size")

    def __init__(self) -> None:
        self.size = 0
        self.shelves: dict[Shelf, None] = {}
        self._holders: dict[int, int] = {}  # how often each chunk is held, by its identity

    def add(self, chunk: bytes | str) -> None:
        holders = self._holders.get(id(chunk), 0)
        self._holders[id(chunk)] = holders + 1
        if not holders:
            self.size += len(chunk)

    def remove(self, chunk: bytes | str) -> None:
        holders = self._holders.pop(id(chunk)) - 1
        if holders:
            self._holders[id(chunk)] = holders
        else:
            self.size -= len(chunk)
