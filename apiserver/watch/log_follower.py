"""The API server's follower of the log: one per process, before everybody who watches.

It hands each batch to its listeners, in the event loop and in order, and keeps
the recent past in memory.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from apiserver.watch.selection import WatchedChange
from apiserver.watch.window import Window
from cluster.runtime import follower as log_follower

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cluster.store import Change

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

    def listen(self, callback: Callable[[Change], None], lost: Callable[[], None]) -> None:
        """Call back for each change from here on, in order, in the event loop.

        `lost` is called instead when retention was faster than the follower:
        whoever keeps a state must read it again.
        """

        def each(entries: Sequence[WatchedChange]) -> None:
            for entry in entries:
                callback(entry.change)

        self.listen_in_batches(each, lost)

    def listen_in_batches(
        self, callback: Callable[[Sequence[WatchedChange]], None], lost: Callable[[], None]
    ) -> None:
        """The same, with all changes of a pass in one call."""
        self._listeners.append((callback, lost))

    def begin(self, revision: int) -> None:
        """Stand at a revision, with nothing in memory."""
        super().begin(revision)
        self.window = Window(revision)

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
