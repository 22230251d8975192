"""Streams end with the right that opened them, whoever takes it away: here as another process does, without a signal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from apiserver.http import authentication, path, rights_keeper
from apiserver.http.request import Request
from apiserver.streams import admission, exec_attach
from apiserver.streams.channels import PROTOCOLS, Channels
from cluster import access
from cluster.access import tokens
from cluster.models import RoleBinding, Token
from cluster.store import Patch, store
from kube.resources import PODS
from proof.harness.waiting import until
from tests.apiserver.client import Api, serving
from tests.apiserver.test_execs import Door
from tests.cluster.api.conftest import make_user
from tests.tables import cases

COUNTING = "while :; do echo line; sleep 0.05; done"
LOSSES = {
    "token revoked": lambda: Token.objects.update(revoked=1),
    "token expired": lambda: Token.objects.update(expires=1),
    "user deactivated": lambda: User.objects.update(is_active=False),
    "role taken away": lambda: RoleBinding.objects.update(namespace="elsewhere"),
}


@pytest.fixture
def operator(transactional_db):
    """The headers of somebody who may exec into the pods of the namespace d."""
    user = make_user("olga")
    RoleBinding.objects.create(user=user, namespace="d", role="operator")
    issued = tokens.issue(access.CONSOLE, user, "laptop", tokens.DAY_S)
    return {"Authorization": f"Bearer {issued.secret}"}


@pytest.fixture
def door(node, operator, redis_url, settings):
    """A server that asks for tokens, and a pod `p` that counts."""
    settings.REDIS_URL, settings.DATA = redis_url, node.data
    authentication._known.clear()
    with serving(authentication.authenticate) as url:
        node.begin("none")
        node.uid = node.shell(COUNTING)
        node.until(lambda: "running" in node.state() if node.status().get("containerStatuses") else False)
        door = Door(url, node, operator)
        yield door
        door.close()


@cases("lose", LOSSES)
@pytest.mark.parametrize("kind", ["exec", "attach"])
def test_a_command_ends_with_the_right_to_it(door, node, kind, lose):
    connection = door.connect(*(["sh", "-c", COUNTING] if kind == "exec" else []), kind=kind)
    node.during(lambda: connection.read_until(b"line"))
    lose()
    last = node.during(connection.finish)
    assert (last["code"], last["reason"]) == (403, "Forbidden")
    assert f"{kind} of pod p was ended" in last["message"]


def test_who_reads_nothing_is_closed_with_his_right_and_what_ended_is_forgotten(door, node):
    flood = door.connect("sh", "-c", "while :; do head -c 65536 /dev/zero; done")
    node.during(lambda: flood.read_until(b"\0" * 1000))
    assert exec_attach._open.total() == 1
    connection = door.connect("true")
    assert node.during(connection.finish)["status"] == "Success"
    RoleBinding.objects.update(namespace="elsewhere")
    node.during(lambda: until(lambda: exec_attach._open.total() == 0))
    node.during(lambda: until(lambda: not rights_keeper.keeper._held))


def test_a_command_ends_when_the_path_is_not_allowed_any_more(door, node, settings):
    volume = {"name": "h", "hostPath": {"path": "/srv/shared"}}
    store.write(Patch(PODS, "d", "p", {"spec": {"volumes": [volume]}}))
    settings.HOST_PATHS = ["/srv/shared"]
    connection = door.connect("sh", "-c", COUNTING)
    node.during(lambda: connection.read_until(b"line"))
    settings.HOST_PATHS = []
    assert node.during(connection.finish)["code"] == 403


async def test_who_has_been_told_the_end_is_told_no_other():
    sent = []

    async def send(message):
        sent.append(message["type"])

    place = path.parse("GET", "/api/v1/namespaces/d/pods/p/exec")
    request = Request({"headers": [], "query_string": b""}, None, send, place, 0)
    request.actor = access.SYSTEM
    talk = Channels(request, PROTOCOLS["v5.channel.k8s.io"])
    async with admission.permitted(request, talk) as lost:
        await talk.finish({"status": "Success"})
        lost.set()
    assert sent == ["websocket.send", "websocket.close"]


@cases("lose", LOSSES)
def test_a_followed_log_ends_with_the_right_to_it(door, node, operator, lose):
    api = Api(door.api.url)
    path = "/api/v1/namespaces/d/pods/p/log?follow=true"

    def follow():
        with api.stream(path, headers=operator) as answer:
            assert answer.status_code == 200
            lines = answer.iter_lines()
            assert next(lines) == "line"
            lose()
            for _ in lines:  # to a clean end, which httpx would otherwise raise
                pass
        return api.get(path, headers=operator).status_code

    assert node.during(follow) in (401, 403)


def test_the_time_that_the_guide_promises_holds_what_a_look_can_take():
    assert re.search(r"within two\s+seconds", Path("docs/how-to/connect.md").read_text())
    assert authentication.KEPT_S + rights_keeper.LOOK_S < 2.0
