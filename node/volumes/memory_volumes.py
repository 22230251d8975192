"""Where emptyDirs in memory are: a directory of this cluster's own in the machine's shared memory."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def begin(folder: Path) -> bool:
    """Make the directory, if it is not there; return whether it can be used.

    It cannot where the machine has no shared memory, or where somebody else
    has made something of this name: then these volumes are on the disk.
    """
    try:
        if not folder.exists():
            with open("/proc/self/mounts") as mounts:  # noqa: PTH123
                kinds = {words[1]: words[2] for line in mounts if len(words := line.split()) > 2}
            if kinds.get(str(folder.parent)) not in ("tmpfs", "ramfs"):
                return False
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return False
    return is_own(folder)


def is_own(folder: Path) -> bool:
    """Whether the directory is there and this cluster's alone: everybody on the machine may make one of its name before us."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
