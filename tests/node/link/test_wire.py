"""Two sides of a wire in one event loop, with a line between them that the test can stop."""

from __future__ import annotations

import asyncio

import pytest

from node.link import frames
from node.link.flow import WINDOW
from node.link.frames import LINE, MOST_DATA, STDIN, STDOUT, BadFrame, Frame, Kind
from node.link.wire import MOST, NODE_READS, SERVER_READS, LinkLost, Wire
from tests.tables import cases


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


async def test_bytes_pass_in_both_directions_and_end():
    ours, theirs = await Ends().open()
    data = bytes(range(256)) * 5000
    await asyncio.gather(
        *(_said(ours, STDIN, data), _said(theirs, STDOUT, data[::-1])),
        *(_heard(theirs, STDIN, data), _heard(ours, STDOUT, data[::-1])),
    )


async def _said(conversation, channel, data):
    await conversation.send(channel, data)
    await conversation.end(channel)


async def _heard(conversation, channel, data):
    assert await drain(conversation, channel) == data


async def test_a_reader_who_is_slow_stops_his_channel_alone():
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


async def test_who_reads_no_more_is_not_written_to():
    ours, theirs = await Ends().open()
    await theirs.end(STDIN)
    with pytest.raises(BrokenPipeError):
        await ours.send(STDIN, b"x")


async def test_what_was_sent_before_a_close_is_read():
    ours, theirs = await Ends().open()
    await theirs.send(STDOUT, b"all of it")
    await theirs.say({"exitCode": 3})
    await theirs.close()
    assert await drain(ours, STDOUT) == b"all of it"
    assert await ours.hear() == {"exitCode": 3}
    assert await ours.hear() is None


@pytest.mark.parametrize("end", ["close", "lose"])
async def test_who_waits_for_room_is_woken_by_the_end(end):
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


async def test_a_wire_that_is_lost_ends_all_and_takes_nothing():
    ends = Ends()
    both = [await ends.open(), await ends.open()]
    ends.server.lose()
    for ours, _ in both:
        assert await ours.receive(LINE) == b""
        with pytest.raises(LinkLost):
            await ours.send(STDIN, b"x")
    with pytest.raises(LinkLost):
        await ends.server.open({})


async def test_frames_of_what_was_closed_here_are_let_pass():
    ends = Ends()
    ours, theirs = await ends.open()
    ends.server.conversations.pop(ours.number)
    await theirs.send(STDOUT, b"late")
    assert ends.server.take(frames.encode(Frame(Kind.CLOSE, 999))) is None


@cases("story", {
    "begun twice": [Frame(Kind.OPEN, 1, 0, b"{}")] * 2,
    "far too many": [Frame(Kind.OPEN, n, 0, b"{}") for n in range(2 * MOST + 1)],
    "a credit of nothing": [Frame(Kind.OPEN, 1), Frame(Kind.CREDIT, 1)],
    "a credit too much": [Frame(Kind.OPEN, 1), frames.credit(1, STDOUT, 1)],
    "data too much": [Frame(Kind.OPEN, 1), *[Frame(Kind.DATA, 1, STDIN, bytes(MOST_DATA))] * (WINDOW // MOST_DATA + 1)],
    "data without content": [Frame(Kind.OPEN, 1), Frame(Kind.DATA, 1, STDIN)],
    "data that is not read here": [Frame(Kind.OPEN, 1), Frame(Kind.DATA, 1, STDOUT, b"x")],
})  # fmt: skip
async def test_who_does_not_keep_to_the_protocol_is_found_out(story):
    ends = Ends()

    async def tell():
        for frame in story:
            await ends._to_node(frames.encode(frame))

    with pytest.raises(BadFrame):
        await tell()


async def test_a_line_that_never_ends_is_refused():
    ours, theirs = await Ends().open()
    writing = asyncio.ensure_future(theirs.send(LINE, bytes(WINDOW)))
    with pytest.raises(BadFrame):
        await ours.hear()
    await writing
