from __future__ import annotations

import asyncio

import httpx
import pytest

from apiserver.http import app as apps
from apiserver.http import routes
from apiserver.http.app import App
from apiserver.http.respond import success
from apiserver.telemetry import telemetry
from cluster import access
from kube import resources


@pytest.fixture
def held(monkeypatch):
    """A computed kind whose answers wait until they are let go."""
    gate = asyncio.Event()
    kind = next(each for each in resources.VIRTUAL if "create" in each.verbs and not each.namespaced)

    async def wait(request):
        await gate.wait()
        return success(request)

    monkeypatch.setitem(routes._virtual, kind.id, wait)
    monkeypatch.setattr(routes, "_everybody", {*routes._everybody, kind.id})
    monkeypatch.setitem(apps.MOST, "write", 2)
    return gate, f"/apis/{kind.group}/{kind.version}/{kind.plural}"


async def test_a_request_too_many_is_told_to_come_back(held):
    gate, path = held

    async def system(headers):
        return access.SYSTEM

    transport = httpx.ASGITransport(App(system))
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
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
