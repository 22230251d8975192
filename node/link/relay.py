"""Carrying bytes between descriptors of this machine and the channels of a conversation."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from node import pipes
from node.link.wire import Conversation, LinkLost

Begin = Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]


class Descriptor:
    """A descriptor that does not block, and that may be closed more than once: when its stream ends, and at the end of all."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd
        os.set_inheritable(fd, False)
        os.set_blocking(fd, False)

    def close(self) -> None:
        """Close it, if that has not been done."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Half(Descriptor):
    """One way of a connected socket that is used both ways; closing it shuts that way down. Each has a descriptor of its own."""

    __slots__ = ("_way",)

    def __init__(self, fd: int, way: int) -> None:
        super().__init__(fd)
        self._way = way

    def close(self) -> None:
        """Close it, if that has not been done."""
        if self.fd >= 0:
            with suppress(OSError), socket.socket(fileno=os.dup(self.fd)) as connected:  # its peer may have gone
                connected.shutdown(self._way)
        super().close()


def halves(connected: socket.socket) -> tuple[Half, Half]:
    """Return both ways of a socket, to be read and to be written, in place of the socket."""
    reading = Half(os.dup(connected.fileno()), socket.SHUT_RD)
    return reading, Half(connected.detach(), socket.SHUT_WR)


class Outgoing:
    """Sends what a descriptor has, to its end or as long as anybody reads it; the descriptor is closed then."""

    def __init__(self, conversation: Conversation, channel: int, descriptor: Descriptor) -> None:
        self._conversation, self._channel, self._descriptor = conversation, channel, descriptor
        self.is_quiet = False  # whether all that there was has been sent

    async def run(self) -> None:
        """Send it."""
        try:
            while True:
                self.is_quiet = True
                data = await pipes.read(self._descriptor.fd)
                self.is_quiet = False
                if not data:
                    break
                await self._conversation.send(self._channel, data)
            await self._conversation.end(self._channel)
        except (BrokenPipeError, LinkLost):
            pass
        finally:
            self._descriptor.close()


async def write(conversation: Conversation, channel: int, descriptor: Descriptor) -> None:
    """Write what comes to a descriptor, to its end or as long as anybody reads it; the descriptor is closed then."""
    try:
        while data := await conversation.receive(channel):
            await pipes.write(descriptor.fd, data)
            await conversation.done(channel, len(data))
    except LinkLost:
        pass
    except OSError:  # the reader has closed its end, which is its right
        try:
            await conversation.end(channel)
        except LinkLost:
            pass
    finally:
        descriptor.close()


@asynccontextmanager
async def tasks() -> AsyncIterator[Begin]:
    """Yield a function that begins a task; at the end of the block all of them are ended."""
    begun: list[asyncio.Task[Any]] = []

    def begin(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        begun.append(asyncio.ensure_future(work))
        return begun[-1]

    try:
        yield begin
    finally:
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
