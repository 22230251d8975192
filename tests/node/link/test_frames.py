from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.link import frames
from node.link.frames import CHANNELS, LARGEST, MOST_DATA, BadFrame, Frame, Kind
from tests.tables import cases

numbers = st.integers(0, 2**32 - 1)
some_frames = st.one_of(
    st.builds(Frame, st.sampled_from([Kind.OPEN, Kind.BEAT]), numbers, st.just(0), st.binary(max_size=2000)),
    st.builds(Frame, st.just(Kind.DATA), numbers, st.sampled_from(CHANNELS), st.binary(max_size=MOST_DATA)),
    st.builds(frames.credit, numbers, st.sampled_from(CHANNELS), numbers),
    st.builds(Frame, st.sampled_from([Kind.END, Kind.CLOSE]), numbers, st.sampled_from(CHANNELS), st.just(b"")),
)


@given(some_frames)
def test_a_frame_is_the_same_on_the_other_side(frame):
    message = frames.encode(frame)
    assert len(message) <= LARGEST
    assert frames.decode(message) == frame


@given(st.binary(max_size=64))
def test_any_message_is_a_frame_or_refused(message):
    try:
        frame = frames.decode(message)
    except BadFrame:
        return
    assert frames.encode(frame) == message


@given(numbers)
def test_a_credit_carries_its_count(count):
    assert frames.count_of(frames.credit(7, frames.STDOUT, count)) == count


@cases("message, why", {
    "nothing": (b"", "no frame"),
    "without a channel": (b"\x02\0\0\0\1", "no frame"),
    "a kind that there is not": (b"\x09\0\0\0\1\0", "no kind 9"),
    "a channel that there is not": (b"\x02\0\0\0\1\7", "no channel 7"),
    "more data than is taken": (b"\x02\0\0\0\1\0" + bytes(MOST_DATA + 1), "too long"),
    "a close with data": (b"\x05\0\0\0\1\0x", "too long"),
})  # fmt: skip
def test_what_is_no_frame_is_refused(message, why):
    with pytest.raises(BadFrame, match=why):
        frames.decode(message)


@pytest.mark.parametrize("data", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(data):
    with pytest.raises(BadFrame):
        frames.json_of(data)


def test_a_frame_that_the_other_side_would_not_take_is_not_sent():
    with pytest.raises(BadFrame, match="too long to be sent"):
        frames.encode(Frame(Kind.DATA, 1, frames.STDIN, bytes(MOST_DATA + 1)))
