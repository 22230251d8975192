from __future__ import annotations

import base64
import logging
import socket

import httpx
import pytest

from apiserver.http import authentication
from cluster import access, clock
from cluster.access import accounts, authorizer, tokens
from cluster.access.roles import Role
from cluster.models import AuditEntry, RoleBinding, Token
from cluster.store import Create, Delete, store
from kube.resources import SERVICE_ACCOUNTS
from proof.harness.waiting import HANG_S
from tests.apiserver.client import serving
from tests.cluster.api.conftest import config_map, make_user
from tests.tables import cases

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
UNAUTHORIZED = {
    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
    "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
}  # fmt: skip


@pytest.fixture
def http(cluster, redis_url, settings):
    """A client of a server that asks for tokens, whose memory of tokens is empty."""
    settings.REDIS_URL = redis_url
    authentication._known.clear()
    with (
        serving(authentication.authenticate) as url,
        httpx.Client(base_url=url, timeout=HANG_S, verify=False) as client,
    ):
        yield client


@pytest.fixture
def alice(cluster):
    """A user with a role in one namespace, and a token."""
    user = make_user("alice", group="team")
    RoleBinding.objects.create(user=user, namespace="default", role="submitter")
    return user


@pytest.fixture
def secret(alice):
    return tokens.issue(access.CONSOLE, alice, "laptop", tokens.DAY_S).secret


@pytest.fixture
def root(cluster):
    user = make_user("root", is_superuser=True)
    return bearer(tokens.issue(access.CONSOLE, user, "laptop", tokens.DAY_S).secret)


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def test_a_token_lets_its_user_in_with_his_roles(http, secret):
    assert http.get(PODS, headers=bearer(secret)).status_code == 200
    refused = http.get(PODS.replace("default", "other"), headers=bearer(secret))
    assert refused.status_code == 403
    assert 'User "alice" cannot list resource "pods"' in refused.json()["message"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_in_any_case(http, secret, scheme):
    assert http.get(PODS, headers={"Authorization": f"{scheme}  {secret}"}).status_code == 200


def foreign():
    return tokens.PREFIX + base64.urlsafe_b64encode(b"another installation's token, 32").decode().rstrip("=")


@cases("spoil", {
    "truncated": lambda s: s[:-1],
    "longer": lambda s: s + "a",
    "other case": lambda s: s.swapcase(),
    "foreign": lambda s: foreign(),
    "not ASCII": lambda s: "é" * 20,
    "bytes": lambda s: "\xff" * 100,
    "huge": lambda s: "a" * 20_000,
    "two": lambda s: f"{s} {s}",
    "SQL": lambda s: "' OR 1=1 --",
    "the stored hash": lambda s: tokens.digest(s),
})  # fmt: skip
def test_a_wrong_token_is_unauthorized_on_every_path(http, secret, spoil):
    header = [(b"Authorization", b"Bearer " + spoil(secret).encode("latin-1"))]
    for path in (PODS, "/version", "/no/such/path"):
        answer = http.get(path, headers=header)
        assert (answer.status_code, answer.json()) == (401, UNAUTHORIZED)


def revoke(issued, alice):
    tokens.revoke(access.for_user(alice), issued.row.pk)


def expire(issued, alice):
    Token.objects.update(expires=clock.milliseconds() - 1)


def deactivate(issued, alice):
    accounts.set_active(access.CONSOLE, alice, active=False)


def remove(issued, alice):
    alice.delete()


@pytest.mark.parametrize("end", [revoke, expire, deactivate, remove])
@cases("used", {"new": False, "in use": True})
def test_a_token_that_ended_is_unauthorized(http, alice, monkeypatch, end, used):
    monkeypatch.setattr(authentication, "KEPT_S", 0.0)
    make_user("root", is_superuser=True)
    issued = tokens.issue(access.CONSOLE, alice, "laptop", tokens.DAY_S)
    if used:
        assert http.get(PODS, headers=bearer(issued.secret)).status_code == 200
    end(issued, alice)
    answer = http.get(PODS, headers=bearer(issued.secret))
    assert (answer.status_code, answer.json()) == (401, UNAUTHORIZED)


def test_a_revoked_token_is_out_at_once_where_it_was_revoked_and_soon_elsewhere(http, alice):
    issued = tokens.issue(access.CONSOLE, alice, "laptop", tokens.DAY_S)
    assert http.get(PODS, headers=bearer(issued.secret)).status_code == 200
    revoke(issued, alice)
    assert http.get(PODS, headers=bearer(issued.secret)).status_code == 401
    assert authentication.KEPT_S <= authorizer.FRESH_S


def test_a_good_token_is_looked_up_once_in_some_seconds(http, secret, monkeypatch):
    looked = []
    monkeypatch.setattr(tokens, "find", lambda *a, found=tokens.find, **k: looked.append(1) or found(*a, **k))
    for _ in range(5):
        assert http.get(PODS, headers=bearer(secret)).status_code == 200
    assert len(looked) == 1
    assert Token.objects.get().used


def test_a_wrong_token_is_never_remembered(http, secret):
    for number in range(20):
        http.get(PODS, headers=bearer(f"{secret[:-3]}{number:03}"))
    assert authentication._known == {}


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": ""}, {"Authorization": "Bearer"}, {"Authorization": "Basic YTpi"}],
    ids=str,
)  # fmt: skip
def test_without_credentials_only_health_and_version_answer(http, headers):
    answer = http.get(PODS, headers=headers)
    assert (answer.status_code, answer.json()) == (401, UNAUTHORIZED)


def test_a_service_account_comes_with_its_groups_until_it_is_deleted(http):
    store.write(Create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot", "namespace": "default"}}))
    issued = tokens.issue_for_account(access.CONSOLE, "default", "robot", "ci", tokens.DAY_S)
    refused = http.get(PODS, headers=bearer(issued.secret))
    assert refused.status_code == 403
    assert 'User "system:serviceaccount:default:robot" cannot' in refused.json()["message"]
    accounts.bind_role(access.CONSOLE, Role.VIEWER, "default", account="default/robot")
    assert http.get(PODS, headers=bearer(issued.secret)).status_code == 200
    store.write(Delete(SERVICE_ACCOUNTS, "default", "robot"))
    authentication._known.clear()
    assert http.get(PODS, headers=bearer(issued.secret)).status_code == 401


def test_an_administrator_acts_as_another_and_the_audit_says_so(http, root, alice):
    made = http.post(MAPS, json=config_map("c"), headers={**root, "Impersonate-User": "alice"})
    assert made.status_code == 201
    assert made.json()["metadata"]["annotations"]["ui.volcano.sh/created-by"] == "alice"
    entry = AuditEntry.objects.get(name="c")
    assert (entry.actor, entry.message) == ("root", "As alice.")
    refused = http.get(PODS.replace("default", "other"), headers={**root, "Impersonate-User": "alice"})
    assert refused.status_code == 403


def test_an_administrator_acts_as_a_service_account(http, root):
    headers = {**root, "Impersonate-User": "system:serviceaccount:default:robot"}
    assert http.get(PODS, headers=headers).status_code == 403
    accounts.bind_role(access.CONSOLE, Role.VIEWER, "default", account="default/robot")
    assert http.get(PODS, headers=headers).status_code == 200


def test_groups_to_act_with_count(http, root):
    accounts.bind_role(access.CONSOLE, Role.VIEWER, "default", group="readers")
    headers = {**root, "Impersonate-User": "nobody", "Impersonate-Group": "readers"}
    assert http.get(PODS, headers=headers).status_code == 200
    assert http.get(PODS, headers={**root, "Impersonate-User": "nobody"}).status_code == 403


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Impersonate-Group": "x"}, 400),
        ({"Impersonate-Uid": "x"}, 400),
        ({"Impersonate-Extra-Scopes": "x"}, 400),
        ({"Impersonate-User": "a" * 400}, 400),
        ({"Impersonate-User": "root", "Impersonate-Group": "system:masters"}, 403),
    ],
    ids=str,
)
def test_nobody_acts_as_what_nobody_can_be(http, root, headers, code):
    assert http.get(PODS, headers={**root, **headers}).status_code == code


@pytest.mark.parametrize("whom", ["root", "alice", "system:serviceaccount:default:x"])
def test_who_does_not_administer_everything_acts_as_nobody_else(http, secret, whom):
    RoleBinding.objects.update(role="administrator")
    answer = http.get(PODS, headers={**bearer(secret), "Impersonate-User": whom})
    assert answer.status_code == 403
    assert 'User "alice" cannot impersonate resource' in answer.json()["message"]


def test_nobody_acts_as_another_without_credentials(http, root):
    assert http.get(PODS, headers={"Impersonate-User": "root"}).status_code == 401


def offered(text):
    return {"sec-websocket-protocol": f"{text}, v5.channel.k8s.io"}


def test_a_browsers_websocket_says_its_token_among_the_protocols(secret):
    said = base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")
    assert authentication._secret(offered(authentication.PROTOCOL + said)) == secret
    assert authentication._secret(offered("base64.channel.k8s.io")) is None


@pytest.mark.parametrize("said", ["", "%", "a", "/+==", "_w", "é", "a" * 5000], ids=ascii)
def test_what_is_no_base64_among_the_protocols_is_unauthorized(said):
    try:
        found = authentication._secret(offered(authentication.PROTOCOL + said))
    except authentication.Unauthorized:
        return
    assert tokens.SHAPE.fullmatch(found) is None


async def test_a_long_stream_ends_with_its_token(transactional_db):
    from asgiref.sync import sync_to_async
    from starlette.datastructures import Headers

    def prepare():
        user = make_user("alice")
        return user, tokens.issue(access.CONSOLE, user, "laptop", tokens.DAY_S)

    class Stream:
        headers = Headers({})
        actor = None

    user, issued = await sync_to_async(prepare)()
    stream = Stream()
    stream.headers = Headers(bearer(issued.secret))
    stream.actor = await authentication.authenticate(stream.headers)
    assert await authentication.still_valid(stream)
    await sync_to_async(tokens.revoke)(access.for_user(user), issued.row.pk)
    assert not await authentication.still_valid(stream)


def test_nothing_of_a_token_is_in_logs_audit_or_answers(http, secret, root, caplog):
    for name in ("cluster", "uvicorn", "django"):
        caplog.set_level(logging.DEBUG, name)
    paths = (PODS, "/nothing", "/api/v1/namespaces/other/pods", f"{PODS}/x?limit=%")
    said = [
        http.get(path, headers=bearer(token)).text for path in paths for token in (secret, secret[:-1], f"{secret}x")
    ]
    records = [record.getMessage() + str(record.__dict__) for record in caplog.records]
    text = "".join([*said, *records, str(AuditEntry.objects.values()), str(Token.objects.values())])
    assert secret[4:24] not in text


@pytest.mark.parametrize("size", [1, 100_000, 2_000_000])
def test_a_refusal_arrives_though_a_body_was_sent(http, size):
    for _ in range(5):
        assert http.post(MAPS, content=b"a" * size, headers=bearer("x")).status_code == 401


@pytest.mark.parametrize("begin", [b"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ", b"GET /", b"X" * 10])
def test_a_head_that_never_ends_is_cut_off(http, begin):
    address = ("127.0.0.1", http.base_url.port)
    with socket.create_connection(address, timeout=HANG_S) as connection:
        connection.sendall(begin)
        try:
            for _ in range(64):
                connection.sendall(b"a" * 65536)
            answer = connection.recv(100)
        except ConnectionError:
            answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    assert http.get("/version").status_code == 200
