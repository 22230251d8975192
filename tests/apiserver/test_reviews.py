from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cluster import access
from cluster import api as door
from cluster.access import accounts, can_i, tokens
from cluster.access.roles import Role
from cluster.models import AuditEntry, RoleBinding, Token
from cluster.store import Create, store
from kube.kinds.reviews import ResourceAttributes
from kube.meta import timestamp
from kube.resources import JOBS, SERVICE_ACCOUNTS, served
from tests.campaign import examples
from tests.cluster.api.conftest import job, make_user
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


def may(client, verb, resource, namespace="default", **more):
    """Ask as the client's actor; return the answer's status."""
    name, _, part = resource.partition("/")
    plural, _, group = name.partition(".")
    attributes = {"verb": verb, "resource": plural, "group": group, "subresource": part, "namespace": namespace}
    answer = client.post(
        f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes | more}}
    )
    assert answer.status_code == 201, answer.text
    assert answer.json()["spec"]["resourceAttributes"]["verb"] == verb
    return answer.json()["status"]


@pytest.mark.parametrize(
    ("verb", "resource", "namespace", "allowed", "reason"),
    [
        ("create", "jobs.batch.volcano.sh", "default", True, "alice is submitter in default."),
        ("get", "pods/log", "default", True, "alice is submitter in default."),
        ("list", "jobs.batch.volcano.sh", "", False, "It takes the role viewer in all namespaces."),
        ("create", "jobs.batch.volcano.sh", "other", False, "It takes the role submitter in other."),
        ("delete", "jobs.batch.volcano.sh", "default", False, "Only what alice created; name it to be told."),
        ("delete", "queues.scheduling.volcano.sh", "", False, "It takes the role administrator in all namespaces."),
        ("list", "queues.scheduling.volcano.sh", "", True, "alice is submitter in all namespaces."),
        ("*", "*", "default", False, None),
        ("get", "nothings.example.org", "default", False, "There is no resource nothings.example.org here."),
        ("dance", "pods", "default", False, "Nobody may do this by hand."),
        ("create", "commands.bus.volcano.sh", "default", True, "For what alice created."),
        ("impersonate", "users", "", False, None),
        ("create", "selfsubjectaccessreviews.authorization.k8s.io", "", True, None),
        ("create", "tokenreviews.authentication.k8s.io", "", False, None),
    ],
)  # fmt: skip
def test_may_i_is_answered_with_the_reason(api, alice, verb, resource, namespace, allowed, reason):
    status = may(api.as_(alice), verb, resource, namespace)
    assert status["allowed"] is allowed
    assert status["reason"]
    if reason is not None:
        assert status["reason"] == reason


def test_what_one_created_oneself_is_known_by_its_name_and_an_administrator_may_all(api, alice, root):
    for actor, name in ((alice, "hers"), (root, "his")):
        door.create(actor, JOBS, job(name))
    client = api.as_(alice)
    assert may(client, "delete", "jobs.batch.volcano.sh", name="hers")["allowed"]
    for name in ("his", "absent"):
        status = may(client, "delete", "jobs.batch.volcano.sh", name=name)
        assert (status["allowed"], status["reason"].startswith("alice did not create it.")) == (False, True)
    for verb, resource, more in (("*", "*", {}), ("*", "*", {"group": "*"}), ("impersonate", "users", {})):
        assert may(api.as_(root), verb, resource, "", **more)["allowed"]
    for path, verb, allowed in (
        ("/version", "get", True),
        ("/healthz", "get", True),
        ("/version", "delete", False),
        ("/nothing", "get", False),
    ):
        spec = {"nonResourceAttributes": {"path": path, "verb": verb}}
        answer = client.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": spec})
        assert answer.json()["status"]["allowed"] is allowed, path


def test_configuring_the_scheduler_is_another_right_than_that_on_config_maps(api, alice, root):
    RoleBinding.objects.create(user_id=alice.user_id, namespace="volcano-system", role="operator")
    name, place = "volcano-scheduler-configmap", "volcano-system"
    for actor, verb, asked, allowed in (
        (alice, "update", name, False), (alice, "update", "another", True), (alice, "get", name, True),
        (root, "update", name, True),
    ):  # fmt: skip
        assert may(api.as_(actor), verb, "configmaps", place, name=asked)["allowed"] is allowed
    status = may(api.as_(alice), "delete", "configmaps", place, name=name)
    assert status["reason"] == "It takes the role administrator in volcano-system."


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


def test_may_somebody_else(api, root, alice, robot):
    everywhere, here = (
        f"{AUTHORIZATION}/subjectaccessreviews",
        f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews",
    )

    def allowed(user, namespace="default", address=everywhere, actor=root, **spec):
        """Return what a review says of the pods of a namespace, or the code of its refusal."""
        attributes = {"verb": "list", "resource": "pods", "namespace": namespace}
        answer = api.as_(actor).post(address, {"spec": {"user": user, "resourceAttributes": attributes, **spec}})
        return answer.json()["status"]["allowed"] if answer.status_code == 201 else answer.status_code

    assert [allowed("alice"), allowed("alice", "other"), allowed("nobody"), allowed(robot.name)] == [
        True,
        False,
        False,
        False,
    ]
    assert allowed("x", groups=["system:masters"]) is True
    accounts.bind_role(access.CONSOLE, Role.VIEWER, "default", account="default/robot")
    assert allowed(robot.name) is True
    assert allowed("root", actor=alice) == 403
    chief = make_user("chief")
    RoleBinding.objects.create(user=chief, namespace="default", role="administrator")
    chief = tokens.user_actor(chief)
    assert allowed("alice", address=here, actor=chief) is True
    assert allowed("alice", "other", address=here, actor=chief) == 400
    assert allowed("alice", "other", address=here.replace("default", "other"), actor=chief) == 403


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
    assert (tokens.actor_of(stored).name, found["status"]["expirationTimestamp"]) == (
        robot.name,
        timestamp(stored.expires),
    )
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
