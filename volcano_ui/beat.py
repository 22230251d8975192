"""The clock behind `celery beat`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from celery.beat import Scheduler, SchedulingError

from cluster.outage import Outage

if TYPE_CHECKING:
    from celery.beat import ScheduleEntry

log = logging.getLogger(__name__)


class Clock(Scheduler):
    """Beat's schedule without its habit of waking early, and without a file.

    Celery's own sleeps until 10 ms before an entry is due and turns in a loop until then, which at
    a tick a second is one percent of a core. What was due when is not worth keeping: after a start
    every entry is.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._outage = Outage("waking the workers", log)
        super().__init__(*args, **options)

    def adjust(self, n: float | None, drift: float = 0.001) -> float | None:
        """Return how long to sleep for an entry that is due in n seconds: a little longer."""
        return None if n is None else float(super().adjust(n, drift))

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send what an entry is about; Celery's own logs a traceback each second without Redis."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            self._outage.lasts(error)
        else:
            self._outage.over()

    def _ensure_connected(self) -> Any:
        """Leave connecting to the first message; Celery's own would wait here, and log each try."""
        return self.connection
