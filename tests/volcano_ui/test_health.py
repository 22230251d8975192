"""The health of the web server, and that of programs without pages, over HTTP."""

import socket
from pathlib import Path

import httpx
import pytest

from cluster.version import VERSION
from proof.harness.waiting import HANG_S
from tests.tables import cases
from volcano_ui import web
from volcano_ui.supervision.health_server import HealthServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def health(client, settings, tmp_path, redis_url):
    """Ask a web server for its health whose Redis answers."""
    settings.DATA, settings.REDIS_URL = tmp_path, redis_url
    return lambda: client.get("/healthz")


def test_healthy(health):
    answer, headers = health(), health().headers
    well = {"version": VERSION, "database": "ok", "disk": "ok", "redis": "ok"}
    assert (answer.status_code, answer.json()) == (200, well)
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert (headers["X-Frame-Options"], headers["X-Content-Type-Options"]) == ("DENY", "nosniff")
    assert headers["Referrer-Policy"] == "same-origin"


def test_without_redis_it_says_so(health, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert health().status_code == 503
    assert health().json()["database"] == "ok"
    assert "refused" in health().json()["redis"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_on_a_full_disk_it_says_so_although_reading_goes_on(health, settings):
    (settings.DATA / "run").mkdir()
    (settings.DATA / "run" / "health").symlink_to("/dev/full")
    assert health().status_code == 503
    assert (health().json()["database"], health().json()["redis"]) == ("ok", "ok")
    assert "No space left on device" in health().json()["disk"]


def test_other_methods_and_strange_hosts_are_refused(client):
    assert client.post("/healthz").status_code == 405
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400


@pytest.fixture
def serve():
    """Serve what is returned at each question; return the address."""
    listeners = []

    def begin(ask):
        listeners.append(web.listen("127.0.0.1", 0))
        HealthServer(listeners[-1], ask)
        return f"http://127.0.0.1:{listeners[-1].getsockname()[1]}"

    yield begin
    for listener in listeners:
        listener.close()


@cases("parts, status", {
    "all well": ({"database": "ok", "mirror": "ok"}, 200),
    "one is not": ({"database": "ok", "mirror": "not heard"}, 503),
    "nothing to tell": ({}, 200),
})  # fmt: skip
def test_status_is_that_of_the_worst_part_and_nothing_else_is_told(serve, parts, status):
    address = serve(lambda: parts)
    answer = httpx.get(f"{address}/healthz", timeout=HANG_S)
    assert (answer.status_code, answer.json()) == (status, {"version": VERSION, **parts})
    assert answer.headers["content-type"] == "application/json"
    for method, refusal in ("GET", 404), ("POST", 501):
        assert httpx.request(method, f"{address}/", timeout=HANG_S).status_code == refusal


def test_client_that_says_nothing_keeps_nobody_waiting(serve):
    address = serve(dict)
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))):
        assert httpx.get(f"{address}/healthz", timeout=HANG_S).status_code == 200
