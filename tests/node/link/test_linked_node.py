"""A linked node, asked as all pages ask nodes."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given
from hypothesis import settings as trying
from hypothesis import strategies as st

from cluster import clock
from cluster.backend import LogExtent, NodeAway, NoLog
from cluster.store import Create, store
from jobs.logs.pods import LogPod
from jobs.pages.reading import Pod
from kube.resources import PODS
from node.agent import server
from node.all_nodes import AllNodes
from node.link import figures, frames, holder, linked_node, presence
from node.link.answers import RECORD
from node.link.figures import Figures
from node.link.frames import LINE, Frame, Kind
from node.link.linked_node import LinkedNode
from node.local_nodes import LocalNodes
from node.paths import Layout
from node.shim import control_socket
from node.shim.crilog import CriLog
from proof.harness.waiting import HANG_S, until
from tests import builders
from tests.node.link.pair import linked, says
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


questions = st.one_of(
    st.builds(
        lambda at, most: ("read_log", {"since_offset": at, "most": most}), st.integers(0, 20_000), st.integers(1, 9000)
    ),
    st.builds(
        lambda lines, most, before: ("tail_log", {"lines": lines, "most": most, "before": before}),
        st.integers(1, 200),
        st.integers(1, 9000),
        st.none(),
    ),
)


def descriptors():
    return len([*Path("/proc/self/fd").iterdir()])


def stretch(body, start=0, next_=None, asked=0):
    next_ = len(body) if next_ is None else next_
    return {"attempt": 0, "start": start, "next": next_, "ended": False, "asked": asked, "size": len(body)}


def _pod(node):
    return msgspec.convert(builders.pod("p", namespace="d", uid=UID, nodeName=node), Pod)


class TestLinkedNode:
    @pytest.fixture
    def data(self, settings, tmp_path):
        settings.DATA = tmp_path
        linked_node._resting.clear()
        return tmp_path

    @trying(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(some_lines, st.lists(questions, min_size=1, max_size=12))
    def test_by_a_link_a_log_reads_as_the_files_do(self, lines, asked):
        linked_node._resting.clear()  # a test before this one may have had a node that did not answer
        with TemporaryDirectory() as folder, override_settings(DATA=Path(folder)):
            write(Path(folder), lines, segment_bytes=2000, count=3)
            here = LocalNodes()
            with linked(Path(folder)):
                there = LinkedNode("there")
                assert there.log_attempts(UID, "main") == here.log_attempts(UID, "main")
                assert there.log_extents({UID: "there"}) == here.log_extents({UID: ""})
                for name, options in asked:
                    found = getattr(there, name)(UID, "main", **options)
                    assert found == getattr(here, name)(UID, "main", **options)
                    for line in found.lines[:2]:
                        begun = clock.microseconds() - 1_000_000
                        assert there.log_offset(UID, "main", 0, begun) == here.log_offset(UID, "main", 0, begun)
                        again = there.tail_log(UID, "main", lines=3, before=line.offset)
                        assert again == here.tail_log(UID, "main", lines=3, before=line.offset)

    @cases("uid, container, words", {
        "a log that is not there": (UID, "main", "no log of this attempt"),
        "a name that leads elsewhere": ("../../etc", "passwd", "cannot be the name of a directory"),
    })  # fmt: skip
    def test_what_the_node_refuses_is_told(self, data, uid, container, words):
        with linked(data), pytest.raises(NoLog, match=words) as missing:
            LinkedNode("there").read_log(uid, container)
        assert not isinstance(missing.value, NodeAway)

    def test_a_node_that_is_away_is_away_since_a_time_unless_its_holder_was_killed(self, data):
        write(data, [b"x\n"])
        there = LinkedNode("there")
        with linked(data):
            assert there.away("there") == ""
        said = there.away("there")
        assert said.startswith("Node there is not connected since 20")
        assert said.endswith("what is asked for is on that machine.")
        assert said in LogPod(_pod("there"), is_gone=True).why_absent()
        assert LogPod(_pod("this"), is_gone=True).why_absent() == "The pod is gone, and its log has been removed."
        assert there.log_extents({UID: "there"}) == []
        for ask in (lambda: there.read_log(UID, "main"), lambda: there.tail_log(UID, "main", lines=1)):
            with pytest.raises(NodeAway, match="not connected since"):
                ask()
        with pytest.raises(ConnectionRefusedError, match="not connected since"):
            there.connect({"do": "exec"}, [])
        presence.note(data, "there", linked=True, now=0)
        presence.listen(data, "there").close()  # what a killed process leaves
        assert there.away("there").startswith("Node there is not connected, and")

    def test_a_node_that_does_not_answer_is_not_asked_by_everybody_in_turn(self, data, monkeypatch):
        monkeypatch.setattr(linked_node, "ANSWER_S", 0.05)

        async def silent(line):
            async for _ in line:
                pass

        with linked(data, answer=silent):
            there = LinkedNode("there")
            assert there.log_extents({UID: "there"}) == []
            assert there.away("there").startswith("Node there does not answer")
            monkeypatch.setattr(linked_node, "ANSWER_S", 1000)
            with pytest.raises(NodeAway, match="does not answer"):
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
            line = LinkedNode("there").connect({"do": do, "streams": [], "tty": False}, [])
            with line:
                line.setblocking(True)
                said, fds, _, _ = socket.recv_fds(line, 1000, 4)
            control_socket.close(fds)
        assert json.loads(said.splitlines()[0])["started"] == 1
        assert len(fds) == count

    def test_an_answer_that_drips_counts_as_away_at_last(self, data, monkeypatch):
        monkeypatch.setattr(linked_node, "ANSWER_S", 1000)
        monkeypatch.setattr(linked_node, "LONGEST_S", 0.05)

        async def drips(line):
            async for message in line:
                frame = frames.decode(message)
                if frame.kind == Kind.OPEN:
                    await line.send(frames.encode(Frame(Kind.DATA, frame.conversation, LINE, b'{"size": 10}\n12345')))

        with linked(data, answer=drips), pytest.raises(NodeAway, match="does not answer"):
            LinkedNode("there").read_log(UID, "main")

    async def test_a_record_that_is_longer_than_what_a_container_writes_is_not_waited_for(self):
        async def parts():
            yield RECORD.pack(frames.STDOUT, 3) + b"all" + RECORD.pack(frames.STDERR, 1 << 20)

        records = linked_node._records(parts())
        with pytest.raises(NodeAway, match="no output of a container"):
            await anext(records)

    def test_a_stream_that_nobody_reads_leaves_no_descriptor(self, data):
        with linked(data, answer=says({"started": True})):
            LinkedNode("there").away("there")
            before = descriptors()
            for _ in range(3):
                asyncio.run(LinkedNode("there").log_output(UID, "main", 0))
            until(lambda: descriptors() <= before)

    def test_who_goes_while_a_stream_is_opened_leaves_no_descriptor(self, data, monkeypatch):
        monkeypatch.setattr(presence, "BACKLOG", 0)
        presence.note(data, "there", linked=True, now=0)
        listener = presence.listen(data, "there")  # behind which nobody takes requests

        async def go():
            opening = asyncio.ensure_future(LinkedNode("there").log_output(UID, "main", 0))
            await asyncio.sleep(0)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            held = descriptors()
            listener.close()
            return held

        with presence.connect(data, "there", HANG_S):
            before = descriptors()
            asyncio.run(go())
            assert descriptors() < before

    @cases("start, next_", {
        "no step further": (0, 0),
        "from before what was asked for": (50, 50 + len(ENTRY)),
        "further than it is long": (100, 10**30),
        "before its begin": (-5, -5 + len(ENTRY)),
    })  # fmt: skip
    def test_a_stretch_that_would_be_read_again_and_again_is_none(self, data, start, next_):
        with (
            linked(data, answer=says(stretch(ENTRY, start, next_, 100), ENTRY)),
            pytest.raises(NodeAway, match="cannot be read"),
        ):
            LinkedNode("there").read_log(UID, "main", since_offset=100)

    def test_entries_without_a_time_are_no_entries(self, data):
        body = b"yesterday stdout F bad\n" + ENTRY + b"garbage\n\n" + b"x" * 26 + b"Z stdout F bad\n"
        with linked(data, answer=says(stretch(body), body)):
            chunk = LinkedNode("there").read_log(UID, "main")
        assert [line.data for line in chunk.lines] == [b"good"]

    def test_what_a_node_says_of_pods_that_it_was_not_asked_about_is_dropped(self, data):
        rows = [[UID, "main", 0, 0, 7, False], [OTHER, "main", 0, 0, 9, True]]
        body = json.dumps(rows).encode()
        with linked(data, answer=says({"size": len(body)}, body)):
            assert LinkedNode("there").log_extents({UID: "there"}) == [LogExtent(UID, "main", 0, 0, 7, False)]

    def test_whoever_has_not_the_key_or_asks_for_nothing_is_not_answered(self, data, monkeypatch):
        asked = {"do": "attempts", "uid": UID, "container": "main"}
        key = server.key_of(data)
        unknown = b'{"refused": "the node could not do it: a node of this version cannot sing"}'
        with linked(data):
            for request, answer in (
                ({"key": "guessed"}, b""),
                ({"key": key}, b'{"attempts": [], "size": 0}'),
                ({"key": key, "do": "sing"}, unknown),
            ):
                with presence.connect(data, "there", HANG_S) as line:
                    line.sendall(json.dumps({**asked, **request}).encode() + b"\n")
                    assert line.recv(1000).strip() == answer
            monkeypatch.setattr(holder, "REQUEST_S", 0.05)
            with presence.connect(data, "there", HANG_S) as line:
                line.sendall(b'{"do": ')
                assert line.recv(100) == b""

    def test_a_node_that_breaks_the_protocol_is_let_go(self, data):
        async def rude(line):
            await line.send(b"\x02\0\0\0\1\0not asked")
            await line.send(b"\x07")

        with linked(data, answer=rude):
            until(lambda: not presence.state(data, "there").linked)

    def test_the_later_link_of_a_node_is_the_one_that_counts_however_long_its_name_is(self, data):
        node = "n" * 253
        with linked(data, node, says({"attempts": [1]})), linked(data, node, says({"attempts": [2]})):
            assert presence.names(data) == {node}
            assert LinkedNode(node).log_attempts(UID, "main") == [2]
            assert LinkedNode(node).away("") == ""

    @pytest.fixture
    def bound(self, transactional_db, data):
        def make(uid, node):
            pod = builders.pod(uid, namespace="d", nodeName=node)
            return store.write(Create(PODS, pod))[0].uid

        return make

    def test_each_node_is_asked_about_its_own_pods_alone(self, data, bound):
        here, there = bound("a", "this"), bound("b", "there")
        write(data, [b"from here\n"], uid=here)
        head = {"attempt": 4, "start": 0, "next": 0, "ended": True, "asked": 0, "size": 0}
        with linked(data, answer=says(head)):
            nodes = AllNodes()
            assert not nodes.answer_at_once
            assert nodes.read_log(here, "main").data == b"from here\n"
            assert nodes.read_log(there, "main").attempt == 4
            assert isinstance(nodes.on("there"), LinkedNode)
            assert isinstance(nodes.on("this"), LocalNodes)

    def test_extents_of_many_nodes_come_in_the_order_of_the_pods(self, data, settings):
        for uid in (UID, OTHER):
            write(data, [b"x\n"], uid=uid)
        with linked(data):
            nodes = AllNodes()
            asked = {OTHER: "there", UID: "this"}
            assert [each.uid for each in nodes.log_extents(asked)] == [OTHER, UID]
            assert nodes.away("this") == ""
        assert [each.uid for each in nodes.log_extents(asked)] == [UID]
        assert nodes.away("there") != ""

    def test_where_nobody_was_ever_linked_nothing_is_looked_up(self, data, django_assert_num_queries, bound):
        uid = bound("a", "this")
        write(data, [b"x\n"], uid=uid)
        nodes = AllNodes()
        with django_assert_num_queries(0):
            assert nodes.answer_at_once
            assert nodes.log_extents({uid: "this"})
            assert nodes.tail_log(uid, "main", lines=1).data == b"x\n"

    def test_use_is_told_by_a_node_of_itself_alone(self, data):
        told = {"node": "this", "at": 1, "containers": [[UID, "main", 5, 6, 7]], "machine": [1, 2, 3]}

        async def beats(line):
            for said in (told, {"containers": "many"}, {}):
                await line.send(frames.encode(Frame(Kind.BEAT, data=json.dumps(said).encode())))

        with linked(data, answer=beats):
            until(lambda: AllNodes().usage(clock.milliseconds()))
        (found,) = AllNodes().usage(clock.milliseconds())
        assert found["node"] == "there"
        assert abs(found["at"] - clock.milliseconds()) < 60_000
        assert found["containers"] == [[UID, "main", 5, 6, 7]]
        assert AllNodes().usage(clock.milliseconds() + 10 * 60_000) == []

    @cases("told", {
        "more than a number of floating point": {"machine": [10**400, 2, 3]},
        "less than nothing": {"machine": [-1, 2, 3]},
        "a window of ages": {"containers": [[UID, "main", 1, 2, 10**30]]},
        "no number": {"devices": {"gpu": {"0": {"use": float("nan")}}}},
        "endless": {"devices": {"gpu": {"0": {"use": float("inf")}}}},
    })  # fmt: skip
    def test_figures_that_nobody_can_reckon_with_are_not_kept(self, data, told):
        presence.note(data, "there", linked=True, now=0)
        found = Figures(data, "there")
        found.take({"machine": [1, 2, 3]})
        found.take(told)
        assert figures.read(data, "there", clock.milliseconds())["machine"] == [1, 2, 3]

    def test_a_node_that_beats_all_the_time_is_not_listened_to_each_time(self, data, caplog, monkeypatch):
        monkeypatch.setattr(holder, "BEAT_LEAST_S", 1000)

        async def beats(line):
            for said in [{"machine": [1, 2, 3]}, *[{"machine": "much"}] * 50, {"machine": [4, 5, 6]}]:
                await line.send(frames.encode(Frame(Kind.BEAT, data=json.dumps(said).encode())))
            await line.send(b"\x07")

        with linked(data, answer=beats):
            until(lambda: not presence.state(data, "there").linked)
        assert figures.read(data, "there", clock.milliseconds())["machine"] == [1, 2, 3]
        assert "is not known" not in caplog.text
