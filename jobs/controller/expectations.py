"""Writes that the controller sent for a job and has not seen in the log yet.

A job is not planned from a state that lacks its last writes, since they would be made again. The controller recognizes
its own changes by the revisions that its writes got, not by their content.
"""

from __future__ import annotations

from msgspec import Struct

LONGEST_MS = 60_000  # writes come back within a batch or two; after this they are not expected any more


class PendingWrites(Struct):
    """The last writes for one job."""

    at: int  # when they were planned, in epoch ms
    revisions: frozenset[int] = frozenset()  # that the writes got
    failed: bool = False  # nothing was written; the timer of the failed group brings the job back

    def has(self, revision: int) -> bool:
        """Tell whether the change with this revision is one of these writes."""
        return revision in self.revisions

    def is_seen(self, position: int) -> bool:
        """Tell whether a state with all changes up to `position` includes these writes."""
        return not self.failed and max(self.revisions, default=0) <= position

    @property
    def expires(self) -> int:
        """When the controller stops waiting for them, in epoch ms."""
        return self.at + LONGEST_MS
