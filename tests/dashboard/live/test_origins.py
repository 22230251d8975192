"""Whose pages may open the live socket."""

from asgiref.testing import ApplicationCommunicator

from dashboard.live.origins import OwnOrigin, is_own
from proof.harness.waiting import HANG_S
from tests.tables import cases

HOST = "127.0.0.1:8000"


@cases("origin, scheme, host, expected", {
    "own": ("http://127.0.0.1:8000", "ws", HOST, True), "trusted": ("https://front.example", "ws", HOST, True),
    "own over TLS": ("https://batch.example", "wss", "batch.example", True),
    "own port over TLS": ("https://batch.example:8443", "wss", "batch.example:8443", True),
    "another port": ("http://127.0.0.1:9", "ws", HOST, False), "no port": ("http://127.0.0.1", "ws", HOST, False),
    "another scheme": ("https://127.0.0.1:8000", "ws", HOST, False),
    "plain to TLS": ("http://batch.example", "wss", "batch.example", False),
    "another name of the machine": ("http://localhost:8000", "ws", HOST, False),
    "trusted in another scheme": ("http://front.example", "ws", HOST, False),
    "below": ("http://a.127.0.0.1:8000", "ws", HOST, False), "null": ("null", "ws", HOST, False),
    "none": ("", "ws", HOST, False), "no host": ("http://", "ws", "", False),
})  # fmt: skip
async def test_an_origin_is_compared_whole(origin, scheme, host, expected, settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://front.example"]
    settings.ALLOWED_HOSTS = ["127.0.0.1", "batch.example"]
    assert is_own(origin, scheme, host, settings.CSRF_TRUSTED_ORIGINS) is expected
    assert await opens(scheme, host, origin) is expected


async def test_a_host_that_is_not_ours_has_no_own_origin_and_who_is_refused_is_told_why(settings):
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    assert not await opens("ws", "evil.example", "http://evil.example")
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
