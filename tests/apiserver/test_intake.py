"""How many large bodies are in work at once, and whose."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from apiserver.http import app, bodies, intake, threads
from cluster.access import Actor
from kube.errors import TooManyRequests
from proof.harness.waiting import HANG_S, until
from tests.cluster.api.conftest import config_map

MAPS = "/api/v1/namespaces/default/configmaps"


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


def test_one_actor_has_one_large_body_in_work():
    async def main():
        bodies_of = intake.Intake()
        first = await bodies_of.begin("a")
        second = asyncio.create_task(bodies_of.begin("a"))
        other = await bodies_of.begin("b")
        third = asyncio.create_task(bodies_of.begin("c"))
        await settled()
        assert not second.done()
        assert not third.done()
        bodies_of.end(0, other)
        await third
        assert not second.done()
        bodies_of.end(0, first)
        assert await second

    asyncio.run(main())


def test_an_actor_with_many_large_bodies_is_told_to_wait(monkeypatch):
    monkeypatch.setattr(intake, "MOST_WAITING", 2)

    async def main():
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

    asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "size", "aside"),
    [
        (bodies.JSON, intake.LARGE - 200, False),
        (bodies.JSON, intake.LARGE + 200, True),
        (bodies.YAML, intake.LARGE_OTHER - 200, False),
        (bodies.YAML, intake.LARGE_OTHER + 200, True),
    ],
)
def test_a_body_that_takes_long_is_read_beside_the_loop(api, monkeypatch, kind, size, aside):
    read_in = []
    decode = bodies.decode
    monkeypatch.setattr(
        bodies, "decode", lambda *given: (read_in.append(threading.current_thread().name), decode(*given))[1]
    )
    text = '{"metadata": {"name": "a"}, "data": {"a": "%s"}}' % ("x" * size)
    assert api.post(MAPS, text, content_type=kind).status_code == 201
    assert [name.startswith("api-bodies") for name in read_in] == [aside]


def test_who_sends_a_body_slowly_takes_nobodys_place(api, monkeypatch):
    monkeypatch.setitem(app.MOST, "write", 1)
    begun = []
    body = app.Request.body

    def noted(request):
        begun.append(request)
        return body(request)

    monkeypatch.setattr(app.Request, "body", noted)
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        head = f"POST {MAPS} HTTP/1.1\r\nhost: a\r\nx-actor: {api.http.headers['x-actor']}\r\n"
        slow.sendall(head.encode() + b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        until(lambda: begun)
        assert api.post(MAPS, config_map("a")).status_code == 201


def test_nobody_waits_behind_all_writes_of_another_actor():
    order = []
    go = threading.Event()

    async def asked(who, what):
        threads.asking.set(who)
        await threads.write(lambda: (go.wait(HANG_S), order.append(what)))

    async def main():
        flood = [asyncio.create_task(asked("a", n)) for n in range(10)]
        await settled()
        other = asyncio.create_task(asked("b", "small"))
        await settled()
        go.set()
        await asyncio.gather(*flood, other)

    asyncio.run(main())
    assert order.index("small") <= 2
    assert [what for what in order if what != "small"] == list(range(10))


def test_the_threads_work_for_who_asked(api, monkeypatch):
    asked = set()
    run = threads.Pool.run

    def noted(pool, *arguments):
        asked.add(threads.asking.get())
        return run(pool, *arguments)

    monkeypatch.setattr(threads.Pool, "run", noted)
    api.as_(Actor("vera")).get(MAPS)
    assert "vera" in asked
