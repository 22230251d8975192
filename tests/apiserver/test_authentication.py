import base64
import contextlib
import logging
import socket

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from apiserver.http import authentication
from apiserver.http.authentication import PROTOCOL, credentials
from cluster import access, clock
from cluster.access import accounts, authorizer, tokens
from cluster.access.roles import Role
from cluster.api import can_i
from cluster.models import AuditEntry, RoleBinding, Token
from kube.kinds.reviews import ResourceAttributes
from kube.resources import served
from proof.harness.waiting import HANG_S
from tests.apiserver.client import Api, serving
from tests.apiserver.story import Story
from tests.campaign import examples
from tests.cluster.api.conftest import make_user
from tests.tables import cases, parts

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def http(cluster, redis_url, settings):
    """A client of a server that asks for tokens, whose memory of tokens is empty."""
    settings.REDIS_URL = redis_url
    authentication._cache.clear()
    with (
        serving(authentication.authenticate) as url,
        httpx.Client(base_url=url, timeout=HANG_S, verify=False) as client,
    ):
        yield client


@pytest.fixture
def alice(cluster):
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


def unauthorized(answer):
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    expected = {**status, "message": "Unauthorized", "reason": "Unauthorized", "code": 401}
    return (answer.status_code, answer.json()) == (401, expected)


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def test_who_opened_a_stream_is_known_by_the_headers_that_let_him_in():
    token, acting = ("sec-websocket-protocol", f"{PROTOCOL}dG9rZW4"), ("impersonate-user", "bob")
    headers = Headers(dict([("sec-websocket-version", "13"), ("accept", "*/*"), token, acting]))
    assert credentials(headers) == (token, acting)
    assert credentials(Headers({"sec-websocket-protocol": "v5.channel.k8s.io"})) == ()


@pytest.fixture
def story(http, secret, root, person):
    """Requests in which `$hers` is the token of alice, and `$roots` that of who administers everything."""
    story = Story(Api(str(http.base_url)), person)
    story.named |= {"hers": secret, "roots": root["Authorization"].removeprefix("Bearer "), "long": "a" * 400}
    return story


@parts("apiserver/authentication", "a token lets its user in with his roles")
def test_a_token_lets_its_user_in_with_his_roles(story, part, monkeypatch):
    looked = []
    monkeypatch.setattr(tokens, "find", lambda *a, found=tokens.find, **k: looked.append(a) or found(*a, **k))
    story.goes(part)
    assert len(looked) == 1, "a good one is looked up once in some seconds"
    assert Token.objects.get(user__username="alice").used


@parts("apiserver/authentication", "an administrator acts as others, but as nobody that nobody can be")
def test_an_administrator_acts_as_others_and_the_audit_says_so(story, part):
    accounts.bind_role(access.CONSOLE, Role.VIEWER, "default", account="default/robot")
    accounts.bind_role(access.CONSOLE, Role.VIEWER, "default", group="readers")
    story.goes(part)
    entry = AuditEntry.objects.get(name="c")
    assert (entry.actor, entry.message) == ("root", "As alice.")


@parts("apiserver/authentication", "who does not administer everything acts as nobody else")
def test_who_does_not_administer_everything_acts_as_nobody_else(story, part):
    RoleBinding.objects.update(role="administrator")
    story.goes(part)


FOREIGN = tokens.PREFIX + base64.urlsafe_b64encode(b"another installation's token, 32").decode().rstrip("=")


@cases("spoil", {
    "truncated": lambda s: s[:-1],
    "longer": lambda s: s + "a",
    "other case": lambda s: s.swapcase(),
    "foreign": lambda s: FOREIGN,
    "not ASCII": lambda s: "é" * 20,
    "bytes": lambda s: "\xff" * 100,
    "huge": lambda s: "a" * 20_000,
    "two": lambda s: f"{s} {s}",
    "SQL": lambda s: "' OR 1=1 --",
    "the stored hash": lambda s: tokens.digest(s),
})  # fmt: skip
def test_a_wrong_token_is_unauthorized_on_every_path_and_not_remembered(http, secret, spoil):
    header = [(b"Authorization", b"Bearer " + spoil(secret).encode("latin-1"))]
    for path in (PODS, "/version", "/no/such/path"):
        assert unauthorized(http.get(path, headers=header))
    assert authentication._cache == {}


ENDS = {
    "revoke": lambda issued, alice: tokens.revoke(access.for_user(alice), issued.row.pk),
    "expire": lambda issued, alice: Token.objects.update(expires=clock.milliseconds() - 1),
    "deactivate": lambda issued, alice: accounts.set_active(access.CONSOLE, alice, active=False),
    "remove": lambda issued, alice: alice.delete(),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("used", [False, True], ids=["new", "in use"])
def test_a_token_that_ended_is_unauthorized(http, alice, monkeypatch, end, used):
    if end != "revoke":  # which is known at once where it is done, and soon elsewhere
        monkeypatch.setattr(authentication, "CACHED_S", 0.0)
    assert authentication.CACHED_S <= authorizer.FRESH_S
    make_user("root", is_superuser=True)
    issued = tokens.issue(access.CONSOLE, alice, "laptop", tokens.DAY_S)
    if used:
        assert http.get(PODS, headers=bearer(issued.secret)).status_code == 200
    ENDS[end](issued, alice)
    assert unauthorized(http.get(PODS, headers=bearer(issued.secret)))


def test_a_browsers_websocket_says_its_token_among_the_protocols(secret):
    def read(text):
        return authentication._secret({"sec-websocket-protocol": f"{text}, v5.channel.k8s.io"})

    encoded = base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")
    assert read(authentication.PROTOCOL + encoded) == secret
    assert read("base64.channel.k8s.io") is None
    for wrong in ("", "%", "a", "/+==", "_w", "é", "a" * 5000):
        with contextlib.suppress(authentication.Unauthorized):
            assert tokens.SHAPE.fullmatch(read(authentication.PROTOCOL + wrong)) is None, wrong


def test_nothing_of_a_token_is_in_logs_audit_or_answers(http, secret, root, caplog):
    for name in ("cluster", "uvicorn", "django"):
        caplog.set_level(logging.DEBUG, name)
    paths = (PODS, "/nothing", "/api/v1/namespaces/other/pods", f"{PODS}/x?limit=%")
    spelled = (secret, secret[:-1], f"{secret}x")
    bodies = [http.get(path, headers=bearer(token)).text for path in paths for token in spelled]
    records = [record.getMessage() + str(record.__dict__) for record in caplog.records]
    text = "".join([*bodies, *records, str(AuditEntry.objects.values()), str(Token.objects.values())])
    assert secret[4:24] not in text


def test_a_refusal_arrives_though_a_body_was_sent(http):
    for size in [1, 100_000, 2_000_000] * 5:
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


AUTHORIZATION = "/apis/authorization.k8s.io/v1"


@pytest.fixture
def submitter(alice):
    return tokens.user_actor(alice)


@examples(200, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_verdict_is_what_requests_are_checked_with(data, submitter):
    resource = data.draw(st.sampled_from(served()))
    verb = data.draw(st.sampled_from(resource.verbs))
    namespace = data.draw(st.sampled_from(["default", "other", ""])) if resource.namespaced else ""
    attributes = ResourceAttributes(verb=verb, group=resource.group, resource=resource.plural, namespace=namespace)
    allowed = access.allowed(submitter, verb, resource, namespace, owner=submitter.name if verb == "create" else None)
    assert can_i.judge(submitter, attributes).allowed == allowed


def test_the_list_of_what_i_may_do(api, submitter):
    def rules(namespace):
        answer = api.as_(submitter).post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": namespace}})
        assert answer.status_code == 201, answer.text
        return answer.json()["status"]

    def verbs(status, resource):
        return {verb for rule in status["resourceRules"] if resource in rule["resources"] for verb in rule["verbs"]}

    here, elsewhere = rules("default"), rules("other")
    assert verbs(here, "pods") == {"create", "get", "list", "watch"}
    assert verbs(here, "pods/log") == {"get"}
    assert verbs(here, "nodes") == verbs(here, "resourcequotas") == {"get", "list", "watch"}
    assert here["incomplete"]
    assert "may also change what alice created: " in here["evaluationError"]
    assert verbs(elsewhere, "pods") == set()
    assert verbs(elsewhere, "selfsubjectreviews") == {"create"}
    assert not elsewhere["incomplete"]
