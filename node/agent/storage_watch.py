"""Looking at what pods with limits have on the disk, again and again, in a thread of its own."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from node import attempts, storage
from node.agent import retention
from node.paths import TMP, VOLUMES, WORK
from node.storage import Limits, Used

if TYPE_CHECKING:
    from pathlib import Path

    from kube.kinds.core import Pod
    from node.paths import Layout

EVERY_S = 10.0  # as a kubelet does
BLOCK = 512  # bytes, of st_blocks
log = logging.getLogger(__name__)


class StorageWatch:
    """Which pods use more of the disk than they may. Pods without a limit cost nothing."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._watched: dict[str, Limits] = {}
        self._excess: dict[str, str] = {}
        self._in_memory: set[str] = set()  # pods with volumes there
        self._to_clear: list[str] = []
        self._to_free: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="storage", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    def watch(self, pod: Pod) -> None:
        """Look at a pod from now on, if it has limits."""
        if limits := storage.limits(pod):
            self._watched[pod.metadata.uid] = limits
        if any(map(storage.is_in_memory, pod.spec.volumes)):
            self._in_memory.add(pod.metadata.uid)

    def forget(self, uid: str) -> None:
        """Look at a pod no more; its volumes in memory go, and one that had too much loses all that it has beside its logs."""
        self._watched.pop(uid, None)
        if uid in self._in_memory:
            self._in_memory.discard(uid)
            self._to_free.append(uid)
        if self._excess.pop(uid, None):
            self._to_clear.append(uid)

    def excess(self) -> dict[str, str]:
        """Return what pods have too much of, by uid."""
        return dict(self._excess)

    def look(self) -> None:
        """Look once at every pod, and clear away what those had that were evicted, and volumes in memory of those that are over."""
        while self._to_free:
            retention.free_memory(self._layout, self._to_free.pop())
        while self._to_clear:
            retention.remove_scratch(self._layout.pod(self._to_clear.pop()))
        for uid, limits in list(self._watched.items()):
            if uid not in self._excess and (text := storage.excess(limits, used(self._layout, uid))):
                self._excess[uid] = text

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self.look()
            except OSError as error:
                log.warning("the disk use of pods was not measured: %s", error)


def used(layout: Layout, uid: str) -> Used:
    """Return what a pod has on the disk."""
    home = layout.pod(uid)
    return Used(
        _each(home / VOLUMES),
        {name: size(home / name) for name in attempts.containers(layout, uid)},
        size(home / WORK) + size(home / TMP),
        _each(layout.memory / uid),
    )


def _each(folder: Path) -> dict[str, int]:
    """Return the size of each entry of a directory, which need not exist."""
    names = [entry.name for entry in os.scandir(folder)] if folder.is_dir() else []
    return {name: size(folder / name) for name in names}


def size(folder: Path) -> int:
    """Return the bytes that everything below a directory takes up on the disk; links are not followed, and a file with several names counts once."""
    total, seen = 0, set()
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(path, name))  # noqa: PTH118
            except OSError:  # removed meanwhile
                continue
            if found.st_nlink > 1:
                if found.st_ino in seen:
                    continue
                seen.add(found.st_ino)
            total += found.st_blocks * BLOCK
    return total
