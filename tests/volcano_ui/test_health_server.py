"""The health of programs without pages, over HTTP."""

from __future__ import annotations

import socket

import httpx
import pytest

from cluster.version import VERSION
from proof.harness.waiting import HANG_S
from volcano_ui import web
from volcano_ui.health_server import HealthServer


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


@pytest.mark.parametrize(
    ("parts", "status"),
    [({"database": "ok", "mirror": "ok"}, 200), ({"database": "ok", "mirror": "not heard"}, 503), ({}, 200)],
    ids=["all well", "one is not", "nothing to tell"],
)
def test_status_is_that_of_the_worst_part(serve, parts, status):
    answer = httpx.get(f"{serve(lambda: parts)}/healthz", timeout=HANG_S)
    assert (answer.status_code, answer.json()) == (status, {"version": VERSION, **parts})
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_else_is_told(serve, method):
    answer = httpx.request(method, f"{serve(dict)}/", timeout=HANG_S)
    assert answer.status_code == {"GET": 404, "POST": 501}[method]


def test_client_that_says_nothing_keeps_nobody_waiting(serve):
    address = serve(dict)
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))):
        assert httpx.get(f"{address}/healthz", timeout=HANG_S).status_code == 200
