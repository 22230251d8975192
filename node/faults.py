"""Going on after exceptions that nobody foresaw, in what is done again and again."""

from __future__ import annotations

import logging


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
