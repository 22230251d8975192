"""A list and the watch from its revision, against the store: nothing is missed and nothing comes twice."""

from __future__ import annotations

import asyncio
import json
import threading

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from starlette.datastructures import QueryParams

from apiserver.http import forms, query
from apiserver.http import path as info
from apiserver.http.request import Request
from apiserver.objects import listing
from apiserver.watch import watch
from apiserver.watch.log_follower import WatchFollower, follower
from cluster import access, clock, models
from cluster.store import Create, Delete, Patch, store
from kube.resources import PODS
from proof.harness.waiting import HANG_S
from tests.campaign import scaled

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
    """A sink that keeps what it is sent."""

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

    def __init__(self, options, place, objects, revision):
        self.options, self.place = options, place
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
        """What a list says now."""
        page = listing.find(PODS, self.place, self.options)
        return {(s.namespace, s.name): s.object for s in page.items}


class WatchMachine(RuleBasedStateMachine):
    """Random writes, and watches that begin anywhere among them."""

    loop: asyncio.AbstractEventLoop

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(HANG_S)

    @initialize()
    def start(self):
        for table in (models.Object, models.Change, models.Log):
            table.objects.all().delete()
        self.mirrors = []
        self.kept = []
        store.write(Create(PODS, {"metadata": {"name": "first", "namespace": "red"}, "spec": {}}))
        self.run(follower.start())

    def teardown(self):
        if hasattr(self, "mirrors"):
            self.agree()
            self.run(self.end())

    async def end(self):
        for mirror, task in self.mirrors:
            mirror.sink.stream.end()
            await task
            assert mirror.sink.closed
        await follower.stop()

    @rule(name=NAMES, namespace=NAMESPACES, label=LABELS, phase=LABELS)
    def write(self, name, namespace, label, phase):
        metadata = {"name": name, "namespace": namespace, "labels": {"is": label}}
        if store.by_keys(PODS, [f"{namespace}/{name}"]):
            store.write(Patch(PODS, namespace, name, {"metadata": {"labels": {"is": label}}}))
            store.write(Patch(PODS, namespace, name, {"status": {"phase": phase}}, "status"))
        else:
            store.write(Create(PODS, {"metadata": metadata, "spec": {}, "status": {"phase": phase}}))

    @rule(writes=MANY, place=PLACES, selector=SELECTORS)
    def write_after_a_list(self, writes, place, selector):
        """Many writes between a list and the watch that will follow it."""
        self.list_for_later(place, selector)
        for name, namespace, label in writes:
            self.write(name, namespace, label, label)

    @rule(name=NAMES, namespace=NAMESPACES)
    def remove(self, name, namespace):
        if store.by_keys(PODS, [f"{namespace}/{name}"]):
            store.write(Delete(PODS, namespace, name, grace=0))

    def list_for_later(self, place, selector):
        options = query.list_options(QueryParams(selector), PODS)
        self.kept.append((place, selector, listing.find(PODS, place, options)))

    @precondition(lambda self: self.kept)
    @rule(forgotten=st.booleans())
    def open_late(self, forgotten):
        """A watch from an older list; `forgotten`: what came since is in the log alone."""
        self.run(follower.reach(store.revision()))
        if forgotten:
            self.run(self.forget())
        self.follow(*self.kept.pop(0))

    async def forget(self):
        """What comes next must be read from the log by whoever begins before now."""
        follower.begin(follower.position)

    @rule(place=PLACES, selector=SELECTORS, beginning=st.sampled_from(["list", *BEGINNINGS]))
    def open(self, place, selector, beginning):
        """A watch that begins where its parameters say."""
        if beginning == "list":
            self.list_for_later(place, selector)
            self.follow(*self.kept.pop())
        else:
            self.follow(place, selector, None, BEGINNINGS[beginning])

    def follow(self, place, selector, page, params=None):
        options = query.list_options(QueryParams(selector), PODS)
        objects = {(s.namespace, s.name): s.object for s in page.items} if page else {}
        mirror = Mirror(options, place, objects, page.revision if page else None)
        version = {"resourceVersion": str(page.revision)} if page else params
        self.mirrors.append((mirror, self.run(self.begin(mirror, selector | version))))

    async def begin(self, mirror, params):
        path = f"/api/v1/namespaces/{mirror.place}/pods" if mirror.place else "/api/v1/pods"
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
        await follower.reach(head)
        async with asyncio.timeout(HANG_S):
            for mirror, task in self.mirrors:
                while not task.done() and (mirror.sink.stream._feed is None or mirror.sink.stream._queue):
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0.001)
                while mirror.sink.stream in mirror.sink.stream.keeper.sending:
                    await asyncio.sleep(0.001)


@pytest.fixture
def loop():
    """An event loop in a thread of its own."""
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
