"""Taking away what pods left on the disk: scratch directories at once, logs when they are old or too large."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from node import attempts, file_trees
from node.paths import TMP, VOLUMES, WORK, Layout
from node.volumes import memory_volumes
from node.volumes.trash import discard

DAY_S = 86_400
FRESH_S = 60  # a directory this young may belong to a pod that was not seen in the store yet
log = logging.getLogger(__name__)


class LeftDirectory(NamedTuple):
    """The directory of a pod that does not run, and the size of its logs."""

    path: Path
    age_s: float
    size: int


def clean(layout: Layout, living: Collection[str], running: Collection[str], *, days: float, most_bytes: int) -> int:
    """Remove what is not to be retained; return how many pods' logs went.

    living are the uids of pods that the store has, running those of pods that
    may have processes. A pod that is gone loses its scratch directories at
    once. Logs go when they are older than `days`, and the oldest go first while
    all logs together are larger than `most_bytes`; those of running pods stay.
    """
    in_memory = os.listdir(layout.memory) if memory_volumes.is_own(layout.memory) else []  # noqa: PTH208
    for uid in in_memory:
        if uid != layout.memory_trash.name and uid not in living and uid not in running:
            free_memory(layout, uid)
    leftovers = []
    for path in layout.pods.iterdir() if layout.pods.exists() else ():
        if not path.is_dir() or path.is_symlink() or path.name in running:
            continue
        if (age := _age(layout, path)) > FRESH_S:
            if path.name not in living:
                remove_scratch(layout, path.name)
            containers = attempts.containers(layout, path.name)
            size = sum(file_trees.size(layout.container(path.name, name)).bytes for name in containers)
            leftovers.append(LeftDirectory(path, age, size))
    total = sum(leftover.size for leftover in leftovers)
    count = 0
    for leftover in sorted(leftovers, key=lambda leftover: -leftover.age_s):
        old = leftover.age_s > days * DAY_S and leftover.path.name not in living
        if old or total > most_bytes:
            discard(leftover.path, layout.trash)
            total -= leftover.size
            count += 1
    if count:
        log.info("logs removed: %d pods", count)
    return count


def prune(layout: Layout, uid: str, container: str, retained: int = attempts.RETAINED) -> None:
    """Remove all but the latest attempts of a container that restarts again and again."""
    for number in attempts.numbers(layout.container(uid, container))[:-retained]:
        discard(layout.attempt(uid, container, number), layout.trash)


def free_memory(layout: Layout, uid: str) -> None:
    """Remove a pod's volumes in memory."""
    if memory_volumes.is_own(layout.memory):
        discard(layout.memory / uid, layout.memory_trash)


def remove_scratch(layout: Layout, uid: str) -> None:
    """Remove what a pod has in its directory beside the logs."""
    for name in (WORK, TMP, VOLUMES):
        discard(layout.pod(uid) / name, layout.trash)


def _age(layout: Layout, path: Path) -> float:
    """Return the seconds since something last happened to a pod's attempts."""
    ends = [
        layout.attempt(path.name, container, number) / "status.json"
        for container in attempts.containers(layout, path.name)
        for number in attempts.numbers(layout.container(path.name, container))
    ]
    return time.time() - max(os.lstat(each).st_mtime for each in (path, *ends) if each.exists())
