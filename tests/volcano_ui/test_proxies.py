"""Who is believed to ask: the login limit and audit rows go by it."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import pytest
import uvicorn
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application

from cluster.access import logins
from cluster.models import AuditEntry
from tests.waiting import HANG_S
from volcano_ui import web

GUESSES = logins.MOST_FOR_NAME + 3


@pytest.fixture
async def site(transactional_db, settings):
    """Start a web server where these proxies are trusted; return a client of it."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(*proxies):
            settings.TRUSTED_PROXIES = list(proxies)
            listener = web.listen("127.0.0.1", 0)
            # Not that of volcano_ui.asgi, whose middleware keeps the settings of whoever imports it first.
            server = uvicorn.Server(web.config(get_asgi_application()))
            server.capture_signals = contextlib.nullcontext
            task = asyncio.create_task(server.serve([listener]))
            while not server.started:
                await asyncio.sleep(0.01)
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=address, timeout=HANG_S))

            async def stop():
                server.should_exit = True
                await task

            stack.push_async_callback(stop)
            return client

        yield start


async def guess(client, number):
    """Try a wrong password, in the name of another address each time."""
    await client.get("/login/")
    token = next(value for name, value in client.cookies.items() if "csrf" in name)
    form = {"username": "alice", "password": "wrong", "csrfmiddlewaretoken": token}
    headers = {"x-forwarded-for": f"198.51.100.{number}"}
    return (await client.post("/login/", data=form, headers=headers)).status_code


@pytest.mark.parametrize(
    ("proxies", "let_try"),
    [
        pytest.param([], logins.MOST_FOR_NAME, id="nobody is trusted"),
        pytest.param(["192.0.2.0/24"], logins.MOST_FOR_NAME, id="somebody else is trusted"),
        pytest.param(["127.0.0.0/8"], GUESSES, id="the proxy is trusted"),
    ],
)
async def test_a_forged_address_evades_no_limit(site, proxies, let_try):
    await User.objects.acreate(username="alice")
    client = await site(*proxies)
    answers = [await guess(client, number) for number in range(GUESSES)]
    assert answers.count(429) == GUESSES - let_try
    said = [row.message async for row in AuditEntry.objects.filter(verb="login")]
    assert len(said) == let_try
    assert all("198.51.100" in message for message in said) is (let_try == GUESSES)
