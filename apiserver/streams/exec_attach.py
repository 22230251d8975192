"""`pods/exec` and `pods/attach`: a command beside a running container's own, or that one's input and output (§3.7).

The API server makes the pipes (or the terminal) and hands their far ends to
the node (`cluster.backend.Nodes.connect`); the shim of the container forks the command.
What the command reads and writes passes only between here and the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
from collections import Counter
from collections.abc import AsyncIterator
from itertools import groupby
from typing import Any

from starlette.responses import Response

from apiserver.http import routes, threads
from apiserver.http.request import Request
from apiserver.streams import admission, channels, containers
from apiserver.streams.channels import RESIZE, STDERR, STDIN, STDOUT, Channels, Gone
from apiserver.streams.node_connection import Attached, ExecOptions, NodeConnection, Process, Target, begin
from cluster.backend import NodeAway
from cluster.store import store
from kube.errors import BadRequest
from kube.meta import Object
from kube.resources import PODS
from node import pipes
from node.link import relay

Task = asyncio.Task[Any]
Output = AsyncIterator[list[tuple[str, bytes]]]

MOST = 500  # at a time; each holds up to eight descriptors
MAX_OF_ONE = 250  # of one actor: who leaks them must not keep others out
QUIET_S = 0.5  # what a command left behind may keep its output open; after it has ended, silence is the end
LEFT_BYTES = 1 << 20  # what is still taken from it then
END_OF_INPUT = b"\x04"  # to a terminal
SUCCESS: Object = {"metadata": {}, "status": "Success"}
SPDY = (
    "Upgrade request required: exec and attach are served over WebSocket (v5.channel.k8s.io, v4.channel.k8s.io), "
    "and SPDY is not; use kubectl 1.30 or later, set KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true for 1.29, "
    "or take a client that speaks WebSocket."
)
_open: Counter[str] = Counter()


@routes.websocket(PODS, "exec")
async def pod_exec(request: Request) -> None:
    """Run a command in a container."""
    target, options = await _prepared(request)
    talk = Channels.negotiate(request)
    async with _admitted(request, talk) as lost:
        process = await begin(Process.start, target, options)
        try:
            answer = await process.answer()
            await talk.accept()
            if "refused" in answer:
                await talk.finish(_failed(answer["refused"]))
            else:
                await _converse(talk, process, options, lost)
        except Gone:
            pass
        finally:
            process.close()


@routes.websocket(PODS, "attach")
async def pod_attach(request: Request) -> None:
    """Connect to what a container's own command reads and writes from now on."""
    target, options = await _prepared(request)
    talk = Channels.negotiate(request)
    async with _admitted(request, talk) as lost:
        output = await target.output()
        attached = Attached(await begin(target.call, "attach", []))
        try:
            await attached.answer()
            await talk.accept()
            await _watch(talk, attached, options, output, lost)
        except Gone:
            pass
        finally:
            attached.close()


@routes.subresource(PODS, "exec")
@routes.subresource(PODS, "attach")
async def without_upgrade(request: Request) -> Response:
    """Refuse a request that is no WebSocket, for what else is wrong with it first."""
    await _prepared(request, is_audited=False)
    raise BadRequest(SPDY)


async def _prepared(request: Request, *, is_audited: bool = True) -> tuple[Target, ExecOptions]:
    """Return what is meant; BadRequest or NotFound says why it cannot be had."""
    info, options = request.info, ExecOptions.of(request.query)
    pod = (await threads.read(store.get, PODS, info.namespace, info.name)).object
    container = containers.chosen(pod, options.container)
    if not (options.stdin or options.stdout or options.stderr):
        raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    if info.subresource == "exec" and not options.command:
        raise BadRequest("you must specify at least one command for the container")
    target = Target(pod, container, containers.running(pod, container, info.subresource))
    if info.subresource == "attach":
        spec = containers.spec(pod, container)
        if options.stdin and not spec.get("stdin"):
            raise BadRequest(
                f"container {spec.get('name')} does not read standard input; "
                "set stdin: true in the pod, or attach without it"
            )
        if options.tty and not spec.get("tty"):
            raise BadRequest(f"container {spec.get('name')} did not allocate a TTY")
    if is_audited:
        # The program only: a secret among its arguments must not be kept.
        program = f": {options.command[0]}" if options.command else ""
        await threads.write(admission.note, request, pod, f"container {container}{program}")
    return target, options


@contextlib.asynccontextmanager
async def _admitted(request: Request, talk: Channels) -> AsyncIterator[asyncio.Event]:
    """Yield what is set when the right to it is gone; TooManyRequests when there are too many connections."""
    what = "commands are being run or attached to"
    with admission.counted(_open, request.actor.name, MOST, MAX_OF_ONE, what):
        async with admission.permitted(request, talk) as lost:
            yield lost


class Copier:
    """Sends what a stream says on a channel, and knows whether it is the stream that is waited for."""

    def __init__(self, talk: Channels, fd: int, channel: int) -> None:
        self.talk = talk
        self.fd = fd
        self.channel = channel
        self.waits = False
        self.sent = 0

    async def run(self) -> None:
        """Copy to the end of the stream."""
        while True:
            self.waits = True
            data = await pipes.read(self.fd)
            self.waits = False
            if not data:
                return
            await self.talk.send(self.channel, data)
            self.sent += len(data)


async def _converse(talk: Channels, process: Process, options: ExecOptions, lost: asyncio.Event) -> None:
    """Carry data both ways until the command has ended, the client has gone, or the right to it is lost."""
    numbers = {"stdout": STDOUT, "stderr": STDERR}
    await talk.send(STDERR if options.stderr and not options.stdout else STDOUT, b"")  # "you are connected"
    copiers = [Copier(talk, fd, numbers[name]) for name, fd in process.ours.items() if name in numbers]
    feeder = _feeder(process.ours.pop("stdin", -1), tty=process.tty)
    terminal = process.ours.get("stdout", -1) if process.tty else -1
    async with relay.tasks() as begin:
        if feeder is not None:
            begin(feeder.run())
        client = begin(_listen(talk, feeder, process, terminal))
        outputs = {begin(copier.run()) for copier in copiers}
        end = begin(process.exit_code())
        ending = begin(lost.wait())
        await asyncio.wait({client, end, ending}, return_when=asyncio.FIRST_COMPLETED)
        if lost.is_set():
            return
        await _drain({client, ending}, outputs, copiers)
        if not client.done() and not lost.is_set():
            await talk.finish(_status(end.result(), process.lost))


async def _watch(talk: Channels, attached: Attached, options: ExecOptions, parts: Output, lost: asyncio.Event) -> None:
    """Carry a container's output, and its input where it has one, until one of the ends that `_converse` has."""
    await talk.send(STDERR if options.stderr and not options.stdout else STDOUT, b"")
    terminal = attached.input if options.tty else -1
    feeder = _feeder(os.dup(attached.input) if options.stdin and attached.input >= 0 else -1, tty=options.tty)
    async with relay.tasks() as begin:
        if feeder is not None:
            begin(feeder.run())
        client = begin(_listen(talk, feeder, attached, terminal))
        output = begin(_show(talk, options, parts))
        await asyncio.wait({client, output, begin(lost.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if not client.done() and not lost.is_set():
            try:
                output.result()
                status = SUCCESS
            except NodeAway as error:
                status = _failed(str(error))
            await talk.finish(status)


async def _show(talk: Channels, options: ExecOptions, parts: Output) -> None:
    wanted = {"stdout": STDOUT if options.stdout else 0, "stderr": STDERR if options.stderr else 0}
    async for part in parts:
        for channel, run in groupby(part, key=lambda entry: wanted.get(entry[0], 0)):
            if channel:
                await talk.send(channel, b"".join(data for _, data in run))


async def _listen(talk: Channels, feeder: pipes.Feeder | None, node: NodeConnection, terminal: int) -> None:
    """Take what the client sends, until it goes."""
    while (message := await talk.receive()) is not None:
        channel, data = message
        if channel == STDIN and feeder is not None:
            await feeder.feed(data)
        elif channel == channels.CLOSE and data[:1] == bytes([STDIN]) and feeder is not None:
            await feeder.close()
        elif channel == RESIZE and terminal >= 0:
            with contextlib.suppress(ValueError, TypeError, AttributeError, struct.error, RecursionError):
                size = json.loads(data)
                node.resize(terminal, size.get("Width", 0), size.get("Height", 0))


async def _drain(enders: set[Task], outputs: set[Task], copiers: list[Copier]) -> None:
    """Send what an ended command has written, unless one of the enders is done; what it left behind may hold its output open and is not waited for."""
    before = sum(copier.sent for copier in copiers)
    waiting = {*outputs}
    while waiting and not any(ender.done() for ender in enders):
        done, _ = await asyncio.wait({*waiting, *enders}, timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED)
        waiting -= done
        sent = sum(copier.sent for copier in copiers) - before
        if (not done and all(copier.waits for copier in copiers)) or sent > LEFT_BYTES:
            return


def _feeder(fd: int, *, tty: bool) -> pipes.Feeder | None:
    return pipes.Feeder(fd, END_OF_INPUT if tty else b"") if fd >= 0 else None


def _status(code: int | None, lost: str = "") -> Object:
    """Return the last word about a command: how it ended."""
    if lost:
        return _failed(f"how the command ended is not known: {lost}; it is ended there")
    if code is None:
        return _failed("how the command ended is not known, because the process that watched over it was killed")
    if code == 0:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _failed(why: str) -> Object:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: error executing command in container: {why}",
        "reason": "InternalError",
        "details": {"causes": [{"message": f"error executing command in container: {why}"}]},
        "code": 500,
    }
