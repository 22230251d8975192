"""The frames of SPDY/3.1 by tables, and by properties: however bytes are cut, and however grants come."""

import itertools
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.streams import spdy
from apiserver.streams.spdy import BadFrame, Data, GoneAway, Granted, InitialWindow, Kind, Opened, Pinged, Reset
from tests.tables import cases

# What kubectl 1.32 sent for two connections to a port, but for their data.
KUBECTL = (
    "8003 0001 0000003f 00000001 00000000 00 00 78f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45a024cc6a646160014aa09c459078"
    "cc04a56f460300000000ffff 00000001 01000000 8003 0001 00000018 00000003 00000000 00 00 c2aa1b54102512a119000000ffff 00000003"
    "00000002 4745 00000003 01000000 8003 0001 00000018 00000005 00000000 00 00 826a46153524d63100000000ffff 00000005 01000000"
)


def syn_stream(writer, stream, named, flags=0):
    return spdy.control(Kind.SYN_STREAM, struct.pack(">IIBB", stream, 0, 0, 0) + writer.block(named), flags)


def events(*chunks):
    reader = spdy.Reader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def test_what_kubectl_sends_is_read():
    def opened(stream, part, request):
        return Opened(stream, {"streamtype": part, "port": "28081", "requestid": request}, fin=False)

    assert events(bytes.fromhex(KUBECTL.replace(" ", ""))) == [
        opened(1, "error", "0"), Data(1, b"", fin=True), opened(3, "data", "0"), Data(3, b"GE", fin=False),
        Data(3, b"", fin=True), opened(5, "error", "1"), Data(5, b"", fin=True),
    ]  # fmt: skip


def test_a_reply_is_compressed_with_the_dictionary_that_all_know():
    frame = spdy.Writer().reply(7)
    assert frame[:12] == bytes.fromhex("80030002") + struct.pack(">II", len(frame) - 8, 7)
    assert zlib.decompressobj(zdict=spdy.DICTIONARY).decompress(frame[12:]) == bytes(4)
    assert frame[14:18] == bytes.fromhex("e3c6a7c2"), "by its checksum it is Chromium's"


@cases("frame, event", {
    "a reset": (spdy.reset(3, 5), Reset(3)),
    "the end": (spdy.go_away(3, 0), GoneAway()),
    "a grant": (spdy.window_update(3, 70_000), Granted(3, 70_000)),
    "an initial window": (spdy.control(Kind.SETTINGS, struct.pack(">III", 1, 7, 9)), InitialWindow(9)),
    "a setting with a flag": (spdy.control(Kind.SETTINGS, struct.pack(">IIIII", 2, 4, 100, 0x01000007, 9)),
        InitialWindow(9)),
    "another setting": (spdy.control(Kind.SETTINGS, struct.pack(">III", 1, 4, 100)), None),
    "what is not known": (spdy.control(77, b"xyz"), None),
})  # fmt: skip
def test_frames(frame, event):
    assert events(frame) == ([] if event is None else [event])


def bomb():
    writer = spdy.Writer()
    frame = syn_stream(writer, 1, {"x": "a" * 5_000_000})
    assert len(frame) < spdy.MAX_CONTROL
    return frame


@cases("data, problem", {
    "no SPDY at all": (b"GET / HT", "too long"),
    "another version": (bytes.fromhex("800200060000000400000001"), "version 2"),
    "too much data": (struct.pack(">II", 3, spdy.MAX_DATA + 1), "too long"),
    "too long a head": (struct.pack(">II", 0x80030001, spdy.MAX_CONTROL + 1), "too long"),
    "half a ping": (spdy.control(Kind.PING, b"12"), "has not what belongs there"),
    "an empty reset": (spdy.control(Kind.RST_STREAM, b""), "has not what belongs there"),
    "settings that are missing": (spdy.control(Kind.SETTINGS, struct.pack(">II", 9, 7)), "not as many"),
    "a server's stream": (syn_stream(spdy.Writer(), 2, {}), "odd"),
    "no stream": (syn_stream(spdy.Writer(), 0, {}), "odd"),
    "the same stream twice": (syn_stream(spdy.Writer(), 1, {}) * 2, "grow"),
    "zeros": (spdy.control(Kind.SYN_STREAM, bytes(10) + b"\x01" + bytes(9)), "odd"),
    "no headers": (spdy.control(Kind.SYN_STREAM, struct.pack(">IIBB", 1, 0, 0, 0) + b"nothing compressed"),
        "decompressed"),
    "a bomb": (bomb(), "too long"),
})  # fmt: skip
def test_what_breaks_the_protocol(data, problem):
    with pytest.raises(BadFrame, match=problem):
        events(data)


@pytest.mark.parametrize(
    "text", ["00000001", "0000000100000002", "00000002000000016100000001", "ffffffff", "0000000000"]
)
def test_headers_that_are_not_as_long_as_they_say(text):  # fmt: skip
    deflater = zlib.compressobj(zdict=spdy.DICTIONARY)
    block = deflater.compress(bytes.fromhex(text)) + deflater.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(BadFrame):
        events(spdy.control(Kind.SYN_STREAM, struct.pack(">IIBB", 1, 0, 0, 0) + block))


words = st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=20)
steps = st.lists(
    st.one_of(
        st.dictionaries(words, words, max_size=4),
        st.tuples(st.integers(1, 9), st.binary(max_size=300), st.booleans()),
        st.integers(0, 2**32 - 1),
    ),
    max_size=12,
)


@given(steps, st.lists(st.integers(1, 60), min_size=1, max_size=20))
def test_however_the_bytes_are_cut_the_events_are_the_same(made, sizes):
    writer, frames, expected = spdy.Writer(), b"", []
    for number, step in enumerate(made):
        if isinstance(step, dict):
            frames += syn_stream(writer, 2 * number + 1, step)
            expected.append(Opened(2 * number + 1, step, fin=False))
        elif isinstance(step, tuple):
            frames += spdy.data(step[0], step[1], fin=step[2])
            expected.append(Data(*step))
        else:
            frames += spdy.ping(step)
            expected.append(Pinged(step))
    chunks, sizes = [], itertools.cycle(sizes)
    rest = frames
    while rest:
        size = next(sizes)
        chunks.append(rest[:size])
        rest = rest[size:]
    assert events(*chunks) == events(frames) == expected


@given(st.binary(max_size=400), st.integers(1, 30))
def test_whatever_comes_is_read_or_refused_wherever_it_is_cut(data, size):
    def outcome(*chunks):
        reader, found = spdy.Reader(), []
        try:
            for chunk in chunks:
                found.extend(reader.feed(chunk))
        except BadFrame as error:  # behind what was read before it
            found.append(str(error))
        return found

    whole = b"\x80\x03" + data
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert outcome(*pieces) == outcome(whole)


STREAM, SIZE = st.sampled_from([1, 3]), st.integers(1, 200_000)
MOVES = st.lists(
    st.tuples(st.sampled_from(["take", "read"]), STREAM, SIZE) | st.tuples(st.just("begin"), st.just(0), SIZE),
    max_size=60,
)


@given(st.integers(0, 200_000), MOVES)
def test_never_more_than_the_window_is_on_its_way(first, moves):
    """The reader is the oracle: it grants what it has read, and no more than was sent to it."""
    windows, outstanding, initial = spdy.SendWindows(), {1: 0, 3: 0}, first
    windows.begin_with(first)
    for stream in outstanding:
        windows.open(stream)
    for move, stream, size in moves:
        if move == "take" and (taken := windows.take(stream, size)):
            outstanding[stream] += taken
            assert outstanding[stream] <= initial
            assert sum(outstanding.values()) <= spdy.WINDOW
        elif move == "read" and (count := min(size, outstanding[stream])):
            outstanding[stream] -= count
            windows.grant(Granted(stream, count))
            windows.grant(Granted(0, count))
        elif move == "begin":
            initial = size
            windows.begin_with(size)
    for stream in outstanding:  # and what is possible is sent
        room = min(initial - outstanding[stream], spdy.WINDOW - sum(outstanding.values()))
        taken = windows.take(stream, 1 << 20)
        assert taken == max(0, room)
        outstanding[stream] += taken


def test_who_never_grants_anything_is_not_waited_for():
    windows = spdy.SendWindows()
    windows.open(1)
    assert [windows.take(1, 50_000) for _ in range(3)] == [50_000] * 3
    windows.grant(Granted(1, 50_000))
    assert windows.take(1, 1) == 0, "from now on it counts, also what was sent before"


@pytest.mark.parametrize("granted", [0, spdy.LARGEST_WINDOW])
def test_a_window_that_cannot_be_is_refused(granted):
    windows = spdy.SendWindows()
    windows.open(1)
    with pytest.raises(BadFrame):
        windows.grant(Granted(1, granted))
    windows.grant(Granted(99, 0))  # of a stream that is closed: it was on its way
    with pytest.raises(BadFrame):
        windows.begin_with(1 << 31)


@given(st.lists(st.integers(0, 70_000), max_size=50))
def test_what_was_received_is_granted_before_the_window_is_used_up(counts):
    window, owed = spdy.ReceiveWindow(), 0
    for count in counts:
        owed += count
        owed -= window.done(count)
        assert 0 <= owed < spdy.WINDOW
