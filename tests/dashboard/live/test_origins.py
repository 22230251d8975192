"""Whose pages may open the live socket."""

from __future__ import annotations

import pytest
from asgiref.testing import ApplicationCommunicator

from dashboard.live.origins import OwnOrigin, is_own
from proof.harness.waiting import HANG_S

HOST = "127.0.0.1:8000"


@pytest.mark.parametrize(
    ("origin", "scheme", "host", "expected"),
    [
        pytest.param("http://127.0.0.1:8000", "ws", HOST, True, id="own"),
        pytest.param("https://batch.example", "wss", "batch.example", True, id="own over TLS"),
        pytest.param("https://batch.example:8443", "wss", "batch.example:8443", True, id="own port over TLS"),
        pytest.param("https://front.example", "ws", HOST, True, id="trusted"),
        pytest.param("http://127.0.0.1:9", "ws", HOST, False, id="another port"),
        pytest.param("http://127.0.0.1", "ws", HOST, False, id="no port"),
        pytest.param("https://127.0.0.1:8000", "ws", HOST, False, id="another scheme"),
        pytest.param("http://batch.example", "wss", "batch.example", False, id="plain to TLS"),
        pytest.param("http://localhost:8000", "ws", HOST, False, id="another name of the machine"),
        pytest.param("http://front.example", "ws", HOST, False, id="trusted in another scheme"),
        pytest.param("http://a.127.0.0.1:8000", "ws", HOST, False, id="below"),
        pytest.param("null", "ws", HOST, False, id="null"),
        pytest.param("", "ws", HOST, False, id="none"),
        pytest.param("http://", "ws", "", False, id="no host"),
    ],
)
async def test_an_origin_is_compared_whole(origin, scheme, host, expected, settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://front.example"]
    settings.ALLOWED_HOSTS = ["127.0.0.1", "batch.example"]
    assert is_own(origin, scheme, host, settings.CSRF_TRUSTED_ORIGINS) is expected
    assert await opens(scheme, host, origin) is expected


async def test_a_host_that_is_not_ours_has_no_own_origin(settings):
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    assert not await opens("ws", "evil.example", "http://evil.example")


async def test_who_is_refused_is_told_why(settings):
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    start, body = await answers("ws", HOST, "http://evil.example", extensions={"websocket.http.response": {}})
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 403)
    assert b"Only pages of this site" in body["body"]


async def opens(scheme, host, origin):
    """Whether a socket with these headers reaches the application."""
    (answer,) = await answers(scheme, host, origin)
    return answer["type"] == "websocket.accept"


async def answers(scheme, host, origin, **more):
    """Return what is sent to a socket with these headers."""

    async def accept(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})

    headers = [(b"host", host.encode()), *([(b"origin", origin.encode())] if origin else [])]
    scope = {"type": "websocket", "scheme": scheme, "path": "/live/", "headers": headers, **more}
    socket = ApplicationCommunicator(OwnOrigin(accept), scope)
    await socket.send_input({"type": "websocket.connect"})
    await socket.wait(timeout=HANG_S)
    found = []
    while not socket.output_queue.empty():
        found.append(socket.output_queue.get_nowait())
    return found
