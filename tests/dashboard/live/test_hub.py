"""The hub and the socket over the real store and a real Redis."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.contrib.auth.models import User
from django.db import OperationalError, transaction

from cluster import access
from cluster.models import RoleBinding
from cluster.store import store
from dashboard import live
from dashboard.live import consumer, hub, rendering, rights_keeper, sessions
from dashboard.routing import websocket_urlpatterns
from kube.errors import Forbidden
from kube.resources import PODS
from proof.harness.waiting import HANG_S
from tests.dashboard.live import world
from tests.dashboard.live.world import Tab, in_db
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]
TOPIC = "test:pods?namespace=team-a"
RUNNING = {"pod-a": '<li id="pod-a">Running</li>'}


@asynccontextmanager
async def open_tab(user, session=None):
    """A tab that shows the only pod, which is called a."""
    await in_db(world.make)("a")
    async with Tab(user, session) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        yield tab


@pytest.fixture
def looks_often(monkeypatch):
    monkeypatch.setattr(rights_keeper, "LOOK_S", 0.05)


async def test_a_page_hears_of_what_changes_and_of_nothing_else_and_gets_the_whole_state_if_it_missed_something(alice):
    revision = (await in_db(world.make)("a")).revision
    async with Tab(alice) as tab, Tab(alice) as late:
        await tab.subscribe(TOPIC, revision)
        assert (await tab.hear(op="parts"))["set"] == {}
        await in_db(world.make)("elsewhere", "team-b")
        changed = await in_db(world.phase)("a", "Running")
        assert await tab.hear(op="parts") == {"op": "parts", "id": TOPIC, "revision": changed.revision, "set": RUNNING}
        await in_db(world.make)("b")
        assert (await tab.hear(op="parts"))["order"] == ["pod-a", "pod-b"]
        await late.subscribe(TOPIC, revision)
        message = await late.hear(op="parts")
        assert (message["order"], set(message["set"])) == (["pod-a", "pod-b"], {"pod-a", "pod-b", "count"})
        await in_db(world.remove)("a")
        message = await tab.hear(op="parts")
        assert (message["order"], message["set"]) == (["pod-b"], {"count": '<b id="count">1</b>'})


async def test_a_topic_is_rendered_once_for_all_who_may_see_the_same(alice):
    bob = await in_db(world.person)("bob")
    async with open_tab(alice) as one, Tab(alice) as two, Tab(bob) as three:
        for tab in (two, three):
            await tab.subscribe(TOPIC)
            await tab.hear(op="parts")
        before = hub.current().renders
        await in_db(world.phase)("a", "Running")
        for tab in (one, two, three):
            assert (await tab.hear(op="parts"))["set"]
        assert hub.current().renders == before + 1
        assert len({id(socket.actor) for socket in hub.current()._sockets}) == 2, "tabs of one user share his rights"


@cases("limits", {
    "a burst": {},
    "a topic that costs much, and rests": {"FREE_S": 0.0, "REST": 1e9, "LONGEST_REST_S": 0.5},
})  # fmt: skip
async def test_many_changes_are_few_messages_of_which_the_last_has_the_last_state(alice, monkeypatch, limits):
    for name, value in limits.items():
        monkeypatch.setattr(hub, name, value)
    async with open_tab(alice) as tab:
        before, begun = hub.current().renders, time.monotonic()
        for number in range(100):
            await in_db(world.phase)("a", f"P{number}")
        await tab.hear(op="parts", set={"pod-a": '<li id="pod-a">P99</li>'})
        pauses = (time.monotonic() - begun) / (0.5 if limits else hub.Hub.pace.shortest_s)
        assert len([m for m in tab.got if m["op"] == "parts"]) <= 2 + pauses
        assert hub.current().renders - before <= 1 + pauses


async def test_who_comes_to_a_topic_that_rests_does_not_wait(alice, monkeypatch):
    monkeypatch.setattr(hub, "_rest", lambda spent: 3600.0)
    async with open_tab(alice), Tab(alice) as two:
        await in_db(world.phase)("a", "Running")
        await two.subscribe(TOPIC)
        assert (await two.hear(op="parts"))["set"]["pod-a"] == RUNNING["pod-a"]


async def test_changes_arrive_without_redis_and_expired_history_leads_to_the_whole_state(alice, settings, monkeypatch):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(hub.Hub, "most", 5)
    async with open_tab(alice) as tab:
        assert hub.current().polling
        await in_db(world.phase)("a", "Running")
        assert (await tab.hear(op="parts"))["set"]
        await in_db(transaction.atomic(lambda: [world.make(f"n{number}") for number in range(20)]))()
        assert len((await tab.hear(op="parts"))["order"]) == 21


@cases("what, words", {
    "another namespace": ({"topic": "test:pods?namespace=team-b"}, "cannot list"),
    "no such topic": ({"topic": "test:nothing"}, "There is no topic test:nothing."),
    "strange namespace": ({"topic": "test:pods?namespace=%00"}, "cannot list"),
    "a stream that one may not read": ({"stream": "test-log?pod=secret"}, "not for you"),
    "no such stream": ({"stream": "nothing"}, "There is no stream"),
})  # fmt: skip
async def test_what_one_may_not_see_is_denied(alice, what, words):
    async with Tab(alice) as tab:
        (name,) = what.values()
        await tab.ask(op="subscribe", id=name, revision=0, **what)
        assert words in (await tab.hear(op="denied", id=name))["message"]
        assert await denied_after_looks(tab) == [name]


@pytest.mark.usefixtures("looks_often")
async def test_a_right_that_is_taken_away_closes_the_subscription(alice):
    async with open_tab(alice) as tab:
        await in_db(lambda: [binding.delete() for binding in RoleBinding.objects.filter(user=alice)])()
        assert "cannot list" in (await tab.hear(op="denied", id=TOPIC))["message"]


@live.topic("test:places")
def places(request):
    """Where the reader may list pods, drawn again with each pod."""
    where = ", ".join(sorted(access.namespaces(request.actor, PODS)))
    return live.Parts({"places": f"<p>{where}</p>"}, ["places"], [live.Watch(PODS.id)])


async def test_who_may_see_more_from_now_on_does_not_show_it_to_those_who_read_with_him(alice):
    bob = await in_db(world.person)("bob")
    await in_db(world.make)("before")
    sessions_of = [await in_db(world.session_of)(user) for user in (alice, bob)]
    async with Tab(alice, sessions_of[0]) as first, Tab(bob, sessions_of[1]) as second:
        for tab in (first, second):
            await tab.subscribe("test:places")
            assert (await tab.hear(op="parts"))["set"] == {"places": "<p>team-a</p>"}
        await in_db(RoleBinding.objects.create)(user=alice, namespace="team-b", role="viewer")
        await in_db(world.make)("a")
        assert (await first.hear(op="parts"))["set"] == {"places": "<p>team-a, team-b</p>"}
        assert (await second.hear(op="parts"))["set"] == {"places": "<p>team-a</p>"}
        await in_db(_move)(bob)
        await in_db(world.make)("b")
        assert (await second.hear(op="parts"))["set"] == {"places": "<p>team-c, team-d</p>"}


def _move(user):
    """Give somebody other places, both at once; the first without a signal."""
    with transaction.atomic():
        RoleBinding.objects.filter(user=user).update(namespace="team-c")
        RoleBinding.objects.create(user=user, namespace="team-d", role="viewer")


def _new_password(user, session):
    user.set_password("other")
    user.save()


@pytest.mark.usefixtures("looks_often")
@cases("end", {
    "logout": lambda user, session: session.delete(),
    "deactivation": lambda user, session: User.objects.filter(pk=user.pk).update(is_active=False),
    "password": _new_password,
})  # fmt: skip
async def test_an_ended_session_closes_the_socket(alice, end):
    session = await in_db(world.session_of)(alice)
    async with open_tab(alice, session) as tab:
        await in_db(end)(alice, session)
        assert await tab.closing() == consumer.LOGGED_OUT


@pytest.mark.usefixtures("looks_often")
async def test_who_is_not_logged_in_or_cannot_be_checked_is_not_served(nobody, alice, monkeypatch):
    async with Tab(nobody) as tab:
        assert await tab.closing() == 4401  # which frontend/modules/socket.js takes for good
    monkeypatch.setattr(sessions, "still_valid", _defect)
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        assert await tab.closing() == consumer.DEFECT


@cases("message, times, code", {
    "not JSON": ("no json", 1, consumer.UNREADABLE),
    "unknown op": ('{"op": "dance", "id": "x"}', 1, consumer.UNREADABLE),
    "no id": ('{"op": "subscribe"}', 1, consumer.UNREADABLE),
    "negative": ('{"op": "subscribe", "id": "t", "topic": "t", "revision": -1}', 1, consumer.UNREADABLE),
    "too long": ('{"op": "ping", "x": "' + "x" * 20_000 + '"}', 1, consumer.TOO_MUCH),
    "a flood": ('{"op": "ping"}', consumer.BURST + 50, consumer.TOO_MUCH),
})  # fmt: skip
async def test_strange_messages_close_the_socket_once_whatever_was_sent_meanwhile(alice, message, times, code):
    async with Tab(alice) as tab:
        for _ in range(times):
            await tab.say(message)
        assert await tab.closing() == code
        await tab.ask(op="ping")
        await tab.say("no json")
        assert await tab.socket.receive_nothing(0.2)


@cases("extensions, answer", {
    "with a reason": ({"websocket.http.response": {}}, ("websocket.http.response.start", 404)),
    "where the server has no place for one": ({}, ("websocket.close", None)),
})  # fmt: skip
async def test_a_socket_at_another_address_is_refused(extensions, answer):
    scope = {"type": "websocket", "path": "/nope/", "extensions": extensions}
    refused = ApplicationCommunicator(URLRouter(websocket_urlpatterns), scope)
    await refused.send_input({"type": "websocket.connect"})
    message = await refused.receive_output(timeout=HANG_S)
    assert (message["type"], message.get("status")) == answer


async def test_a_page_may_follow_only_so_many_things(alice):
    async with Tab(alice) as tab:
        for number in range(consumer.MAX_SUBSCRIPTIONS + 1):
            await tab.subscribe(f"{TOPIC}&phase={number}")
        assert "at most" in (await tab.hear(op="denied"))["message"]


async def test_a_socket_that_does_not_read_is_cut_off(alice):
    async with open_tab(alice) as tab:
        (socket,) = hub.current()._sockets
        for _ in range(consumer.MAX_WAITING + 2):
            socket.offer("{}")
        assert await tab.closing() == consumer.TOO_SLOW


async def test_what_nobody_follows_is_not_rendered_and_a_hub_without_tabs_rests(alice):
    async with open_tab(alice) as tab:
        await tab.ask(op="unsubscribe", id=TOPIC)
        await world.until(lambda: not hub.current()._renderings, "the rendering is forgotten")
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
    assert not hub.current()._tasks


BROKEN = {"none": None, "parts": live.Parts({"a": object()}, ["a"], []), "watches": live.Parts({}, [], [["pods"]])}


@live.topic("test:broken")
def broken(request):
    """What a topic with a defect does: raise, or return what is no page."""
    return BROKEN[request.params["how"]]


@pytest.mark.parametrize("how", ["raises", *BROKEN])
async def test_a_topic_with_a_defect_ends_alone(alice, monkeypatch, how):
    monkeypatch.setattr(hub, "MAX_FAILURES", 1)
    topic = f"test:broken?how={how}"
    async with open_tab(alice) as tab:
        await tab.subscribe(topic)
        assert (await tab.hear(op="denied", id=topic))["message"] == hub.FAILED
        await in_db(world.phase)("a", "Running")
        assert (await tab.hear(op="parts", id=TOPIC))["set"]


@pytest.fixture
def polls_often(monkeypatch):
    monkeypatch.setattr(hub.Hub, "pace", hub.Hub.pace._replace(poll_s=0.01))


@pytest.mark.usefixtures("polls_often")
@cases("where, name", {
    "reading the log": (hub.Hub, "_read"), "finding what is stale": (rendering.WatchIndex, "match"),
    "rendering": (hub.Hub, "_render_stale"), "sending heads": (hub.Hub, "_send_heads"),
})  # fmt: skip
async def test_a_defect_of_the_hub_loses_no_change(alice, monkeypatch, caplog, where, name):
    whole = getattr(where, name)
    async with open_tab(alice) as tab:
        with monkeypatch.context() as defect:
            defect.setattr(where, name, _defect)
            await in_db(world.phase)("a", "Running")
            await world.until(lambda: "following the log failed" in caplog.text, "the defect is met")
        assert getattr(where, name) is whole
        assert (await tab.hear(op="parts"))["set"]


@pytest.mark.usefixtures("polls_often")
async def test_a_database_that_is_away_is_told_of_once(alice, monkeypatch, caplog):
    tries = []

    def away(*_):
        tries.append(1)
        raise OperationalError("gone")

    async with open_tab(alice) as tab:
        with monkeypatch.context() as outage:
            outage.setattr(hub.Hub, "_read", away)
            await in_db(world.phase)("a", "Running")
            await world.until(lambda: len(tries) > 2, "the tries")
        assert (await tab.hear(op="parts"))["set"]
    first, last = [record for record in caplog.records if record.name == hub.__name__]
    assert (first.getMessage(), first.exc_info) == ("following the log is put off: gone", None)
    assert last.getMessage().startswith("following the log goes on")


def _defect(*_):
    raise TypeError("a defect")


def _may(request):
    if request.params.get("pod") == "secret":
        raise Forbidden("pods are not for you")
    access.require(request.actor, "get", "pods/log", "team-a")


@live.stream("test-log", may=_may)
async def lines(request):
    for number in range(int(request.params.get("after", 0)), 3):
        yield {"text": f"line {number}"}
    if "follow" in request.params:
        await asyncio.Event().wait()


def flows():
    return [each for each in asyncio.all_tasks() if "_flow" in repr(each)]


async def test_a_stream_goes_on_where_the_page_asks_and_ends_with_its_subscription(alice):
    async with Tab(alice) as tab:
        await tab.ask(op="subscribe", id="s1", stream="test-log?pod=a&after=1")
        await tab.hear(op="log", id="s1", end=True)
        assert [m["text"] for m in tab.got if "text" in m] == ["line 1", "line 2"]
        await tab.ask(op="subscribe", id="s2", stream="test-log?pod=a&follow=1")
        await tab.hear(op="log", id="s2", text="line 2")
        await tab.ask(op="unsubscribe", id="s2")
        await world.until(lambda: not flows(), "the stream ends")
        await tab.ask(op="ping")
        await tab.hear(op="head", revision=await in_db(store.revision)())


async def test_a_followed_log_ends_with_the_right_that_opened_it_and_says_so_once(alice):
    async with Tab(alice) as tab:
        await tab.ask(op="subscribe", id="s1", stream="test-log?follow=1")
        await tab.hear(op="log", text="line 2")
        await in_db(RoleBinding.objects.filter(user=alice).update)(namespace="elsewhere")  # without a signal
        assert "cannot get" in (await tab.hear(op="denied", id="s1"))["message"]
        await world.until(lambda: not flows(), "the stream ends")
        assert await denied_after_looks(tab) == ["s1"]


async def denied_after_looks(tab):
    """Return the ids that a tab was denied, when its rights have been looked at twice more."""
    for _ in range(2):
        await hub.current().rights._look()
    await tab.ask(op="ping")
    await tab.hear(op="head", revision=await in_db(store.revision)())
    return [message["id"] for message in tab.got if message["op"] == "denied"]


def test_the_time_that_is_promised_holds_what_a_look_can_take():
    assert sessions.FRESH_S + rights_keeper.LOOK_S < 2
