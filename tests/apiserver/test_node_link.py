"""Who may keep a link, and when it ends; what goes over it is in the tests of exec, attach and logs, by a link."""

from __future__ import annotations

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from cluster import access
from cluster.access import SYSTEM, tokens
from cluster.models import Token
from node.link import presence
from proof.harness.waiting import HANG_S, until
from tests.apiserver.client import token_of
from tests.tables import cases


@pytest.fixture
def dial(server, settings, tmp_path):
    settings.DATA = tmp_path
    open_ones = []

    def begin(node, **headers):
        url = f"{server}/api/v1/nodes/{node}/link".replace("http", "ws", 1)
        found = connect(url, additional_headers=headers, legacy=True, open_timeout=HANG_S, proxy=None)
        open_ones.append(found)
        return found

    yield begin
    for each in open_ones:
        each.close()


@cases("actor, code", {
    "nobody": (None, 401),
    "somebody": (access.Actor("alice", ("system:authenticated",)), 403),
    "another node": ("another", 403),
})  # fmt: skip
def test_nobody_else_keeps_it(api, dial, tmp_path, actor, code):
    headers = {}
    if isinstance(actor, str):
        headers["authorization"] = f"Bearer {token_of(actor)}"
    elif actor is not None:
        api.as_(actor)
        headers["x-actor"] = actor.name
    with pytest.raises(InvalidStatus) as refused:
        dial("here", **headers)
    assert refused.value.response.status_code == code
    assert presence.names(tmp_path) == frozenset()


def test_a_link_ends_with_its_token(dial, tmp_path):
    link = dial("here", authorization=f"Bearer {token_of('here')}")
    until(lambda: presence.is_held(tmp_path, "here"))
    tokens.revoke(SYSTEM, Token.objects.get(node="here").pk)
    with pytest.raises(ConnectionClosed):
        link.recv(timeout=HANG_S)
    until(lambda: not presence.state(tmp_path, "here").linked)
    with pytest.raises(InvalidStatus) as refused:
        dial("here", authorization="Bearer vcui_nobody")
    assert refused.value.response.status_code == 401


def test_a_node_that_dials_again_or_speaks_otherwise_is_let_go(api, dial, tmp_path):
    secret = token_of("here")
    first = dial("here", authorization=f"Bearer {secret}")
    until(lambda: presence.is_held(tmp_path, "here"))
    second = dial("here", authorization=f"Bearer {secret}")
    with pytest.raises(ConnectionClosed):
        first.recv(timeout=HANG_S)
    until(lambda: presence.is_held(tmp_path, "here"))
    assert second.ping().wait(HANG_S)
    second.send("hello")
    with pytest.raises(ConnectionClosed):
        second.recv(timeout=HANG_S)
    answer = api.post("/api/v1/nodes/here/link", {})
    assert (answer.status_code, "Upgrade request required" in answer.json()["message"]) == (400, True)
