"""The lines around one of them, of random logs on disk."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.api import backend
from jobs.logs import window
from jobs.logs.merge import Log
from jobs.logs.window import Limits, Mark
from tests.jobs.logs.written import log_of

LOGS = ("pod-0", "pod-1", "pod-2")
ALL = Limits(1000, 10**6)
some_times = st.lists(st.integers(0, 50), max_size=15).map(sorted)


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
