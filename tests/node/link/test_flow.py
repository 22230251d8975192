from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from node.link.flow import WINDOW, WORTH_TELLING, Receiving, Sending
from node.link.frames import BadFrame


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


def test_a_writer_who_does_not_count_is_found_out():
    receiving = Receiving()
    receiving.add(bytes(WINDOW))
    with pytest.raises(BadFrame):
        receiving.add(b"x")


def test_parts_without_content_are_not_kept():
    with pytest.raises(BadFrame):
        Receiving().add(b"")


def test_many_small_parts_take_no_more_memory_than_their_bytes():
    receiving, part = Receiving(), b"x"
    tracemalloc.start()
    try:
        for _ in range(WINDOW):
            receiving.add(part)
        assert tracemalloc.get_traced_memory()[0] < 2 * WINDOW
    finally:
        tracemalloc.stop()
    assert b"".join(iter(lambda: b"" if receiving.is_empty else receiving.next(), b"")) == part * WINDOW


def test_a_reader_who_grants_what_was_not_sent_is_found_out():
    sending = Sending()
    sending.take(10)
    sending.grant(10)
    with pytest.raises(BadFrame):
        sending.grant(1)
