"""Going on after exceptions that nobody foresaw, in what is done again and again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable


class Faults:
    """The exceptions of one thing that is tried again: the first of each kind is logged with where it came from."""

    def __init__(self, what: str, log: logging.Logger) -> None:
        self._what = what
        self._log = log
        self._kinds: set[type[Exception]] = set()

    def note(self, error: Exception) -> None:
        """Note an exception; what raised it is tried again later by whoever notes it."""
        if type(error) not in self._kinds:
            self._kinds.add(type(error))
            self._log.error("%s has failed, and is tried again", self._what, exc_info=error)


class Repeated:
    """Work that a companion of the agent does every so many seconds in a thread of its own, whatever one round ends with.

    It begins `at_once`, or after the first pause.
    """

    def __init__(
        self,
        work: Callable[[], None],
        name: str,
        every_s: float,
        what: str,
        log: logging.Logger,
        *,
        at_once: bool = False,
    ) -> None:
        self._work, self._every_s, self._at_once = work, every_s, at_once
        self._faults = Faults(what, log)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no further round."""
        self._stop.set()

    def _run(self) -> None:
        is_over = not self._at_once and self._stop.wait(self._every_s)
        while not is_over:
            try:
                self._work()
            except Exception as error:
                # Whatever it is: nobody else does this work.
                self._faults.note(error)
            is_over = self._stop.wait(self._every_s)
