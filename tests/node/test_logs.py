"""Logs: what is written and read of one, how far it goes, who hears that it does, and how long it stays."""

import asyncio
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.backend import LogExtent
from node import attempts, inotify, log_extents, logs
from node.attempt import parse_us
from node.paths import Layout
from node.shim.crilog import CriLog
from node.volumes import retention
from proof.harness.waiting import HANG_S
from tests.tables import cases

UID = "00000000-0000-0000-0000-000000000001"


def write(directory, *entries, **options):
    """Write a log of what is fed: bytes to standard output, or a stream and bytes."""
    log = CriLog(str(directory), **options)
    for each in entries:
        log.feed(*(("stdout", each) if isinstance(each, bytes) else each))
    log.close()


def least(work):
    """The least of several processor times of some work: what else the machine does only adds to them."""
    spent = []
    for _ in range(5):
        began = time.thread_time()
        work()
        spent.append(time.thread_time() - began)
    return min(spent)


PIECES = st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=60)), max_size=30)
UNEVEN = [b"x" * (number * 37 % 90) + b" %d\n" % number for number in range(300)]


class TestRetention:
    @cases("pods, most, left", {
        "old ones of gone pods": ({"old": 10, "young": 1, "kept": 10, "runs": 10}, 1 << 30, {"young", "kept", "runs"}),
        "the oldest when all are too large": ({"one": 1, "two": 2, "three": 3}, 250_000, {"one", "two"}),
    })  # fmt: skip
    def test_what_goes(self, tmp_path, pods, most, left):
        layout = Layout(tmp_path)
        for name, days in pods.items():
            path = layout.attempt(name, "main", 0)
            path.mkdir(parents=True)
            (layout.pod(name) / "_work").mkdir()
            (path / "log.0").write_bytes(b"x" * 100_000)
            (path / "status.json").write_text("{}")
            for each in (path / "status.json", layout.pod(name)):
                os.utime(each, (time.time() - days * 86_400,) * 2)
        retention.clean(layout, {"kept", "runs"}, {"runs"}, days=5, most_bytes=most)
        assert {path.parents[2].name for path in layout.pods.glob("*/main/0/log.0")} == left
        assert {path.parent.name for path in layout.pods.glob("*/_work")} == left & {"kept", "runs"}

    def test_restarting_container_keeps_its_latest_attempts(self, tmp_path):
        layout = Layout(tmp_path)
        for number in range(12):
            layout.attempt("uid", "main", number).mkdir(parents=True)
        retention.prune(layout, "uid", "main")
        assert attempts.numbers(layout.container("uid", "main")) == [9, 10, 11]


class TestReading:
    @pytest.fixture
    def directory(self, tmp_path, settings):
        settings.DATA = tmp_path
        path = Layout(tmp_path).attempt(UID, "main", 0)
        path.mkdir(parents=True)
        return path

    @given(PIECES)
    def test_what_is_shown_is_what_was_written_whatever_the_pieces(self, parts):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, *parts, segment_bytes=200, count=1000)
            data = b"".join((Path(folder) / name).read_bytes() for _, name in logs.segments(Path(folder)))
        lines = [logs._parse(raw, 0) for raw in data.split(b"\n")[:-1]]
        for stream in ("stdout", "stderr"):
            wanted = b"".join(data for name, data in parts if name == stream)
            assert b"".join(each.data + b"\n" * each.whole for each in lines if each.stream == stream) == wanted
            assert logs.rendered(data, stream=stream)[0] == wanted
            printed = [line for line in logs.rendered(data, stream=stream, times=True)[0].split(b"\n") if line]
            assert [line[31:] for line in printed] == wanted.split(b"\n")[: len(printed)]
            assert all(re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}000Z ", line[:31]) for line in printed)

    def test_an_offset_in_the_middle_of_an_entry_begins_with_the_next_one(self, directory):
        write(directory, b"first\nsecond\n")
        first, second = logs.read(UID, "main").lines
        assert (second.offset, first.time[4]) == (43, "-")
        assert {logs.read(UID, "main", since_offset=offset).lines for offset in range(1, 44)} == {(second,)}

    def test_rotated_away_bytes_are_counted(self, directory):
        write(directory, *(b"%06d\n" % number for number in range(2000)), segment_bytes=10_000, count=2)
        chunk = logs.read(UID, "main", since_offset=100)
        assert chunk.skipped == chunk.start - 100 > 0
        assert chunk.lines[0].data.isdigit()

    def test_tail_begins_at_a_line_and_following_goes_on_after_it(self, directory):
        log, long = CriLog(str(directory)), b"y" * 100_000 + b"\n"
        for data in (long, *(b"%06d\n" % number for number in range(5000))):
            log.feed("stdout", data)
        chunk = logs.tail(UID, "main", lines=3)
        assert chunk.data == b"004997\n004998\n004999\n"
        log.feed("stdout", long)
        assert logs.read(UID, "main", since_offset=chunk.next).data == logs.tail(UID, "main", lines=1).data == long
        for _ in range(40):
            log.feed("stdout", b"x" * 50_000)
        log.close()
        chunk = logs.tail(UID, "main", lines=300, most=100_000)
        assert 60_000 < len(chunk.data) <= 100_000
        assert logs.read(UID, "main", since_offset=chunk.next).lines == ()

    @pytest.mark.parametrize("written", [b"bye\n", b""])
    def test_end_is_told_when_the_attempt_is_over(self, directory, written):
        write(directory, written)
        assert not logs.read(UID, "main").ended
        (directory / "status.json").write_text("{}")
        found = logs.read(UID, "main")
        assert (found.data, found.ended) == (written, True)
        assert logs.read(UID, "main", since_offset=found.next).ended
        assert logs.tail(UID, "main").ended

    @pytest.mark.parametrize(("uid", "container"), [
        *((uid, "main") for uid in (UID[:-1] + "2", "../../etc", "..", "")),
        *((UID, container) for container in ("x" * 400, "é" * 200, "../main", "\0", "")),
    ])  # fmt: skip
    def test_log_that_is_not_there_is_said(self, directory, uid, container):
        with pytest.raises(logs.NoLog):
            logs.read(uid, container)

    def test_full_disk_costs_output_and_says_how_much(self, directory, monkeypatch):
        def full(fd, data):
            raise OSError(28, "No space left on device")

        log = CriLog(str(directory))
        log.feed("stdout", b"before\n")
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            log.feed("stdout", b"lost\n")
        log.feed("stdout", b"after\n")
        log.close()
        lines = logs.read(UID, "main").lines
        assert [line.data for line in lines if line.stream == "stdout"] == [b"before", b"after"]
        assert b"bytes of output were lost because the disk was full" in lines[1].data

    @given(st.data())
    def test_the_tail_begins_where_so_many_whole_lines_follow(self, data):
        lines = data.draw(st.lists(st.binary(max_size=50).filter(lambda one: b"\n" not in one), max_size=60))
        wanted = data.draw(st.integers(0, 70))
        with tempfile.TemporaryDirectory() as folder:
            write(folder, *(line + b"\n" for line in lines), segment_bytes=500, count=1000)
            raw = logs.read_raw(Path(folder), logs.tail_offset(Path(folder), wanted))
        expected = lines[len(lines) - wanted :] if wanted < len(lines) else lines
        assert logs.rendered(raw.data)[0] == b"".join(line + b"\n" for line in expected)

    @pytest.fixture
    def long_log(self, directory):
        text = b"2026-01-01T00:%02d:%02d.%03d000Z stdout F " + b"x" * 65 + b"\n"
        with (directory / "log.000000000000000").open("wb") as file:
            for second in range(640):
                file.write(b"".join(text % (second // 60, second % 60, ms) for ms in range(1000)))
        return directory

    def test_the_tail_and_a_time_of_a_long_log_are_found_at_once_and_showing_it_takes_little(self, long_log):
        began = time.thread_time()
        tail = logs.tail_offset(long_log, 3)
        at = logs.time_offset(long_log, parse_us("2026-01-01T00:05:00.5Z", 0))
        assert time.thread_time() - began < 0.1
        assert logs.rendered(logs.read_raw(long_log, tail).data)[0] == (b"x" * 65 + b"\n") * 3
        assert logs.read_raw(long_log, at).data.startswith(b"2026-01-01T00:05:00.500000Z ")
        assert logs.time_offset(long_log, parse_us("2025-01-01T00:00:00Z", 0)) == 0
        assert logs.time_offset(long_log, parse_us("2027-01-01T00:00:00Z", 0)) == logs.end_of(long_log)
        data = logs.read_raw(long_log, 0, 8_000_000).data
        assert least(lambda: logs.rendered(data)) < 12 * least(lambda: data.split(b"\n"))

    def test_each_line_knows_where_it_begins_and_a_tail_before_it_is_what_stands_there(self, directory):
        write(directory, *UNEVEN, segment_bytes=4_000, count=1000)
        lines = logs.read(UID, "main", limit=10**6).lines
        assert len(lines) == 300
        for index in (0, 1, 100, 299):
            before = lines[index].offset
            assert logs.read(UID, "main", since_offset=before).lines[0] == lines[index]
            for number in (1, 7, 1000):
                found = logs.tail(UID, "main", lines=number, before=before)
                assert (found.lines, found.next) == (lines[max(0, index - number) : index], before)

    def test_a_line_that_is_always_being_redrawn_is_written_before_it_ends(self, directory):
        log = CriLog(str(directory))
        log.feed("stderr", b"\r1%")
        due = log.flush_due()
        time.sleep(0.01)
        log.feed("stderr", b"\r2%")
        log.feed("stdout", b"one\nhalf")
        assert log.flush_due() == due
        log.flush()
        log.feed("stderr", b"\r3%")
        assert log.flush_due() > due
        log.close()


OTHER = "00000000-0000-0000-0000-000000000002"


def written(layout, *, uid=UID, container="main", attempt=0, lines=1, **options):
    path = layout.attempt(uid, container, attempt)
    path.mkdir(parents=True, exist_ok=True)
    log = CriLog(str(path), **options)
    for number in range(lines):
        log.feed("stdout", b"line %d\n" % number)
    return path, log


def age(layout):
    long_ago = time.time_ns() - 10 * log_extents.FRESH_NS
    for folder, _, _ in os.walk(layout.root):
        os.utime(folder, ns=(long_ago, long_ago))


class TestExtents:
    @pytest.fixture
    def layout(self, tmp_path, settings):
        settings.DATA = tmp_path
        return Layout(tmp_path)

    def test_each_attempt_of_each_container_has_its_extent_without_what_rotation_dropped(self, layout):
        for container, attempt in (("main", 0), ("main", 10), ("main", 9), ("side", 0)):
            path, _ = written(layout, container=container, attempt=attempt, lines=300, segment_bytes=2000, count=2)
            if attempt == 9:
                (path / "status.json").write_text("{}")
        layout.pod(UID).joinpath("_work").mkdir()
        expected = [("main", 0, False), ("main", 9, True), ("main", 10, False), ("side", 0, False)]
        paths = [layout.attempt(UID, container, attempt) for container, attempt, _ in expected]
        first = [logs.segments(path)[0][0] for path in paths]
        assert all(first)
        assert log_extents.of_pods(layout, [OTHER, UID]) == [
            LogExtent(UID, *names, begins, logs.end_of(path), ended=ended)
            for (*names, ended), begins, path in zip(expected, first, paths, strict=True)
        ]
        for uid in ("../..", "", "a/b", "no-such-pod", "x" * 300):
            assert log_extents.of_pods(layout, [uid]) == []

    def test_a_quiet_log_is_looked_at_without_listing_a_directory(self, layout, monkeypatch):
        written(layout)
        age(layout)
        first = log_extents.of_pods(layout, [UID])
        monkeypatch.setattr(os, "listdir", lambda path: pytest.fail(f"{path} was listed"))
        assert log_extents.of_pods(layout, [UID]) == first

    @settings(max_examples=30)
    @given(st.lists(st.sampled_from(["write", "rotate", "end", "next attempt", "look", "age", "remove"]), max_size=20))
    def test_whatever_happens_is_seen_at_the_next_look(self, tmp_path_factory, steps):
        layout = Layout(tmp_path_factory.mktemp("node"))
        attempt = 0
        path, log = written(layout)
        for step in steps:
            if step == "next attempt":
                attempt += 1
                path, log = written(layout, attempt=attempt)
            elif step == "age":
                log_extents.of_pods(layout, [UID])
                age(layout)
                log_extents.of_pods(layout, [UID])
            elif step == "remove":
                shutil.rmtree(path, ignore_errors=True)
            elif step != "look" and path.exists():
                do = {"write": (log.feed, "stdout", b"more\n"), "rotate": (log._rotate,)}
                act, *arguments = do.get(step, ((path / "status.json").touch,))
                act(*arguments)
            extents = log_extents.of_pods(layout, [UID])
            log_extents._cached_names.clear()
            assert extents == log_extents.of_pods(layout, [UID])
            if path.exists():
                assert (extents[-1].end, extents[-1].ended) == (logs.end_of(path), (path / "status.json").exists())


async def soon(waiter):
    waiter.clear()
    await asyncio.wait_for(waiter.changed(HANG_S), HANG_S)
    return waiter.event.is_set()


class TestChanges:
    async def test_all_who_wait_for_a_directory_hear_of_a_change(self, tmp_path):
        own = inotify.of_loop()
        assert own is inotify.of_loop()
        with own.waiting(tmp_path) as first, own.waiting(tmp_path) as second:
            waits = asyncio.gather(soon(first), soon(second))
            await asyncio.sleep(0)
            (tmp_path / "log").write_bytes(b"x")
            assert await waits == [True, True]
        with own.waiting(tmp_path) as third:
            wait = asyncio.ensure_future(soon(third))
            await asyncio.sleep(0)
            (tmp_path / "new").write_bytes(b"x")
            (tmp_path / "new").rename(tmp_path / "status.json")
            assert await wait
        assert not own._waiters, "nothing is left of those who have gone"

    async def test_a_directory_that_goes_wakes_and_is_then_looked_at_by_time(self, tmp_path):
        directory = tmp_path / "a"
        directory.mkdir()
        with inotify.of_loop().waiting(directory) as waiter:
            await waiter.changed(0.01)
            assert not waiter.event.is_set(), "a wait without a change ends in time"
            wait = asyncio.ensure_future(soon(waiter))
            await asyncio.sleep(0)
            directory.rmdir()
            assert await wait
            assert waiter.blind
