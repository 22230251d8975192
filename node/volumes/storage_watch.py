"""Measuring what pods with limits have on the disk, and removing what was discarded, again and again, in a thread of its own."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from kube.kinds.core import Pod
from node import attempts, file_trees
from node.faults import Repeated
from node.file_trees import Size
from node.paths import TMP, VOLUMES, WORK, Layout
from node.rules import storage
from node.rules.storage import Limits, Used
from node.volumes import retention
from node.volumes.trash import Trash

EVERY_S = 10.0  # as a kubelet does
REMOVING_S = 3.0  # of that, for what was discarded
log = logging.getLogger(__name__)


class StorageWatch(Repeated):
    """Which pods use more of the disk than they may. Pods without a limit cost nothing."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(self.check, "storage", EVERY_S, "looking at what pods have on the disk", log)
        self._layout = layout
        self._watched: dict[str, Limits] = {}
        self._excess: dict[str, str] = {}
        self._in_memory: set[str] = set()  # pods with volumes there
        self._to_clear: list[str] = []
        self._to_free: list[str] = []
        self._trash = Trash(layout.memory_trash, layout.trash)

    def watch(self, pod: Pod) -> None:
        """Measure a pod from now on, if it has limits."""
        if limits := storage.limits(pod):
            self._watched[pod.metadata.uid] = limits
        if any(map(storage.is_in_memory, pod.spec.volumes)):
            self._in_memory.add(pod.metadata.uid)

    def forget(self, uid: str) -> None:
        """Measure a pod no more; its volumes in memory go, and one that had too much loses all that it has beside its logs."""
        self._watched.pop(uid, None)
        if uid in self._in_memory:
            self._in_memory.discard(uid)
            self._to_free.append(uid)
        if self._excess.pop(uid, None):
            self._to_clear.append(uid)

    def excess(self) -> dict[str, str]:
        """Return what pods have too much of, by uid."""
        return dict(self._excess)

    def check(self) -> None:
        """Measure every pod once, and remove the files of evicted ones, and volumes in memory of those that have ended.

        A pod with more files or levels of directories than can be counted has too much of what it has a limit of.
        """
        while self._to_free:
            retention.free_memory(self._layout, self._to_free.pop())
        while self._to_clear:
            retention.remove_scratch(self._layout, self._to_clear.pop())
        for uid, limits in list(self._watched.items()):
            if uid not in self._excess:
                try:
                    if text := storage.excess(limits, used(self._layout, uid)):
                        self._excess[uid] = text
                except Exception as error:
                    # Whatever it is: others' limits hold all the same.
                    self._faults.note(error)
        self._trash.empty(REMOVING_S)


def used(layout: Layout, uid: str) -> Used:
    """Return what a pod has on the disk."""
    home = layout.pod(uid)
    volumes, memory = _sizes(home / VOLUMES), _sizes(layout.memory / uid)
    logs = {name: file_trees.size(home / name) for name in attempts.containers(layout, uid)}
    scratch = {name: file_trees.size(home / name) for name in (WORK, TMP)}
    every = (*volumes.values(), *memory.values(), *logs.values(), *scratch.values())
    return Used(
        _bytes(volumes),
        _bytes(logs),
        sum(_bytes(scratch).values()),
        _bytes(memory),
        next((each.beyond for each in every if each.beyond), ""),
    )


def _sizes(folder: Path) -> dict[str, Size]:
    """Return the size of each entry of a directory, which need not exist."""
    names = [entry.name for entry in os.scandir(folder)] if folder.is_dir() else []
    return {name: file_trees.size(folder / name) for name in names}


def _bytes(sizes: Mapping[str, Size]) -> dict[str, int]:
    return {name: storage.UNCOUNTED if each.beyond else each.bytes for name, each in sizes.items()}
