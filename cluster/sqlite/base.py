"""The connection, under the name by which Django looks for it."""

from __future__ import annotations

from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from cluster.sqlite.line import Line


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose transactions for writing begin when it is their turn."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._line: Line | None = None

    def _start_transaction_under_autocommit(self) -> None:
        if not self.is_in_memory_db():
            self._line = self._line or Line(f"{self.settings_dict['NAME']}-line")
            if not self._line.enter(self.settings_dict["OPTIONS"].get("timeout", 5.0)):
                raise OperationalError("database is locked")
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        if self._line is not None:
            self._line.leave()

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # one that fails is followed by a rollback, or by the connection's end
        self._leave()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._leave()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            line, self._line = self._line, None
            if line is not None:
                line.close()
