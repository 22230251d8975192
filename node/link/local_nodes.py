"""This machine's answers for its nodes, from its files and its agent (`cluster.backend.Nodes`)."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any

from django.conf import settings

from cluster.backend import LogChunk, LogExtent, LogText, Nodes, NoLog
from kube.meta import Object
from node import log_extents, log_stream, logs, usage
from node.agent import server
from node.paths import Layout


class LocalNodes:
    """This machine as a node, and simulated nodes, whose pods write nothing: `cluster.backend.Nodes`."""

    offsets_are_bytes = True
    answer_at_once = True

    def on(self, node: str) -> Nodes:
        """Return this machine, which answers for simulated nodes too."""
        return self

    def away(self, node: str) -> str:
        """Say "": files can always be read."""
        return ""

    def log_attempts(self, uid: str, container: str) -> list[int]:
        return logs.attempt_numbers(uid, container)

    def log_extents(self, pods: Mapping[str, str]) -> list[LogExtent]:
        return log_extents.of_pods(Layout(settings.DATA), pods)

    def read_log(
        self, uid: str, container: str, attempt: int | None = None, *, since_offset: int = 0, most: int | None = None
    ) -> LogChunk:
        limit = logs.CHUNK if most is None else most
        return logs.read(uid, container, attempt, since_offset=since_offset, limit=limit)

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
        return logs.tail(uid, container, attempt, lines=lines, most=most, before=before)

    def log_offset(self, uid: str, container: str, attempt: int, since_us: int) -> int:
        return logs.offset_at(uid, container, attempt, since_us)

    def why_no_log(self, pod: Object) -> str:
        return logs.why_absent(pod)

    async def log_text(self, uid: str, container: str, attempt: int, wanted: LogText) -> AsyncIterator[bytes]:
        """Return the requested part of a log, as it comes; NoLog when it was removed."""
        directory = Layout(settings.DATA).attempt(uid, container, attempt)
        try:
            begin = await log_stream.on_files(log_stream.start_of, directory, wanted)
        except FileNotFoundError:
            raise NoLog(f"The log of container {container} was removed.") from None
        return log_stream.text(directory, begin, wanted)

    async def log_output(self, uid: str, container: str, attempt: int) -> AsyncIterator[list[tuple[str, bytes]]]:
        directory = Layout(settings.DATA).attempt(uid, container, attempt)
        begin = await log_stream.on_files(logs.end_of, directory)
        return log_stream.output(directory, begin)

    def connect(self, request: dict[str, Any], fds: list[int]) -> socket.socket:
        """Hand a request and descriptors to this machine's agent; OSError when none runs."""
        return server.call(settings.DATA, request, fds)

    def usage(self, now: int) -> list[dict[str, Any]]:
        figures = usage.read(Layout(settings.DATA), now)
        return [figures] if figures else []
