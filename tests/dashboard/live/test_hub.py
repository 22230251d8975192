"""The hub and the socket over the real store and a real Redis."""

from __future__ import annotations

import asyncio
import time

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


async def test_a_page_hears_of_what_changes_and_of_nothing_else(alice):
    await in_db(world.make)("a")
    revision = (await in_db(world.make)("b")).revision
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC, revision)
        assert (await tab.hear(op="parts"))["set"] == {}
        await in_db(world.make)("elsewhere", "team-b")
        changed = await in_db(world.phase)("b", "Running")
        message = await tab.hear(op="parts")
        assert message == {
            "op": "parts",
            "id": TOPIC,
            "revision": changed.revision,
            "set": {"pod-b": '<li id="pod-b">Running</li>'},
        }


async def test_a_page_that_missed_something_gets_the_whole_state(alice):
    old = await in_db(world.make)("a")
    await in_db(world.make)("b")
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC, old.revision)
        message = await tab.hear(op="parts")
        assert message["order"] == ["pod-a", "pod-b"]
        assert set(message["set"]) == {"pod-a", "pod-b", "count"}


async def test_members_that_come_and_go_are_an_order(alice):
    await in_db(world.make)("a")
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        await in_db(world.make)("b")
        assert (await tab.hear(op="parts"))["order"] == ["pod-a", "pod-b"]
        await in_db(world.remove)("a")
        message = await tab.hear(op="parts")
        assert (message["order"], message["set"]) == (["pod-b"], {"count": '<b id="count">1</b>'})


async def test_a_topic_is_rendered_once_for_all_who_may_see_the_same(alice):
    bob = await in_db(world.person)("bob")
    await in_db(world.make)("a")
    async with Tab(alice) as one, Tab(alice) as two, Tab(bob) as three:
        tabs = (one, two, three)
        for tab in tabs:
            await tab.subscribe(TOPIC)
        for tab in tabs:
            await tab.hear(op="parts")
        before = hub.current().renders
        await in_db(world.phase)("a", "Running")
        for tab in tabs:
            assert (await tab.hear(op="parts"))["set"]
        assert hub.current().renders == before + 1


async def test_a_burst_becomes_few_messages_and_the_last_state_arrives(alice):
    await in_db(world.make)("a")
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        begun = time.monotonic()
        for number in range(100):
            await in_db(world.phase)("a", f"P{number}")
        await tab.hear(op="parts", set={"pod-a": '<li id="pod-a">P99</li>'})
        pauses = (time.monotonic() - begun) / hub.Hub.pace.shortest_s
        assert len([m for m in tab.got if m["op"] == "parts"]) <= 2 + pauses


async def test_a_topic_that_costs_much_rests_and_still_shows_the_last_state(alice, monkeypatch):
    monkeypatch.setattr(hub, "FREE_S", 0.0)
    monkeypatch.setattr(hub, "REST", 1e9)
    monkeypatch.setattr(hub, "LONGEST_REST_S", 0.5)
    await in_db(world.make)("a")
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        before, begun = hub.current().renders, time.monotonic()
        for number in range(50):
            await in_db(world.phase)("a", f"P{number}")
        await tab.hear(op="parts", set={"pod-a": '<li id="pod-a">P49</li>'})
        assert hub.current().renders - before <= (time.monotonic() - begun) / 0.5 + 1


async def test_who_comes_to_a_topic_that_rests_does_not_wait(alice, monkeypatch):
    monkeypatch.setattr(hub, "_rest", lambda spent: 3600.0)
    await in_db(world.make)("a")
    async with Tab(alice) as one, Tab(alice) as two:
        await one.subscribe(TOPIC)
        await one.hear(op="parts")
        await in_db(world.phase)("a", "Running")
        await two.subscribe(TOPIC)
        assert (await two.hear(op="parts"))["set"]["pod-a"] == '<li id="pod-a">Running</li>'


async def test_changes_arrive_without_redis_too(alice, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    await in_db(world.make)("a")
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        assert hub.current().polling
        await in_db(world.phase)("a", "Running")
        assert (await tab.hear(op="parts"))["set"]


async def test_history_that_expired_leads_to_the_whole_state(alice, monkeypatch):
    monkeypatch.setattr(hub.Hub, "most", 5)
    await in_db(world.make)("a")
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        await in_db(_many_at_once)()
        message = await tab.hear(op="parts")
        assert len(message["order"]) == 21


def _many_at_once():
    from django.db import transaction

    with transaction.atomic():
        for number in range(20):
            world.make(f"n{number}")


@cases("topic, words", {
    "another namespace": ("test:pods?namespace=team-b", "cannot list"),
    "no such topic": ("test:nothing", "There is no topic test:nothing."),
    "strange namespace": ("test:pods?namespace=%00", "cannot list"),
})  # fmt: skip
async def test_a_topic_that_one_may_not_see_is_denied(alice, topic, words):
    async with Tab(alice) as tab:
        await tab.subscribe(topic)
        assert words in (await tab.hear(op="denied", id=topic))["message"]


async def test_without_login_the_socket_is_closed_and_says_nothing(nobody):
    async with Tab(nobody) as tab:
        assert await tab.closing() == consumer.LOGGED_OUT


async def test_a_right_that_is_taken_away_closes_the_subscription(alice, monkeypatch):
    monkeypatch.setattr(rights_keeper, "LOOK_S", 0.05)
    session = await in_db(world.session_of)(alice)
    async with Tab(alice, session) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        await RoleBinding.objects.filter(user=alice).afirst()
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


@pytest.mark.parametrize("how", ["logout", "deactivation", "password"])
async def test_an_ended_session_closes_the_socket(alice, monkeypatch, how):
    monkeypatch.setattr(rights_keeper, "LOOK_S", 0.05)
    session = await in_db(world.session_of)(alice)
    async with Tab(alice, session) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        await in_db(_end)(alice, session, how)
        assert await tab.closing() == consumer.LOGGED_OUT


async def test_who_cannot_be_checked_is_not_served_on(alice, monkeypatch):
    monkeypatch.setattr(rights_keeper, "LOOK_S", 0.05)
    monkeypatch.setattr(sessions, "still_valid", _defect)
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        assert await tab.closing() == consumer.DEFECT


def _end(user, session, how):
    if how == "logout":
        session.delete()
    elif how == "deactivation":
        User.objects.filter(pk=user.pk).update(is_active=False)
    else:
        user.set_password("other")
        user.save()


@cases("message, code", {
    "not JSON": ("no json", consumer.UNREADABLE),
    "unknown op": ('{"op": "dance", "id": "x"}', consumer.UNREADABLE),
    "no id": ('{"op": "subscribe"}', consumer.UNREADABLE),
    "negative": ('{"op": "subscribe", "id": "t", "topic": "t", "revision": -1}', consumer.UNREADABLE),
    "too long": ('{"op": "ping", "x": "' + "x" * 20_000 + '"}', consumer.TOO_MUCH),
})  # fmt: skip
async def test_strange_messages_close_the_socket(alice, message, code):
    async with Tab(alice) as tab:
        await tab.say(message)
        assert await tab.closing() == code


async def test_a_flood_closes_the_socket(alice):
    async with Tab(alice) as tab:
        for _ in range(consumer.BURST + 10):
            await tab.ask(op="ping")
        assert await tab.closing() == consumer.TOO_MUCH


async def test_a_socket_closes_once_whatever_was_sent_before_the_client_learnt_of_it(alice):
    async with Tab(alice) as tab:
        for _ in range(consumer.BURST + 50):
            await tab.ask(op="ping")
        assert await tab.closing() == consumer.TOO_MUCH
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
    said = await refused.receive_output(timeout=HANG_S)
    assert (said["type"], said.get("status")) == answer


async def test_a_page_may_follow_only_so_many_things(alice):
    async with Tab(alice) as tab:
        for number in range(consumer.MOST_SUBSCRIPTIONS + 1):
            await tab.subscribe(f"{TOPIC}&phase={number}")
        assert "at most" in (await tab.hear(op="denied"))["message"]


async def test_a_socket_that_does_not_read_is_cut_off(alice):
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        (socket,) = hub.current()._sockets
        for _ in range(consumer.MOST_WAITING + 2):
            socket.offer("{}")
        assert await tab.closing() == consumer.TOO_SLOW


async def test_unsubscribing_ends_the_messages_and_the_rendering(alice):
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        await tab.ask(op="unsubscribe", id=TOPIC)
        await world.until(lambda: not hub.current()._renderings, "the rendering is forgotten")


async def test_the_hub_rests_when_the_last_tab_is_closed(alice):
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
    assert not hub.current()._tasks


@live.topic("test:broken")
def broken(request):
    """What a topic with a defect does: raise, or return what is no page."""
    if request.params["how"] == "raises":
        raise RuntimeError("a defect")
    return {"none": None, "parts": live.Parts({"a": object()}, ["a"], []), "watches": live.Parts({}, [], [["pods"]])}[
        request.params["how"]
    ]


@pytest.mark.parametrize("how", ["raises", "none", "parts", "watches"])
async def test_a_topic_with_a_defect_ends_alone(alice, monkeypatch, how):
    monkeypatch.setattr(hub, "MOST_FAILURES", 1)
    await in_db(world.make)("a")
    topic = f"test:broken?how={how}"
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts", id=TOPIC)
        await tab.subscribe(topic)
        assert (await tab.hear(op="denied", id=topic))["message"] == hub.FAILED
        await in_db(world.phase)("a", "Running")
        assert (await tab.hear(op="parts", id=TOPIC))["set"]


@cases("where, name", {
    "reading the log": (hub.Hub, "_read"),
    "finding what is stale": (rendering.WatchIndex, "match"),
    "rendering": (hub.Hub, "_render_stale"),
    "telling heads": (hub.Hub, "_tell_heads"),
})  # fmt: skip
async def test_a_defect_of_the_hub_loses_no_change(alice, monkeypatch, caplog, where, name):
    monkeypatch.setattr(hub.Hub, "pace", hub.Hub.pace._replace(poll_s=0.01))
    whole = getattr(where, name)
    await in_db(world.make)("a")
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        with monkeypatch.context() as defect:
            defect.setattr(where, name, _defect)
            await in_db(world.phase)("a", "Running")
            await world.until(lambda: "following the log failed" in caplog.text, "the defect is met")
        assert getattr(where, name) is whole
        assert (await tab.hear(op="parts"))["set"]


async def test_a_database_that_is_away_is_told_of_once(alice, monkeypatch, caplog):
    tries = []

    def away(*_):
        tries.append(1)
        raise OperationalError("gone")

    monkeypatch.setattr(hub.Hub, "pace", hub.Hub.pace._replace(poll_s=0.01))
    await in_db(world.make)("a")
    async with Tab(alice) as tab:
        await tab.subscribe(TOPIC)
        await tab.hear(op="parts")
        with monkeypatch.context() as outage:
            outage.setattr(hub.Hub, "_read", away)
            await in_db(world.phase)("a", "Running")
            await world.until(lambda: len(tries) > 2, "the tries")
        assert (await tab.hear(op="parts"))["set"]
    first, last = [record for record in caplog.records if record.name == hub.__name__]
    assert first.getMessage() == "following the log is put off: gone"
    assert last.getMessage().startswith("following the log goes on")
    assert first.exc_info is None


def _defect(*_):
    raise TypeError("a defect")


def _may(request):
    if request.params.get("pod") == "secret":
        raise Forbidden("pods are not for you")


@live.stream("test-log", may=_may)
async def lines(request):
    for number in range(int(request.params.get("after", 0)), 3):
        yield {"text": f"line {number}"}
    if "follow" in request.params:
        await asyncio.Event().wait()


async def test_a_stream_goes_on_where_the_page_asks(alice):
    async with Tab(alice) as tab:
        await tab.ask(op="subscribe", id="s1", stream="test-log?pod=a&after=1")
        await tab.hear(op="log", id="s1", end=True)
        assert [m["text"] for m in tab.got if "text" in m] == ["line 1", "line 2"]


@pytest.mark.parametrize(
    ("stream", "words"), [("test-log?pod=secret", "not for you"), ("nothing", "There is no stream")]
)
async def test_a_stream_that_one_may_not_read_is_denied(alice, stream, words):
    async with Tab(alice) as tab:
        await tab.ask(op="subscribe", id="s1", stream=stream)
        assert words in (await tab.hear(op="denied", id="s1"))["message"]


async def test_a_stream_ends_with_its_subscription(alice):
    async with Tab(alice) as tab:
        await tab.ask(op="subscribe", id="s1", stream="test-log?pod=a&follow=1")
        await tab.hear(op="log", text="line 2")
        await tab.ask(op="unsubscribe", id="s1")
        await tab.ask(op="ping")
        await tab.hear(op="head")
        await world.until(lambda: not [t for t in asyncio.all_tasks() if "_flow" in repr(t)], "the stream ends")


async def test_a_ping_is_answered_with_the_newest_revision(alice):
    async with Tab(alice) as tab:
        await tab.hear(op="head")
        await tab.ask(op="ping")
        assert (await tab.hear(op="head"))["revision"] == await in_db(store.revision)()


def test_the_time_that_is_promised_holds_what_a_look_can_take():
    assert sessions.FRESH_S + rights_keeper.LOOK_S < 2


async def test_tabs_of_one_user_share_what_is_read_of_his_rights(alice):
    async with Tab(alice), Tab(alice):
        first, second = hub.current()._sockets
        assert first.actor is second.actor


@live.stream("test-follow", may=lambda request: access.require(request.actor, "get", "pods/log", "team-a"))
async def followed(request):
    yield {"text": "begun"}
    await asyncio.Event().wait()


async def test_a_followed_log_ends_with_the_right_that_opened_it(alice):
    async with Tab(alice) as tab:
        await tab.ask(op="subscribe", id="s1", stream="test-follow")
        await tab.hear(op="log", text="begun")
        await in_db(RoleBinding.objects.filter(user=alice).update)(namespace="elsewhere")  # without a signal
        assert "cannot get" in (await tab.hear(op="denied", id="s1"))["message"]
        await world.until(lambda: not [t for t in asyncio.all_tasks() if "_flow" in repr(t)], "the stream ends")


async def told_after_looks(tab):
    """What a tab was denied, when its rights have been looked at twice more."""
    for _ in range(2):
        await hub.current().rights._look()
    await tab.ask(op="ping")
    await tab.hear(op="head", revision=await in_db(store.revision)())
    return [message["id"] for message in tab.got if message["op"] == "denied"]


async def test_the_loss_of_a_right_is_told_once(alice):
    async with Tab(alice) as tab:
        await tab.ask(op="subscribe", id="s1", stream="test-follow")
        await tab.hear(op="log", text="begun")
        await in_db(RoleBinding.objects.filter(user=alice).update)(namespace="elsewhere")
        await tab.hear(op="denied", id="s1")
        assert await told_after_looks(tab) == ["s1"]


async def test_a_stream_that_never_began_is_denied_once(alice):
    async with Tab(alice) as tab:
        await tab.ask(op="subscribe", id="s1", stream="test-log?pod=secret")
        await tab.hear(op="denied", id="s1")
        assert await told_after_looks(tab) == ["s1"]
