from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from cluster import access
from cluster.access import audit, tokens
from cluster.models import RoleBinding
from cluster.store import Create, Group, store
from kube.resources import LEASES, NAMESPACES, NODES
from tests.cluster.api.conftest import make_user
from tests.dashboard.pages.conftest import Page, page, reader
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")


def test_a_user_without_password_gets_a_link_that_is_shown_once(admin):
    admin.post("/access/users/", {"name": "bob", "role": "submitter", "namespace": "team-a"})
    link = next(
        word for word in page(admin, "/access/").text(tag="main").split() if word.startswith("http://testserver/login/")
    )
    assert link not in page(admin, "/access/").text(tag="main")
    bob = Client()
    bob.post(link.removeprefix("http://testserver"))
    assert "bob" in page(bob, "/").text(id="reader")
    assert RoleBinding.objects.get(user__username="bob").role == "submitter"


def test_a_new_password_says_what_becomes_of_tokens(admin):
    bob = make_user("bob")
    none = "There are no API tokens of bob in this cluster."
    assert none in page(admin, "/access/").text(tag="main")
    tokens.issue(access.CONSOLE, bob, "laptop", tokens.DAY_S)
    shown = page(admin, "/access/")
    assert none not in shown.text(tag="main")
    assert "Also revoke 1 API token of bob" in shown.text(tag="main")
    admin.post("/access/users/bob/password/", {"password": "correct horse 7", "revoke": "on"})
    assert "API tokens of this cluster that were revoked: 1." in page(admin, "/access/").text()
    assert not tokens.of_user(bob)


@cases("form, values, field, words", {
    "taken": ("users", {"name": "admin"}, None, "already exists"),
    "strange name": ("users", {"name": "a b<script>"}, "user_name", "valid username"),
    "weak password": ("users", {"name": "bob", "password": "123"}, "user_password", "too short"),
    "no such role": ("users", {"name": "bob", "role": "king"}, "user_role", "not one of"),
    "no name": ("users", {"name": ""}, "user_name", "required"),
    "nobody": ("roles", {"subject": "nobody"}, None, "There is no user"),
    "a strange namespace": ("roles", {"subject": "admin", "namespace": "../x"}, None, "lower"),
    "no subject": ("roles", {"subject": ""}, None, "required"),
    "a namespace's name": ("namespaces", {"name": "Team C"}, "namespace_name", ""),
})  # fmt: skip
def test_what_is_wrong_stands_at_its_field(admin, form, values, field, words):
    sent = {"kind": "user", "role": "viewer", "namespace": "*", **values}
    shown = Page(admin.post(f"/access/{form}/", sent))
    assert shown.status == 422
    said = shown.text(id=f"{field}_error") if field else shown.text(tag="main")
    assert said
    assert words in said


def test_who_is_deactivated_is_out_at_once(admin, alice):
    admin.post("/access/users/alice/active/", {})
    assert alice.get("/").status_code == 302
    admin.post("/access/users/alice/active/", {"active": "1"})
    assert User.objects.get(username="alice").is_active


def test_a_role_is_given_and_taken_away(admin):
    reader("bob")
    admin.post("/access/roles/", {"kind": "user", "subject": "bob", "role": "operator", "namespace": "team-b"})
    assert "bob operator" in page(admin, "/access/").text(tag="main")
    admin.post("/access/roles/remove/", {"user": "bob", "namespace": "team-b"})
    assert not RoleBinding.objects.filter(user__username="bob").exists()


def test_an_administrator_of_a_namespace_sees_and_gives_roles_there_only(admin):
    chief = reader("chief", "administrator", "team-a")
    reader("bob")
    shown = page(chief, "/access/")
    assert "Users" not in [("".join(h.itertext())) for h in shown.all(tag="h2")]
    chief.post("/access/roles/", {"kind": "user", "subject": "bob", "role": "viewer", "namespace": "team-a"})
    assert RoleBinding.objects.filter(user__username="bob", namespace="team-a").exists()
    refused = Page(
        chief.post("/access/roles/", {"kind": "user", "subject": "bob", "role": "viewer", "namespace": "team-b"})
    )
    assert "forbidden" in refused.text(tag="main")


def test_the_audit_shows_who_did_what_and_not_the_secret_to_who_may_see_it(admin):
    admin.post("/access/users/", {"name": "bob", "password": "correct horse 7", "namespace": "*"})
    assert Client().login(username="bob", password="correct horse 7")
    admin.post("/access/namespaces/", {"name": "team-c"})
    assert store.get(NAMESPACES, "", "team-c")
    shown = page(admin, "/audit/").text(id="table-rows")
    assert "admin create bob" in shown
    assert "team-c" in shown
    assert "correct horse" not in shown
    assert "team-c" not in page(reader("olga-a", "operator", "team-a"), "/audit/").text(tag="main")


def test_the_audits_filters_offer_everybody_who_did_something(admin):
    deeds = [audit.Deed("early", "create", "queues", "team-a", "old")]
    audit.record_many([*deeds, *(audit.Deed("late", "create", "queues", "", "new") for _ in range(60))])
    shown = page(admin, "/audit/?actor=late")
    assert {"early", "late"} <= set(offered(shown, "actor"))
    assert offered(shown, "namespace") == ["team-a"]
    assert offered(page(reader("olga-b", "operator", "team-a"), "/audit/"), "actor") == ["early"]


def offered(shown, name):
    """The values of a filter but for that of all."""
    options = next(iter(shown.all(tag="select", name=name))).findall(".//option")
    return [each.get("value") for each in options][1:]


@cases("says, allowed, words", {
    "there": ("holds: Landlock (ABI 7)", False, "the machine here holds: Landlock (ABI 7)."),
    "lacking": ("none: pods reach all", False, "Only pods of administrators of all namespaces run there"),
    "done without": ("none: pods reach all", True, "Pods of everybody run there all the same"),
})  # fmt: skip
def test_it_says_what_keeps_pods_from_a_machine(admin, settings, says, allowed, words):
    settings.ALLOW_UNWALLED = allowed
    machine, simulated = (
        {"metadata": {"name": name, "annotations": annotations}, "spec": {}, "status": {}}
        for name, annotations in (("here", {"ui.volcano.sh/wall": says}), ("simulated-0", {}))
    )
    store.commit([Group([Create(NODES, machine), Create(NODES, simulated)])])
    store.write(Create(LEASES, {"metadata": {"name": "here", "namespace": "kube-node-lease"}, "spec": {}}))
    said = page(admin, "/access/").text(tag="main")
    assert words in said
    assert "simulated-0" not in said
