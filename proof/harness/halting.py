"""Stopping a process where it is, without stopping all who write into its store."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from pathlib import Path


def halt(pid: int, data: Path) -> None:
    """Stop a process at a moment when it does not hold the lock of the SQLite store in a state directory.

    With it all who write would stand still, which is another trouble than the one that is tried.
    """
    os.kill(pid, signal.SIGSTOP)
    while not may_write(data):
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGSTOP)


def may_write(data: Path) -> bool:
    """Tell whether somebody can write into the SQLite store of a state directory within a second."""
    with contextlib.closing(sqlite3.connect(data / "db.sqlite3", timeout=1)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        database.rollback()
        return True
