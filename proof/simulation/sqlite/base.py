"""The connection of a world; see the package."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Iterable
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.backends.sqlite3.base import FORMAT_QMARK_REGEX


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's, whose cursors are SQLite's own; only one thread uses it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.factory = type("Cursor", (Cursor,), {"db": self})

    def cursor(self) -> Any:
        if self.connection is None:
            self.ensure_connection()
        return self.connection.cursor(factory=self.factory)


class Cursor(sqlite3.Cursor):
    """What Django's wrappers of a cursor do: wrappers of statements, its placeholders and its errors."""

    db: DatabaseWrapper

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def execute(self, query: str, params: Any = None) -> Any:
        return self._wrapped(self._execute, query, params, many=False)

    def executemany(self, query: str, params: Iterable[Any]) -> Any:
        return self._wrapped(self._executemany, query, params, many=True)

    def _wrapped(self, run: Any, query: str, params: Any, *, many: bool) -> Any:
        db = self.db
        if db.needs_rollback:
            db.validate_no_broken_transaction()
        if not db.execute_wrappers:
            return run(query, params)
        for wrapper in reversed(db.execute_wrappers):
            run = functools.partial(wrapper, run)
        return run(query, params, many, {"connection": db, "cursor": self})

    def _execute(self, query: str, params: Any, *_: Any) -> Any:
        try:
            return super().execute(query) if params is None else super().execute(_marked(query), params)
        except sqlite3.Error:
            with self.db.wrap_database_errors:
                raise

    def _executemany(self, query: str, params: Iterable[Any], *_: Any) -> Any:
        try:
            return super().executemany(_marked(query), params)
        except sqlite3.Error:
            with self.db.wrap_database_errors:
                raise


@functools.lru_cache(maxsize=1000)
def _marked(query: str) -> str:
    """Return a statement with SQLite's placeholders in the place of Django's."""
    return FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")
