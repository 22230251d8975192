"""What the controller sent for a job and has not seen in the log.

A job is not planned from a state that does not show what was done for it last: the same would be done again. Which
changes are the controller's own is known by the revisions that its writes got, not by what stands in them.
"""

from __future__ import annotations

from msgspec import Struct

LONGEST_MS = 60_000  # what was written is read back within a batch or two: after this it never will be


class PendingWrites(Struct):
    """The last writes for one job."""

    at: int  # when they were planned, in epoch ms
    revisions: frozenset[int] = frozenset()  # that the writes got
    failed: bool = False  # nothing was written; the timer of the failed group brings the job back

    def has(self, revision: int) -> bool:
        """Say whether a change is one of these writes."""
        return revision in self.revisions

    def is_seen(self, position: int) -> bool:
        """Say whether a state that shows all changes up to a revision shows the writes."""
        return not self.failed and max(self.revisions, default=0) <= position

    @property
    def expires(self) -> int:
        """When it is no longer waited for, in epoch ms."""
        return self.at + LONGEST_MS
