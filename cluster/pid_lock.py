"""One process at a time: a file that its holder has locked, with its process id.

The kernel lets go of the lock when its holder ends, however that happens. One that is only stopped keeps it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO


def take(path: Path) -> TextIO | None:
    """Return the file, which is ours until it is closed; None when somebody else has it."""
    try:
        return _locked(path, fcntl.LOCK_NB)
    except BlockingIOError:
        return None


def wait(path: Path) -> TextIO:
    """Return the file when nobody else has it any more."""
    return _locked(path, 0)


def is_held(path: Path) -> bool:
    """Say whether somebody has the file. Whoever tries to take it in the moment of the question is refused."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _locked(path: Path, how: int) -> TextIO:
    held = path.open("a+")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | how)
    except OSError:
        held.close()
        raise
    held.truncate(0)
    held.write(f"{os.getpid()}\n")
    held.flush()
    return held


def holder(path: Path) -> str:
    """Return the process id of who has the file, or had it last."""
    return path.read_text().strip()
