"""Removing what pods left on the disk: scratch directories at once, logs when they are old or too large."""

from __future__ import annotations

import logging
import os
import shutil
import time
from typing import TYPE_CHECKING, NamedTuple

from node import attempts
from node.paths import TMP, VOLUMES, WORK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from node.paths import Layout

DAY_S = 86_400
FRESH_S = 60  # a directory this young may belong to a pod that was not seen in the store yet
log = logging.getLogger(__name__)


class Left(NamedTuple):
    """The directory of a pod that does not run."""

    path: Path
    age_s: float
    size: int


def clean(
    layout: Layout, living: Collection[str], running: Collection[str], *, days: float, most_bytes: int
) -> int:
    """Remove what is not kept; return how many pods' logs went.

    living are the uids of pods that the store has, running those of pods that
    may have processes. A pod that is gone loses its scratch directories at
    once. Logs go when they are older than `days`, and the oldest go first while
    all logs together are larger than `most_bytes`; running pods keep theirs.
    """
    for uid in _in_memory(layout):
        if uid not in living and uid not in running:
            free_memory(layout, uid)
    left = []
    for path in _directories(layout):
        if path.name not in running and (age := _age(path)) > FRESH_S:
            if path.name not in living:
                remove_scratch(path)
            left.append(Left(path, age, _size(path)))
    total = sum(one.size for one in left)
    count = 0
    for one in sorted(left, key=lambda one: -one.age_s):
        old = one.age_s > days * DAY_S and one.path.name not in living
        if old or total > most_bytes:
            shutil.rmtree(one.path, ignore_errors=True)
            total -= one.size
            count += 1
    if count:
        log.info("logs removed: %d pods", count)
    return count


def prune(container: Path, keep: int = attempts.KEPT) -> None:
    """Remove all but the latest attempts of a container that restarts again and again."""
    for number in attempts.numbers(container)[:-keep]:
        shutil.rmtree(container / str(number), ignore_errors=True)


def _directories(layout: Layout) -> Iterator[Path]:
    try:
        yield from [one for one in layout.pods.iterdir() if one.is_dir() and not one.is_symlink()]
    except FileNotFoundError:
        return


def _in_memory(layout: Layout) -> list[str]:
    try:
        return os.listdir(layout.memory)  # noqa: PTH208
    except OSError:
        return []


def free_memory(layout: Layout, uid: str) -> None:
    """Remove a pod's volumes in memory."""
    shutil.rmtree(layout.memory / uid, ignore_errors=True)


def remove_scratch(path: Path) -> None:
    """Remove what a pod has in its directory beside the logs."""
    for name in (WORK, TMP, VOLUMES):
        shutil.rmtree(path / name, ignore_errors=True)


def _age(path: Path) -> float:
    """Return the seconds since something last happened to a pod's attempts."""
    newest = max((entry.stat().st_mtime for entry in [path, *path.glob("*/*/status.json")]), default=0.0)
    return time.time() - newest


def _size(path: Path) -> int:
    return sum(
        os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118
        for folder, _, names in os.walk(path)
        for name in names
    )
