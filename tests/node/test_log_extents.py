"""How far logs go, against directories as shims write them."""

from __future__ import annotations

import os
import shutil
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.backend import LogExtent
from node import log_extents, logs
from node.paths import Layout
from node.shim.crilog import CriLog

UID = "00000000-0000-0000-0000-000000000001"
OTHER = "00000000-0000-0000-0000-000000000002"


@pytest.fixture
def layout(tmp_path, settings):
    settings.DATA = tmp_path
    return Layout(tmp_path)


def written(layout, *, uid=UID, container="main", attempt=0, lines=1, **options):
    path = layout.attempt(uid, container, attempt)
    path.mkdir(parents=True, exist_ok=True)
    log = CriLog(str(path), **options)
    for number in range(lines):
        log.feed("stdout", b"line %d\n" % number)
    return path, log


def age(layout):
    """Let all directories have changed long ago."""
    long_ago = time.time_ns() - 10 * log_extents.FRESH_NS
    for folder, _, _ in os.walk(layout.root):
        os.utime(folder, ns=(long_ago, long_ago))


def test_each_attempt_of_each_container_has_its_extent(layout):
    for container, attempt in (("main", 0), ("main", 10), ("main", 9), ("side", 0)):
        path, _ = written(layout, container=container, attempt=attempt, lines=attempt + 1)
        if attempt == 9:
            (path / "status.json").write_text("{}")
    layout.pod(UID).joinpath("_work").mkdir()
    found = log_extents.of_pods(layout, [OTHER, UID])
    assert [(each.container, each.attempt, each.ended) for each in found] == [
        ("main", 0, False),
        ("main", 9, True),
        ("main", 10, False),
        ("side", 0, False),
    ]
    assert [each.end for each in found] == [
        logs.end_of(layout.attempt(UID, each.container, each.attempt)) for each in found
    ]


def test_what_rotation_dropped_is_before_the_first(layout):
    path, _ = written(layout, lines=300, segment_bytes=2000, count=2)
    (extent,) = log_extents.of_pods(layout, [UID])
    assert extent == LogExtent(UID, "main", 0, logs.segments(path)[0][0], logs.end_of(path), ended=False)
    assert extent.first > 0


@pytest.mark.parametrize("uid", ["../..", "", "a/b", "no-such-pod", "x" * 300])
def test_the_uid_of_no_pod_has_no_extents(layout, uid):
    assert log_extents.of_pods(layout, [uid]) == []


def test_a_quiet_log_is_looked_at_without_listing_a_directory(layout, monkeypatch):
    written(layout)
    age(layout)
    first = log_extents.of_pods(layout, [UID])
    monkeypatch.setattr(os, "listdir", lambda path: pytest.fail(f"{path} was listed"))
    assert log_extents.of_pods(layout, [UID]) == first


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["write", "rotate", "end", "next attempt", "look", "age", "remove"]), max_size=20))
def test_whatever_happens_is_seen_at_the_next_look(tmp_path_factory, steps):
    layout = Layout(tmp_path_factory.mktemp("node"))
    attempt = 0
    path, log = written(layout)
    for step in steps:
        if step == "write" and path.exists():
            log.feed("stdout", b"more\n")
        elif step == "rotate" and path.exists():
            log._rotate()
        elif step == "end" and path.exists():
            (path / "status.json").write_text("{}")
        elif step == "next attempt":
            attempt += 1
            path, log = written(layout, attempt=attempt)
        elif step == "age":
            log_extents.of_pods(layout, [UID])
            age(layout)
            log_extents.of_pods(layout, [UID])
        elif step == "remove":
            shutil.rmtree(path, ignore_errors=True)
        known = log_extents.of_pods(layout, [UID])
        log_extents._known.clear()
        assert known == log_extents.of_pods(layout, [UID])
        if path.exists():
            assert known[-1].end == logs.end_of(path)
            assert known[-1].ended == (path / "status.json").exists()
