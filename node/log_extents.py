"""The first and last offset of each log, for followers of hundreds of them: a few `stat` calls for a log that is quiet.

The names in a directory are listed again only when its time of change is another one. A directory that changed
a moment ago may change once more within the same tick of the file system's clock, so what it holds is cached
only once it is older.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

from cluster.backend import LogExtent
from node.paths import Layout

FRESH_NS = 2 * 10**9  # longer than the tick of any file system's clock
MAX_CACHED = 20_000
_cached_names: dict[str, tuple[int, tuple[str, ...]]] = {}  # the time of change and the names of directories


def of_pods(layout: Layout, uids: Iterable[str]) -> list[LogExtent]:
    """Return the extents of the logs of pods: of each container each attempt, in order; none of an unknown uid."""
    return [extent for uid in uids for extent in _of_pod(layout, uid)]


def _of_pod(layout: Layout, uid: str) -> Iterator[LogExtent]:
    try:
        pod = str(layout.pod(uid))
    except ValueError:  # the uid of no pod
        return
    for container in _names(pod):
        if "_" in container:  # what belongs to the whole pod, see node.paths
            continue
        attempts = [int(name) for name in _names(f"{pod}/{container}") if name.isdecimal()]
        for attempt in sorted(attempts):
            extent = _of_attempt(f"{pod}/{container}/{attempt}", uid, container, attempt)
            if extent is not None:
                yield extent


def _of_attempt(directory: str, uid: str, container: str, attempt: int) -> LogExtent | None:
    """Return the extent of an attempt's log; None when it has printed nothing so far, or the log was removed."""
    names = _names(directory)
    segments = [name for name in names if name.startswith("log.") and name[4:].isdecimal()]
    if not segments:
        return None
    last = max(segments)
    try:
        size = os.stat(f"{directory}/{last}").st_size  # noqa: PTH116  # hundreds at a look
    except FileNotFoundError:  # removed meanwhile
        return None
    # The names were listed before the size was read: what an ended attempt wrote is counted.
    ended = "status.json" in names
    return LogExtent(uid, container, attempt, int(min(segments)[4:]), int(last[4:]) + size, ended)


def _names(directory: str) -> tuple[str, ...]:
    """Return the names in a directory in order; nothing when there is no such directory."""
    try:
        changed = os.stat(directory).st_mtime_ns  # noqa: PTH116
        cached = _cached_names.get(directory)
        if cached is not None and cached[0] == changed:
            return cached[1]
        names = tuple(sorted(os.listdir(directory)))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        _cached_names.pop(directory, None)
        return ()
    if time.time_ns() - changed > FRESH_NS:
        if len(_cached_names) >= MAX_CACHED:
            _cached_names.clear()
        _cached_names[directory] = changed, names
    return names
