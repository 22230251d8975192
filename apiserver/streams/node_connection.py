"""What exec, attach and port-forward have on the node's side: a line to a container's shim, and this end of its streams."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from starlette.datastructures import QueryParams

from apiserver.http import query
from apiserver.streams import containers
from cluster.api import backend
from cluster.backend import NodeAway
from kube.errors import InternalError, ServiceUnavailable
from kube.meta import Object
from node import port_client
from node.port_client import AnswerLine

ANSWER_S = 15.0  # for the node to start a command
CONNECT_S = 10.0  # for a pod to take a connection


class ExecOptions(NamedTuple):
    """The parameters of a request."""

    container: str
    command: list[str]
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool

    @classmethod
    def of(cls, parameters: QueryParams) -> ExecOptions:
        """Read the parameters; a terminal has no separate stream of errors."""
        tty = query.flag(parameters, "tty")
        return cls(
            parameters.get("container", ""),
            parameters.getlist("command"),
            query.flag(parameters, "stdin"),
            query.flag(parameters, "stdout"),
            query.flag(parameters, "stderr") and not tty,
            tty,
        )


class Target(NamedTuple):
    """The running instance of a container that is meant."""

    pod: Object
    container: str
    id: str

    @property
    def node(self) -> str:
        """The name of the node that it runs on."""
        name: str = self.pod["spec"].get("nodeName") or ""
        return name

    def call(self, do: str, fds: list[int], **fields: Any) -> socket.socket:
        """Ask the node to do something with it; ServiceUnavailable when the node does not answer."""
        instance = {"container": self.container, "attempt": containers.number(self.id)}
        return _call(self.pod, {"do": do, **instance, **fields}, fds)

    async def output(self) -> AsyncIterator[list[tuple[str, bytes]]]:
        """Return what it writes from now on, as (stream, bytes), until it ends; ServiceUnavailable when its node is away."""
        uid = self.pod["metadata"]["uid"]
        nodes = backend.nodes.on(self.node)
        try:
            return await nodes.log_output(uid, self.container, containers.number(self.id))
        except NodeAway as error:
            raise ServiceUnavailable(str(error)) from None


def _call(pod: Object, request: dict[str, Any], fds: list[int]) -> socket.socket:
    """Ask a pod's node for something; ServiceUnavailable when it does not answer."""
    node = pod["spec"].get("nodeName") or ""
    try:
        return backend.nodes.on(node).connect({**request, "uid": pod["metadata"]["uid"]}, fds)
    except OSError as error:
        raise ServiceUnavailable(
            f"error dialing backend: the agent of node {node} does not answer: {error.strerror}"
        ) from None


class Closable(Protocol):
    """What is open until it is closed."""

    def close(self) -> None:
        """Let go of it."""


Begun = TypeVar("Begun", bound=Closable)


async def begin(start: Callable[..., Begun], *arguments: Any) -> Begun:
    """Begin to talk to a node, in a thread; who does not wait for that any more leaves nothing open."""
    starting = asyncio.ensure_future(asyncio.to_thread(start, *arguments))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_close)
        raise


def _close(starting: asyncio.Future[Any]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().close()


class NodeConnection(AnswerLine):
    """The line to the node, and this end of what it was given; who closes it ends a command that still runs."""

    lost = ""  # why the node cannot be heard any more
    tells_sizes = False  # whether the node hears only from us that a terminal has another size

    async def first(self) -> tuple[dict[str, Any], list[int]]:
        """Return the first answer; InternalError when there is none in time."""
        try:
            async with asyncio.timeout(ANSWER_S):
                answer, fds = await self.receive()
        except TimeoutError:
            raise InternalError.of("the node did not answer in time.") from None
        if not answer:
            raise InternalError.of("the container ended before the node could answer.")
        if "lost" in answer:
            raise ServiceUnavailable(f"error dialing backend: {answer['lost']}")
        self.tells_sizes = answer.get("tells") == "sizes"
        return answer, fds

    def resize(self, terminal: int, width: int, height: int) -> None:
        """Give a terminal another size."""
        if not self.tells_sizes:
            port_client.resize(terminal, width, height)
            return
        # Who sends sizes faster than they are taken loses some: the line does not wait.
        with contextlib.suppress(BlockingIOError):
            self.line.send(json.dumps({"size": [width, height]}).encode() + b"\n")


class Process(NodeConnection):
    """A command in a container: the line to its shim, and this end of its streams."""

    def __init__(self, line: socket.socket, ours: dict[str, int], *, tty: bool) -> None:
        super().__init__(line)
        self.ours = ours  # by the name of the stream; a terminal is both input and output
        self.tty = tty

    @classmethod
    def start(cls, target: Target, options: ExecOptions) -> Process:
        """Ask for the command; whether it started is the first answer."""
        ours, theirs = (
            port_client.open_terminal(reads=options.stdin)
            if options.tty
            else port_client.open_pipes([name for name in port_client.STREAMS if getattr(options, name)])
        )
        try:
            line = target.call(
                "exec",
                list(theirs.values()),
                argv=options.command,
                streams=list(theirs),
                tty=options.tty,
                reads=options.stdin,
            )
        except ServiceUnavailable:
            port_client.close_all(ours)
            raise
        finally:
            port_client.close_all(theirs)
        return cls(line, ours, tty=options.tty)

    async def answer(self) -> dict[str, Any]:
        """Return whether it started."""
        answer, _ = await self.first()
        return answer

    async def exit_code(self) -> int | None:
        """Return how it ended, None when nobody knows; `lost` says why, where it is the node that was lost."""
        answer, _ = await self.receive()
        self.lost = str(answer.get("lost") or "")
        code = answer.get("exitCode")
        return code if isinstance(code, int) else None

    def close(self) -> None:
        """Let go of everything."""
        super().close()
        port_client.close_all(self.ours)
        self.ours.clear()


class Attached(NodeConnection):
    """A container's own input, or its terminal; -1 where it has none."""

    input = -1

    async def answer(self) -> None:
        """Wait for the input; InternalError when the container cannot be attached to."""
        answer, fds = await self.first()
        if fds:
            self.input = fds[0]
            os.set_blocking(self.input, False)
        if "refused" in answer:
            raise InternalError(f"Internal error occurred: {answer['refused']}")

    def close(self) -> None:
        """Let go of everything."""
        super().close()
        if self.input >= 0:
            os.close(self.input)
            self.input = -1


class Connected(NodeConnection):
    """A connection to a port of a pod: the line to who makes it, and the socket when it is made."""

    connected: socket.socket | None = None

    @classmethod
    def start(cls, pod: Object, port: int) -> Connected:
        """Ask for it, of whichever container runs: they share the pod's network; whether it is made is the answer."""
        address = {"host": pod["status"].get("podIP") or "", "port": port}
        request = {"do": "connect", **address, "local": True, "seconds": CONNECT_S}
        return cls(_call(pod, request, []))

    async def answer(self) -> socket.socket:
        """Wait for the connection, which is closed with this; ConnectionRefusedError says why there is none."""
        answer, fds = await self.first()
        if not fds:
            raise ConnectionRefusedError(answer.get("refused"))
        self.connected = socket.socket(fileno=fds[0])
        self.connected.setblocking(False)
        return self.connected

    def close(self) -> None:
        """Let go of everything."""
        super().close()
        if self.connected is not None:
            self.connected.close()
