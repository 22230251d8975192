"""The server's side of a link, in the process that the node has dialled: every request to the node comes here.

Behind `DATA/run/nodes/<digest>/port` (`node.link.presence`) it takes requests as the port of this machine's agent does
(`node.agent.server`), but on a connection each: a line of JSON with the node's key and descriptors. What the node
answers comes back on the connection, which is the line; what it reads and writes passes through the
descriptors, or for a port of a pod through a pair of sockets, of which the client gets one end. So exec, attach and port-forward
see one difference only: the answer `{"started"}` or `{"attached"}` has `"tells": "sizes"`, as the kernel tells nobody here of a
changed size of the terminal, and the client that changes it writes that on the line.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import tty
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from cluster import clock
from node import pipes, port_client
from node.agent import server
from node.link import frames, presence, relay
from node.link.figures import Figures
from node.link.frames import CHANNEL_OF, LINE, STDIN, BadFrame, Kind
from node.link.relay import Begin, Descriptor
from node.link.wire import MAX_CONVERSATIONS, SERVER_READS, Conversation, LinkLost, Wire
from node.shim import control_socket

Receive = Callable[[], Awaitable[bytes | None]]

SILENT_S = 35.0  # a node sends a heartbeat every ten seconds
BEAT_LEAST_S = 1.0  # the figures of a heartbeat that comes sooner after another are not stored
REQUEST_S = 5.0  # a client sends its request at once; a pod that can reach the socket holds no descriptors here
log = logging.getLogger(__name__)


class Holder:
    """The link of one node, as long as it lasts."""

    def __init__(self, data: Path, node: str, send: Callable[[bytes], Awaitable[None]]) -> None:
        self.node = node
        self._data = data
        self._wire = Wire(send, SERVER_READS)
        self._key = server.key_of(data)
        self._figures = Figures(data, node)
        self._tasks: set[asyncio.Task[None]] = set()
        self._receiving: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Let go of the link."""
        if self._receiving is not None:
            self._receiving.cancel()

    async def run(self, receive: Receive) -> None:
        """Hold the link until `receive` returns None, `stop` is called, or the node is silent or breaks the protocol."""
        presence.note(self._data, self.node, linked=True, now=clock.milliseconds())
        listener = presence.listen(self._data, self.node)
        loop = asyncio.get_running_loop()
        loop.add_reader(listener.fileno(), self._accept, listener)
        log.info("node %s is linked", self.node)
        try:
            self._receiving = asyncio.ensure_future(self._receive(receive))
            await asyncio.wait({self._receiving})
            if not self._receiving.cancelled():
                self._receiving.result()
        except BadFrame as error:
            log.warning("the link of node %s is ended: %s", self.node, error)
        except TimeoutError:
            log.warning("the link of node %s is ended: nothing was heard for %.0f s", self.node, SILENT_S)
        finally:
            self.stop()
            loop.remove_reader(listener.fileno())
            listener.close()
            # Let go of everybody who waits for the node.
            self._wire.lose()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=1.0)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            log.info("node %s is not linked any more", self.node)
            if not presence.is_held(self._data, self.node):
                presence.note(self._data, self.node, linked=False, now=clock.milliseconds())

    async def _receive(self, receive: Receive) -> None:
        figures_at = float("-inf")
        while True:
            async with asyncio.timeout(SILENT_S):
                message = await receive()
            if message is None:
                return
            frame = self._wire.on_message(message)
            if frame is None:
                continue
            if frame.kind != Kind.BEAT:
                raise BadFrame("A node begins no conversations.")
            now = clock.monotonic()
            if now - figures_at >= BEAT_LEAST_S:
                figures_at = now
                await asyncio.to_thread(self._figures.store, frames.json_of(frame.data))

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:  # the client has gone, or there is no descriptor left
            return
        connection.setblocking(False)
        task = asyncio.ensure_future(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket) -> None:
        fds: list[int] = []
        try:
            async with asyncio.timeout(REQUEST_S):
                request = await _request(connection, fds)
            if request is None or not control_socket.has_key(request, self._key):
                return
            if len(self._wire.conversations) >= MAX_CONVERSATIONS:
                problem = f"Node {self.node} has {MAX_CONVERSATIONS} requests at once already. Please try again later."
                await _send(connection, {"refused": problem})
                return
            await self._converse(connection, request, fds)
        except OSError:  # the client has gone, or the link has
            pass
        except BadFrame as error:
            log.warning("a request to node %s was not passed on: %s", self.node, error)
        finally:
            connection.close()
            control_socket.close(fds)

    async def _converse(self, connection: socket.socket, request: dict[str, Any], fds: list[int]) -> None:
        """Pass a request on, and carry its streams until one side ends them."""
        forwarded = {name: value for name, value in request.items() if name != "key"}
        if forwarded.get("tty") and forwarded.get("do") == "exec":
            tty.setraw(fds[0])
            forwarded["size"] = port_client.size_of(fds[0])
        conversation = await self._wire.open(forwarded)
        if forwarded.get("do") == "connect":
            ours, client_end = socket.socketpair()
            fds.append(client_end.detach())  # for the client, when there is a connection
            reading, writing = relay.halves(ours)
            streams: dict[str, Descriptor] = {"stdin": reading, "stdout": writing}
        else:
            streams = _streams(forwarded, fds)
            fds.clear()
        try:
            async with relay.tasks() as begin:
                client = begin(_relay_client(conversation, connection))
                outputs = _carry(conversation, streams, begin)
                answers = begin(_relay_answers(conversation, connection, forwarded, fds, begin))
                await _first_of(client, answers)
                if outputs:
                    await _first_of(client, asyncio.gather(*outputs))
                if self._wire.is_lost and not client.done():
                    await _send(connection, {"lost": f"node {self.node} is not connected any more"})
        finally:
            for descriptor in streams.values():
                descriptor.close()
            with contextlib.suppress(LinkLost):
                await conversation.close()


async def _first_of(client: asyncio.Future[Any], other: asyncio.Future[Any]) -> None:
    """Wait for something, but no longer than its client is there."""
    await asyncio.wait({client, other}, return_when=asyncio.FIRST_COMPLETED)


async def _relay_answers(
    conversation: Conversation, connection: socket.socket, request: dict[str, Any], fds: list[int], begin: Begin
) -> None:
    """Hand on what the node answers: a line first, then lines or long bodies, as they come; fds are passed with a connection."""
    first = await conversation.receive_json()
    if first is None:
        return
    passed: list[int] = []
    if first.get("input") and request.get("do") == "attach":  # nobody else takes a descriptor
        reader, writer = os.pipe2(os.O_CLOEXEC)
        begin(relay.Outgoing(conversation, STDIN, Descriptor(reader)).run())
        passed.append(writer)
    if first.get("connected") and request.get("do") == "connect":
        passed += fds
        fds.clear()
    try:
        added = {"tells": "sizes"} if request.get("do") in ("exec", "attach") else {}
        socket.send_fds(connection, [json.dumps({**first, **added}).encode() + b"\n"], passed)
    finally:
        control_socket.close(passed)
    if rest := conversation.take_unread():
        await pipes.write(connection.fileno(), rest)
    while data := await conversation.receive(LINE):
        await pipes.write(connection.fileno(), data)
        await conversation.done(LINE, len(data))


def _streams(request: dict[str, Any], fds: list[int]) -> dict[str, Descriptor]:
    """Return the descriptors of a request by the names of their streams; a terminal is two."""
    if request.get("tty") and request.get("do") == "exec":
        ends = {"stdout": fds[0], **({"stdin": os.dup(fds[0])} if request.get("reads") else {})}
    else:
        names = [name for name in port_client.STREAMS if name in request.get("streams", ())]
        ends = dict(zip(names, fds, strict=True))
    return {name: Descriptor(fd) for name, fd in ends.items()}


def _carry(conversation: Conversation, streams: dict[str, Descriptor], begin: Begin) -> list[asyncio.Task[Any]]:
    """Begin to carry streams; return the work on those that the node writes."""
    outputs = []
    for name, each in streams.items():
        if name == "stdin":
            begin(relay.Outgoing(conversation, STDIN, each).run())
        else:
            outputs.append(begin(relay.write(conversation, CHANNEL_OF[name], each)))
    return outputs


async def _relay_client(conversation: Conversation, connection: socket.socket) -> None:
    """Hand on what the client writes on the line, until it closes that."""
    while data := await pipes.read(connection.fileno()):
        await conversation.send(LINE, data)


async def _request(connection: socket.socket, fds: list[int]) -> dict[str, Any] | None:
    """Return a request, and put its descriptors into fds; None when it is none."""
    received = b""
    while not received.endswith(b"\n"):
        try:
            data, more, _, _ = socket.recv_fds(connection, 65536, control_socket.MAX_FDS)
        except BlockingIOError:
            await pipes.readable(connection.fileno())
            continue
        fds += more
        for fd in more:
            os.set_inheritable(fd, False)
        received += data
        if not data or len(received) > frames.MAX_JSON:
            return None
    try:
        request = json.loads(received)
    except ValueError:
        return None
    return request if isinstance(request, dict) else None


async def _send(connection: socket.socket, answer: dict[str, Any]) -> None:
    await pipes.write(connection.fileno(), json.dumps(answer).encode() + b"\n")
