from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cluster import access
from cluster.access import accounts, can_i, tokens
from cluster.access.roles import Role
from cluster.models import AuditEntry, RoleBinding, Token
from cluster.store import Create, store
from kube.kinds.reviews import ResourceAttributes
from kube.meta import timestamp
from kube.resources import SERVICE_ACCOUNTS, served
from tests.campaign import examples
from tests.cluster.api.conftest import make_user
from tests.tables import cases

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"


@pytest.fixture
def alice(cluster):
    """Submits in one namespace."""
    user = make_user("alice", group="team")
    RoleBinding.objects.create(user=user, namespace="default", role="submitter")
    return tokens.user_actor(user)


@pytest.fixture
def root(cluster):
    return tokens.user_actor(make_user("root", is_superuser=True))


@pytest.fixture
def robot(cluster):
    store.write(Create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot", "namespace": "default"}}))
    return tokens.account_actor("default", "robot")


@examples(200, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_verdict_is_what_requests_are_checked_with(data, alice):
    resource = data.draw(st.sampled_from(served()))
    verb = data.draw(st.sampled_from(resource.verbs))
    namespace = data.draw(st.sampled_from(["default", "other", ""])) if resource.namespaced else ""
    asked = ResourceAttributes(verb=verb, group=resource.group, resource=resource.plural, namespace=namespace)
    allowed = access.allowed(alice, verb, resource, namespace, owner=alice.name if verb == "create" else None)
    assert can_i.judge(alice, asked).allowed == allowed


def test_the_list_of_what_i_may_do(api, alice):
    def rules(namespace):
        answer = api.as_(alice).post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": namespace}})
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


def test_who_am_i(api, alice, robot):
    for actor, name, groups in (
        (alice, "alice", ["team", "system:authenticated"]),
        (robot, "system:serviceaccount:default:robot", ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]),
    ):  # fmt: skip
        answer = api.as_(actor).post(f"{AUTHENTICATION}/selfsubjectreviews", {})
        assert answer.status_code == 201
        found = answer.json()["status"]["userInfo"]
        assert (found["username"], found["groups"]) == (name, groups)


def test_a_service_account_may_what_it_is_bound_to(api, root, robot):
    attributes = {"verb": "list", "resource": "pods", "namespace": "default"}
    review = {"spec": {"user": robot.name, "resourceAttributes": attributes}}
    client, address = api.as_(root), f"{AUTHORIZATION}/subjectaccessreviews"
    assert client.post(address, review).json()["status"]["allowed"] is False
    accounts.bind_role(access.CONSOLE, Role.VIEWER, "default", account="default/robot")
    assert client.post(address, review).json()["status"]["allowed"] is True


def test_whose_is_this_token(api, root, alice, robot):
    issued = tokens.issue_for_account(access.CONSOLE, "default", "robot", "x", 600)
    vault = tokens.issue_for_account(access.CONSOLE, "default", "robot", "x", 600, audiences=["vault"])
    address, client = f"{AUTHENTICATION}/tokenreviews", api.as_(root)

    def review(token, **spec):
        answer = client.post(address, {"spec": {"token": token, **spec}})
        assert answer.status_code == 201
        assert token not in answer.text
        return answer.json()["status"]

    good = review(issued.secret)
    assert good["authenticated"]
    assert good["user"]["username"] == robot.name
    assert review(vault.secret, audiences=["other", "vault"])["audiences"] == ["vault"]
    for token, spec in ((vault.secret, {}), ("x" * 50, {}), (issued.secret[:-1], {})):
        assert review(token, **spec) == {"error": "invalid bearer token"}
    assert api.as_(alice).post(address, {"spec": {"token": "x"}}).status_code == 403


def ask_token(client, name="robot", query="", **spec):
    return client.post(f"/api/v1/namespaces/default/serviceaccounts/{name}/token{query}", {"spec": spec})


def test_a_token_of_a_service_account_is_asked_for(api, root, alice, robot):
    assert ask_token(api.as_(alice)).status_code == 403
    assert ask_token(api, "nobody").status_code == 404
    assert ask_token(api, query="?dryRun=All").status_code == 201
    assert not Token.objects.exists()
    answer = ask_token(api.as_(root), expirationSeconds=3600)
    assert answer.status_code == 201
    found = answer.json()
    assert (found["kind"], found["metadata"]["name"]) == ("TokenRequest", "robot")
    stored = tokens.find(found["status"]["token"])
    assert tokens.actor_of(stored).name == robot.name
    assert found["status"]["expirationTimestamp"] == timestamp(stored.expires)
    row = AuditEntry.objects.get(verb="issue-token", actor="root")
    assert (row.namespace, row.name) == ("default", "robot")
    assert found["status"]["token"] not in str(AuditEntry.objects.values())
    answer = ask_token(api, expirationSeconds=2**31)
    assert answer.json()["spec"]["expirationSeconds"] == tokens.MOST_S
    assert "shortened" in answer.headers["warning"]


@cases("spec, code, words", {
    "too short": ({"expirationSeconds": 60}, 422, "may not specify a duration less than 10 minutes"),
    "too long": ({"expirationSeconds": 2**33}, 422, "larger than 2^32"),
    "no number": ({"expirationSeconds": "x"}, 422, "spec.expirationSeconds"),
    "a pod that is not there": ({"boundObjectRef": {"kind": "Pod", "name": "x"}}, 404, "not found"),
    "a node": ({"boundObjectRef": {"kind": "Node", "name": "x"}}, 400, "cannot bind"),
    "a bad audience": ({"audiences": ["a b"]}, 422, "spec.audiences"),
})  # fmt: skip
def test_a_token_request_that_cannot_be_granted(api, robot, spec, code, words):
    answer = ask_token(api, **spec)
    assert (answer.status_code, words in answer.json()["message"]) == (code, True)
    assert not Token.objects.exists()
