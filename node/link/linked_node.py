"""A node on another machine, for every process of the server: its requests go to the process that holds the link (`node.link.holder`)."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import socket
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from typing import Any, TypeVar

import msgspec
from django.conf import settings

from cluster import clock
from cluster.backend import LogChunk, LogExtent, LogText, NodeAway, Nodes, NoLog
from kube.meta import Object, now_text
from node import logs, pipes, port_client
from node.agent import server
from node.link import figures, frames, presence
from node.link.request_handler import RECORD
from node.logs import Raw
from node.port_client import AnswerLine

CONNECT_S = 3.0
ANSWER_S = 5.0  # a node that sends nothing for so long counts as away
LONGEST_S = 30.0  # as does one whose answer is not whole by then: the caller holds a thread meanwhile
PAUSE_S = 5.0  # before the next request to a node that did not answer, so that callers do not wait for it one by one
LONGEST_HEAD = 64 * 1024
LONGEST_BODY = 16 * 1024 * 1024
LONGEST_RECORD = 64 * 1024  # of what a container writes; a log's entries are far shorter
PODS_AT_ONCE = 5000  # in one question, whose size is bounded
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
NAMES = {frames.STDOUT: "stdout", frames.STDERR: "stderr"}
T = TypeVar("T")
_paused_until: dict[str, float] = {}  # until when a node gets no requests, by its name; monotonic


class LinkedNode:
    """One node, by its name: `cluster.backend.Nodes`. Its answers count for the requested pods only, and are validated."""

    offsets_are_bytes = True
    answer_at_once = False

    def __init__(self, node: str) -> None:
        self.node = node

    def on(self, node: str) -> Nodes:
        """Return this node."""
        return self

    def away(self, node: str) -> str:
        """Return a sentence that it is not connected, and since when; "" when it is."""
        state = presence.state(settings.DATA, self.node)
        if state is not None and state.linked and presence.is_held(settings.DATA, self.node):
            is_paused = _paused_until.get(self.node, 0.0) > clock.monotonic()
            return f"Node {self.node} does not answer, and what was requested is on that machine." if is_paused else ""
        since = f" since {now_text(state.since)}" if state is not None and not state.linked else ""
        return f"Node {self.node} is not connected{since}, and what was requested is on that machine."

    def log_attempts(self, uid: str, container: str) -> list[int]:
        head, _ = self._request({"do": "attempts", "uid": uid, "container": container})
        return _converted(head.get("attempts"), list[int])

    def log_extents(self, pods: Mapping[str, str]) -> list[LogExtent]:
        """Return the extents of the logs of pods; none when the node is away."""
        uids = list(pods)
        extents: list[LogExtent] = []
        for begin in range(0, len(uids), PODS_AT_ONCE):
            try:
                _, body = self._request({"do": "extents", "uids": uids[begin : begin + PODS_AT_ONCE]})
            except NoLog:
                return []
            try:
                rows = msgspec.json.decode(body, type=list[tuple[str, str, int, int, int, bool]])
            except msgspec.DecodeError:
                rows = []
            extents += [LogExtent(*row) for row in rows if row[0] in pods]
        return extents

    def read_log(
        self, uid: str, container: str, attempt: int | None = None, *, since_offset: int = 0, most: int | None = None
    ) -> LogChunk:
        most = logs.CHUNK if most is None else most
        request = {"do": "read", "uid": uid, "container": container, "attempt": attempt, "since": since_offset}
        return self._chunk({**request, "most": most}, least=since_offset)

    def tail_log(
        self,
        uid: str,
        container: str,
        attempt: int | None = None,
        *,
        lines: int,
        most: int | None = None,
        before: int | None = None,
    ) -> LogChunk:
        most = logs.TAIL_MOST if most is None else most
        request = {"do": "tail", "uid": uid, "container": container, "attempt": attempt, "lines": lines}
        return self._chunk({**request, "most": most, "before": before}, before=before)

    def log_offset(self, uid: str, container: str, attempt: int, since_us: int) -> int:
        request = {"do": "offset", "uid": uid, "container": container, "attempt": attempt}
        head, _ = self._request({**request, "since_us": since_us})
        return _converted(head.get("offset"), int)

    def why_no_log(self, pod: Object) -> str:
        return logs.why_absent(pod)

    async def log_text(self, uid: str, container: str, attempt: int, wanted: LogText) -> AsyncIterator[bytes]:
        """Return the requested part of a log, as it comes; NoLog when it was removed, NodeAway also amid it."""
        request = {"do": "text", "uid": uid, "container": container, "attempt": attempt}
        stream = await _Stream.open(self, {**request, "wanted": wanted._asdict()})
        return stream.parts()

    async def log_output(self, uid: str, container: str, attempt: int) -> AsyncIterator[list[tuple[str, bytes]]]:
        request = {"do": "output", "uid": uid, "container": container, "attempt": attempt}
        stream = await _Stream.open(self, request)
        return _records(stream.parts())

    def connect(self, request: dict[str, Any], fds: list[int]) -> socket.socket:
        """Hand a request and descriptors to who holds the link; OSError when nobody does."""
        message = json.dumps({**request, "key": server.key_of(settings.DATA)}).encode() + b"\n"
        try:
            line = presence.connect(settings.DATA, self.node, CONNECT_S)
        except OSError:
            raise ConnectionRefusedError(errno.ECONNREFUSED, self.away("") or "its link has just ended") from None
        try:
            sent = socket.send_fds(line, [message], fds)
            if rest := message[sent:]:  # to send nothing fails where all was answered already
                line.sendall(rest)
            line.setblocking(False)
        except BaseException:
            line.close()
            raise
        return line

    def usage(self, now: int) -> list[dict[str, Any]]:
        """Return the figures that it reported last; none when they are old."""
        reported = figures.read(settings.DATA, self.node, now)
        return [reported] if reported else []

    def _chunk(self, request: dict[str, Any], *, before: int | None = None, least: int = 0) -> LogChunk:
        head, body = self._request(request)
        stretch = _converted(head, _Head)
        # A reader goes on where this ends, until nothing comes: it has to lead further each time.
        if stretch.next != stretch.start + len(body) or stretch.start < 0 or (body and stretch.start < least):
            raise NodeAway("The node's answer cannot be read: it is another stretch of the log.")
        raw = Raw(body, stretch.start, stretch.next, stretch.ended)
        chunk = logs.chunk_of(stretch.attempt, raw, stretch.requested, before)
        return chunk._replace(lines=tuple(line for line in chunk.lines if TIME.fullmatch(line.time)))

    def _request(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Return the answer to a short request: its line, and the body behind that; NoLog or NodeAway."""
        if _paused_until.get(self.node, 0.0) > clock.monotonic():
            raise NodeAway(self.away(""))
        try:
            with closing(self.connect(request, [])) as line:
                head, body = _receive_answer(line)
        except TimeoutError:
            _paused_until[self.node] = clock.monotonic() + PAUSE_S
            raise NodeAway(self.away("")) from None
        except OSError:
            raise NodeAway(self.away("") or f"The link of node {self.node} has just ended.") from None
        _check(head)
        return head, body


class _Head(msgspec.Struct):
    """The line before a stretch of a log."""

    attempt: int
    start: int
    next: int
    ended: bool
    requested: int = msgspec.field(name="asked")


class _Stream:
    """What a node sends until it is closed, and the line that says how that ends."""

    def __init__(self, node: str, line: AnswerLine, fd: int) -> None:
        self._node, self._line, self._fd = node, line, fd
        # Called by a reader that has enough, and where nobody has even begun to read.
        self.close = weakref.finalize(self, _let_go, line, fd)

    @classmethod
    async def open(cls, node: LinkedNode, request: dict[str, Any]) -> _Stream:
        """Send the request; NoLog or NodeAway when there is no such stream."""
        ours, theirs = port_client.open_pipes(["stdout"])
        # In a thread: the holder may be in this very event loop, and busy. The thread is not to be stopped amid that.
        connecting = asyncio.ensure_future(asyncio.to_thread(_request_stream, node, request, theirs))
        try:
            line = AnswerLine(await asyncio.shield(connecting))
        except OSError as error:
            port_client.close_all(ours)
            raise NodeAway(error.strerror or str(error)) from None
        except asyncio.CancelledError:
            port_client.close_all(ours)
            connecting.add_done_callback(_hang_up)
            raise
        stream = cls(node.node, line, ours["stdout"])
        try:
            async with asyncio.timeout(ANSWER_S):
                answer, _ = await line.receive()
            if not answer or "lost" in answer:
                raise NodeAway(node.away("") or f"The link of node {node.node} has just ended.")
            _check(answer)
        except BaseException as error:
            stream.close()
            if isinstance(error, TimeoutError):
                raise NodeAway(f"Node {node.node} does not answer.") from None
            raise
        return stream

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield it to its end; NodeAway when the link breaks before."""
        try:
            while part := await pipes.read(self._fd):
                yield part
            answer, _ = await self._line.receive()
            if "ended" not in answer:
                raise NodeAway(f"Node {self._node} was lost before the log had ended; the rest is on that machine.")
        finally:
            self.close()


def _request_stream(node: LinkedNode, request: dict[str, Any], theirs: dict[str, int]) -> socket.socket:
    """Have a node write to the descriptors, which are its own from then on."""
    try:
        return node.connect({**request, "streams": list(theirs)}, list(theirs.values()))
    finally:
        port_client.close_all(theirs)


def _hang_up(connecting: asyncio.Future[socket.socket]) -> None:
    """Let go of an answer that nobody waits for any more."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()


def _let_go(line: AnswerLine, fd: int) -> None:
    line.close()
    os.close(fd)


async def _records(parts: AsyncIterator[bytes]) -> AsyncIterator[list[tuple[str, bytes]]]:
    """Yield what a container wrote, by stream, from its records."""
    buffer = b""
    async for part in parts:
        buffer += part
        records, offset = [], 0
        while len(buffer) >= offset + RECORD.size:
            channel, size = RECORD.unpack_from(buffer, offset)
            if size > LONGEST_RECORD or channel not in NAMES:
                raise NodeAway("The node sends what is no output of a container.")
            begin, end = offset + RECORD.size, offset + RECORD.size + size
            if len(buffer) < end:
                break
            records.append((NAMES[channel], buffer[begin:end]))
            offset = end
        buffer = buffer[offset:]
        if records:
            yield records


def _receive_answer(line: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Return a line of JSON and the body of the size that it gives; OSError when they do not come, or not in time."""
    received, until = b"", clock.monotonic() + LONGEST_S
    while b"\n" not in received:
        received += _receive_bytes(line, 65536, until)
        if len(received) > LONGEST_HEAD + 65536:
            raise ConnectionResetError
    first, _, rest = received.partition(b"\n")
    try:
        head = frames.json_of(first)
    except frames.BadFrame:
        raise ConnectionResetError from None
    size = head.get("size", 0)
    if not isinstance(size, int) or not 0 <= size <= LONGEST_BODY:
        raise ConnectionResetError
    body = bytearray(rest)
    while len(body) < size:
        body += _receive_bytes(line, min(1 << 20, size - len(body)), until)
    return head, bytes(body[:size])


def _receive_bytes(line: socket.socket, size: int, until: float) -> bytes:
    """Return what comes next; OSError at the end, after a silence, and from a monotonic time on."""
    remaining = until - clock.monotonic()
    if remaining <= 0:
        raise TimeoutError
    line.settimeout(min(ANSWER_S, remaining))
    data = line.recv(size)
    if not data:
        raise ConnectionResetError
    return data


def _check(head: dict[str, Any]) -> None:
    """Raise NoLog where a node answers that there is no log, NodeAway where it could not look."""
    if "no" in head:
        raise NoLog(str(head["no"])[:1000])
    if "refused" in head or "lost" in head:
        raise NodeAway(str(head.get("refused") or head["lost"])[:1000])


def _converted(value: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise NodeAway(f"The node's answer cannot be read: {error}.") from None
