"""Every path answers an upgrade with 101 or with the reason why not; and who keeps the link of a node, until when."""

import contextlib
import json

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from apiserver.http import routes
from cluster import access
from cluster.access import Actor, tokens
from cluster.models import Token
from cluster.remote.http import paths
from kube import resources
from node.link import presence
from proof.harness.waiting import HANG_S, until
from tests.apiserver.client import ACTORS, token_of
from tests.tables import cases

SOMEBODY = Actor("ann", ("system:authenticated",))
SYSTEM, NOBODY = "system:controller", ""
SPDY = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}


def of_resources():
    for resource in resources.BUILT_IN:
        collection = paths.collection(resource, "default" if resource.namespaced else "")
        yield collection
        yield f"{collection}/x"
        yield from (f"{collection}/x/{part.name}" for part in resource.parts)


SINGLE = """/version /healthz /livez/ping /openapi/v2 /openapi/v3/api/v1 /api /apis/batch/v1 /metrics / /nonsense
    /api/v1/nonsense /api/v1/pods/x /apis/nonsense/v1/things /%ff"""


def everywhere():
    yield from of_resources()
    yield from (where.replace("/…", "/x") for where, _ in routes.listed())
    yield from SINGLE.split()


@pytest.fixture
def open_socket(api):
    ACTORS[SOMEBODY.name] = SOMEBODY
    url, options = api.url.replace("http", "ws", 1), {"open_timeout": HANG_S, "proxy": None}
    return lambda path, user=SYSTEM: connect(url + path, additional_headers={"x-actor": user}, **options)


@pytest.fixture
def upgrade(open_socket):
    """Ask for an upgrade as somebody; return the code of the answer and its Status, which 101 has not."""

    def ask(path, user=SYSTEM):
        try:
            with open_socket(path, user):
                return 101, None
        except InvalidStatus as refused:
            return refused.response.status_code, json.loads(refused.response.body)

    return ask


LINK = "/api/v1/nodes/x/link"  # which a node's agent opens before there is a node


@cases("user, codes", {
    "who may": (SYSTEM, {400, 404}), "somebody": (SOMEBODY.name, {400, 403, 404}), "nobody": (NOBODY, {400, 401, 404}),
})  # fmt: skip
def test_every_path_says_why_it_is_not_upgraded(upgrade, user, codes):
    found = {path: upgrade(path, user) for path in everywhere() if (path, user) != (LINK, SYSTEM)}
    assert {path: answer for path, answer in found.items() if answer[0] not in codes} == {}
    statuses = [(path, code, status["kind"], status["code"]) for path, (code, status) in found.items()]
    assert statuses == [(path, code, "Status", code) for path, (code, _) in found.items()]
    assert [path for path, (_, status) in found.items() if not (status["message"] and status["reason"])] == []


def test_watches_are_upgraded(upgrade):
    for resource in (each for each in resources.BUILT_IN if "watch" in each.verbs):
        namespace = "default" if resource.namespaced else ""
        assert upgrade(f"{paths.collection(resource, namespace)}?watch=true") == (101, None), resource.full_name


def test_the_link_of_a_node_is_upgraded_and_a_refusal_is_not_logged_as_a_crash(upgrade, caplog):
    assert upgrade(LINK) == (101, None)
    assert upgrade(LINK.replace("nodes", "pods"))[0] == 404
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


PODS = "/api/v1/namespaces/default/pods"
EXEC = f"{PODS}/x/exec"


def test_the_reason_is_told(upgrade):
    for path, user, code, words in (
        ("/version", NOBODY, 400, "is not upgraded"), ("/metrics", NOBODY, 401, "Unauthorized"),
        (PODS, SYSTEM, 400, "is not upgraded"), (f"{PODS}/x", SYSTEM, 400, "is not upgraded"),
        (f"{PODS}/x/log", SYSTEM, 400, "is not upgraded"), (f"{EXEC}?command=a&stdout=1", SYSTEM, 404, 'pods "x" not found'),
        (EXEC, SOMEBODY.name, 403, "cannot create"), (f"{PODS}?watch=true", SOMEBODY.name, 403, "cannot watch"),
        (f"{PODS}?watch=true&resourceVersion=a", SYSTEM, 400, "must be a number"),
        ("/api/v1/namespaces/default/nonsense", SYSTEM, 404, "could not find"),
    ):  # fmt: skip
        found, status = upgrade(path, user)
        assert (found, words in status["message"]) == (code, True), path


def breaking(*messages):
    """Return a handler that sends something, and breaks."""

    async def breaks(request):
        await request.receive()
        for message in messages:
            await request.send(message)
        raise RuntimeError

    return breaks


ACCEPT = {"type": "websocket.accept"}


@cases("sent, code", {
    "open": ([ACCEPT], 1011),
    "closed already": ([ACCEPT, {"type": "websocket.close", "code": 1008}], 1008),
})  # fmt: skip
def test_a_defect_is_told_before_the_upgrade_and_closes_the_connection_once_after_it(
    open_socket, upgrade, monkeypatch, caplog, sent, code
):
    monkeypatch.setitem(routes._upgrades, ("pods", "exec"), breaking(*sent))
    with open_socket(EXEC) as made:
        with pytest.raises(ConnectionClosed) as closed:
            made.recv(timeout=HANG_S)
        assert closed.value.rcvd.code == code
    assert [record.name for record in caplog.records if record.exc_info] == ["apiserver.app"]
    monkeypatch.setitem(routes._upgrades, ("pods", "exec"), breaking())
    code, status = upgrade(EXEC)
    assert (code, status["reason"], status["code"]) == (500, "InternalError", 500)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_spdy_has_an_answer_everywhere(api, method):
    for path in everywhere():
        answer = api.request(method, path, headers=SPDY)
        assert answer.status_code not in (101, 500), path
        assert "html" not in answer.headers["content-type"], path


@pytest.fixture
def dial(server, settings, tmp_path):
    settings.DATA = tmp_path
    options = {"legacy": True, "open_timeout": HANG_S, "proxy": None}
    with contextlib.ExitStack() as opened:

        def begin(node, **headers):
            url = f"{server}/api/v1/nodes/{node}/link".replace("http", "ws", 1)
            return opened.enter_context(connect(url, additional_headers=headers, **options))

        yield begin


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
    tokens.revoke(access.SYSTEM, Token.objects.get(node="here").pk)
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
