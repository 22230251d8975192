"""Offsets into logs of which only times are known, and which runs of a container have a log."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from cluster.remote import log_offsets
from cluster.remote.log_ends import Instance
from cluster.remote.log_offsets import Block, TimedLine
from cluster.remote.nodes import instances
from kube.meta import now_text, parse_time

BEGIN = 1_780_000_000_000
# Milliseconds from each line to the next: of many lines of a moment, and over whole seconds.
LOGS = st.lists(st.sampled_from([0, 0, 0, 1, 2, 400, 1500]), max_size=40)


def lines(steps):
    at, found = BEGIN, []
    for number, step in enumerate(steps):
        at += step
        found.append(TimedLine(at, now_text(at), str(number).encode()))
    return found


def offsets(log):
    return [line.offset for _, line in log_offsets.numbered(log)]


def since(log, offset):
    """What a server hands out that knows whole seconds."""
    return [line for line in log if line.moment >= parse_time(log_offsets.since_time(offset))]


@given(steps=LOGS)
def test_offset_of_a_line_does_not_depend_on_where_reading_began(steps):
    log = lines(steps)
    whole = offsets(log)
    assert whole == sorted(set(whole))
    for place in range(len(log)):
        from_there = since(log, whole[place])
        assert offsets(from_there) == whole[len(log) - len(from_there) :]
        assert whole[place] in offsets(from_there)
        last = log_offsets.from_next_second(log[place:])
        assert offsets(last) == whole[len(log) - len(last) :]


@given(steps=LOGS, count=st.integers(1, 10), most=st.integers(1, 20))
def test_log_is_read_backwards_without_a_hole(steps, count, most):
    log = lines(steps)
    block = Block.of(log, None, 99, is_all=True)
    read, before = [], None
    while before != 0:
        taken, before = block.tail(count, most, before)
        assert len(taken) <= count
        assert len(taken) == 1 or sum(len(line.data) for line in taken) <= most
        read[:0] = taken
    assert [line.data for line in read] == [line.data for line in log]
    if len(log) > count:
        assert Block.of(log, None, 99, is_all=False).tail(len(log), 10**6, None) is None


def test_lines_of_one_offset_are_not_parted():
    log = lines([1, *[0] * 1500])
    block = Block.of(log, None, 99, is_all=True)
    taken, before = block.tail(10, 10**6, None)
    assert len(taken) == 1501 - 999
    assert len(block.tail(10, 10**6, before)[0]) == 10


def test_offsets_fit_what_readers_keep():
    assert len(str(log_offsets.offset_of(BEGIN + 20 * 365 * 86_400_000, 999))) <= 15


def test_clock_that_goes_back_loses_no_line():
    log = [TimedLine(BEGIN + after, "", b"") for after in (5, 3, 6)]
    first, *rest = offsets(log)
    assert first < rest[0] < rest[1]
    assert offsets(since(log, rest[0])) == [first, *rest]


@pytest.mark.parametrize(
    ("line", "moment", "time", "text"),
    [
        pytest.param(
            b"2026-05-28T20:26:40.012345678Z hello  you",
            BEGIN + 12,
            "2026-05-28T20:26:40.012345Z",
            b"hello  you",
            id="usual",
        ),
        pytest.param(
            b"2026-05-28T22:26:40.5+02:00 here",
            BEGIN + 500,
            "2026-05-28T20:26:40.500000Z",
            b"here",
            id="of a node with a zone",
        ),
        pytest.param(b"2026-05-28T20:26:40Z ", BEGIN, "2026-05-28T20:26:40.000000Z", b"", id="empty line"),
        pytest.param(b"unable to retrieve", 0, "", b"unable to retrieve", id="a remark"),
        pytest.param(b"2026-15-28T20:26:40Z a", 0, "", b"2026-15-28T20:26:40Z a", id="no time"),
    ],
)
def test_line_is_split(line, moment, time, text):
    assert log_offsets.read_line(line) == (moment, time, text)


TERMINATED = {"terminated": {"exitCode": 1}}
PRESENT = {"is_previous": False}


@pytest.mark.parametrize(
    ("status", "runs"),
    [
        pytest.param({"state": {"waiting": {}}}, [], id="not started"),
        pytest.param({"state": {"running": {}}}, [Instance(0, **PRESENT, has_ended=False)], id="first run"),
        pytest.param({"state": TERMINATED}, [Instance(0, **PRESENT, has_ended=True)], id="ended"),
        pytest.param(
            {"state": {"waiting": {}}, "lastState": TERMINATED, "restartCount": 2},
            [Instance(2, **PRESENT, has_ended=True)],
            id="waits to be started again",
        ),
        pytest.param(
            {"state": {"running": {}}, "lastState": TERMINATED, "restartCount": 3},
            [Instance(2, is_previous=True, has_ended=True), Instance(3, **PRESENT, has_ended=False)],
            id="runs again",
        ),
    ],
)
def test_runs_with_a_log(status, runs):
    pod = {"status": {"containerStatuses": [{"name": "main", **status}]}}
    assert instances(pod, "main") == runs
    assert instances(pod, "other") == []
