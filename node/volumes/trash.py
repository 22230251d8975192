"""Taking away what pods left: at once by its name, later by its content.

What goes is renamed into a directory of the same file system, which costs the
agent's loop nothing however large it is. A thread empties that bit by bit.
"""

from __future__ import annotations

import functools
import logging
import os
from pathlib import Path

from cluster import clock
from node import file_trees

RETRY_S = 3600.0  # until what cannot be removed is tried again
ELSEWHERE_S = 1.0  # for what lies in another file system
log = logging.getLogger(__name__)


def discard(path: Path, trash: Path) -> None:
    """Take something away, if it is there.

    What can neither be moved nor removed, such as an immutable directory, is
    logged once and stays.
    """
    try:
        trash.mkdir(mode=0o700, exist_ok=True)
        file_trees.move(path, trash / f"{path.parent.name}-{path.name}.{os.urandom(8).hex()}")
    except FileNotFoundError:
        return
    except OSError:
        try:
            file_trees.remove(path, within_s=ELSEWHERE_S)
        except OSError as error:
            _warn_once(str(path), error.strerror or str(error))


@functools.cache
def _warn_once(path: str, reason: str) -> None:
    log.warning("%s cannot be removed, and stays: %s", path, reason)


class Trash:
    """Directories into which things are discarded.

    What cannot be removed is logged once, and tried again only each hour: an
    immutable file, a mount, what belongs to somebody else.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._aside: set[str] = set()
        self._warned: set[str] = set()
        self._again_at = clock.monotonic() + RETRY_S

    def empty(self, within_s: float) -> None:
        """Remove what is there, as far as the time allows for each directory."""
        if clock.monotonic() >= self._again_at:
            self._aside.clear()
            self._again_at = clock.monotonic() + RETRY_S
        for folder in self._folders:
            try:
                fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                failed = file_trees.empty(fd, within_s, self._aside)
            finally:
                os.close(fd)
            self._aside |= failed.keys()
            if new_names := failed.keys() - self._warned:
                self._warned |= new_names
                first = min(new_names)
                log.warning(
                    "%d things that pods left cannot be removed from %s, and are set aside; the first: %s",
                    len(new_names),
                    folder,
                    failed[first],
                )
