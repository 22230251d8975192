"""Saying in the log that something is away: once when that begins, and once when it is over."""

from __future__ import annotations

import logging
import threading

from django.db import InterfaceError, OperationalError

from cluster import clock

AWAY = (InterfaceError, OperationalError)  # what a database raises that is away, full or locked


class Outage:
    """Something that is tried again and again, and fails while what it needs is away. Threads may share it."""

    def __init__(self, what: str, log: logging.Logger) -> None:
        self._what = what
        self._log = log
        self._lock = threading.Lock()
        self._since: float | None = None

    def lasts(self, reason: object) -> None:
        """Note a failure; the first one is logged, with the first line of its reason."""
        with self._lock:
            if self._since is not None:
                return
            self._since = clock.monotonic()
        text = str(reason).strip().partition("\n")[0] or type(reason).__name__
        self._log.warning("%s is put off: %s", self._what, text)

    def over(self) -> None:
        """Note a success; the first one after a failure is logged."""
        if self._since is None:
            return
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            self._log.warning("%s goes on after %.1f s", self._what, clock.monotonic() - since)
