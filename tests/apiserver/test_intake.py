"""How many requests and large bodies are in work at once, and whose."""

from __future__ import annotations

import asyncio
import socket
import threading

import httpx
import pytest

from apiserver.http import app, bodies, intake, routes, threads
from apiserver.http.respond import success
from apiserver.telemetry import telemetry
from cluster import access
from kube import resources
from kube.errors import TooManyRequests
from proof.harness.waiting import HANG_S, until
from tests.apiserver.test_write_queue import settled
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
