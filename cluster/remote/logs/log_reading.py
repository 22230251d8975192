"""Reading the log of one container by requests to its cluster's API."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from cluster.backend import NoLog
from cluster.remote.door import server
from cluster.remote.http import paths
from cluster.remote.http.request import Impersonation, Unreachable
from cluster.remote.logs import log_offsets
from cluster.remote.logs.log_ends import Instance
from cluster.remote.logs.log_offsets import Block, PlacedLine, TimedLine
from kube.errors import ApiError, Forbidden
from kube.resources import PODS

BLOCK_MOST = 16 * 1024 * 1024  # bytes of a log that are read backwards; kubelets begin a new file after 10 MiB
ANSWER_S = 10.0


class LogTarget(NamedTuple):
    """Where a log is requested, and as whom; None stands for the kubeconfig's user."""

    namespace: str
    pod: str
    container: str
    instance: Instance
    impersonation: Impersonation | None = None


class Refused(NoLog):
    """Who asks may not read the log, which says nothing about others."""


class Away(NoLog):
    """There was no answer at all, so that asking for other logs would be in vain as well."""


class Stretch(NamedTuple):
    """Lines from an offset on; when these are all, the offset behind the log's last line, and that line."""

    lines: list[PlacedLine]
    is_all: bool
    end: int
    last: TimedLine | None


def last_lines(target: LogTarget, count: int) -> Block:
    """Return a log's last lines, or a few less: how many lines the first one's second has is not known."""
    timed, is_cut = _read(target, {"tailLines": str(count)})
    last = timed[-1] if timed else None
    if last is not None and len(timed) == 1 and not last.time:
        raise NoLog(f"{last.data.decode(errors='replace')}.")  # a kubelet's remark in the place of the log
    if len(timed) < count and not is_cut:
        return Block.of(timed, last, count, is_all=True)
    lines = log_offsets.from_next_second(timed)
    if not lines and last is not None:
        timed, is_cut = _read(target, {"sinceTime": last.time[:19] + "Z"})
        lines, last = timed, timed[-1] if timed else last
    return Block.of(lines, last, count, is_all=is_cut)


def last_line(target: LogTarget) -> TimedLine | None:
    """Return a log's last line; None when nothing has been printed."""
    lines, _ = _read(target, {"tailLines": "1"})
    return lines[-1] if lines else None


def read_on(target: LogTarget, offset: int, most: int) -> Stretch:
    """Return the lines from an offset on, of about so many bytes; those of one offset are not parted."""
    query = {"sinceTime": log_offsets.since_time(offset)} if offset else {}
    lines: list[PlacedLine] = []
    last: TimedLine | None = None
    size, end = 0, 0
    with _lines(target, query) as log:
        for timed, line in log_offsets.numbered(log):
            end, last = line.offset + 1, timed
            if line.offset < offset:
                continue
            if size >= most and line.offset != lines[-1].offset:
                return Stretch(lines, is_all=False, end=0, last=None)
            lines.append(line)
            size += len(line.data) + 1
    return Stretch(lines, is_all=True, end=end, last=last)


def _read(target: LogTarget, query: Mapping[str, str]) -> tuple[list[TimedLine], bool]:
    """Return the requested lines, and whether the first of them were dropped because they are more than BLOCK_MOST."""
    collected: deque[TimedLine] = deque()
    size, is_cut = 0, False
    with _lines(target, query) as log:
        for line in log:
            collected.append(line)
            size += len(line.data) + 1
            while size > BLOCK_MOST and len(collected) > 1:
                size -= len(collected.popleft().data) + 1
                is_cut = True
    return list(collected), is_cut


@contextmanager
def _lines(target: LogTarget, query: Mapping[str, str]) -> Iterator[Iterator[TimedLine]]:
    """Hold a log open; NoLog when the node or its API does not hand it out, Away when nobody answers."""
    options = {"container": target.container, "timestamps": "true", **query}
    if target.instance.is_previous:
        options["previous"] = "true"
    path = paths.one(PODS, target.namespace, target.pod, "log")
    try:
        with server.connection().stream(
            path, query=options, impersonation=target.impersonation, silence_s=ANSWER_S
        ) as lines:
            yield map(log_offsets.read_line, lines)
    except Unreachable as error:
        raise Away(f"The cluster does not answer: {error.cause}.") from None
    except Forbidden as error:
        raise Refused(error.message) from None
    except ApiError as error:
        raise NoLog(error.message) from None
