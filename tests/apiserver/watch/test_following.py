"""The follower and its memory of the recent past."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.db import OperationalError

from apiserver.watch import log_follower, window
from apiserver.watch.log_follower import WatchFollower
from apiserver.watch.selection import WatchedChange
from cluster.store import Change, sql, store
from kube.resources import NODES, PODS
from proof.harness.waiting import HANG_S
from tests.apiserver.watch.world import in_db, make, phase, remove, until
from tests.tables import cases


def entry(revision, resource="pods", size=10):
    return WatchedChange(Change(revision, resource, "default", f"n-{revision}", "uid", "ADDED", 0, b"x" * size))


def opened(*kinds, at=10):
    kept = window.Window()
    for kind in kinds:
        kept.open(kind, at)
    return kept


@cases("after, expected", {
    "from its beginning": (10, [11, 13, 14]),
    "from within": (13, [14]),
    "between two": (12, [13, 14]),
    "from its end": (14, []),
    "from after its end": (99, []),
    "from before its beginning": (9, None),
})  # fmt: skip
def test_the_window_tells_what_it_knows_in_full_or_nothing(after, expected):
    kept = opened("pods")
    kept.add([entry(11), entry(12, "nodes"), entry(13), entry(14)])
    found = kept.since("pods", after)
    assert (None if found is None else [each.change.revision for each in found]) == expected
    assert kept.since("nodes", 12) is None, "a kind that is not followed"
    kept.close("pods")
    kept.open("pods", 14)
    assert (kept.since("pods", 13), kept.since("pods", 14)) == (None, []), "a kind to which nothing happened"


@cases("size, count", {
    "count": (10, window.MOST_ENTRIES),
    "bytes": (window.MOST_BYTES // 4, 3),
    "bytes, to the last": (window.MOST_BYTES // 4 - entry(1, size=0).size, 4),
})  # fmt: skip
def test_the_window_is_bounded_and_says_so(size, count):
    kept = opened("pods", "nodes", at=0)
    last = window.MOST_ENTRIES + 50
    kept.add(entry(revision, size=size) for revision in range(1, last + 1))
    kept.add([entry(last + 1, "nodes")])
    assert kept.since("pods", last - count - 1) is None
    assert len(kept.since("pods", last - count)) == count
    assert len(kept.since("nodes", 0)) == 1


def nothing():
    pass


@pytest.fixture
async def follower(transactional_db, redis):
    it = WatchFollower()
    yield it
    await it.stop()


async def test_who_listens_is_called_for_each_change_in_order_whatever_befalls_others(follower):
    heard = []

    def broken(change):
        raise ValueError(change.name)

    follower.listen((PODS,), broken, nothing)
    follower.listen((PODS,), lambda change: heard.append((change.verb, change.name)), nothing)
    await make("before")
    await follower.start()
    await make("a")
    await phase("a", "Running")
    await remove("a")
    await until(lambda: len(heard) == 3, "three changes")
    assert heard == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    await follower.stop()
    await make("meanwhile")
    await follower.start()
    await make("b")
    await until(lambda: len(heard) > 3, "the change")
    assert heard[3:] == [("ADDED", "b")]
    assert follower.position == await in_db(store.revision)()


async def test_what_nobody_wants_to_hear_of_is_not_read(follower):
    async def make_and_reach(name):
        await make(name)
        await follower.reach(await in_db(store.revision)())

    heard = []
    follower.listen((NODES,), nothing, nothing)
    follower.listen_in_batches(lambda entries: heard.extend(e.change.name for e in entries), nothing)
    await follower.start()
    await make_and_reach("a")
    async with follower.following(PODS):
        assert follower.window.since(PODS.id, follower.position) == []
        await make_and_reach("b")
    await make_and_reach("c")
    assert heard == ["b"]
    assert follower.window.since(PODS.id, follower.position) is None


async def test_a_kind_that_is_followed_during_a_pass_without_it_lacks_nothing(follower, monkeypatch):
    """That pass goes beyond changes of the kind that it has not read: the window begins behind it."""
    read, gate, reading = WatchFollower._read, threading.Event(), threading.Event()

    def slow(self, after, wanted):
        found = read(self, after, wanted)
        if store.revision() > after:
            reading.set()
            gate.wait(HANG_S)
        return found

    monkeypatch.setattr(WatchFollower, "_read", slow)
    await follower.start()
    before = follower.position
    await make("a")
    await until(reading.is_set, "a pass with something to read")
    following = follower.following(PODS)
    beginning = asyncio.create_task(following.__aenter__())
    await make("b")
    assert follower.window.since(PODS.id, before) is None
    gate.set()
    await beginning
    since = follower.position
    await make("c")
    await follower.reach(await in_db(store.revision)())
    kept = [entry.change.name for entry in follower.window.since(PODS.id, since)]
    assert kept == [change.name for change in await in_db(store.changes)(since)]
    assert kept[-1] == "c"
    await following.__aexit__(None, None, None)


async def test_a_follower_that_was_overtaken_by_retention_says_so_and_goes_on(follower, monkeypatch):
    heard, lost, log_row = [], [], sql.log_row
    follower.listen((PODS,), lambda change: heard.append(change.name), lambda: lost.append(follower.position))
    await make("a")
    await follower.start()
    monkeypatch.setattr(sql, "log_row", lambda using: (log_row(using)[0], 1 << 40))
    unheard = await make("unheard")
    await until(lambda: unheard in lost, "the loss")
    monkeypatch.undo()
    await make("b")
    await until(lambda: "b" in heard, "the change after it")
    assert heard == ["b"]


async def test_a_database_that_is_away_is_told_of_once(follower, monkeypatch, caplog):
    tries, heard = [], []

    def away(*_):
        tries.append(1)
        raise OperationalError("gone")

    monkeypatch.setattr(WatchFollower, "pace", WatchFollower.pace._replace(poll_s=0.01))
    await follower.start()
    with monkeypatch.context() as outage:
        outage.setattr(WatchFollower, "_read", away)
        await until(lambda: len(tries) > 2, "the tries")
    follower.listen((PODS,), heard.append, nothing)
    await make("a")
    await until(lambda: heard, "the change")
    first, last = [record for record in caplog.records if record.name == log_follower.__name__]
    assert (first.getMessage(), first.exc_info) == ("following the log is put off: gone", None)
    assert last.getMessage().startswith("following the log goes on")
