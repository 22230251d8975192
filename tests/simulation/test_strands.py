"""Strands run one at a time, and only when they are let."""

import pytest

from cluster import clock
from proof.harness import clocks
from proof.simulation.parts.faults import Killed
from proof.simulation.parts.strands import Line, Strand
from proof.simulation.parts.virtual import VirtualClock


@pytest.fixture
def virtual():
    with clocks.using(VirtualClock()) as own:
        yield own


@pytest.fixture
def begin():
    begun = []

    def begin(target, *args):
        begun.append(Strand(target=target, name="any", args=args))
        begun[-1].start()
        return begun[-1]

    yield begin
    for each in begun:
        each.kill()


def test_strand_runs_when_it_is_let_until_it_sleeps(virtual, begin):
    done = []

    def work():
        done.append("begun")
        clock.sleep(2)
        done.append("woken")

    strand = begin(work)
    assert (done, strand.is_ready) == ([], True)
    strand.go_on()
    assert (done, strand.is_ready, strand.due) == (["begun"], False, 2.0)
    virtual.go_on(2_000_000)
    assert strand.is_ready
    strand.go_on()
    assert (done, strand.is_alive()) == (["begun", "woken"], False)


def test_line_hands_on_in_order_and_waits_for_room(begin):
    line, got = Line(1), []

    def put():
        for number in range(3):
            line.put(number)

    def get():
        while True:
            got.append(line.get())

    giver, taker = begin(put), begin(get)
    giver.go_on()
    assert (giver.is_ready, taker.is_ready) == (False, True)
    while giver.is_alive() or not line.empty():
        for each in (taker, giver):
            if each.is_ready:
                each.go_on()
    assert got == [0, 1, 2]


def test_what_ends_a_strand_is_raised_where_it_was_let_go_on(begin):
    def fail():
        raise Killed

    strand = begin(fail)
    with pytest.raises(Killed):
        strand.go_on()
    assert not strand.is_alive()


def test_killed_strand_ends_where_it_waits(virtual, begin):
    left = []

    def work():
        try:
            clock.sleep(1)
        finally:
            left.append("in order")

    strand = begin(work)
    strand.go_on()
    strand.kill()
    assert (left, strand.is_alive()) == (["in order"], False)
