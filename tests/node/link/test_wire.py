"""The protocol of a link: frames, the flow of a channel, and two sides of a wire in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from node.link import frames
from node.link.flow import WINDOW, WORTH_TELLING, Receiving, Sending
from node.link.frames import CHANNELS, LARGEST, LINE, MOST_DATA, STDIN, STDOUT, BadFrame, Frame, Kind
from node.link.wire import MOST, NODE_READS, SERVER_READS, LinkLost, Wire
from tests.tables import cases

numbers = st.integers(0, 2**32 - 1)

frame_kinds = {
    (Kind.OPEN, Kind.BEAT): (st.just(0), st.binary(max_size=2000)),
    (Kind.DATA,): (st.sampled_from(CHANNELS), st.binary(max_size=MOST_DATA)),
    (Kind.END, Kind.CLOSE): (st.sampled_from(CHANNELS), st.just(b"")),
}
some_frames = st.one_of(
    st.builds(frames.credit, numbers, st.sampled_from(CHANNELS), numbers),
    *(st.builds(Frame, st.sampled_from(kinds), numbers, *parts) for kinds, parts in frame_kinds.items()),
)


class TestFrames:
    @given(some_frames)
    def test_a_frame_is_the_same_on_the_other_side(self, frame):
        message = frames.encode(frame)
        assert len(message) <= LARGEST
        assert frames.decode(message) == frame
        if frame.kind == Kind.CREDIT:
            assert frames.credit(frame.conversation, frame.channel, frames.count_of(frame)) == frame

    @given(st.binary(max_size=64))
    def test_any_message_is_a_frame_or_refused(self, message):
        with contextlib.suppress(BadFrame):
            assert frames.encode(frames.decode(message)) == message

    @cases("message, why", {
        "nothing": (b"", "no frame"),
        "without a channel": (b"\x02\0\0\0\1", "no frame"),
        "a kind that there is not": (b"\x09\0\0\0\1\0", "no kind 9"),
        "a channel that there is not": (b"\x02\0\0\0\1\7", "no channel 7"),
        "more data than is taken": (b"\x02\0\0\0\1\0" + bytes(MOST_DATA + 1), "too long"),
        "a close with data": (b"\x05\0\0\0\1\0x", "too long"),
    })  # fmt: skip
    def test_what_is_no_frame_is_refused(self, message, why):
        with pytest.raises(BadFrame, match=why):
            frames.decode(message)

    def test_what_is_no_object_is_refused_and_what_the_other_side_would_not_take_is_not_sent(self):
        for data in (b"", b"[]", b"3", b"{", b"\xff", b"[" * 100_000):
            with pytest.raises(BadFrame):
                frames.json_of(data)
        with pytest.raises(BadFrame, match="too long to be sent"):
            frames.encode(Frame(Kind.DATA, 1, frames.STDIN, bytes(MOST_DATA + 1)))


class OneChannel(RuleBasedStateMachine):
    """A writer and a reader with a line between them that delivers late: what is counted here is bytes, all by hand."""

    def __init__(self):
        super().__init__()
        self.sending, self.receiving = Sending(), Receiving()
        self.on_the_way, self.credits = [], []
        self.sent = self.read = 0

    @rule(size=st.integers(1, 2 * WINDOW))
    def write(self, size):
        taken = self.sending.take(size)
        assert taken <= size
        if taken:
            self.on_the_way.append(taken)
            self.sent += taken

    @precondition(lambda self: self.on_the_way)
    @rule()
    def arrive(self):
        self.receiving.add(bytes(self.on_the_way.pop(0)))

    @precondition(lambda self: not self.receiving.is_empty)
    @rule()
    def read_next(self):
        part = self.receiving.next()
        self.read += len(part)
        if told := self.receiving.done(len(part)):
            self.credits.append(told)

    @precondition(lambda self: self.credits)
    @rule()
    def hear(self):
        self.sending.grant(self.credits.pop(0))

    @invariant()
    def no_more_than_a_window_is_unread(self):
        assert self.sent - self.read <= WINDOW
        assert self.receiving.held <= WINDOW

    @invariant()
    def nobody_waits_for_ever(self):
        if not (self.on_the_way or self.credits) and self.receiving.is_empty:
            assert self.sending.left > WINDOW - WORTH_TELLING


TestOneChannel = OneChannel.TestCase


class TestFlow:
    def test_who_does_not_count_is_found_out(self):
        receiving, sending = Receiving(), Sending()
        with pytest.raises(BadFrame):
            receiving.add(b"")
        receiving.add(bytes(WINDOW))
        with pytest.raises(BadFrame):
            receiving.add(b"x")
        sending.take(10)
        sending.grant(10)
        with pytest.raises(BadFrame):
            sending.grant(1)

    def test_many_small_parts_take_no_more_memory_than_their_bytes(self):
        receiving, part = Receiving(), b"x"
        tracemalloc.start()
        for _ in range(WINDOW):
            receiving.add(part)
        assert tracemalloc.get_traced_memory()[0] < 2 * WINDOW
        tracemalloc.stop()
        assert b"".join(iter(lambda: b"" if receiving.is_empty else receiving.next(), b"")) == part * WINDOW


FULL = Frame(Kind.DATA, 1, STDIN, bytes(MOST_DATA))


class Ends:
    """A server's and a node's side; what the server asks for is in `begun`."""

    def __init__(self):
        self.server = Wire(self._to_node, SERVER_READS)
        self.node = Wire(self._to_server, NODE_READS)
        self.begun = []
        self.largest = 0

    async def _to_node(self, message):
        frame = self.node.take(message)
        if frame is not None:
            self.begun.append(self.node.begun(frame.conversation))

    async def _to_server(self, message):
        self.server.take(message)
        held = [each._channels[STDOUT].receiving.held for each in self.server.conversations.values()]
        self.largest = max([self.largest, *held])

    async def open(self):
        ours = await self.server.open({"do": "x"})
        return ours, self.begun[-1]


async def drain(conversation, channel):
    got = b""
    while part := await conversation.receive(channel):
        got += part
        await conversation.done(channel, len(part))
    return got


async def _said(conversation, channel, data):
    await conversation.send(channel, data)
    await conversation.end(channel)


async def _heard(conversation, channel, data):
    assert await drain(conversation, channel) == data


class TestWire:
    async def test_bytes_pass_in_both_directions_and_end(self):
        ours, theirs = await Ends().open()
        data = bytes(range(256)) * 5000
        await asyncio.gather(
            *(_said(ours, STDIN, data), _said(theirs, STDOUT, data[::-1])),
            *(_heard(theirs, STDIN, data), _heard(ours, STDOUT, data[::-1])),
        )

    async def test_a_reader_who_is_slow_stops_his_channel_alone(self):
        ends = Ends()
        slow, node_slow = await ends.open()
        fast, node_fast = await ends.open()
        stuck = asyncio.ensure_future(_said(node_slow, STDOUT, bytes(20 * WINDOW)))
        flows = asyncio.ensure_future(_said(node_fast, STDOUT, bytes(20 * WINDOW)))
        assert len(await drain(fast, STDOUT)) == 20 * WINDOW
        await flows
        await node_slow.say({"still": "heard"})
        assert await slow.hear() == {"still": "heard"}
        assert not stuck.done()
        assert ends.largest <= WINDOW
        assert len(await drain(slow, STDOUT)) == 20 * WINDOW
        await stuck

    async def test_what_was_sent_before_a_close_is_read_and_who_reads_no_more_is_not_written_to(self):
        ours, theirs = await Ends().open()
        await theirs.end(STDIN)
        with pytest.raises(BrokenPipeError):
            await ours.send(STDIN, b"x")
        await theirs.send(STDOUT, b"all of it")
        await theirs.say({"exitCode": 3})
        await theirs.close()
        assert await drain(ours, STDOUT) == b"all of it"
        assert [await ours.hear(), await ours.hear()] == [{"exitCode": 3}, None]

    @pytest.mark.parametrize("end", ["close", "lose"])
    async def test_who_waits_for_room_is_woken_by_the_end(self, end):
        ends = Ends()
        ours, theirs = await ends.open()
        writing = asyncio.ensure_future(theirs.send(STDOUT, bytes(2 * WINDOW)))
        await asyncio.sleep(0)
        if end == "close":
            await ours.close()
        else:
            ends.node.lose()
        with pytest.raises(LinkLost):
            await writing
        await theirs.closed()

    async def test_a_wire_that_is_lost_ends_all_and_takes_nothing(self):
        ends = Ends()
        both = [await ends.open(), await ends.open()]
        ends.server.lose()
        for ours, _ in both:
            assert await ours.receive(LINE) == b""
            with pytest.raises(LinkLost):
                await ours.send(STDIN, b"x")
        with pytest.raises(LinkLost):
            await ends.server.open({})

    async def test_frames_of_what_was_closed_here_are_let_pass_and_a_line_that_never_ends_is_refused(self):
        ends = Ends()
        ours, theirs = await ends.open()
        writing = asyncio.ensure_future(theirs.send(LINE, bytes(WINDOW)))
        with pytest.raises(BadFrame):
            await ours.hear()
        await writing
        ends.server.conversations.pop(ours.number)
        await theirs.send(STDOUT, b"late")
        assert ends.server.take(frames.encode(Frame(Kind.CLOSE, 999))) is None

    @cases("story", {
        "begun twice": [Frame(Kind.OPEN, 1, 0, b"{}")] * 2,
        "far too many": [Frame(Kind.OPEN, n, 0, b"{}") for n in range(2 * MOST + 1)],
        "a credit of nothing": [Frame(Kind.OPEN, 1), Frame(Kind.CREDIT, 1)],
        "a credit too much": [Frame(Kind.OPEN, 1), frames.credit(1, STDOUT, 1)],
        "data too much": [Frame(Kind.OPEN, 1), *[FULL] * (WINDOW // MOST_DATA + 1)],
        "data without content": [Frame(Kind.OPEN, 1), Frame(Kind.DATA, 1, STDIN)],
        "data that is not read here": [Frame(Kind.OPEN, 1), Frame(Kind.DATA, 1, STDOUT, b"x")],
    })  # fmt: skip
    async def test_who_does_not_keep_to_the_protocol_is_found_out(self, story):
        ends = Ends()
        for frame in story[:-1]:
            await ends._to_node(frames.encode(frame))
        with pytest.raises(BadFrame):
            await ends._to_node(frames.encode(story[-1]))
