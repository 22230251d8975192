"""Many logs as one sequence: in the order of their times, from its end and around one of its lines."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.api import backend
from cluster.backend import Line
from jobs.logs import merge, window
from jobs.logs.merge import Entry, Log
from jobs.logs.window import Limits, Mark
from tests.jobs.logs.written import log_of

LARGE = 10**9
LOGS = ("pod-0", "pod-1", "pod-2")
ALL = Limits(1000, 10**6)
some_times = st.lists(st.integers(0, 50), max_size=15).map(sorted)


def sequences(times):
    """Return logs with lines of these times, each line saying whose it is and which."""
    return [
        [
            Entry(Log(f"pod-{pod}", "main", 0), Line(f"{time:03}", "stdout", b"%d.%d" % (pod, place), True, place))
            for place, time in enumerate(of_pod)
        ]
        for pod, of_pod in enumerate(times)
    ]


def by_log(entries):
    found = defaultdict(list)
    for entry in entries:
        found[entry.log].append(entry)
    return found


def backwards(logs):
    return [reversed(log) for log in logs]


times = st.lists(st.integers(0, 50), max_size=12)
sorted_logs = st.lists(times.map(sorted), max_size=6).map(sequences)
any_logs = st.lists(times, max_size=6).map(sequences)


@given(any_logs)
def test_nothing_is_lost_and_each_log_keeps_its_order_also_when_its_clock_went_back(logs):
    merged = by_log(merge.oldest_first(logs))
    assert merged == {log[0].log: log for log in logs if log}
    everything = merge.newest(backwards(logs), lines=LARGE, size=LARGE)
    assert by_log(everything.entries) == merged
    assert not everything.is_cut


@given(sorted_logs, st.integers(1, 20), st.integers(0, 51), st.integers(0, 40))
def test_logs_in_order_make_one_sequence_whose_end_is_had_by_lines_by_time_and_by_size(logs, number, since, size):
    merged = [*merge.oldest_first(logs)]
    assert [entry.line.time for entry in merged] == sorted(entry.line.time for log in logs for entry in log)
    found = merge.newest(backwards(logs), lines=number, size=LARGE)
    assert [entry.line.time for entry in found.entries] == [entry.line.time for entry in merged[-number:]]
    assert found.is_cut == (len(merged) > number)
    found = merge.newest(backwards(logs), lines=LARGE, size=LARGE, since=f"{since:03}")
    assert sorted(found.entries) == sorted(entry for entry in merged if int(entry.line.time) >= since)
    assert not found.is_cut
    fit = merge.newest(backwards(logs), lines=LARGE, size=size).entries
    assert sum(len(entry.line.data) for entry in fit) <= size or len(fit) == 1


def test_a_log_is_read_only_as_far_as_it_is_needed():
    read = []

    def noted(log):
        for entry in reversed(log):
            read.append(entry)
            yield entry

    logs = sequences([range(100), range(100, 200)])
    assert len(merge.newest([noted(log) for log in logs], lines=5, size=LARGE).entries) == 5
    assert len(read) <= 8


def test_the_pieces_of_a_line_count_as_one():
    """A bar that is drawn again and again, with a line before it and behind it."""
    pieces = [Line(f"{at:03}", "stderr", b"\r%d" % at, at in (0, 14, 15), at) for at in range(16)]
    log = [Entry(Log("pod", "main", 0), each) for each in pieces]
    assert merge.newest([reversed(log)], lines=2, size=LARGE) == (log[1:], True)
    assert merge.newest([reversed(log)], lines=3, size=LARGE) == (log, False)


@settings(max_examples=50)
@given(st.lists(some_times, min_size=3, max_size=3).filter(any), st.data())
def test_around_a_line_is_what_was_printed_before_and_behind_it(times, draw):
    printed = [(pod, place) for pod, of_pod in enumerate(times) for place in range(len(of_pod))]
    pod, place = draw.draw(st.sampled_from(printed))
    with TemporaryDirectory() as folder, override_settings(DATA=Path(folder)):
        for uid, of_pod in zip(LOGS, times, strict=True):
            log_of(uid, entries=[(time, f"{uid} {number}") for number, time in enumerate(of_pod)])
        extents = backend.nodes.log_extents(LOGS)
        line = backend.nodes.read_log(LOGS[pod], "main", 0).lines[place]
        mark = Mark(Log(LOGS[pod], "main", 0), line.offset)
        whole = window.around(backend.nodes, extents, mark, ALL)
        few = window.around(backend.nodes, extents, mark, Limits(6, 10**6))
    moments = [entry.line.time for entry in whole.entries]
    assert moments == sorted(moments)
    assert len(moments) == len(printed)
    assert not whole.has_more
    assert (whole.before, few.before > 0) == (0, whole.entries[0] != few.entries[0])
    first = whole.entries.index(few.entries[0])
    assert few.entries == whole.entries[first : first + len(few.entries)]
    assert (mark.log, line) in few.entries
    assert few.has_more == (first + len(few.entries) < len(printed))
    assert len(few.entries) <= 6


def test_the_first_lines_are_those_that_rotation_left(settings, tmp_path):
    settings.DATA = tmp_path
    _, log = log_of("pod-0", segment_bytes=2000, count=2)
    for number in range(300):
        log.feed("stdout", f"line {number}\n".encode())
    extents = backend.nodes.log_extents(["pod-0"])
    found = window.head(backend.nodes, extents, Limits(2, 10_000))
    assert found.lost == extents[0].first > 0
    assert found.entries[0].line.offset == extents[0].first
    assert found.has_more
