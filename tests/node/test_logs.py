from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node import attempts, logs
from node.agent import retention
from node.attempt import parse_us
from node.paths import Layout
from node.shim.crilog import CriLog

UID = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def directory(tmp_path, settings):
    settings.DATA = tmp_path
    path = Layout(tmp_path).attempt(UID, "main", 0)
    path.mkdir(parents=True)
    return path


def follow(limit):
    """Read a log as a follower does, from where the last read ended."""
    offset, chunks = 0, []
    while (chunk := logs.read(UID, "main", since_offset=offset, limit=limit)).lines:
        chunks.append(chunk)
        offset = chunk.next
    return chunks


def test_following_gives_every_byte_once(directory):
    log = CriLog(str(directory), segment_bytes=4_000, count=1000)
    written = b""
    for number in range(300):
        data = f"{number} ".encode() * (number % 50) + b"\n"
        log.feed("stdout", data)
        written += data
    log.close()
    assert len(list(directory.glob("log.*"))) > 3
    assert b"".join(chunk.data for chunk in follow(40_000)) == written


@pytest.mark.parametrize("offset", range(1, 43))
def test_an_offset_in_the_middle_of_an_entry_begins_with_the_next_one(directory, offset):
    log = CriLog(str(directory))
    log.feed("stdout", b"first\nsecond\n")
    log.close()
    first, second = logs.read(UID, "main").lines
    assert second.offset == 43
    assert logs.read(UID, "main", since_offset=offset).lines == (second,)
    assert first.time[4] == "-"


@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=60)), max_size=30))
def test_any_bytes_come_back_as_they_were_written(parts):
    with tempfile.TemporaryDirectory() as folder:
        log = CriLog(folder, segment_bytes=200, count=1000)
        for stream, data in parts:
            log.feed(stream, data)
        log.close()
        data = b"".join((Path(folder) / name).read_bytes() for _, name in logs.segments(folder))
    lines = [logs._parse(raw, 0) for raw in data.split(b"\n")[:-1]]
    for stream in ("stdout", "stderr"):
        got = b"".join(line.data + b"\n" * line.whole for line in lines if line.stream == stream)
        assert got == b"".join(data for name, data in parts if name == stream)


def test_rotated_away_bytes_are_counted(directory):
    log = CriLog(str(directory), segment_bytes=10_000, count=2)
    for number in range(2000):
        log.feed("stdout", b"%06d\n" % number)
    log.close()
    chunk = logs.read(UID, "main", since_offset=100)
    assert chunk.skipped == chunk.start - 100 > 0
    assert chunk.lines[0].data.isdigit()


def test_tail_begins_at_a_line_and_following_goes_on_after_it(directory):
    log = CriLog(str(directory))
    for number in range(5000):
        log.feed("stdout", b"%06d\n" % number)
    chunk = logs.tail(UID, "main", lines=3)
    assert chunk.data == b"004997\n004998\n004999\n"
    log.feed("stdout", b"more\n")
    log.close()
    assert logs.read(UID, "main", since_offset=chunk.next).data == b"more\n"


def test_tail_of_a_log_with_long_lines(directory):
    log = CriLog(str(directory))
    log.feed("stdout", b"x" * 100_000 + b"\n" + b"y" * 100_000 + b"\n")
    log.close()
    assert logs.tail(UID, "main", lines=1).data == b"y" * 100_000 + b"\n"


def test_end_is_told_when_the_attempt_is_over(directory):
    log = CriLog(str(directory))
    log.feed("stdout", b"bye\n")
    log.close()
    assert not logs.read(UID, "main").ended
    (directory / "status.json").write_text("{}")
    assert logs.read(UID, "main").ended
    assert logs.read(UID, "main", since_offset=logs.read(UID, "main").next).ended


def test_container_without_output_has_an_empty_log(directory):
    (directory / "status.json").write_text("{}")
    assert logs.read(UID, "main") == (0, (), 0, 0, 0, True)
    assert logs.tail(UID, "main").ended


@pytest.mark.parametrize("uid", [UID[:-1] + "2", "../../etc", "..", ""])
def test_log_that_is_not_there_is_said(directory, uid):
    with pytest.raises(logs.NoLog):
        logs.read(uid, "main")


def test_full_disk_costs_output_and_says_how_much(directory, monkeypatch):
    log = CriLog(str(directory))
    log.feed("stdout", b"before\n")
    write = os.write

    def full(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    log.feed("stdout", b"lost\n")
    monkeypatch.setattr(os, "write", write)
    log.feed("stdout", b"after\n")
    log.close()
    lines = logs.read(UID, "main").lines
    assert [line.data for line in lines if line.stream == "stdout"] == [b"before", b"after"]
    assert b"bytes of output were lost because the disk was full" in lines[1].data


class TestRetention:
    def pod(self, layout, name, days, size=1000):
        path = layout.attempt(name, "main", 0)
        path.mkdir(parents=True)
        (layout.pod(name) / "_work").mkdir()
        (path / "log.0").write_bytes(b"x" * size)
        (path / "status.json").write_text("{}")
        for each in (path / "status.json", layout.pod(name)):
            os.utime(each, (time.time() - days * 86_400,) * 2)

    def test_old_logs_of_pods_that_are_gone_go(self, tmp_path):
        layout = Layout(tmp_path)
        for name, days in (("old", 10), ("young", 1), ("kept", 10), ("runs", 10)):
            self.pod(layout, name, days)
        retention.clean(layout, {"kept", "runs"}, {"runs"}, days=5, most_bytes=1 << 30)
        assert {path.name for path in layout.pods.iterdir()} == {"young", "kept", "runs"}

    def test_scratch_of_a_pod_that_is_gone_goes_at_once(self, tmp_path):
        layout = Layout(tmp_path)
        self.pod(layout, "gone", 1)
        retention.clean(layout, set(), set(), days=5, most_bytes=1 << 30)
        assert not (layout.pod("gone") / "_work").exists()
        assert (layout.attempt("gone", "main", 0) / "log.0").exists()

    def test_oldest_go_first_when_all_are_too_large(self, tmp_path):
        layout = Layout(tmp_path)
        for days in (1, 2, 3):
            self.pod(layout, f"age-{days}", days, size=100_000)
        retention.clean(layout, set(), set(), days=50, most_bytes=250_000)
        assert {path.name for path in layout.pods.iterdir()} == {"age-1", "age-2"}

    def test_restarting_container_keeps_its_latest_attempts(self, tmp_path):
        layout = Layout(tmp_path)
        for number in range(12):
            layout.attempt("uid", "main", number).mkdir(parents=True)
        retention.prune(layout, "uid", "main")
        assert attempts.numbers(layout.container("uid", "main")) == [9, 10, 11]


def test_tail_of_one_endless_line_is_bounded(directory):
    log = CriLog(str(directory))
    for _ in range(40):
        log.feed("stdout", b"x" * 50_000)
    log.close()
    chunk = logs.tail(UID, "main", lines=300, most=100_000)
    assert 60_000 < len(chunk.data) <= 100_000
    assert logs.read(UID, "main", since_offset=chunk.next).lines == ()


@pytest.mark.parametrize("container", ["x" * 400, "é" * 200, "../main", "\0", ""])
def test_name_that_no_file_can_have_has_no_log(directory, container):
    with pytest.raises(logs.NoLog):
        logs.read(UID, container)


def whole_log(directory):
    return b"".join((directory / name).read_bytes() for _, name in logs.segments(directory))


@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=60)), max_size=30), st.booleans())
def test_what_is_shown_is_what_was_written_whatever_the_pieces(parts, times):
    with tempfile.TemporaryDirectory() as folder:
        log = CriLog(folder, segment_bytes=200, count=1000)
        for stream, data in parts:
            log.feed(stream, data)
        log.close()
        data = whole_log(Path(folder))
    for stream in ("stdout", "stderr"):
        wanted = b"".join(data for name, data in parts if name == stream)
        assert logs.shown(data, stream=stream)[0] == wanted
        if times:
            shown, _ = logs.shown(data, stream=stream, times=True)
            lines = shown.split(b"\n")
            assert [line[31:] for line in lines if line] == wanted.split(b"\n")[: len([x for x in lines if x])]


def test_times_are_written_to_nine_digits_before_each_line(directory):
    log = CriLog(str(directory))
    log.feed("stdout", b"one\nhalf")
    log.flush()
    log.feed("stdout", b" done\n")
    log.close()
    shown, fresh = logs.shown(whole_log(directory), times=True)
    assert re.fullmatch(rb"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}000Z [a-z ]+\n){2}", shown)
    assert fresh


@given(st.data())
def test_the_tail_begins_where_so_many_whole_lines_follow(data):
    lines = data.draw(st.lists(st.binary(max_size=50).filter(lambda one: b"\n" not in one), max_size=60))
    wanted = data.draw(st.integers(0, 70))
    with tempfile.TemporaryDirectory() as folder:
        log = CriLog(folder, segment_bytes=500, count=1000)
        for line in lines:
            log.feed("stdout", line + b"\n")
        log.close()
        raw = logs.read_raw(Path(folder), logs.tail_offset(Path(folder), wanted))
    kept = lines[len(lines) - wanted :] if wanted < len(lines) else lines
    assert logs.shown(raw.data)[0] == b"".join(line + b"\n" for line in kept)


@pytest.fixture
def long_log(directory):
    """A log of 64 MB in one segment, an entry each millisecond."""
    with (directory / "log.000000000000000").open("wb") as file:
        for second in range(640):
            stamps = (
                b"2026-01-01T00:%02d:%02d.%03d000Z stdout F " % (second // 60, second % 60, ms) for ms in range(1000)
            )
            file.write(b"".join(stamp + b"x" * 65 + b"\n" for stamp in stamps))
    return directory


def test_the_tail_and_a_time_of_a_long_log_are_found_at_once(long_log):
    began = time.thread_time()
    tail = logs.tail_offset(long_log, 3)
    at = logs.time_offset(long_log, parse_us("2026-01-01T00:05:00.5Z", 0))
    assert time.thread_time() - began < 0.1
    assert logs.shown(logs.read_raw(long_log, tail).data)[0] == (b"x" * 65 + b"\n") * 3
    assert logs.read_raw(long_log, at).data.startswith(b"2026-01-01T00:05:00.500000Z ")
    assert logs.time_offset(long_log, parse_us("2025-01-01T00:00:00Z", 0)) == 0
    assert logs.time_offset(long_log, parse_us("2027-01-01T00:00:00Z", 0)) == logs.end_of(long_log)


def least(work):
    """The least of several processor times of some work: what else the machine does only adds to them."""
    spent = []
    for _ in range(5):
        began = time.thread_time()
        work()
        spent.append(time.thread_time() - began)
    return min(spent)


def test_showing_a_long_log_takes_a_few_times_as_long_as_splitting_it(long_log):
    data = logs.read_raw(long_log, 0, 8_000_000).data
    assert least(lambda: logs.shown(data)) < 12 * least(lambda: data.split(b"\n"))


def test_each_line_knows_the_offset_at_which_it_begins(directory):
    log = CriLog(str(directory), segment_bytes=4_000, count=1000)
    for number in range(300):
        log.feed("stdout", b"x" * (number * 37 % 90) + b" %d\n" % number)
    lines = logs.read(UID, "main", limit=10**6).lines
    assert len(lines) == 300
    for line in lines[::7]:
        assert logs.read(UID, "main", since_offset=line.offset).lines[0] == line


@pytest.mark.parametrize("number", [1, 7, 1000])
def test_a_tail_before_a_line_is_what_stands_before_it(directory, number):
    log = CriLog(str(directory), segment_bytes=4_000, count=1000)
    for count in range(300):
        log.feed("stdout", b"x" * (count * 37 % 90) + b" %d\n" % count)
    lines = logs.read(UID, "main", limit=10**6).lines
    for place in (0, 1, 100, 299):
        before = lines[place].offset
        found = logs.tail(UID, "main", lines=number, before=before)
        assert found.lines == lines[max(0, place - number) : place]
        assert found.next == before


def test_a_line_that_is_always_being_redrawn_is_written_before_it_ends(directory):
    log = CriLog(str(directory))
    log.feed("stderr", b"\r1%")
    due = log.hold_until()
    time.sleep(0.01)
    log.feed("stderr", b"\r2%")
    log.feed("stdout", b"one\nhalf")
    assert log.hold_until() == due
    log.flush()
    log.feed("stderr", b"\r3%")
    assert log.hold_until() > due
    log.close()
