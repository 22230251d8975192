"""The whole system, as the system tests start it."""

from __future__ import annotations

from tests.system.conftest import _database, person, system, watcher

__all__ = ["_database", "person", "system", "watcher"]
