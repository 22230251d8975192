from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session

from cluster import access
from cluster.access import accounts, tokens
from cluster.access.roles import Role
from cluster.models import AuditEntry
from kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from tests.cluster.api.conftest import make_user
from tests.tables import cases

pytestmark = pytest.mark.django_db


def deeds():
    return list(AuditEntry.objects.order_by("id").values_list("actor", "verb", "resource", "name"))


def test_the_first_administrator_is_made_once_and_has_no_password():
    first = accounts.ensure_administrator()
    assert accounts.ensure_administrator() == first
    assert (first.username, first.is_superuser, first.has_usable_password()) == ("admin", True, False)


def test_a_taken_name_gives_the_first_administrator_another():
    make_user("admin")
    assert accounts.ensure_administrator().username == "admin-2"


def test_an_administrator_makes_an_account(admin):
    user = accounts.create_user(admin, "alice", password="correct horse battery", groups=["team"])
    assert user.check_password("correct horse battery")
    assert [group.name for group in user.groups.all()] == ["team"]
    assert deeds() == [("root", "create", "users", "alice")]
    assert "battery" not in str(AuditEntry.objects.values())


@cases("name, password, field", {
    "a name with a space": ("a b", "", "name"),
    "a hostile name": ("<script>", "", "name"),
    "no name": ("", "", "name"),
    "a long name": ("x" * 151, "", "name"),
    "a password of digits": ("alice", "12345678", "password"),
    "a short password": ("alice", "short", "password"),
})  # fmt: skip
def test_an_account_with_bad_values_is_refused_at_its_field(admin, name, password, field):
    with pytest.raises(Invalid) as caught:
        accounts.create_user(admin, name, password=password)
    assert caught.value.causes[0].field == field
    assert not User.objects.filter(username=name).exists()


def test_a_taken_name_is_refused(admin):
    make_user("alice")
    with pytest.raises(AlreadyExists):
        accounts.create_user(admin, "alice")


@cases("ask", {
    "create": lambda actor, user: accounts.create_user(actor, "new"),
    "set password": lambda actor, user: accounts.set_password(actor, user, "correct horse battery"),
    "deactivate": lambda actor, user: accounts.set_active(actor, user, active=False),
    "groups": lambda actor, user: accounts.set_groups(actor, user, ["g"]),
    "bind everywhere": lambda actor, user: accounts.bind_role(actor, Role.VIEWER, "*", user=user),
    "bind elsewhere": lambda actor, user: accounts.bind_role(actor, Role.VIEWER, "other", user=user),
    "unbind": lambda actor, user: accounts.unbind_role(actor, "*", user=user),
})  # fmt: skip
def test_an_administrator_of_one_namespace_does_none_of_it(person, ask):
    with pytest.raises(Forbidden):
        ask(person("chief", default="administrator"), make_user("alice"))


def test_an_administrator_of_one_namespace_gives_roles_there(person):
    user = make_user("alice")
    accounts.bind_role(person("chief", default="administrator"), Role.OPERATOR, "default", user=user)
    assert access.allowed(access.for_user(user), "delete", "pods", "default")


def test_a_role_replaces_the_one_held_in_the_same_place(admin):
    accounts.bind_role(admin, Role.OPERATOR, "a", group="team")
    accounts.bind_role(admin, Role.VIEWER, "a", group="team")
    assert accounts.role_bindings("a") == [accounts.Binding("", "team", "a", Role.VIEWER)]
    assert AuditEntry.objects.last().changes == [{"path": "role", "old": "operator", "new": "viewer"}]
    accounts.unbind_role(admin, "a", group="team")
    assert accounts.role_bindings("a") == []


def test_a_role_that_is_not_held_cannot_be_taken(admin):
    with pytest.raises(NotFound):
        accounts.unbind_role(admin, "a", user=make_user("alice"))


def test_a_role_needs_a_possible_namespace(admin):
    with pytest.raises(Invalid):
        accounts.bind_role(admin, Role.VIEWER, "No Such", user=make_user("alice"))


def test_a_deactivated_user_loses_sessions_and_rights(admin, client):
    user = make_user("alice", is_superuser=True)
    client.force_login(user)
    other = make_user("bob")
    client.force_login(other)
    accounts.set_active(admin, other, active=False)
    assert [s.get_decoded()["_auth_user_id"] for s in Session.objects.all()] == []
    assert not User.objects.get(username="bob").is_active
    assert access.grants(access.for_user(other)).roles == {}


def test_the_last_who_administers_cannot_be_deactivated():
    chief = make_user("chief", is_superuser=True)
    with pytest.raises(Conflict):
        accounts.set_active(access.for_user(chief), chief, active=False)
    assert User.objects.get().is_active
    assert deeds() == []


def test_the_last_administrator_cannot_step_down(admin):
    chief = User.objects.get(username="root")
    with pytest.raises(Conflict):
        accounts.bind_role(admin, Role.VIEWER, "*", user=chief)
    with pytest.raises(Conflict):
        accounts.unbind_role(admin, "*", user=chief)
    assert accounts.role_bindings("*") == [accounts.Binding("root", "", "*", Role.ADMINISTRATOR)]


def test_leaving_the_group_of_administrators_needs_another_one():
    chief = make_user("chief", group="admins")
    accounts.bind_role(access.SYSTEM, Role.ADMINISTRATOR, "*", group="admins")
    with pytest.raises(Conflict):
        accounts.set_groups(access.SYSTEM, chief, [])
    assert Group.objects.get().user_set.count() == 1


def test_a_user_may_set_his_own_password():
    user = make_user("alice")
    accounts.set_password(access.for_user(user), user, "correct horse battery")
    assert User.objects.get().check_password("correct horse battery")
    assert deeds() == [("alice", "set-password", "users", "alice")]


@pytest.mark.parametrize("revoke", [True, False])
def test_a_new_password_revokes_tokens_if_asked(admin, revoke):
    alice, bob = make_user("alice"), make_user("bob")
    held = [tokens.issue(access.CONSOLE, user, "laptop", tokens.DAY_S).secret for user in (alice, alice, bob)]
    assert {each.name: each.tokens for each in accounts.users()} == {"alice": 2, "bob": 1, "root": 0}
    AuditEntry.objects.all().delete()
    assert accounts.set_password(admin, alice, "correct horse battery", revoke=revoke) == (2 if revoke else 0)
    assert [tokens.find(secret) is not None for secret in held] == [not revoke, not revoke, True]
    said = [(entry.verb, entry.message) for entry in AuditEntry.objects.order_by("pk")]
    assert said == [
        *[("revoke-token", "Token “laptop”.")] * (2 if revoke else 0),
        ("set-password", f"Sessions ended, tokens revoked: {2 if revoke else 0}."),
    ]


def test_the_list_of_accounts_costs_five_queries(admin, django_assert_num_queries):
    for number in range(5):
        user = make_user(f"user-{number}", group="team")
        accounts.bind_role(admin, Role.VIEWER, "a", user=user)
    with django_assert_num_queries(5):
        found = accounts.users()
    assert [(a.name, a.groups) for a in found][1:3] == [("user-0", ("team",)), ("user-1", ("team",))]
    assert found[1].bindings == (accounts.Binding("user-0", "", "a", Role.VIEWER),)
