import pytest
from django.contrib.auth.models import User
from django.test import Client

from cluster import access
from cluster.access import audit, tokens
from cluster.models import RoleBinding
from cluster.remote.door import viewer
from cluster.store import Create, store
from kube.resources import COMMANDS, CONFIGMAPS, EVENTS, JOBS, LEASES, NAMESPACES, NODES, POD_GROUPS, PODS, QUEUES
from tests.cluster.api.conftest import make_user
from tests.cluster.remote.servers import deciding, rule
from tests.dashboard.pages.conftest import Page, page, pod, put, reader
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")
OF_BOB = {"kind": "user", "subject": "bob", "role": "operator", "namespace": "team-b"}
ROBOT = {"kind": "account", "subject": "team-a/robot", "role": "viewer", "namespace": "team-a"}


def page_text(browser):
    return page(browser, "/access/").text(tag="main")


def test_a_user_without_password_gets_a_link_that_is_shown_once(admin):
    admin.post("/access/users/", {"name": "bob", "role": "submitter", "namespace": "team-a"})
    link = next(word for word in page_text(admin).split() if word.startswith("http://testserver/login/"))
    assert link not in page_text(admin)
    bob = Client()
    bob.post(link.removeprefix("http://testserver"))
    assert "bob" in page(bob, "/").text(id="reader")
    assert RoleBinding.objects.get(user__username="bob").role == "submitter"


def test_a_new_password_says_what_becomes_of_tokens(admin):
    bob = make_user("bob")
    none = "There are no API tokens of bob in this cluster."
    assert none in page_text(admin)
    tokens.issue(access.CONSOLE, bob, "laptop", tokens.DAY_S)
    text = page_text(admin)
    assert (none in text, "Also revoke 1 API token of bob" in text) == (False, True)
    admin.post("/access/users/bob/password/", {"password": "correct horse 7", "revoke": "on"})
    assert "API tokens of this cluster that were revoked: 1." in page(admin, "/access/").text()
    assert not tokens.of_user(bob)


ACCOUNTS = {
    f"the account {subject}": ("roles", {"kind": "account", "subject": subject}, "role_subject", "NAMESPACE/NAME")
    for subject in ("robot", "team-a/", "/robot", "Team/robot", "team-a/Rob ot", "a/b/c")
}


@cases("form, values, field, words", {
    "taken": ("users", {"name": "admin"}, None, "already exists"),
    "strange name": ("users", {"name": "a b<script>"}, "user_name", "valid username"),
    "weak password": ("users", {"name": "bob", "password": "123"}, "user_password", "too short"),
    "a role in a strange namespace": ("users", {"name": "bob", "namespace": "Team A"}, None, "lower"),
    "no such role": ("users", {"name": "bob", "role": "king"}, "user_role", "not one of"),
    "no name": ("users", {"name": ""}, "user_name", "required"),
    "nobody": ("roles", {"subject": "nobody"}, None, "There is no user"),
    "a strange namespace": ("roles", {"subject": "admin", "namespace": "../x"}, None, "lower"),
    "no subject": ("roles", {"subject": ""}, None, "required"),
    "a namespace's name": ("namespaces", {"name": "Team C"}, "namespace_name", ""),
    **ACCOUNTS,
})  # fmt: skip
def test_what_is_wrong_stands_at_its_field(admin, form, values, field, words):
    document = Page(admin.post(f"/access/{form}/", {"kind": "user", "role": "viewer", "namespace": "*", **values}))
    assert document.status == 422
    found = document.text(id=f"{field}_error") if field else document.text(tag="main")
    assert found
    assert words in found
    assert not User.objects.filter(username="bob").exists(), "an account is half made"


def test_who_is_deactivated_is_out_at_once(admin, alice):
    admin.post("/access/users/alice/active/", {})
    assert alice.get("/").status_code == 302
    admin.post("/access/users/alice/active/", {"active": "1"})
    assert User.objects.get(username="alice").is_active


def test_a_role_is_given_and_taken_away(admin):
    reader("bob")
    admin.post("/access/roles/", OF_BOB)
    assert "bob operator" in page_text(admin)
    admin.post("/access/roles/remove/", {"user": "bob", "namespace": "team-b"})
    admin.post("/access/roles/", ROBOT)
    assert access.allowed(tokens.account_actor("team-a", "robot"), "get", "pods", "team-a")
    assert "service account team-a/robot" in page_text(admin)
    admin.post("/access/roles/remove/", {"account": "team-a/robot", "namespace": "team-a"})
    assert not RoleBinding.objects.exists()


def test_an_administrator_of_a_namespace_sees_and_gives_roles_there_only(admin):
    chief = reader("chief", "administrator", "team-a")
    reader("bob")
    assert "Users" not in [("".join(h.itertext())) for h in page(chief, "/access/").all(tag="h2")]
    chief.post("/access/roles/", {**OF_BOB, "namespace": "team-a"})
    assert RoleBinding.objects.filter(user__username="bob", namespace="team-a").exists()
    assert "forbidden" in Page(chief.post("/access/roles/", OF_BOB)).text(tag="main")


def test_the_audit_shows_who_did_what_and_not_the_secret_to_who_may_see_it(admin):
    admin.post("/access/users/", {"name": "bob", "password": "correct horse 7", "namespace": "*"})
    assert Client().login(username="bob", password="correct horse 7")
    admin.post("/access/namespaces/", {"name": "team-c"})
    assert store.get(NAMESPACES, "", "team-c")
    text = page(admin, "/audit/").text(id="table-rows")
    assert ("admin create bob" in text, "team-c" in text, "correct horse" in text) == (True, True, False)
    assert "team-c" not in page(reader("olga-a", "operator", "team-a"), "/audit/").text(tag="main")


def test_the_audits_filters_offer_everybody_who_did_something(admin):
    deeds = [audit.Deed("early", "create", "queues", "team-a", "old")]
    audit.record_many([*deeds, *(audit.Deed("late", "create", "queues", "", "new") for _ in range(60))])
    document = page(admin, "/audit/?actor=late")
    assert {"early", "late"} <= set(offered(document, "actor"))
    assert offered(document, "namespace") == ["team-a"]
    assert offered(page(reader("olga-b", "operator", "team-a"), "/audit/"), "actor") == ["early"]


def offered(document, name):
    """The values of a filter but for that of all."""
    return [each.get("value") for each in document.one(tag="select", name=name).findall(".//option")][1:]


@cases("says, allowed, words", {
    "there": ("holds: Landlock (ABI 7)", False, "the machine here holds: Landlock (ABI 7)."),
    "lacking": ("none: pods reach all", False, "Only pods of administrators of all namespaces run there"),
    "done without": ("none: pods reach all", True, "Pods of everybody run there all the same"),
})  # fmt: skip
def test_it_says_what_keeps_pods_from_a_machine(admin, settings, says, allowed, words):
    settings.ALLOW_UNWALLED = allowed
    for name, notes in (("here", {"ui.volcano.sh/wall": says}), ("simulated-0", {})):
        store.write(Create(NODES, {"metadata": {"name": name, "annotations": notes}, "spec": {}, "status": {}}))
    store.write(Create(LEASES, {"metadata": {"name": "here", "namespace": "kube-node-lease"}, "spec": {}}))
    text = page_text(admin)
    assert (words in text, "simulated-0" in text) == (True, False)


JOB = "/jobs/team-a/train/"


@pytest.fixture
def remote(cluster, tmp_path, settings, moved_clock):
    """The small cluster, of which another API server says who may do what."""
    with deciding(tmp_path, settings, moved_clock) as running:
        yield running


@pytest.fixture
def vera(remote, admin):
    """Somebody who administers everything here, and may do there what a test grants."""
    return admin


def give(remote, namespace, *rules):
    remote.grants.give("admin", namespace, *rules)
    remote.clock.move(viewer.QUIET_S + 1)


def links(document):
    return {each.get("href") for each in document.all(tag="a")}


def test_without_a_right_there_nothing_is_shown_and_our_own_pages_stay(vera):
    document = page(vera, "/")
    text = document.text(tag="main")
    assert ("You may not see jobs anywhere. The cluster dev decides this" in text, "train" in text) == (True, False)
    assert {"/audit/", "/access/", "/queues/", "/nodes/"} & links(document) == {"/audit/", "/access/"}
    assert (page(vera, "/jobs/").rows(), page(vera, JOB).status) == ([], 403)
    assert "its own roles decide what they see and may do there" in page(vera, "/access/").text(tag="main")


@pytest.mark.parametrize(("kind", "address"), [(QUEUES, "/queues/"), (NODES, "/nodes/")], ids=["queues", "nodes"])
def test_each_kind_that_lies_in_no_namespace_is_granted_by_itself(remote, vera, kind, address):
    assert page(vera, address).status == 403
    give(remote, "", rule("list", kind.id))
    assert page(vera, address).status == 200
    assert {"/queues/", "/nodes/"} & links(page(vera, "/")) == {address}


def test_right_to_jobs_says_nothing_about_pods_and_events(remote, vera):
    (train,) = store.find(JOBS, name="train")
    put(pod("train-main-0", job=train.uid))
    give(remote, "team-a", rule("get list", JOBS.id))
    rows = page(vera, "/jobs/").text(id="table-rows")
    assert ("train" in rows, "other" in rows) == (True, False)
    document = page(vera, JOB)
    text = document.text(tag="main")
    for hidden in ("the pods, pod groups and events", "the pods"):
        assert f"You may not see {hidden} of team-a" in text
    assert not {"?tab=logs", "?tab=events"} & links(document)
    assert "train-main-0" not in text
    assert page(vera, f"{JOB}log/?pod=train-main-0").status == 403
    assert "cannot get resource" in page(vera, f"{JOB}?tab=logs&pod=train-main-0").text(tag="main")
    assert page(vera, "/events/").rows() == []
    give(remote, "team-a", rule("get list", PODS.id, POD_GROUPS.id, EVENTS.id, "pods/log"))
    document = page(vera, JOB)
    text = document.text(tag="main")
    assert ("You may not see" in text, "train-main-0" in text) == (False, True)
    assert {"?tab=logs", "?tab=events"} <= links(document)


def test_offers_follow_what_may_be_done(remote, vera):
    give(remote, "team-a", rule("get list", JOBS.id))
    assert "/jobs/new/" not in links(page(vera, "/jobs/"))
    assert "You need the right" in page(vera, "/jobs/new/").text(tag="main") or page(vera, "/jobs/new/").status == 403
    give(remote, "team-a", rule("create delete", JOBS.id), rule("create", COMMANDS.id))
    assert "/jobs/new/" in links(page(vera, "/jobs/"))
    assert "namespace: team-a" in page(vera, "/jobs/new/").text(tag="main")
    buttons = page(vera, JOB).text(id="job-actions")
    assert [each for each in ("Suspend", "Edit", "Delete") if each in buttons] == ["Suspend", "Delete"]
    assert "/sweeps/" not in links(page(vera, "/jobs/"))
    give(remote, "team-a", rule("list", CONFIGMAPS.id))
    assert "/sweeps/" in links(page(vera, "/jobs/"))


def test_cluster_that_never_answered_is_said_to_be_away(remote, vera):
    remote.refused = 503, "starting"
    for address in ("/", "/jobs/", JOB, "/jobs/new/"):
        document = page(vera, address)
        assert document.status == 503
        assert "The cluster dev does not answer: starting" in document.text(tag="main")


def test_last_answers_count_while_the_cluster_is_away(remote, vera):
    give(remote, "team-a", rule("get list", JOBS.id), rule("create", COMMANDS.id))
    assert "Suspend" in page(vera, JOB).text(id="job-actions")
    remote.refused = 503, "starting"
    remote.clock.move(viewer.FRESH_S + 1)
    assert "train" in page(vera, "/jobs/").text(id="table-rows")
    answer = vera.post(f"{JOB}suspend/", follow=True)
    assert "nothing was changed" in answer.content.decode()
    assert not RoleBinding.objects.exists(), "no role of ours was asked"
