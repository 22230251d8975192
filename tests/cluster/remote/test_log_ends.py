"""Which logs are asked for their ends, and what the answers mean."""

from __future__ import annotations

import pytest

from cluster.remote import log_ends
from cluster.remote.log_ends import LOOK_S, MOST_NEW, RATE, RETRY_S, End, Instance, LogName
from cluster.remote.log_offsets import TimedLine, offset_of

NOW = 1000.0
LOG = LogName("uid", "main", 0)
AT = 1_780_000_000_000
LINE = TimedLine(AT, "2026-05-28T20:26:40.000000Z", b"a")
SAME_MOMENT = LINE._replace(data=b"b")
LATER = TimedLine(AT + 5, "2026-05-28T20:26:40.005000Z", b"c")
EARLIER = TimedLine(AT - 5, "2026-05-28T20:26:39.995000Z", b"d")
RUNS, ENDED = Instance(0, is_previous=False, has_ended=False), Instance(0, is_previous=False, has_ended=True)


def known(ago=60.0, **more):
    return End(5, LINE, NOW - ago, **more)


@pytest.mark.parametrize(
    ("end", "instance", "is_due"),
    [
        pytest.param(None, RUNS, True, id="new"),
        pytest.param(known(), RUNS, True, id="goes on"),
        pytest.param(known(LOOK_S / 2), RUNS, False, id="asked just now"),
        pytest.param(known(), ENDED, True, id="has ended since"),
        pytest.param(known(is_final=True), ENDED, False, id="its end is known"),
        pytest.param(known(RETRY_S / 2, why="no"), RUNS, False, id="refused just now"),
        pytest.param(known(RETRY_S, why="no"), ENDED, True, id="refused some time ago"),
    ],
)
def test_a_log_is_asked_for(end, instance, is_due):
    ends = {} if end is None else {LOG: end}
    assert log_ends.due(ends, {LOG: instance}, NOW) == [LOG] * is_due


def logs(number, instance):
    return {LogName("uid", "main", index): instance for index in range(number)}


def test_logs_that_go_on_take_turns():
    many = logs(5 * RATE, RUNS)
    ends, asked = {log: known() for log in many}, []
    for second in range(5):
        now = NOW + 1.1 * second
        turn = log_ends.due(ends, many, now)
        assert len(turn) == RATE
        assert log_ends.due({**ends, **{log: known()._replace(asked=now) for log in turn}}, many, now) == []
        ends |= {log: known()._replace(asked=now) for log in turn}
        asked += turn
    assert sorted(asked) == sorted(many), "each once"


def test_ends_of_logs_that_have_ended_do_not_wait_for_their_turn():
    many = logs(5 * RATE, ENDED)
    assert len(log_ends.due({log: known() for log in many}, many, NOW)) == len(many)


def test_only_so_many_new_ones_are_asked_for_at_once():
    assert len(log_ends.due({}, logs(2 * MOST_NEW, RUNS), NOW)) == MOST_NEW


@pytest.mark.parametrize("last", [LINE, SAME_MOMENT, LATER, EARLIER], ids=["same", "moment", "later", "earlier"])
def test_a_new_last_line_is_behind_whoever_has_not_read_it(last):
    place = offset_of(AT, 3) + 1  # of who has read all, of which LINE was the last
    found = log_ends.seen(End(place, LINE, NOW), last, NOW + 1, is_final=True)
    assert (found.end > place) == (last != LINE)
    assert (found.asked, found.is_final) == (NOW + 1, True)


def test_who_has_read_a_part_of_the_last_moment_has_more_to_read():
    assert log_ends.seen(None, LINE, NOW, is_final=False).end > offset_of(AT, 700)
    assert log_ends.seen(None, None, NOW, is_final=False).end == 0


def test_failure_leaves_what_is_known_and_says_why_nothing_is():
    assert log_ends.failed(known(), "no", NOW) == known(0)
    first = log_ends.failed(None, "no", NOW)
    assert log_ends.failed(first, "never", NOW + 9) == End(0, None, NOW + 9, why="never")
    assert log_ends.reasons({LOG: first, LOG._replace(container="b"): first}, "uid") == ["no"]
    assert log_ends.reasons({LOG: first}, "other") == []
    assert log_ends.seen(first, LINE, NOW + 9, is_final=False).why == ""
