"""The follower, its memory of the recent past, and that a list and the watch from its revision agree with the store."""

from __future__ import annotations

import asyncio
import json
import threading

import hypothesis.strategies as st
import pytest
from django.db import OperationalError
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from starlette.datastructures import QueryParams

from apiserver.http import forms, listing, query
from apiserver.http import path as info
from apiserver.http.request import Request
from apiserver.watch import log_follower, watch, window
from apiserver.watch.log_follower import WatchFollower
from apiserver.watch.selection import WatchedChange
from cluster import access, clock, models
from cluster.store import Change, Create, Delete, Patch, store
from kube.resources import NODES, PODS
from proof.harness.waiting import HANG_S
from tests.apiserver.watch.world import in_db, make, phase, remove, until
from tests.campaign import scaled
from tests.tables import cases


def entry(revision, resource="pods", size=10):
    return WatchedChange(Change(revision, resource, "default", f"n-{revision}", "uid", "ADDED", 0, b"x" * size))


def opened(*kinds, at=10):
    buffer = window.Window()
    for kind in kinds:
        buffer.open(kind, at)
    return buffer


@cases("after, expected", {
    "from its beginning": (10, [11, 13, 14]),
    "from within": (13, [14]),
    "between two": (12, [13, 14]),
    "from its end": (14, []),
    "from after its end": (99, []),
    "from before its beginning": (9, None),
})  # fmt: skip
def test_the_window_tells_what_it_knows_in_full_or_nothing(after, expected):
    buffer = opened("pods")
    buffer.add([entry(11), entry(12, "nodes"), entry(13), entry(14)])
    found = buffer.since("pods", after)
    assert (None if found is None else [each.change.revision for each in found]) == expected
    assert buffer.since("nodes", 12) is None, "a kind that is not followed"
    buffer.close("pods")
    buffer.open("pods", 14)
    assert (buffer.since("pods", 13), buffer.since("pods", 14)) == (None, []), "a kind to which nothing happened"


@cases("size, count", {
    "count": (10, window.MAX_ENTRIES),
    "bytes": (window.MAX_BYTES // 4, 3),
    "bytes, to the last": (window.MAX_BYTES // 4 - entry(1, size=0).size, 4),
})  # fmt: skip
def test_the_window_is_bounded_and_says_so(size, count):
    buffer = opened("pods", "nodes", at=0)
    last = window.MAX_ENTRIES + 50
    buffer.add(entry(revision, size=size) for revision in range(1, last + 1))
    buffer.add([entry(last + 1, "nodes")])
    assert buffer.since("pods", last - count - 1) is None
    assert len(buffer.since("pods", last - count)) == count
    assert len(buffer.since("nodes", 0)) == 1


def nothing():
    pass


@pytest.fixture
async def follower(transactional_db, redis):
    it = WatchFollower()
    yield it
    await it.stop()


async def test_who_listens_is_called_for_each_change_in_order_whatever_befalls_others(follower):
    changes = []

    def broken(change):
        raise ValueError(change.name)

    follower.listen((PODS,), broken, nothing)
    follower.listen((PODS,), lambda change: changes.append((change.verb, change.name)), nothing)
    await make("before")
    await follower.start()
    await make("a")
    await phase("a", "Running")
    await remove("a")
    await until(lambda: len(changes) == 3, "three changes")
    assert changes == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert follower.position == await in_db(store.revision)()


async def test_what_nobody_wants_to_hear_of_is_not_read(follower):
    async def make_and_reach(name):
        await make(name)
        await follower.reach(await in_db(store.revision)())

    names = []
    follower.listen((NODES,), nothing, nothing)
    follower.listen_in_batches(lambda entries: names.extend(e.change.name for e in entries), nothing)
    await follower.start()
    await make_and_reach("a")
    async with follower.following(PODS):
        assert follower.window.since(PODS.id, follower.position) == []
        await make_and_reach("b")
    await make_and_reach("c")
    assert names == ["b"]
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
    names = [entry.change.name for entry in follower.window.since(PODS.id, since)]
    assert names == [change.name for change in await in_db(store.changes)(since)]
    assert names[-1] == "c"
    await following.__aexit__(None, None, None)


async def test_a_database_that_is_away_is_told_of_once(follower, monkeypatch, caplog):
    tries, changes = [], []

    def away(*_):
        tries.append(1)
        raise OperationalError("gone")

    monkeypatch.setattr(WatchFollower, "pace", WatchFollower.pace._replace(poll_s=0.01))
    await follower.start()
    with monkeypatch.context() as outage:
        outage.setattr(WatchFollower, "_read", away)
        await until(lambda: len(tries) > 2, "the tries")
    follower.listen((PODS,), changes.append, nothing)
    await make("a")
    await until(lambda: changes, "the change")
    first, last = [record for record in caplog.records if record.name == log_follower.__name__]
    assert (first.getMessage(), first.exc_info) == ("following the log is put off: gone", None)
    assert last.getMessage().startswith("following the log goes on")


NAMES = st.sampled_from(["a", "b", "c"])
NAMESPACES = st.sampled_from(["red", "blue"])
LABELS = st.sampled_from(["x", "y", "z"])
SELECTORS = st.sampled_from(
    [
        {}, {"labelSelector": "is=x"}, {"labelSelector": "is!=x"}, {"labelSelector": "is in (x,y)"},
        {"fieldSelector": "status.phase=x"}, {"fieldSelector": "metadata.name=a"},
        {"fieldSelector": "metadata.name!=a", "labelSelector": "is=y"}, {"fieldSelector": "metadata.namespace=red"},
    ]
)  # fmt: skip
PLACES = st.sampled_from(["", "red", "blue"])
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
BEGINNINGS = {"unset": {}, "zero": {"resourceVersion": "0"}, "initial": INITIAL}
MANY = st.lists(st.tuples(NAMES, NAMESPACES, LABELS), min_size=4, max_size=8)


class Memory:
    def __init__(self):
        self.data, self.closed, self.stream = b"", False, None

    async def open(self):
        await asyncio.sleep(0)

    async def send(self, lines):
        await asyncio.sleep(0)
        self.data += lines

    async def close(self):
        self.closed = True

    def attach(self, stream):
        self.stream = stream

    def detach(self):
        pass

    def abort(self):
        return True


class Mirror:
    """What a client makes of a list and of the events that follow it."""

    def __init__(self, options, namespace, objects, revision):
        self.options, self.watched_namespace = options, namespace
        self.objects, self.revision = objects, revision
        self.sink = Memory()
        self.read = 0

    def take(self):
        """Apply what came; each event must make sense after the one before it."""
        *lines, rest = self.sink.data[self.read :].split(b"\n")
        assert rest == b""
        self.read = len(self.sink.data)
        for event in map(json.loads, lines):
            verb, obj = event["type"], event["object"]
            assert verb != "ERROR", event
            if verb == "BOOKMARK":
                continue
            key = obj["metadata"]["namespace"], obj["metadata"]["name"]
            assert (verb == "ADDED") is (key not in self.objects), (verb, key)
            revision = int(obj["metadata"]["resourceVersion"])
            if self.revision is not None:
                assert revision > self.revision, (verb, key)
                self.revision = revision
            if verb == "DELETED":
                del self.objects[key]
            else:
                self.objects[key] = obj

    def wanted(self):
        page = listing.find(PODS, self.watched_namespace, self.options)
        return {(s.namespace, s.name): s.object for s in page.items}


class WatchMachine(RuleBasedStateMachine):
    loop: asyncio.AbstractEventLoop

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(HANG_S)

    @initialize()
    def start(self):
        for table in (models.Object, models.Change, models.Log):
            table.objects.all().delete()
        self.mirrors = []
        self.lists = []
        store.write(Create(PODS, {"metadata": {"name": "first", "namespace": "red"}, "spec": {}}))
        self.run(log_follower.follower.start())

    def teardown(self):
        if hasattr(self, "mirrors"):
            self.agree()
            self.run(self.end())

    async def end(self):
        for mirror, task in self.mirrors:
            mirror.sink.stream.end()
            await task
            assert mirror.sink.closed
        await log_follower.follower.stop()

    @rule(name=NAMES, namespace=NAMESPACES, label=LABELS, phase=LABELS)
    def write(self, name, namespace, label, phase):
        metadata = {"name": name, "namespace": namespace, "labels": {"is": label}}
        if store.by_keys(PODS, [f"{namespace}/{name}"]):
            store.write(Patch(PODS, namespace, name, {"metadata": {"labels": {"is": label}}}))
            store.write(Patch(PODS, namespace, name, {"status": {"phase": phase}}, "status"))
        else:
            store.write(Create(PODS, {"metadata": metadata, "spec": {}, "status": {"phase": phase}}))

    @rule(writes=MANY, watched_namespace=PLACES, selector=SELECTORS)
    def write_after_a_list(self, writes, watched_namespace, selector):
        """Many writes between a list and the watch that will follow it."""
        self.list_for_later(watched_namespace, selector)
        for name, namespace, label in writes:
            self.write(name, namespace, label, label)

    @rule(name=NAMES, namespace=NAMESPACES)
    def remove(self, name, namespace):
        if store.by_keys(PODS, [f"{namespace}/{name}"]):
            store.write(Delete(PODS, namespace, name, grace=0))

    def list_for_later(self, namespace, selector):
        options = query.list_options(QueryParams(selector), PODS)
        self.lists.append((namespace, selector, listing.find(PODS, namespace, options)))

    @precondition(lambda self: self.lists)
    @rule(forgotten=st.booleans())
    def open_late(self, forgotten):
        """A watch from an older list; `forgotten`: what came since is in the log alone."""
        self.run(log_follower.follower.reach(store.revision()))
        if forgotten:
            self.run(self.forget())
        self.follow(*self.lists.pop(0))

    async def forget(self):
        """What comes next must be read from the log by whoever begins before now."""
        log_follower.follower.begin(log_follower.follower.position)

    @rule(namespace=PLACES, selector=SELECTORS, beginning=st.sampled_from(["list", *BEGINNINGS]))
    def open(self, namespace, selector, beginning):
        """A watch that begins where its parameters say."""
        if beginning == "list":
            self.list_for_later(namespace, selector)
            self.follow(*self.lists.pop())
        else:
            self.follow(namespace, selector, None, BEGINNINGS[beginning])

    def follow(self, namespace, selector, page, params=None):
        options = query.list_options(QueryParams(selector), PODS)
        objects = {(s.namespace, s.name): s.object for s in page.items} if page else {}
        mirror = Mirror(options, namespace, objects, page.revision if page else None)
        version = {"resourceVersion": str(page.revision)} if page else params
        self.mirrors.append((mirror, self.run(self.begin(mirror, selector | version))))

    async def begin(self, mirror, params):
        path = f"/api/v1/namespaces/{mirror.watched_namespace}/pods" if mirror.watched_namespace else "/api/v1/pods"
        scope = {"type": "http", "method": "GET", "query_string": b"", "headers": [], "path": path}
        request = Request(scope, None, None, info.parse("GET", path, watch=True), clock.milliseconds())
        request.actor, request.form = access.SYSTEM, forms.PLAIN
        response = await watch(request, PODS, query.list_options(QueryParams(params), PODS))
        return asyncio.create_task(response.stream.run(mirror.sink))

    @precondition(lambda self: self.mirrors)
    @rule()
    def agree(self):
        self.run(self.settle())
        for mirror, _ in self.mirrors:
            mirror.take()
            assert mirror.objects == mirror.wanted()

    async def settle(self):
        """Wait until everything committed was sent to everybody."""
        head = await asyncio.to_thread(store.revision)
        await log_follower.follower.reach(head)
        async with asyncio.timeout(HANG_S):
            for mirror, task in self.mirrors:
                while not task.done() and (mirror.sink.stream._feed is None or mirror.sink.stream._queue):
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0.001)
                while mirror.sink.stream in mirror.sink.stream.keeper.sending:
                    await asyncio.sleep(0.001)


@pytest.fixture
def loop():
    running = asyncio.new_event_loop()
    thread = threading.Thread(target=running.run_forever, daemon=True)
    thread.start()
    yield running
    running.call_soon_threadsafe(running.stop)
    thread.join(HANG_S)
    running.close()


@pytest.mark.campaign
def test_list_and_watch_agree_with_the_store(transactional_db, loop, monkeypatch):
    monkeypatch.setattr(WatchFollower, "batch", 3)
    for name, small in {"OBJECTS": 2, "REPLAYED": 2, "SPAN": 5, "PIECE": 100}.items():
        monkeypatch.setattr(f"apiserver.watch.stream.{name}", small)
    WatchMachine.loop = loop
    options = {"stateful_step_count": 25, "deadline": None, "suppress_health_check": list(HealthCheck)}
    run_state_machine_as_test(WatchMachine, settings=settings(max_examples=scaled(15, 150), **options))
