"""Downloading logs: one whole log as text, or many pods' logs as an archive that is written while it is sent."""

from __future__ import annotations

import time
import zipfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from channels.db import database_sync_to_async
from django.http import HttpResponse, StreamingHttpResponse

from cluster import clock
from cluster.access import Actor
from cluster.api import backend
from cluster.backend import LogExtent, NodeAway, Nodes, NoLog
from jobs.logs import text
from jobs.pages.logs import pods
from jobs.pages.logs.pods import Absent, LogPod, LogQuery
from jobs.pages.logs.window import Mark
from kube.errors import NotFound

PIECE = 256 * 1024  # bytes of an archive sent at once
STATES_BYTES = 1024 * 1024  # read of a line for its states
MISSING = "missing.txt"


def respond(actor: Actor, query: LogQuery, *, times: bool) -> StreamingHttpResponse:
    """Return logs as a file, with the time before each line if `times`; raise NotFound if there are none.

    A single log is a text. Several are an archive, with a file for each attempt of each container.
    """
    if not query.pod:
        raise NotFound("The address names no pod: choose one on the page of the job's logs.")
    chosen = pods.chosen(actor, query)
    nodes = backend.nodes_for(actor)
    extents = [each for each in nodes.log_extents({pod.uid: pod.node for pod in chosen}) if query.wants(each)]
    if not query.is_together and not extents:
        raise NotFound(chosen[0].why_absent())
    if not query.is_together and len(extents) == 1:
        (extent,) = extents
        name = f"{chosen[0].name}-{extent.container}-{extent.attempt}.log"
        return _file(_text(nodes, extent, times=times), "text/plain; charset=utf-8", name)
    whose = [query.job, *query.pod.removeprefix(pods.TASK).split(pods.EVERY)] if query.is_together else [query.pod]
    missing = pods.absent(actor, query, chosen, {each.uid for each in extents})
    body = _archive(nodes, {pod.uid: pod for pod in chosen}, extents, missing, times=times)
    return _file(body, "application/zip", f"{'-'.join(filter(None, whose))}-logs.zip")


def states(actor: Actor, query: LogQuery, mark: Mark) -> HttpResponse:
    """Return the states of a line that was overwritten, each on a line of its own; raise NotFound if the line is not kept."""
    chosen = pods.chosen(actor, query)
    try:
        if mark.log.uid not in {pod.uid for pod in chosen}:
            raise NotFound("The line of the link is of another pod.")
        lines = backend.nodes_for(actor).read_log(*mark.log, since_offset=mark.offset, most=STATES_BYTES).lines
    except NoLog:
        lines = ()
    if not lines or lines[0].offset != mark.offset:
        raise NotFound("The line of the link is not kept any more.")
    own = [line for line in lines if line.stream == lines[0].stream]
    last = next((at for at, line in enumerate(own) if line.whole), len(own))
    line_states = text.states(b"".join(line.data for line in own[: last + 1]))
    response = HttpResponse("".join(f"{each}\n" for each in line_states), content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _file(body: Iterator[bytes], content_type: str, name: str) -> StreamingHttpResponse:
    async def pieces() -> AsyncIterator[bytes]:
        """Read the files piece by piece, without blocking the event loop."""
        read = database_sync_to_async(next, thread_sensitive=False)
        while (piece := await read(body, None)) is not None:
            yield piece

    response = StreamingHttpResponse(pieces(), content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _text(nodes: Nodes, extent: LogExtent, *, times: bool) -> Iterator[bytes]:
    """Yield a log up to its current end, so that a growing log does not make the file endless."""
    fresh, at = True, 0
    while at < extent.end:
        try:
            chunk = nodes.read_log(extent.uid, extent.container, extent.attempt, since_offset=at)
        except NodeAway as error:  # the file must not look whole
            yield f"[{error}]\n".encode()
            return
        except NoLog:  # removed while it is read
            return
        if not chunk.lines:
            return
        out = [f"[{chunk.skipped} bytes were dropped by rotation]\n".encode()] if chunk.skipped else []
        for line in chunk.lines:
            if times and fresh:
                out.append(line.time.encode() + b" ")
            out.append(line.data + b"\n" * line.whole)
            fresh = line.whole
        yield b"".join(out)
        at = chunk.next


class _Sink:
    """A file that an archive is written to: `take` removes what was written, so memory stays small."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self._size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: no buffer."""

    def take(self, least: int = 1) -> list[bytes]:
        """Remove and return what was written; [] if less than least."""
        if self._size < least:
            return []
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return [data]


def _archive(
    nodes: Nodes,
    pods_by_uid: Mapping[str, LogPod],
    extents: Sequence[LogExtent],
    missing: Sequence[Absent],
    *,
    times: bool,
) -> Iterator[bytes]:
    """Yield a zip with a file for each log, and one that lists pods without any."""
    sink = _Sink()
    moment = time.gmtime(clock.milliseconds() // 1000)[:6]
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        for extent in extents:
            # The uid tells pods of one name apart.
            name = f"{pods_by_uid[extent.uid].name}/{extent.uid[:8]}-{extent.container}-{extent.attempt}.log"
            info = zipfile.ZipInfo(name, moment)
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as file:
                for part in _text(nodes, extent, times=times):
                    file.write(part)
                    yield from sink.take(PIECE)
        if missing:
            text = "".join(f"{name}: {why}\n" for why, names in missing for name in names)
            archive.writestr(zipfile.ZipInfo(MISSING, moment), text)
    yield from sink.take()
