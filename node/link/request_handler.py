"""The node's side of a conversation: the server's requests are answered from this machine's files, and by its agent.

Answers are lines of JSON. A log comes behind its line, as it is on disk; one that is followed, and all that a command
writes, on channels of its own. `{"no": why}` says that there is no such log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, closing, suppress
from typing import Any, TypeVar, cast

from django.conf import settings

from cluster.backend import LogText, NoLog
from node import log_stream, logs, port_client
from node.agent import server
from node.link import relay
from node.link.frames import CHANNEL_OF, LINE, STDIN, STDOUT, BadFrame
from node.link.local_nodes import LocalNodes
from node.link.relay import Descriptor, Outgoing
from node.link.wire import Conversation, LinkLost
from node.port_client import AnswerLine

Request = dict[str, Any]
T = TypeVar("T")

QUIET_S = 0.5  # what a command left behind may keep its output open; after it has ended, silence is the end
RECORD = struct.Struct(">BI")  # before what a container wrote: its stream, and how long it is
log = logging.getLogger(__name__)
_here = LocalNodes()


class AgentAway(Exception):
    """The agent of this node does not answer, for it has just begun or is about to end."""


async def answer(conversation: Conversation, request: Request) -> None:
    """Carry out a request, until that is done or the server closes the conversation."""
    try:
        async with relay.tasks() as begin:
            work = begin(_dispatch(conversation, request))
            await asyncio.wait({work, begin(conversation.closed())}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
    except NoLog as error:
        await _send_last(conversation, {"no": str(error)})
    except AgentAway as error:
        await _send_last(conversation, {"lost": str(error)})
    except (LinkLost, BrokenPipeError):
        pass
    except (OSError, ValueError, TypeError, LookupError, BadFrame) as error:
        log.warning("what the server asked for was not done: %s", error)
        await _send_last(conversation, {"refused": f"the node could not do it: {error}"})
    finally:
        with suppress(LinkLost):
            await conversation.close()


async def _send_last(conversation: Conversation, answer: dict[str, Any]) -> None:
    with suppress(LinkLost):
        await conversation.send_json(answer)


async def _dispatch(conversation: Conversation, request: Request) -> None:
    do = request["do"]
    if do == "exec":
        await _exec(conversation, request)
    elif do == "attach":
        await _attach(conversation, request)
    elif do == "connect":
        await _connect(conversation, request)
    elif do == "text":
        text = await _here.log_text(
            request["uid"], request["container"], request["attempt"], LogText(**request["wanted"])
        )
        await _stream(conversation, text, bytes)
    elif do == "output":
        output = await _here.log_output(request["uid"], request["container"], request["attempt"])
        await _stream(conversation, output, _records)
    else:
        head, body = await log_stream.on_files(_of_files, request)
        await conversation.send_json({**head, "size": len(body)})
        await conversation.send(LINE, body)


def _of_files(request: Request) -> tuple[Request, bytes]:
    """Return the answer from this machine's log files: a line, and the body behind it."""
    attempt_key: tuple[str, str, Any] = request.get("uid", ""), request.get("container", ""), request.get("attempt")
    match request["do"]:
        case "attempts":
            return {"attempts": _here.log_attempts(*attempt_key[:2])}, b""
        case "extents":
            return {}, json.dumps(_here.log_extents(dict.fromkeys(request["uids"], ""))).encode()
        case "offset":
            return {"offset": _here.log_offset(*attempt_key, request["since_us"])}, b""
        case "read":
            attempt, raw, begin = logs.stretch(*attempt_key, request["since"], request["most"])
        case "tail":
            attempt, raw, begin = logs.last_stretch(*attempt_key, request["lines"], request["most"], request["before"])
        case other:
            raise ValueError(f"a node of this version cannot {other}")
    head = {"attempt": attempt, "start": raw.start, "next": raw.next, "ended": raw.ended, "asked": begin}
    return head, raw.data


async def _stream(conversation: Conversation, parts: AsyncIterator[T], encode: Callable[[T], bytes]) -> None:
    """Send what is written to a log, as it comes, until that ends."""
    await conversation.send_json({"started": True})
    async with aclosing(cast("AsyncGenerator[T]", parts)):
        async for part in parts:
            await conversation.send(STDOUT, encode(part))
    await conversation.end(STDOUT)
    await conversation.send_json({"ended": True})


def _records(part: list[tuple[str, bytes]]) -> bytes:
    return b"".join(RECORD.pack(CHANNEL_OF[stream], len(data)) + data for stream, data in part)


async def _exec(conversation: Conversation, request: Request) -> None:
    """Run a command in a container of this node, by its agent and shim, as a server does on its own machine."""
    if request["tty"]:
        ours, theirs = port_client.open_terminal(reads=bool(request.get("reads")))
        port_client.resize(ours["stdout"], *request["size"])
    else:
        ours, theirs = port_client.open_pipes(request["streams"])
    streams = {name: Descriptor(fd) for name, fd in ours.items()}
    terminal = Descriptor(os.dup(ours["stdout"])) if request["tty"] else None
    try:
        try:
            line = AnswerLine(_call(request, list(theirs.values())))
        finally:
            port_client.close_all(theirs)
        with closing(line):
            await _watch(conversation, line, streams, terminal)
    finally:
        for descriptor in (*streams.values(), terminal):
            if descriptor is not None:
                descriptor.close()


def _call(request: Request, fds: list[int]) -> socket.socket:
    """Ask this node's agent; AgentAway when it does not answer."""
    try:
        return server.call(settings.DATA, request, fds)
    except OSError as error:
        raise AgentAway(f"the agent of the node does not answer: {error.strerror}") from None


async def _watch(
    conversation: Conversation, line: AnswerLine, streams: dict[str, Descriptor], terminal: Descriptor | None
) -> None:
    """Carry what a command reads and writes, and send how it ends."""
    outputs = [Outgoing(conversation, CHANNEL_OF[name], each) for name, each in streams.items() if name != "stdin"]
    async with relay.tasks() as begin:
        begin(_resize(conversation, terminal))
        if "stdin" in streams:
            begin(relay.write(conversation, STDIN, streams["stdin"]))
        works = {begin(each.run()) for each in outputs}
        while (answer := (await line.receive())[0]) and "exitCode" not in answer:
            await conversation.send_json(answer)
        # The exit code comes behind what the command wrote, however slowly that is read.
        await _drain(works, outputs)
        await conversation.send_json(answer)


async def _drain(works: set[asyncio.Task[Any]], outputs: list[Outgoing]) -> None:
    """Wait until an ended command's output has been sent; what it left behind may hold that open and is not waited for."""
    while works:
        done, works = await asyncio.wait(works, timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED)
        if not done and all(output.is_quiet for output in outputs):
            return


async def _resize(conversation: Conversation, terminal: Descriptor | None) -> None:
    """Give a terminal the sizes that its client sends."""
    while (message := await conversation.receive_json()) is not None:
        size = message.get("size")
        if terminal is not None and isinstance(size, list):
            with suppress(OSError, TypeError, struct.error):  # no size, or no terminal
                port_client.resize(terminal.fd, *size)


async def _attach(conversation: Conversation, request: Request) -> None:
    """Reach a container's input; what it writes is another request, `output`."""
    with closing(AnswerLine(_call(request, []))) as line:
        answer, fds = await line.receive()
        inputs = [Descriptor(fd) for fd in fds]
        try:
            async with relay.tasks() as begin:
                for each in inputs:
                    begin(relay.write(conversation, STDIN, Descriptor(os.dup(each.fd))))
                    begin(_resize(conversation, each))
                await conversation.send_json({**answer, "input": bool(inputs)})
                while answer:  # until the container has ended
                    answer, _ = await line.receive()
        finally:
            for each in inputs:
                each.close()


async def _connect(conversation: Conversation, request: Request) -> None:
    """Reach a port of a pod, and carry both ways of the connection to their ends."""
    with closing(AnswerLine(_call(request, []))) as line:
        answer, fds = await line.receive()
    ends = [each for fd in fds for each in relay.halves(socket.socket(fileno=fd))]
    try:
        await conversation.send_json(answer or {"refused": "the container has ended"})
        if ends:
            reading, writing = ends
            out = Outgoing(conversation, STDOUT, reading).run()
            await asyncio.gather(out, relay.write(conversation, STDIN, writing))
    finally:
        for each in ends:
            each.close()
