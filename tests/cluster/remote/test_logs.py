"""Logs of which only times are known: offsets into them, which runs have one, and which are asked for their ends."""

import hypothesis.strategies as st
from hypothesis import given

from cluster.remote.logs import log_ends, log_offsets
from cluster.remote.logs.log_ends import MAX_NEW, RATE, End, Instance, LogName
from cluster.remote.logs.log_offsets import Block, TimedLine, offset_of
from cluster.remote.logs.nodes import instances
from kube.meta import now_text, parse_time
from tests.blocks import blocks
from tests.cluster.objects import of_values
from tests.tables import cases

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
    for index in range(len(log)):
        from_there = since(log, whole[index])
        assert offsets(from_there) == whole[len(log) - len(from_there) :]
        assert whole[index] in offsets(from_there)
        last = log_offsets.from_next_second(log[index:])
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
    block = Block.of(lines([1, *[0] * 1500]), None, 99, is_all=True)
    taken, before = block.tail(10, 10**6, None)
    assert len(taken) == 1501 - 999
    assert len(block.tail(10, 10**6, before)[0]) == 10


def test_offsets_fit_what_readers_keep_and_a_clock_that_goes_back_loses_no_line():
    assert len(str(offset_of(BEGIN + 20 * 365 * 86_400_000, 999))) <= 15
    log = [TimedLine(BEGIN + after, "", b"") for after in (5, 3, 6)]
    first, *rest = offsets(log)
    assert first < rest[0] < rest[1]
    assert offsets(since(log, rest[0])) == [first, *rest]


def runs(status):
    """The runs of a container that have a log: which one, whether it is that of the run before, whether it has ended."""
    pod = {"status": {"containerStatuses": [{"name": "main", **status}]}}
    assert instances(pod, "other") == []
    return [[*each] for each in instances(pod, "main")]


NOW = 1000.0
LOG = LogName("uid", "main", 0)
LINE = TimedLine(BEGIN, "2026-05-28T20:26:40.000000Z", b"a")
RUNS, ENDED = (Instance(0, is_previous=False, has_ended=has_ended) for has_ended in (False, True))


def end_before(ago=60.0, **more):
    return End(5, LINE, NOW - ago, **more)


def is_due(end, has_ended):
    ends = {} if end is None else {LOG: end_before(**end)}
    return log_ends.due(ends, {LOG: ENDED if has_ended else RUNS}, NOW) == [LOG]


FUNCTIONS = {
    "a line is split": lambda line: str(log_offsets.read_line(line.encode())),
    "runs with a log": runs,
    "a log is asked for": is_due,
}


@blocks("logs", folder="cluster")
def test_what_is_read(block, golden):
    golden(block, of_values(FUNCTIONS[block.title]))


def logs(number, instance):
    return {LogName("uid", "main", index): instance for index in range(number)}


def test_logs_that_go_on_take_turns_ended_ones_do_not_and_new_ones_are_bounded():
    many = logs(5 * RATE, RUNS)
    ends, turns = {log: end_before() for log in many}, []
    for second in range(5):
        now = NOW + 1.1 * second
        turn = log_ends.due(ends, many, now)
        assert len(turn) == RATE
        ends |= {log: end_before()._replace(checked_at=now) for log in turn}
        assert log_ends.due(ends, many, now) == []
        turns += turn
    assert sorted(turns) == sorted(many), "each once"
    ended = logs(5 * RATE, ENDED)
    assert len(log_ends.due({log: end_before() for log in ended}, ended, NOW)) == len(ended)
    assert len(log_ends.due({}, logs(2 * MAX_NEW, RUNS), NOW)) == MAX_NEW


@cases("after, data", {"same": (0, b"a"), "of the same moment": (0, b"b"), "later": (5, b"c"), "earlier": (-5, b"d")})
def test_a_new_last_line_is_behind_whoever_has_not_read_it(after, data):
    offset = offset_of(BEGIN, 3) + 1  # of who has read all, of which LINE was the last
    last = TimedLine(BEGIN + after, now_text(BEGIN + after), data)
    found = log_ends.after_answer(End(offset, LINE, NOW), last, NOW + 1, is_final=True)
    assert (found.end > offset) == (data != LINE.data)
    assert (found.checked_at, found.is_final) == (NOW + 1, True)
    assert log_ends.after_answer(None, LINE, NOW, is_final=False).end > offset_of(BEGIN, 700)
    assert log_ends.after_answer(None, None, NOW, is_final=False).end == 0


def test_failure_leaves_what_is_known_and_says_why_nothing_is():
    assert log_ends.after_failure(end_before(), "no", NOW) == end_before(0)
    first = log_ends.after_failure(None, "no", NOW)
    assert log_ends.after_failure(first, "never", NOW + 9) == End(0, None, NOW + 9, why="never")
    assert log_ends.reasons({LOG: first, LOG._replace(container="b"): first}, "uid") == ["no"]
    assert log_ends.reasons({LOG: first}, "other") == []
    assert log_ends.after_answer(first, LINE, NOW + 9, is_final=False).why == ""
