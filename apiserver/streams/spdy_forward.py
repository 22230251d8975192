"""Ports by SPDY in a WebSocket, as kubectl forwards them: each connection is a pair of streams, for data and for errors."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from apiserver.http.request import Request
from apiserver.streams import spdy
from apiserver.streams.channels import POLICY, PROTOCOL_ERROR, Gone, Messages
from apiserver.streams.forward import Forward, NoConnection
from kube.meta import Object

TUNNEL = "SPDY/3.1+portforward.k8s.io"
MAX_STREAMS = 500  # of one client; a pair of them is one connection
LARGEST_FRAME = 32 * 1024  # of data, so that others have their turn
DATA, ERROR = "data", "error"


class Pair:
    """The two streams of one connection, of which the client opens either first."""

    def __init__(self, id_: str, port: int) -> None:
        self.id, self.port = id_, port
        self.streams: dict[str, int] = {}
        self.windows = spdy.ReceiveWindow()
        self.forward: Forward
        self.work: asyncio.Task[None] | None = None  # from when both streams are there


class SpdyForward(Messages):
    """One client that forwards ports by SPDY, with any number of connections at a time."""

    def __init__(self, request: Request, pod: Object) -> None:
        super().__init__(request, TUNNEL)
        self._pod, self._who = pod, request.actor.name
        self._reader, self._writer = spdy.Reader(), spdy.Writer()
        self._session = spdy.ReceiveWindow()
        self._windows = spdy.SendWindows()
        self._granted = asyncio.Event()
        self._pairs: dict[str, Pair] = {}  # by their id
        self._streams: dict[int, tuple[str, Pair]] = {}  # which part of which pair a stream is
        self._works: set[asyncio.Task[None]] = set()

    async def run(self, lost: asyncio.Event) -> None:
        """Forward until the client goes, breaks the protocol or loses the right."""
        tasks: list[asyncio.Future[Any]] = []
        try:
            await self.accept()
            tasks = [asyncio.ensure_future(self._listen()), asyncio.ensure_future(lost.wait())]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
        except Gone:
            pass
        except spdy.BadFrame as error:
            await self._end(spdy.PROTOCOL_ERROR, PROTOCOL_ERROR, str(error))
        finally:
            tasks += self._works
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def finish(self, status: Object) -> None:
        """Say why it ended, and close."""
        await self._end(0, POLICY, status["message"])

    async def _end(self, status: int, code: int, reason: str) -> None:
        await self.send_message(spdy.go_away(self._reader.last_stream, status))
        await self.close(code, reason)

    async def _listen(self) -> None:
        while (message := await self.receive_message()) is not None:
            for event in self._reader.feed(message):
                await self._take(event)

    async def _take(self, event: spdy.Event) -> None:
        match event:
            case spdy.Opened():
                await self._open(event)
            case spdy.Data():
                await self._feed(event)
            case spdy.Reset(stream):
                if stream in self._streams:
                    await self._drop(self._streams[stream][1])
            case spdy.Pinged(number):
                if number % 2:  # the client's; others would be answers
                    await self.send_message(spdy.ping(number))
            case spdy.Granted():
                self._windows.grant(event)
                self._granted.set()
            case spdy.InitialWindow(size):
                self._windows.begin_with(size)
                self._granted.set()

    async def _open(self, opened: spdy.Opened) -> None:
        """Take a stream in, and begin to forward when its pair is whole."""
        part, id_ = opened.headers.get("streamtype", ""), opened.headers.get("requestid", "")
        text = opened.headers.get("port", "")
        number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else 0
        port = number if number < 1 << 16 else 0
        pair = self._pairs.get(id_) or Pair(id_, port)
        if part not in (DATA, ERROR) or not id_ or not port or part in pair.streams or pair.port != port:
            await self.send_message(spdy.reset(opened.stream, spdy.PROTOCOL_ERROR))
            return
        if len(self._streams) >= MAX_STREAMS:
            await self.send_message(spdy.reset(opened.stream, spdy.REFUSED_STREAM))
            return
        self._pairs[id_] = pair
        pair.streams[part] = opened.stream
        self._streams[opened.stream] = part, pair
        self._windows.open(opened.stream)
        if part == DATA:
            send, written = (partial(self._send_data, opened.stream), partial(self._written, opened.stream, pair))
            pair.forward = Forward(send, written)
        await self.send_message(self._writer.reply(opened.stream))
        if opened.fin and part == DATA:
            await pair.forward.end_input()
        if len(pair.streams) == 2:
            pair.work = asyncio.ensure_future(self._forward(pair))
            self._works.add(pair.work)
            pair.work.add_done_callback(self._works.discard)

    async def _feed(self, received: spdy.Data) -> None:
        if granted := self._session.done(len(received.data)):
            await self.send_message(spdy.window_update(0, granted))
        entry = self._streams.get(received.stream)
        # It was closed here while this was on its way, or means nothing.
        if entry is None or entry[0] != DATA:
            return
        pair = entry[1]
        if received.data and pair.work is None:  # it would have to be kept for a connection that may never be
            await self.send_message(spdy.reset(received.stream, spdy.PROTOCOL_ERROR))
            self._forget(pair)
        elif received.data:
            await pair.forward.feed(received.data)
        if received.fin:
            await pair.forward.end_input()

    async def _written(self, stream: int, pair: Pair, count: int) -> None:
        if granted := pair.windows.done(count):
            await self.send_message(spdy.window_update(stream, granted))

    async def _forward(self, pair: Pair) -> None:
        """Carry one connection, and say on its stream for errors how it ended: with nothing, or in words."""
        data, error = pair.streams[DATA], pair.streams[ERROR]
        try:
            try:
                await pair.forward.run(self._pod, pair.port, self._who)
            except NoConnection as problem:
                await self._send_data(error, str(problem).encode())
                await self._send_data(data, b"")
            await self._send_data(error, b"")
        except Gone:
            pass
        finally:
            self._forget(pair)

    async def _drop(self, pair: Pair) -> None:
        """End a connection of which the client wants nothing more; it still waits for the end of the errors."""
        if pair.work is not None:
            pair.work.cancel()
        self._forget(pair)
        if ERROR in pair.streams:
            await self.send_message(spdy.data(pair.streams[ERROR], b"", fin=True))

    def _forget(self, pair: Pair) -> None:
        if self._pairs.get(pair.id) is pair:
            del self._pairs[pair.id]
        for stream in pair.streams.values():
            self._streams.pop(stream, None)
            self._windows.close(stream)

    async def _send_data(self, stream: int, content: bytes) -> None:
        """Send bytes of a stream as far as its window allows, waiting for more; none are its end."""
        view = memoryview(content)
        while view:
            taken = self._windows.take(stream, min(len(view), LARGEST_FRAME))
            if taken:
                await self.send_message(spdy.data(stream, bytes(view[:taken])))
                view = view[taken:]
            else:
                self._granted.clear()  # who waits looks again each time, so none can miss what comes later
                await self._granted.wait()
        if not content:
            await self.send_message(spdy.data(stream, b"", fin=True))
