"""A linked node, asked as all pages ask nodes, and the protocol of a link: frames, the flow of a channel, two sides of a wire."""

import asyncio
import contextlib
import json
import socket
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given
from hypothesis import settings as trying
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cluster import clock
from cluster.backend import LogExtent, NodeAway, NoLog
from cluster.store import Create, store
from jobs.lifecycle.reading import Pod
from jobs.pages.logs.pods import LogPod
from kube.resources import PODS
from node.agent import server
from node.link import figures, frames, holder, linked_node, presence
from node.link.all_nodes import AllNodes
from node.link.figures import Figures
from node.link.flow import CREDIT_STEP, WINDOW, Receiving, Sending
from node.link.frames import CHANNELS, LARGEST_FRAME, LINE, MAX_DATA, STDIN, STDOUT, BadFrame, Frame, Kind
from node.link.linked_node import LinkedNode
from node.link.local_nodes import LocalNodes
from node.link.request_handler import RECORD
from node.link.wire import MAX_CONVERSATIONS, NODE_READS, SERVER_READS, LinkLost, Wire
from node.paths import Layout
from node.shim import control_socket
from node.shim.crilog import CriLog
from proof.harness.waiting import HANG_S, until
from tests import builders
from tests.node.link_pair import linked, says
from tests.tables import cases

UID = "0d1f7a2c-0000-0000-0000-000000000001"
OTHER = "0d1f7a2c-0000-0000-0000-000000000002"
ENTRY = b"2026-01-01T00:00:00.000000Z stdout F good\n"


def write(data, lines, uid=UID, attempt=0, **options):
    directory = Layout(data).attempt(uid, "main", attempt)
    directory.mkdir(parents=True, exist_ok=True)
    log = CriLog(str(directory), **options)
    for number, line in enumerate(lines):
        log.feed("stderr" if number % 5 == 4 else "stdout", line)
    log.close()


some_lines = st.lists(st.binary(max_size=60).map(lambda line: line + b"\n"), max_size=120)
LENGTHS = st.integers(1, 9000)
questions = st.one_of(
    st.tuples(st.just("read_log"), st.fixed_dictionaries({"since_offset": st.integers(0, 20_000), "most": LENGTHS})),
    st.tuples(st.just("tail_log"), st.fixed_dictionaries({"lines": st.integers(1, 200), "most": LENGTHS})),
)


def descriptors():
    return len([*Path("/proc/self/fd").iterdir()])


def sends(*messages):
    """Return a node's side that sends messages: bytes as they are, or what a beat says."""

    async def side(line):
        for each in messages:
            beat = None if isinstance(each, bytes) else Frame(Kind.BEAT, data=json.dumps(each).encode())
            await line.send(frames.encode(beat) if beat else each)

    return side


def stretch(body, start=0, next_=None, requested=0):
    next_ = len(body) if next_ is None else next_
    return {"attempt": 0, "start": start, "next": next_, "ended": False, "asked": requested, "size": len(body)}


class TestLinkedNode:
    @pytest.fixture
    def data(self, settings, tmp_path):
        settings.DATA = tmp_path
        linked_node._paused_until.clear()
        return tmp_path

    @pytest.fixture
    def there(self, data):
        return LinkedNode("there")

    @trying(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(some_lines, st.lists(questions, min_size=1, max_size=12))
    def test_by_a_link_a_log_reads_as_the_files_do(self, lines, calls):
        linked_node._paused_until.clear()  # a test before this one may have had a node that did not answer
        with TemporaryDirectory() as folder, override_settings(DATA=Path(folder)):
            write(Path(folder), lines, segment_bytes=2000, count=3)
            with linked(Path(folder)):
                here, there = LocalNodes(), LinkedNode("there")

                def same(name, *arguments, **options):
                    found = getattr(there, name)(UID, "main", *arguments, **options)
                    assert found == getattr(here, name)(UID, "main", *arguments, **options)
                    return found

                same("log_attempts")
                assert there.log_extents({UID: "there"}) == here.log_extents({UID: ""})
                for name, options in calls:
                    for line in same(name, **options).lines[:2]:
                        same("log_offset", 0, clock.microseconds() - 1_000_000)
                        same("tail_log", lines=3, before=line.offset)

    def test_what_the_node_refuses_is_told(self, data, there):
        names = {"main": (UID, "no log of this attempt"), "passwd": ("../../etc", "cannot be the name of a directory")}
        with linked(data):
            for container, (uid, words) in names.items():
                with pytest.raises(NoLog, match=words) as missing:
                    there.read_log(uid, container)
                assert not isinstance(missing.value, NodeAway)

    def test_a_node_that_is_away_is_away_since_a_time_unless_its_holder_was_killed(self, data, there):
        write(data, [b"x\n"])
        with linked(data):
            assert there.away("there") == ""
        message = there.away("there")
        assert message.startswith("Node there is not connected since 20")
        assert message.endswith("what was requested is on that machine.")
        pods = [msgspec.convert(builders.pod("p", uid=UID, nodeName=node), Pod) for node in ("there", "this")]
        away, here = (LogPod(pod, is_gone=True).why_absent() for pod in pods)
        assert (message in away, here) == (True, "The pod is gone, and its log has been removed.")
        assert there.log_extents({UID: "there"}) == []
        for ask in (lambda: there.read_log(UID, "main"), lambda: there.tail_log(UID, "main", lines=1)):
            with pytest.raises(NodeAway, match="not connected since"):
                ask()
        with pytest.raises(ConnectionRefusedError, match="not connected since"):
            there.connect({"do": "exec"}, [])
        presence.note(data, "there", linked=True, now=0)
        presence.listen(data, "there").close()  # what a killed process leaves
        assert there.away("there").startswith("Node there is not connected, and")

    def test_a_node_that_does_not_answer_is_not_asked_by_everybody_in_turn(self, data, there, monkeypatch):
        monkeypatch.setattr(linked_node, "ANSWER_S", 0.05)
        with linked(data, answer=says(closes=False)):
            assert there.log_extents({UID: "there"}) == []
            assert there.away("there").startswith("Node there does not answer")
            monkeypatch.setattr(linked_node, "ANSWER_S", 1000)
            with pytest.raises(NodeAway, match="does not answer"):
                there.read_log(UID, "main")
        linked_node._paused_until.clear()
        monkeypatch.setattr(linked_node, "LONGEST_S", 0.05)
        begins = says(b'{"size": 10}\n12345', closes=False)
        with linked(data, answer=begins), pytest.raises(NodeAway, match="not answer"):
            there.read_log(UID, "main")

    @cases("answers", {
        "no JSON": [b"no JSON\n"],
        "no object": [[1, 2]],
        "nothing of what was asked for": [{}],
        "less than nothing": [{"size": -1}],
        "more than anybody keeps": [{"size": 10**12}],
        "less than was said": [{"size": 10}, b"short"],
        "no number": [{"attempt": "x", "start": 0, "next": 0, "ended": False, "asked": 0, "size": 0}],
        "a refusal": [{"refused": "no"}],
        "a line without an end": [b"x" * 30_000] * 6,
        "nothing": [],
    })  # fmt: skip
    def test_an_answer_that_is_none_counts_as_away(self, data, answers):
        with linked(data, answer=says(*answers)):
            for ask in (LinkedNode("there").read_log, LinkedNode("there").log_attempts):
                with pytest.raises(NodeAway):
                    ask(UID, "main")

    @pytest.mark.parametrize(("do", "count"), [("exec", 0), ("text", 0), ("attach", 1)])
    def test_only_who_attaches_is_given_an_input(self, data, do, count):
        with linked(data, answer=says({"started": 1, "input": True})):
            with LinkedNode("there").connect({"do": do, "streams": [], "tty": False}, []) as line:
                line.setblocking(True)
                received, fds, _, _ = socket.recv_fds(line, 1000, 4)
            control_socket.close(fds)
        assert (json.loads(received.splitlines()[0])["started"], len(fds)) == (1, count)

    async def test_a_record_that_is_longer_than_what_a_container_writes_is_not_waited_for(self):
        async def parts():
            yield RECORD.pack(frames.STDOUT, 3) + b"all" + RECORD.pack(frames.STDERR, 1 << 20)

        records = linked_node._records(parts())
        with pytest.raises(NodeAway, match="no output of a container"):
            await anext(records)

    def test_a_stream_that_nobody_reads_leaves_no_descriptor(self, data, there):
        with linked(data, answer=says({"started": True})):
            there.away("there")
            before = descriptors()
            for _ in range(3):
                asyncio.run(there.log_output(UID, "main", 0))
            until(lambda: descriptors() <= before)

    @cases("start, next_", {
        "no step further": (0, 0),
        "from before what was asked for": (50, 50 + len(ENTRY)),
        "further than it is long": (100, 10**30),
        "before its begin": (-5, -5 + len(ENTRY)),
    })  # fmt: skip
    def test_a_stretch_that_would_be_read_again_and_again_is_none(self, data, there, start, next_):
        answer = says(stretch(ENTRY, start, next_, 100), ENTRY)
        with linked(data, answer=answer), pytest.raises(NodeAway, match="cannot be read"):
            there.read_log(UID, "main", since_offset=100)

    def test_entries_without_a_time_and_what_was_not_asked_about_are_not_taken(self, data, there):
        body = b"yesterday stdout F bad\n" + ENTRY + b"garbage\n\n" + b"x" * 26 + b"Z stdout F bad\n"
        with linked(data, answer=says(stretch(body), body)):
            assert [line.data for line in there.read_log(UID, "main").lines] == [b"good"]
        body = json.dumps([[UID, "main", 0, 0, 7, False], [OTHER, "main", 0, 0, 9, True]]).encode()
        with linked(data, answer=says({"size": len(body)}, body)):
            assert there.log_extents({UID: "there"}) == [LogExtent(UID, "main", 0, 0, 7, False)]

    def test_whoever_has_not_the_key_or_asks_for_nothing_is_not_answered(self, data, monkeypatch):
        fields = {"do": "attempts", "uid": UID, "container": "main"}
        key = server.key_of(data)
        unknown = b'{"refused": "the node could not do it: a node of this version cannot sing"}'
        with linked(data):
            authorized = ({"key": key}, b'{"attempts": [], "size": 0}'), ({"key": key, "do": "sing"}, unknown)
            for request, answer in (({"key": "guessed"}, b""), *authorized):
                with presence.connect(data, "there", HANG_S) as line:
                    line.sendall(json.dumps({**fields, **request}).encode() + b"\n")
                    assert line.recv(1000).strip() == answer
            monkeypatch.setattr(holder, "REQUEST_S", 0.05)
            with presence.connect(data, "there", HANG_S) as line:
                line.sendall(b'{"do": ')
                assert line.recv(100) == b""

    def test_a_node_that_breaks_the_protocol_is_let_go_and_its_later_link_counts(self, data, caplog):
        for broken in (b"\x07", frames.encode(Frame(Kind.OPEN, 1, data=b"{}"))):
            with linked(data, answer=sends(b"\x02\0\0\0\1\0not asked", broken)):
                until(lambda: not presence.state(data, "there").linked)
        assert "A node begins no conversations" in caplog.text
        there = LinkedNode(node := "n" * 253)
        with linked(data, node, says({"attempts": [1]})), linked(data, node, says({"attempts": [2]})):
            assert (presence.names(data), there.log_attempts(UID, "main"), there.away("")) == ({"there", node}, [2], "")
        presence.directory(data, node).rename(data / "run" / "nodes" / ".draft")  # of a process that was killed
        assert presence.names(data) == {"there"}, "a node is noted whole or not at all"

    @pytest.fixture
    def bound(self, transactional_db, data):

        def make(name, node):
            uid = store.write(Create(PODS, builders.pod(name, namespace="d", nodeName=node)))[0].uid
            if node == "this":
                write(data, [b"from here\n"], uid=uid)
            return uid

        return make

    def test_each_node_is_asked_about_its_own_pods_alone_and_extents_come_in_the_order_of_the_pods(self, data, bound):
        uid, other = bound("a", "this"), bound("b", "there")
        head = {"attempt": 4, "start": 0, "next": 0, "ended": True, "asked": 0, "size": 0}
        with linked(data, answer=says(head)):
            nodes = AllNodes()
            assert not nodes.answer_at_once
            assert (nodes.read_log(uid, "main").data, nodes.read_log(other, "main").attempt) == (b"from here\n", 4)
            assert [type(nodes.on(name)) for name in ("there", "this")] == [LinkedNode, LocalNodes]
        for uid in (UID, OTHER):
            write(data, [b"x\n"], uid=uid)
        nodes, requested = AllNodes(), {OTHER: "there", UID: "this"}
        with linked(data):
            assert [each.uid for each in nodes.log_extents(requested)] == [OTHER, UID]
            assert nodes.away("this") == ""
        assert [each.uid for each in nodes.log_extents(requested)] == [UID]
        assert nodes.away("there") != ""

    def test_where_nobody_was_ever_linked_nothing_is_looked_up(self, django_assert_num_queries, bound):
        uid, nodes = bound("a", "this"), AllNodes()
        with django_assert_num_queries(0):
            assert nodes.answer_at_once
            assert nodes.log_extents({uid: "this"})
            assert nodes.tail_log(uid, "main", lines=1).data == b"from here\n"

    def test_use_is_told_by_a_node_of_itself_alone(self, data):
        usage = {"node": "this", "at": 1, "containers": [[UID, "main", 5, 6, 7]], "machine": [1, 2, 3]}
        with linked(data, answer=sends(usage, {"containers": "many"}, {})):
            until(lambda: AllNodes().usage(clock.milliseconds()))
        (found,) = AllNodes().usage(clock.milliseconds())
        assert (found["node"], found["containers"]) == ("there", [[UID, "main", 5, 6, 7]])
        assert abs(found["at"] - clock.milliseconds()) < 60_000
        assert AllNodes().usage(clock.milliseconds() + 10 * 60_000) == []

    def test_figures_that_nobody_can_reckon_with_are_not_kept(self, data):
        presence.note(data, "there", linked=True, now=0)
        found = Figures(data, "there")
        found.store({"machine": [1, 2, 3]})
        for usage in (
            {"machine": [10**400, 2, 3]}, {"machine": [-1, 2, 3]}, {"containers": [[UID, "main", 1, 2, 10**30]]},
            {"devices": {"gpu": {"0": {"use": float("nan")}}}}, {"devices": {"gpu": {"0": {"use": float("inf")}}}},
        ):  # fmt: skip
            found.store(usage)
            assert figures.read(data, "there", clock.milliseconds())["machine"] == [1, 2, 3]

    def test_a_node_that_beats_all_the_time_is_not_listened_to_each_time(self, data, caplog, monkeypatch):
        monkeypatch.setattr(holder, "BEAT_LEAST_S", 1000)
        reports = {"machine": [1, 2, 3]}, *[{"machine": "much"}] * 50, {"machine": [4, 5, 6]}
        with linked(data, answer=sends(*reports, b"\x07")):
            until(lambda: not presence.state(data, "there").linked)
        assert figures.read(data, "there", clock.milliseconds())["machine"] == [1, 2, 3]
        assert "is not known" not in caplog.text


numbers = st.integers(0, 2**32 - 1)

frame_kinds = {
    (Kind.OPEN, Kind.BEAT): (st.just(0), st.binary(max_size=2000)),
    (Kind.DATA,): (st.sampled_from(CHANNELS), st.binary(max_size=MAX_DATA)),
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
        assert len(message) <= LARGEST_FRAME
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
        "more data than is taken": (b"\x02\0\0\0\1\0" + bytes(MAX_DATA + 1), "too long"),
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
            frames.encode(Frame(Kind.DATA, 1, frames.STDIN, bytes(MAX_DATA + 1)))


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
        if credit := self.receiving.done(len(part)):
            self.credits.append(credit)

    @precondition(lambda self: self.credits)
    @rule()
    def hear(self):
        self.sending.grant(self.credits.pop(0))

    @invariant()
    def no_more_than_a_window_is_unread(self):
        assert self.sent - self.read <= WINDOW
        assert self.receiving.unread <= WINDOW

    @invariant()
    def nobody_waits_for_ever(self):
        if not (self.on_the_way or self.credits) and self.receiving.is_empty:
            assert self.sending.credit > WINDOW - CREDIT_STEP


TestOneChannel = OneChannel.TestCase


class TestFlow:
    def test_many_small_parts_take_no_more_memory_than_their_bytes(self):
        receiving, part = Receiving(), b"x"
        tracemalloc.start()
        for _ in range(WINDOW):
            receiving.add(part)
        assert tracemalloc.get_traced_memory()[0] < 2 * WINDOW
        tracemalloc.stop()
        assert b"".join(iter(lambda: b"" if receiving.is_empty else receiving.next(), b"")) == part * WINDOW


FULL = Frame(Kind.DATA, 1, STDIN, bytes(MAX_DATA))


class Ends:
    def __init__(self):
        self.server = Wire(self._to_node, SERVER_READS)
        self.node = Wire(self._to_server, NODE_READS)
        self.begun = []
        self.largest = 0

    async def _to_node(self, message):
        frame = self.node.on_message(message)
        if frame is not None:
            self.begun.append(self.node.begin(frame.conversation))

    async def _to_server(self, message):
        self.server.on_message(message)
        held = [each._channels[STDOUT].receiving.unread for each in self.server.conversations.values()]
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


async def _send(conversation, channel, data):
    await conversation.send(channel, data)
    await conversation.end(channel)


class TestWire:
    async def test_a_reader_who_is_slow_stops_his_channel_alone(self):
        ends = Ends()
        slow, node_slow = await ends.open()
        fast, node_fast = await ends.open()
        stuck = asyncio.ensure_future(_send(node_slow, STDOUT, bytes(20 * WINDOW)))
        flows = asyncio.ensure_future(_send(node_fast, STDOUT, bytes(20 * WINDOW)))
        assert len(await drain(fast, STDOUT)) == 20 * WINDOW
        await flows
        await node_slow.send_json({"still": "heard"})
        assert await slow.receive_json() == {"still": "heard"}
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
        await theirs.send_json({"exitCode": 3})
        await theirs.close()
        assert await drain(ours, STDOUT) == b"all of it"
        assert [await ours.receive_json(), await ours.receive_json()] == [{"exitCode": 3}, None]

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
            await ours.receive_json()
        await writing
        ends.server.conversations.pop(ours.number)
        await theirs.send(STDOUT, b"late")
        assert ends.server.on_message(frames.encode(Frame(Kind.CLOSE, 999))) is None

    @cases("story", {
        "begun twice": [Frame(Kind.OPEN, 1, 0, b"{}")] * 2,
        "far too many": [Frame(Kind.OPEN, n, 0, b"{}") for n in range(2 * MAX_CONVERSATIONS + 1)],
        "a credit of nothing": [Frame(Kind.OPEN, 1), Frame(Kind.CREDIT, 1)],
        "a credit too much": [Frame(Kind.OPEN, 1), frames.credit(1, STDOUT, 1)],
        "data too much": [Frame(Kind.OPEN, 1), *[FULL] * (WINDOW // MAX_DATA + 1)],
        "data without content": [Frame(Kind.OPEN, 1), Frame(Kind.DATA, 1, STDIN)],
        "data that is not read here": [Frame(Kind.OPEN, 1), Frame(Kind.DATA, 1, STDOUT, b"x")],
    })  # fmt: skip
    async def test_who_does_not_keep_to_the_protocol_is_found_out(self, story):
        ends = Ends()
        for frame in story[:-1]:
            await ends._to_node(frames.encode(frame))
        with pytest.raises(BadFrame):
            await ends._to_node(frames.encode(story[-1]))
