"""The API server's follower of the log: one per process, before everybody who watches.

It reads the kinds that somebody listens to or watches, hands each batch to its
listeners, in the event loop and in order, and keeps the recent past in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from apiserver.watch.selection import WatchedChange
from apiserver.watch.window import Window
from cluster.runtime import follower as log_follower
from cluster.store import Change
from kube.resources import Resource

log = logging.getLogger(__name__)


class WatchFollower(log_follower.Follower):
    """Reads the log for those who watch; stopped, it keeps its listeners for another start."""

    pace = log_follower.Pace(shortest_s=0.01, longest_s=0.1, load=1.0)
    batch = 256  # a pass keeps the event loop to itself
    previous = True

    def __init__(self) -> None:
        super().__init__()
        self.window = Window()
        self._listeners: list[tuple[Callable[[Sequence[WatchedChange]], None], Callable[[], None]]] = []
        self._kinds: dict[str, Resource] = {}  # by id, those that somebody listens to
        self._wishes: Counter[str] = Counter()
        self._opening: dict[str, asyncio.Future[None]] = {}  # kinds from whose next pass on they will be read

    def listen(self, kinds: Sequence[Resource], callback: Callable[[Change], None], lost: Callable[[], None]) -> None:
        """Call back for each change of these kinds from here on, in order, in the event loop.

        `lost` is called instead when retention was faster than the follower:
        whoever keeps a state must read it again.
        """
        wanted = {kind.id for kind in kinds}

        def each(entries: Sequence[WatchedChange]) -> None:
            for entry in entries:
                if entry.change.resource in wanted:
                    callback(entry.change)

        for kind in kinds:
            self._wish(kind)
        self.listen_in_batches(each, lost)

    def listen_in_batches(self, callback: Callable[[Sequence[WatchedChange]], None], lost: Callable[[], None]) -> None:
        """Call back once for all changes of a pass: those of the kinds that anybody listens to or follows."""
        self._listeners.append((callback, lost))

    @asynccontextmanager
    async def following(self, kind: Resource) -> AsyncIterator[None]:
        """Have a kind read inside of the block. At its begin the window keeps all that comes from some revision on."""
        self._wish(kind)
        try:
            if kind.id not in self.window:
                if kind.id not in self._opening:
                    self._opening[kind.id] = asyncio.get_running_loop().create_future()
                self.wake()
                await asyncio.shield(self._opening[kind.id])
            yield
        finally:
            self._wishes[kind.id] -= 1
            if not self._wishes[kind.id]:
                del self._wishes[kind.id], self._kinds[kind.id]
                self.window.close(kind.id)

    def _wish(self, kind: Resource) -> None:
        self._wishes[kind.id] += 1
        self._kinds[kind.id] = kind

    def wanted(self) -> log_follower.Wanted:
        """Return the kinds of the pass that begins now. From here on nothing of them is left out."""
        for name in self._kinds:
            self.window.open(name, self.position)
        opened, self._opening = self._opening, {}
        for future in opened.values():
            if not future.done():
                future.set_result(None)
        return log_follower.Wanted(list(self._kinds.values()))

    def begin(self, revision: int) -> None:
        """Stand at a revision, with nothing in memory."""
        super().begin(revision)
        self.window = Window()

    async def stop(self) -> None:
        """End; who waits for a kind to be read is cancelled."""
        opening, self._opening = self._opening, {}
        for future in opening.values():
            future.cancel()
        await super().stop()

    async def take(self, changes: Sequence[Change]) -> None:
        """Remember the changes and hand them on."""
        if not changes:
            return
        entries = [WatchedChange(change) for change in changes]
        self.window.add(entries)
        for callback, _ in self._listeners:
            try:
                callback(entries)
            except Exception:
                # One listener's defect must not keep the others from their changes.
                log.exception("a listener failed")
        for entry in entries:
            entry.release()

    def lose(self) -> None:
        """Tell all listeners that changes will not come."""
        for _, lost in self._listeners:
            lost()


follower = WatchFollower()
