"""The clock that `manage.py beat` runs."""

from __future__ import annotations

import logging
from typing import Any

from celery.beat import ScheduleEntry, Scheduler, SchedulingError
from kombu.exceptions import OperationalError

from cluster import clock
from cluster.runtime import registry
from cluster.runtime.outage import Outage

log = logging.getLogger(__name__)


class Clock(Scheduler):
    """Beat's schedule without its habit of waking early, and without a file.

    Celery's own sleeps until 10 ms before an entry is due and then loops until it is, which at
    a tick a second is one percent of a core. The last runs are not worth a file: after a start
    every entry is due.

    It is also the one process that notices when the wall clock is set back. Celery's last runs then lie in the future, and
    so do the times of timers: the last runs are set to now, and the timers are brought forward (`tasks.clock_set_back`).
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._outage = Outage("waking the workers", log)
        self._set_back = clock.SetBack()
        self._back_ms = 0  # by how much timers are still to be brought forward
        super().__init__(*args, **options)

    def setup_schedule(self) -> None:
        """Tick for each queue beside what settings say, so that no worker waits for another one's tick.

        A nudge that was lost costs at most this second. Expired ticks are dropped, so that a worker
        process which was away does not find a heap of them.
        """
        super().setup_schedule()
        for queue in registry.queues():
            entry = {"task": "cluster.tasks.tick", "schedule": 1.0, "args": (queue,)}
            self.add(name=f"tick {queue}", options={"queue": queue, "expires": 1.0}, **entry)

    def tick(self, *args: Any, **options: Any) -> float:
        """Send what is due, and return for how many seconds nothing is."""
        self._follow_clock()
        return float(super().tick(*args, **options))

    def _follow_clock(self) -> None:
        """Restart the schedule when the wall clock was set back; a message that Redis did not take is sent again."""
        if back_us := self._set_back.since_last_look():
            log.warning("the clock was set back by %.0f s", back_us / 1e6)
            self._back_ms += back_us // 1000
            for entry in self.schedule.values():
                entry.last_run_at = entry.default_now()
            self._heap = None
        if not self._back_ms:
            return
        try:
            self.app.send_task("cluster.tasks.clock_set_back", (self._back_ms,))
        except OperationalError as error:
            self._outage.lasts(error)
        else:
            self._back_ms = 0

    def adjust(self, n: float | None, drift: float = 0.001) -> float | None:
        """Return how long to sleep for an entry that is due in n seconds: a little longer, so that it is due by then."""
        return None if n is None else float(super().adjust(n, drift))

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send an entry's message; Celery's own logs a traceback each second without Redis."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            self._outage.lasts(error)
        else:
            self._outage.over()

    def _ensure_connected(self) -> Any:
        """Leave the connecting to the first message; Celery's own would wait here, and log each try."""
        return self.connection
