"""The front of several clusters: what it hands on arrives as it was sent, and comes back as it was answered."""

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from proof.harness.serving import in_loop
from proof.harness.waiting import HANG_S
from tests.tables import cases
from volcano_ui import sockets, web
from volcano_ui.front import Front, close_code


class Behind:
    """A web server as the front sees it: it answers with what it was asked."""

    def __init__(self):
        self.scopes = []

    async def __call__(self, scope, receive, send):
        self.scopes.append(scope)
        await (self.socket if scope["type"] == "websocket" else self.answer)(scope, receive, send)

    async def answer(self, scope, receive, send):
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        headers = [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"location", b"/c/one/there")]
        status = 302 if scope["path"].endswith("/moved") else 200
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for part in (scope["method"].encode(), b" ", scope["raw_path"], b"?", scope["query_string"], b" ", body):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        if not scope["path"].endswith("/broken"):
            await send({"type": "http.response.body"})

    async def socket(self, scope, receive, send):
        await receive()
        if scope["path"].endswith("/refused"):
            await send({"type": "websocket.close"})
            return
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            if message.get("text") == "end":
                await send({"type": "websocket.close", "code": 4401})
                return
            await send({**message, "type": "websocket.send"})


@pytest.fixture
async def behind(tmp_path):
    application = Behind()
    config = web.config(application, is_behind_front=True)
    async with in_loop(config, sockets.listen(tmp_path / "one.sock")):
        yield application


@pytest.fixture
async def port(tmp_path, behind):
    """The front's port; a cluster `one` that runs, and one that does not."""
    listener = web.listen("127.0.0.1", 0)
    front = Front({"one": tmp_path / "one.sock", "gone": tmp_path / "gone.sock"})
    async with in_loop(web.config(front), listener):
        yield listener.getsockname()[1]


@pytest.fixture
async def client(port):
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=HANG_S) as client:
        yield client


@cases("method, path, content", {
    "a query": ("GET", "/c/one/jobs/?a=1&b=%20", b""),
    "an escaped path": ("GET", "/c/one/jobs/%2F%3F/%C3%A4/", b""),
    "a form": ("POST", "/c/one/jobs/", b"name=x"),
    "a long body": ("PUT", "/c/one/", bytes(300_000)),
    "a deletion": ("DELETE", "/c/one/x", b""),
})  # fmt: skip
async def test_a_request_is_handed_on_as_it_was_sent(client, method, path, content):
    answer = await client.request(method, path, content=content)
    path, _, query = path.partition("?")
    assert answer.content == f"{method} {path}?{query} ".encode() + content


async def test_headers_go_both_ways_and_each_cookie_for_itself(client, behind):
    sent = {"cookie": "s=1", "host": "batch.example", "x-own": "ä".encode()}
    answer = await client.get("/c/one/moved", headers=sent)
    headers = dict(behind.scopes[-1]["headers"])
    assert (headers[b"host"], headers[b"cookie"], headers[b"x-own"]) == (b"batch.example", b"s=1", "ä".encode())
    assert answer.status_code == 302
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]


@pytest.fixture
def trusted(request, settings):
    """Proxies are believed before the front begins."""
    settings.TRUSTED_PROXIES = request.node.callspec.params["proxies"]


@cases("proxies, headers, asks", {
    "nobody is believed who was not named": (
        [], {"x-forwarded-for": "198.51.100.7", "x-forwarded-proto": "https"}, ("127.0.0.1", "http"),
    ),
    "whom a trusted proxy saw": (["127.0.0.1"], {"x-forwarded-for": "198.51.100.7"}, ("198.51.100.7", "http")),
    "not whom the request names": (
        ["127.0.0.1"], {"x-forwarded-for": "192.0.2.1, 198.51.100.7"}, ("198.51.100.7", "http"),
    ),
    "the scheme of a trusted proxy": (["127.0.0.1"], {"x-forwarded-proto": "https"}, ("127.0.0.1", "https")),
    "a trusted proxy itself": (["127.0.0.1"], {}, ("127.0.0.1", "http")),
})  # fmt: skip
async def test_who_asks_and_by_which_scheme(trusted, client, behind, proxies, headers, asks):
    await client.get("/c/one/", headers=headers)
    assert (behind.scopes[-1]["client"][0], behind.scopes[-1]["scheme"]) == asks


async def test_what_cannot_be_answered_says_so_and_the_other_clusters_go_on(client):
    with pytest.raises(httpx.RemoteProtocolError):
        await client.get("/c/one/broken")
    answer = await client.get("/c/gone/jobs/")
    assert (answer.status_code, "gone is not running" in answer.text) == (503, True)
    assert '<a href="/c/one/">one</a>' in answer.text
    assert (await client.get("/c/one/jobs/")).status_code == 200
    assert (await client.get("/jobs/?a=1")).headers["location"] == "/c/one/jobs/?a=1"
    unknown = await client.get("/c/%3Cb%3E/")
    assert (unknown.status_code, "<b>" in unknown.text) == (404, False)
    assert (await client.get("/healthz")).text == "ok"


async def test_a_socket_carries_messages_both_ways_and_closes_with_the_code_of_the_other_side(port):
    async with connect(f"ws://127.0.0.1:{port}/c/one/live/", open_timeout=HANG_S) as socket:
        for message in ("one", b"two", "x" * 60_000):
            await socket.send(message)
            assert await socket.recv() == message
        await socket.send("end")
        with pytest.raises(ConnectionClosed):
            await socket.recv()
    assert socket.close_code == 4401


def test_a_socket_is_closed_with_a_code_that_can_be_sent():
    assert [close_code(code) for code in (4401, 1000)] == [4401, 1000]
    assert [close_code(code) for code in (1006, 1005, None)] == [1013] * 3, "killed, without a code, no close at all"


@cases("path, status, words", {
    "by the web server": ("/c/one/refused", 403, "The web server of one refuses this socket"),
    "of a cluster that does not run": ("/c/gone/live/", 503, "gone is not running"),
    "of no cluster": ("/c/none/live/", 404, "There is no such cluster"),
    "before there were several": ("/live/", 404, "There is no such cluster"),
})  # fmt: skip
async def test_a_socket_that_nobody_takes_is_refused_with_the_reason(port, caplog, path, status, words):
    with pytest.raises(InvalidStatus) as refused:
        async with connect(f"ws://127.0.0.1:{port}{path}", open_timeout=HANG_S):
            pass
    answer = refused.value.response
    assert (answer.status_code, words in answer.body.decode()) == (status, True)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
