"""The clock behind `celery beat`."""

from __future__ import annotations

from celery.beat import PersistentScheduler


class Clock(PersistentScheduler):
    """Beat's schedule without its habit of waking early.

    Celery's own sleeps until 10 ms before an entry is due and turns in a loop until then, which at
    a tick a second is one percent of a core.
    """

    def adjust(self, n: float | None, drift: float = 0.001) -> float | None:
        """Return how long to sleep for an entry that is due in n seconds: a little longer."""
        return None if n is None else float(super().adjust(n, drift))
