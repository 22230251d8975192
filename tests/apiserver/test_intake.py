"""How many requests and large bodies are in work at once, and whose; in which order what waits is written."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from apiserver.http import app, bodies, intake, routes, threads, write_queue
from apiserver.http.respond import success
from apiserver.http.write_queue import Call, WriteQueue
from apiserver.telemetry import telemetry
from cluster import access
from cluster.access import MASTERS, Actor
from cluster.store import store
from kube import resources
from kube.errors import Conflict, TooManyRequests
from kube.resources import CONFIGMAPS
from proof.harness.waiting import HANG_S, until
from tests.builders import config_map

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_request_too_many_is_told_to_come_back(monkeypatch):
    gate = asyncio.Event()
    kind = next(each for each in resources.VIRTUAL if "create" in each.verbs and not each.namespaced)

    async def wait(request):
        await gate.wait()
        return success(request)

    async def system(headers):
        return access.SYSTEM

    monkeypatch.setitem(routes._virtual, kind.id, wait)
    monkeypatch.setattr(routes, "_everybody", {*routes._everybody, kind.id})
    monkeypatch.setitem(app.MOST, "write", 2)
    path = f"/apis/{kind.group}/{kind.version}/{kind.plural}"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app.App(system)), base_url="http://api") as client:
        first = [asyncio.create_task(client.post(path, json={})) for _ in range(2)]
        while 'request_kind="mutating"} 2' not in telemetry.text():
            await asyncio.sleep(0)
        refused = await client.post(path, json={})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert refused.json()["reason"] == "TooManyRequests"
        gate.set()
        assert [answer.status_code for answer in await asyncio.gather(*first)] == [200, 200]
        assert (await client.post(path, json={})).status_code == 200
    assert 'request_kind="mutating"} 0' in telemetry.text()


async def test_one_actor_has_one_large_body_in_work():
    bodies_of = intake.Intake()
    first = await bodies_of.begin("a")
    second = asyncio.create_task(bodies_of.begin("a"))
    other = await bodies_of.begin("b")
    third = asyncio.create_task(bodies_of.begin("c"))
    await settled()
    assert (second.done(), third.done()) == (False, False)
    bodies_of.end(0, other)
    await third
    assert not second.done()
    bodies_of.end(0, first)
    assert await second


async def test_an_actor_with_many_large_bodies_is_told_to_wait(monkeypatch):
    monkeypatch.setattr(intake, "MOST_WAITING", 2)
    bodies_of = intake.Intake()
    first = await bodies_of.begin("a")
    waiting = [asyncio.create_task(bodies_of.begin("a")) for _ in range(2)]
    await settled()
    with pytest.raises(TooManyRequests):
        await bodies_of.begin("a")
    await bodies_of.begin("b")
    for task in waiting:
        task.cancel()  # a client that goes away while it waits takes nobody's turn
    await settled()
    bodies_of.end(0, first)
    await bodies_of.begin("a")


@pytest.mark.parametrize(("kind", "large"), [(bodies.JSON, intake.LARGE), (bodies.YAML, intake.LARGE_OTHER)])
def test_a_body_that_takes_long_is_read_beside_the_loop(api, monkeypatch, kind, large):
    read_in, decode = [], bodies.decode
    note = threading.current_thread
    monkeypatch.setattr(bodies, "decode", lambda *given: (read_in.append(note().name), decode(*given))[1])
    for name, size in (("a", large - 200), ("b", large + 200)):
        text = f'{{"metadata": {{"name": "{name}"}}, "data": {{"a": "{"x" * size}"}}}}'
        assert api.post(MAPS, text, content_type=kind).status_code == 201
    assert [name.startswith("api-bodies") for name in read_in] == [False, True]


def test_who_sends_a_body_slowly_takes_nobodys_place(api, monkeypatch):
    monkeypatch.setitem(app.MOST, "write", 1)
    begun, body = [], app.Request.body
    monkeypatch.setattr(app.Request, "body", lambda request: (begun.append(request), body(request))[1])
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        head = f"POST {MAPS} HTTP/1.1\r\nhost: a\r\nx-actor: {api.http.headers['x-actor']}\r\n"
        slow.sendall(head.encode() + b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        until(lambda: begun)
        assert api.post(MAPS, config_map("a")).status_code == 201


async def test_nobody_waits_behind_all_writes_of_another_actor():
    order, go = [], threading.Event()

    async def asked(who, what):
        threads.asking.set(who)
        await threads.write(lambda: (go.wait(HANG_S), order.append(what)))

    flood = [asyncio.create_task(asked("a", n)) for n in range(10)]
    await settled()
    other = asyncio.create_task(asked("b", "small"))
    await settled()
    go.set()
    await asyncio.gather(*flood, other)
    assert order.index("small") <= 2
    assert [what for what in order if what != "small"] == list(range(10))


def test_the_threads_work_for_who_asked(api, monkeypatch):
    asked, run = set(), threads.Pool.run
    monkeypatch.setattr(threads.Pool, "run", lambda *given: (asked.add(threads.asking.get()), run(*given))[1])
    api.as_(access.Actor("vera")).get(MAPS)
    assert "vera" in asked


CLIENTS, EACH = 16, 12


class Waiting:
    """Calls that pile up while the thread is held; `turns` are the items that were done together."""

    def __init__(self):
        self.queue, self.turns, self.go = WriteQueue("test-write"), [], threading.Event()

    def do(self, items, more):
        self.go.wait(HANG_S)
        items = [*items, *(more() if items[0].startswith("long") else ())]
        self.turns.append(items)
        return [Conflict(item) if item.startswith("bad") else item.upper() for item in items]

    def call(self, actor, item, kind="maps", do=None):
        return asyncio.create_task(self.queue.run(actor, Call(do or self.do, item, kind)))

    async def held(self):
        """Hold the thread with a call of its own."""
        first = self.call("nobody", "first", None)
        await settled()
        return first

    async def answers(self, *tasks):
        """Let the thread go; return the outcomes, a conflict as its text."""
        await settled()
        self.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        return [f"refused {each}" if isinstance(each, Conflict) else each for each in found]


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def waiting():
    return Waiting()


async def test_what_waits_is_done_together_by_kind_and_each_gets_its_own_outcome(waiting):
    given = [("a", "x", "maps"), ("a", "p", "pods"), ("a", "alone", None), ("b", "bad", "maps"), ("b", "q", "pods")]
    found = await waiting.answers(await waiting.held(), *(waiting.call(*each) for each in given))
    assert waiting.turns == [["first"], ["x", "bad"], ["q", "p"], ["alone"]]
    assert found == ["FIRST", "X", "P", "ALONE", "refused bad", "Q"]


async def test_whose_turn_it_is_does_not_wait_behind_a_flood(waiting):
    flood = [waiting.call("a", f"a{number}", None) for number in range(5)]
    await settled()
    await waiting.answers(*flood, waiting.call("b", "b", None))
    assert [turn[0] for turn in waiting.turns] == ["a0", "a1", "b", "a2", "a3", "a4"]


async def test_who_had_to_wait_itself_takes_what_came_meanwhile(waiting):
    first = waiting.call("a", "long")
    await settled()
    late = [waiting.call("b", "x"), waiting.call("c", "p", "pods"), waiting.call("a", "bad")]
    assert await waiting.answers(first, *late) == ["LONG", "X", "P", "refused bad"]
    assert waiting.turns == [["long", "x", "bad"], ["p"]]


async def test_a_turn_has_a_size(waiting, monkeypatch):
    monkeypatch.setattr(write_queue, "MOST_TOGETHER", 3)
    await waiting.answers(await waiting.held(), *(waiting.call("a", f"x{n}") for n in range(7)))
    assert [len(turn) for turn in waiting.turns] == [1, 3, 3, 1]


async def test_what_nobody_waits_for_any_more_is_not_done(waiting):
    first, gone, kept = await waiting.held(), waiting.call("a", "gone"), waiting.call("b", "kept")
    also = waiting.call("c", "also gone")
    await settled()
    gone.cancel()
    also.cancel()
    await waiting.answers(first, kept)
    assert waiting.turns == [["first"], ["kept"]]


async def test_what_the_function_raises_is_raised_for_all_and_the_next_turn_comes(waiting):
    def fail(items, more):
        raise ZeroDivisionError

    broken = [waiting.call("a", n, "broken", fail) for n in range(3)]
    *failed, last = await waiting.answers(*broken, waiting.call("b", "x"))
    assert ([type(each) for each in failed], last) == ([ZeroDivisionError] * 3, "X")


def test_a_loop_that_ended_in_the_middle_leaves_nothing_behind(waiting):
    async def left():
        await waiting.held()
        waiting.call("a", "never done")
        await settled()

    async def main():
        return await waiting.answers(waiting.call("b", "x"))

    asyncio.run(left())
    assert asyncio.run(main()) == ["X"]
    assert waiting.turns == [["first"], ["x"]]


def test_many_clients_get_revisions_without_gaps_and_in_the_order_of_the_log(api):
    before = store.revision()

    def client(number):
        mine = api.as_(Actor(f"system:client-{number}", (MASTERS,)))
        found = [mine.post(MAPS, config_map(f"map-{number}-{n}")) for n in range(EACH)]
        assert {answer.status_code for answer in found} == {201}
        return [int(answer.json()["metadata"]["resourceVersion"]) for answer in found]

    with ThreadPoolExecutor(CLIENTS) as threads:
        versions = list(threads.map(client, range(CLIENTS)))
    assert all(mine == sorted(mine) for mine in versions), "each answer came before the next request"
    found = [change.revision for change in store.changes(before) if change.resource == CONFIGMAPS.id]
    assert sorted(version for mine in versions for version in mine) == found
    assert found == list(range(found[0], found[0] + CLIENTS * EACH))
