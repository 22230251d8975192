"""The API server in this process, on a socket without TLS, and a client that says who it is."""

from __future__ import annotations

import contextlib
import json
from functools import partialmethod

import httpx

from apiserver import handlers  # noqa: F401  handlers registers who answers what
from apiserver.app import ANONYMOUS, App
from apiserver.http import authentication, threads
from cluster import access, clock
from cluster.access import tokens
from cluster.models import Token
from node.link import presence
from node.link.dialer import Dialer
from node.membership import Server
from node.paths import Layout
from proof.harness.serving import in_thread
from proof.harness.waiting import HANG_S, until
from volcano_ui import apiserver
from volcano_ui.web import listen

ACTORS: dict[str, access.Actor] = {}
_clients: list[httpx.Client] = []


async def _by_header(headers):
    if headers.get("authorization", "").startswith("Bearer "):  # a node's, whose agent sends nothing else
        return await authentication.authenticate(headers)
    return ACTORS.get(headers.get("x-actor", ""), access.Actor(ANONYMOUS))


class Api:
    """A client of a server, acting as somebody: `Api(url, actor).get("/api/v1/pods")` returns an httpx response."""

    def __init__(self, url, actor=access.SYSTEM):
        ACTORS[actor.name] = actor
        self.url = url
        # Without `verify` httpx reads the machine's authorities first, which takes longer than most tests.
        self.http = httpx.Client(
            base_url=url, headers={"x-actor": actor.name, "user-agent": "tests/1"}, timeout=HANG_S, verify=False
        )
        _clients.append(self.http)

    def as_(self, actor):
        return Api(self.url, actor)

    def request(self, method, path, body=None, content_type="application/json", **options):
        headers = {**options.pop("headers", {})}
        if body is not None:
            headers["content-type"] = content_type
            options["content"] = body if isinstance(body, str | bytes) else json.dumps(body)
        return self.http.request(method, path, headers=headers, **options)

    get, post = partialmethod(request, "GET"), partialmethod(request, "POST")
    put, delete = partialmethod(request, "PUT"), partialmethod(request, "DELETE")

    patch = partialmethod(request, "PATCH", content_type="application/merge-patch+json")

    def stream(self, path, **options):
        return self.http.stream("GET", path, **options)


@contextlib.contextmanager
def serving(authenticate=_by_header):
    """Run the server in a thread; yield its address."""
    with contextlib.ExitStack() as stack:
        stack.callback(threads.close)
        url = stack.enter_context(in_thread(apiserver.config(App(authenticate)), listen("127.0.0.1", 0)))
        stack.callback(_close_clients)
        yield url


def _close_clients():
    while _clients:
        _clients.pop().close()


def token_of(node):
    row = Token(node=node, agent="a", name="node")
    return tokens.issued(access.SYSTEM, row, 3600, clock.milliseconds()).secret


@contextlib.contextmanager
def linked(url, data, node="here"):
    """Keep a node of this process linked to a server, as one on another machine is. They share a state directory here."""
    dialer = Dialer(Server(url, token_of(node), ""), node, Layout(data))
    dialer.start()
    try:
        until(lambda: presence.is_held(data, node), what="the link")
        yield dialer
    finally:
        dialer.stop()
