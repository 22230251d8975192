"""Many conversations over one link, each with its channels: the same on both sides.

The wire neither dials nor listens: it is given a way to send messages, and is
handed those that come.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from node.link import frames
from node.link.flow import Receiving, Sending
from node.link.frames import CHANNELS, LINE, MAX_DATA, STDIN, BadFrame, Frame, Kind

Send = Callable[[bytes], Awaitable[None]]

MAX_CONVERSATIONS = 500  # conversations of a link that the server has at a time
LAST_NUMBER = 2**32 - 1
LONGEST_LINE = 64 * 1024  # bytes of an answer in JSON
SERVER_READS = frozenset(CHANNELS) - {STDIN}
NODE_READS = frozenset({STDIN, LINE})


class LinkLost(ConnectionError):
    """The other machine cannot be reached any more, or has ended the conversation."""


class _Channel:
    """One channel of a conversation, as this side has it."""

    __slots__ = ("has_ended", "is_unread", "receiving", "sending")

    def __init__(self) -> None:
        self.sending = Sending()
        self.receiving = Receiving()
        self.has_ended = False  # the other side writes nothing more
        self.is_unread = False  # the other side reads nothing more


class Conversation:
    """One request and what flows because of it."""

    def __init__(self, wire: Wire, number: int) -> None:
        self.wire = wire
        self.number = number
        self.is_closed = False  # by the other side, or with the link
        self._channels = {channel: _Channel() for channel in CHANNELS}
        self._changed = asyncio.Event()
        self._buffer = b""

    async def send(self, channel: int, data: bytes) -> None:
        """Send bytes, waiting while the reader is slow; BrokenPipeError when nobody reads them, LinkLost when the conversation is over."""
        mine, view = self._channels[channel], memoryview(data)
        while view:
            if self.is_closed:
                raise LinkLost
            if mine.is_unread:
                raise BrokenPipeError
            taken = mine.sending.take(min(len(view), MAX_DATA))
            if taken:
                await self.wire.send(Frame(Kind.DATA, self.number, channel, bytes(view[:taken])))
                view = view[taken:]
            else:
                await self._change()

    async def receive(self, channel: int) -> bytes:
        """Return the next bytes of a channel, b"" at its end; `done` is to be called for them."""
        mine = self._channels[channel]
        while mine.receiving.is_empty:
            if mine.has_ended or self.is_closed:
                return b""
            await self._change()
        return mine.receiving.next()

    async def done(self, channel: int, count: int) -> None:
        """Grant the writer so many bytes more, as these were handed on."""
        more = self._channels[channel].receiving.done(count)
        if more and not self.is_closed:
            await self.wire.send(frames.credit(self.number, channel, more))

    async def end(self, channel: int) -> None:
        """Tell the other side that nothing more is written to a channel, or read from it."""
        if not self.is_closed:
            await self.wire.send(Frame(Kind.END, self.number, channel))

    async def send_json(self, answer: dict[str, Any]) -> None:
        """Send a line of JSON."""
        await self.send(LINE, json.dumps(answer).encode() + b"\n")

    async def receive_json(self) -> dict[str, Any] | None:
        """Return the next line of JSON from the other side; None when there comes none."""
        while b"\n" not in self._buffer:
            part = await self.receive(LINE)
            await self.done(LINE, len(part))
            if not part:
                return None
            self._buffer += part
            if len(self._buffer) > LONGEST_LINE:
                raise BadFrame("A line of JSON is too long.")
        first, _, self._buffer = self._buffer.partition(b"\n")
        return frames.json_of(first)

    def take_unread(self) -> bytes:
        """Take what came behind the last line that was received."""
        rest, self._buffer = self._buffer, b""
        return rest

    async def close(self) -> None:
        """Close the conversation on both sides; once is enough."""
        if self.wire.conversations.pop(self.number, None) is not None and not self.is_closed:
            await self.wire.send(Frame(Kind.CLOSE, self.number))

    async def closed(self) -> None:
        """Wait until the other side has closed it."""
        while not self.is_closed:
            await self._change()

    def on_frame(self, frame: Frame) -> None:
        """Take in a frame of this conversation."""
        mine = self._channels[frame.channel]
        if frame.kind == Kind.DATA:
            if frame.channel not in self.wire.read_here:
                raise BadFrame(f"Channel {frame.channel} is not the other side's to write.")
            mine.receiving.add(frame.data)
        elif frame.kind == Kind.CREDIT:
            mine.sending.grant(frames.count_of(frame))
        elif frame.kind == Kind.END:
            if frame.channel in self.wire.read_here:
                mine.has_ended = True
            else:
                mine.is_unread = True
        elif frame.kind == Kind.CLOSE:
            self.is_closed = True
            self.wire.conversations.pop(self.number, None)
        self._changed.set()

    def lose(self) -> None:
        """The link is gone."""
        self.is_closed = True
        self._changed.set()

    async def _change(self) -> None:
        # Every waiter checks its condition again: all are woken together, and none can miss a later change.
        self._changed.clear()
        await self._changed.wait()


class Wire:
    """One side of a link."""

    def __init__(self, send: Send, read_here: Collection[int]) -> None:
        self.conversations: dict[int, Conversation] = {}
        self.read_here = read_here
        self.is_lost = False
        self._send = send
        self._last = 0

    async def send(self, frame: Frame) -> None:
        """Send a frame; LinkLost when the link is gone."""
        if self.is_lost:
            raise LinkLost
        message = frames.encode(frame)
        try:
            await self._send(message)
        except OSError:
            raise LinkLost from None

    def on_message(self, message: bytes) -> Frame | None:
        """Take in a message; return its frame where that belongs to no conversation that there is.

        BadFrame when the other side breaks the protocol: then the link cannot go on.
        """
        frame = frames.decode(message)
        if frame.kind in (Kind.BEAT, Kind.OPEN):
            return frame
        conversation = self.conversations.get(frame.conversation)
        if conversation is not None:  # else it was closed here while this was on its way
            conversation.on_frame(frame)
        return None

    async def open(self, request: dict[str, Any]) -> Conversation:
        """Begin a conversation; LinkLost when the link is gone, BadFrame when the request is too long."""
        self._last = self._last % LAST_NUMBER + 1
        while self._last in self.conversations:
            self._last = self._last % LAST_NUMBER + 1
        conversation = self.begin(self._last)
        try:
            await self.send(Frame(Kind.OPEN, conversation.number, 0, json.dumps(request).encode()))
        except BaseException:
            self.conversations.pop(conversation.number, None)
            raise
        return conversation

    def begin(self, number: int) -> Conversation:
        """Note a conversation that was begun; BadFrame when there is one of this number, or there are far too many."""
        # What was closed on one side is, for a moment, not closed on the other.
        if number in self.conversations or len(self.conversations) >= 2 * MAX_CONVERSATIONS:
            raise BadFrame("A conversation was begun twice, or too many were.")
        conversation = self.conversations[number] = Conversation(self, number)
        return conversation

    def lose(self) -> None:
        """End every conversation: the link is gone."""
        self.is_lost = True
        for conversation in list(self.conversations.values()):
            conversation.lose()
        self.conversations.clear()
