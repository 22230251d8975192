"""Accounts: made by administrators, at the start, or at the first login at a provider; their roles, and who may change them."""

from __future__ import annotations

import contextlib

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from cluster import access, claims
from cluster.access import accounts, identities, tokens
from cluster.access.accounts import Binding
from cluster.access.roles import Role
from cluster.claims import Person
from cluster.models import AuditEntry
from kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from tests.blocks import blocks
from tests.cluster.api.conftest import make_user
from tests.cluster.texts import of_values
from tests.tables import cases

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
ALICE = Person("https://p", "1", "alice", ("staff", "team-a"))


def deeds():
    return list(AuditEntry.objects.order_by("id").values_list("actor", "verb", "resource", "name"))


def told():
    return list(AuditEntry.objects.order_by("id").values_list("verb", "message"))


def test_the_first_administrator_is_made_once_has_no_password_and_another_name_where_his_is_taken():
    first = accounts.ensure_administrator()
    assert accounts.ensure_administrator() == first
    assert (first.username, first.is_superuser, first.has_usable_password()) == ("admin", True, False)
    User.objects.update(is_superuser=False)
    assert accounts.ensure_administrator().username == "admin-2"


def test_an_administrator_makes_an_account_and_passwords_that_are_switched_off_are_not_given(settings, admin):
    user = accounts.create_user(admin, "alice", password=PASSWORD, groups=["team"])
    assert user.check_password(PASSWORD)
    assert [group.name for group in user.groups.all()] == ["team"]
    assert deeds() == [("root", "create", "users", "alice")]
    assert "battery" not in str(AuditEntry.objects.values())
    settings.PASSWORD_LOGIN = False
    with pytest.raises(ApiError, match="switched off here"):
        accounts.set_password(admin, user, PASSWORD)
    with pytest.raises(ApiError, match="VOLCANO_UI_PASSWORD_LOGIN"):
        accounts.create_user(admin, "bob", password=PASSWORD)


def refused(admin, name, password):
    with pytest.raises(Invalid) as caught:
        accounts.create_user(admin, name, password=password)
    assert not User.objects.filter(username=name).exists()
    return [str(cause) for cause in caught.value.causes]


@blocks("accounts", folder="cluster")
def test_an_account_with_bad_values_is_refused_and_a_claim_that_cannot_be_used_is_named(block, golden, admin):
    answers = {"accounts": lambda *given: refused(admin, *given), "claims": lambda claimed: read(**claimed)}
    golden(block, of_values(answers[block.title], claims.ClaimError))


@cases("ask", {
    "create": lambda actor, user: accounts.create_user(actor, "new"),
    "set password": lambda actor, user: accounts.set_password(actor, user, PASSWORD),
    "deactivate": lambda actor, user: accounts.set_active(actor, user, active=False),
    "groups": lambda actor, user: accounts.set_groups(actor, user, ["g"]),
    "bind everywhere": lambda actor, user: accounts.bind_role(actor, Role.VIEWER, "*", user=user),
    "bind elsewhere": lambda actor, user: accounts.bind_role(actor, Role.VIEWER, "other", user=user),
    "unbind": lambda actor, user: accounts.unbind_role(actor, "*", user=user),
})  # fmt: skip
def test_an_administrator_of_one_namespace_gives_roles_there_and_does_nothing_else(person, ask):
    chief, user = person("chief", default="administrator"), make_user("alice")
    with pytest.raises(Forbidden):
        ask(chief, user)
    accounts.bind_role(chief, Role.OPERATOR, "default", user=user)
    assert access.allowed(access.for_user(user), "delete", "pods", "default")


def test_a_role_replaces_the_one_held_in_the_same_place_and_what_cannot_be_is_refused(admin):
    accounts.bind_role(admin, Role.OPERATOR, "a", group="team")
    accounts.bind_role(admin, Role.VIEWER, "a", group="team")
    assert accounts.role_bindings("a") == [Binding("", "team", "a", Role.VIEWER)]
    assert AuditEntry.objects.last().changes == [{"path": "role", "old": "operator", "new": "viewer"}]
    accounts.unbind_role(admin, "a", group="team")
    assert accounts.role_bindings("a") == []
    with pytest.raises(NotFound):
        accounts.unbind_role(admin, "a", group="team")
    with pytest.raises(Invalid):
        accounts.bind_role(admin, Role.VIEWER, "No Such", group="team")
    with pytest.raises(AlreadyExists):
        accounts.create_user(admin, "root")


def test_a_user_sets_his_own_password_and_loses_sessions_and_rights_when_he_is_deactivated(admin, client):
    user = make_user("alice", is_superuser=True)
    accounts.set_password(access.for_user(user), user, PASSWORD)
    assert User.objects.get(username="alice").check_password(PASSWORD)
    assert deeds() == [("alice", "set-password", "users", "alice")]
    client.force_login(user)
    accounts.set_active(admin, user, active=False)
    assert not Session.objects.exists()
    assert not User.objects.get(username="alice").is_active
    assert access.grants(access.for_user(user)).roles == {}


def test_the_last_who_administers_neither_goes_nor_steps_down_nor_leaves_his_group(admin):
    chief = User.objects.get(username="root")
    with pytest.raises(Conflict):
        accounts.set_active(admin, chief, active=False)
    with pytest.raises(Conflict):
        accounts.bind_role(admin, Role.VIEWER, "*", user=chief)
    with pytest.raises(Conflict):
        accounts.unbind_role(admin, "*", user=chief)
    assert accounts.role_bindings("*") == [Binding("root", "", "*", Role.ADMINISTRATOR)]
    assert (User.objects.get().is_active, deeds()) == (True, [])
    member = make_user("chief", group="admins")
    accounts.bind_role(access.SYSTEM, Role.ADMINISTRATOR, "*", group="admins")
    accounts.unbind_role(admin, "*", user=chief)
    with pytest.raises(Conflict):
        accounts.set_groups(access.SYSTEM, member, [])
    assert Group.objects.get().user_set.count() == 1
    superuser = make_user("super", is_superuser=True)
    accounts.set_groups(access.SYSTEM, member, [])
    with pytest.raises(Conflict):
        accounts.set_active(access.for_user(superuser), superuser, active=False)


@pytest.mark.parametrize("revoke", [True, False])
def test_a_new_password_revokes_tokens_if_asked(admin, revoke):
    alice, bob = make_user("alice"), make_user("bob")
    held = [tokens.issue(access.CONSOLE, user, "laptop", tokens.DAY_S).secret for user in (alice, alice, bob)]
    assert {each.name: each.tokens for each in accounts.users()} == {"alice": 2, "bob": 1, "root": 0}
    AuditEntry.objects.all().delete()
    count = 2 if revoke else 0
    assert accounts.set_password(admin, alice, PASSWORD, revoke=revoke) == count
    assert [tokens.find(secret) is not None for secret in held] == [not revoke, not revoke, True]
    revoked = [("revoke-token", "Token “laptop”.")] * count
    assert told() == [*revoked, ("set-password", f"Sessions ended, tokens revoked: {count}.")]


def test_the_list_of_accounts_costs_five_queries(admin, django_assert_num_queries):
    for number in range(5):
        accounts.bind_role(admin, Role.VIEWER, "a", user=make_user(f"user-{number}", group="team"))
    with django_assert_num_queries(5):
        found = accounts.users()
    assert [(a.name, a.groups) for a in found][1:3] == [("user-0", ("team",)), ("user-1", ("team",))]
    assert found[1].bindings == (Binding("user-0", "", "a", Role.VIEWER),)


def test_a_login_is_in_the_audit_with_its_groups():
    identities.log_in(ALICE, "::1")
    assert told() == [
        ("create", "At the first login at https://p."),
        ("update", "As the provider says."),
        ("login", "Logged in at https://p from ::1."),
    ]
    assert "team-a" in str(AuditEntry.objects.get(verb="update").changes)


def deactivated():
    identities.log_in(ALICE, "")
    User.objects.update(is_active=False)


@cases("prepare, person, error", {
    "taken": (lambda: make_user("alice"), ALICE, Conflict),
    "no name of ours": (lambda: None, Person("https://p", "1", "system:a b", ()), Invalid),
    "deactivated": (deactivated, ALICE, Forbidden),
    "the same subject of another provider": (lambda: identities.log_in(ALICE, ""), Person("https://other", "1", "alice", ()), Conflict),
})  # fmt: skip
def test_who_is_refused_changes_nothing(prepare, person, error):
    prepare()
    before = AuditEntry.objects.count(), len(accounts.users())
    with pytest.raises(error):
        identities.log_in(person, "::1")
    assert (AuditEntry.objects.count(), len(accounts.users())) == before


def test_a_user_may_take_another_account_of_the_provider():
    user = make_user("al")
    for person in (ALICE, ALICE, Person("https://p", "2", "alice-two", ())):
        identities.connect(user, person)
    assert identities.subject_of(user, "https://p") == "2"
    assert not user.groups.exists()
    assert identities.log_in(ALICE, "::1").username == "alice"


def test_the_administrators_group_is_appointed_at_the_start_once(settings, capsys):
    for group, said in (("", None), ("staff", "Made administrators/staff.\n"), ("staff", "Everything is there.\n")):
        settings.OIDC_ADMIN_GROUP = group
        call_command("bootstrap")
        written = capsys.readouterr().out
        assert said in (None, written)
        assert accounts.role_bindings("*") == ([Binding("", "staff", "*", Role.ADMINISTRATOR)] if group else [])


CLAIMS = {"iss": "https://p", "sub": "1", "preferred_username": "alice"}
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=300) | st.lists(st.text(max_size=200) | st.none())


def read(**claimed):
    return claims.person({**CLAIMS, **claimed}, name_claim="preferred_username", groups_claim="groups")


def test_the_names_of_the_claims_are_chosen():
    found = claims.person({**CLAIMS, "email": "a@b", "roles": ["x"]}, name_claim="email", groups_claim="roles")
    assert (found.name, found.groups) == ("a@b", ("x",))


@given(st.dictionaries(st.sampled_from(["sub", "preferred_username", "groups"]), VALUES))
def test_whatever_is_sent_gives_a_person_whom_accounts_can_take_or_a_sentence(claimed):
    with contextlib.suppress(claims.ClaimError):
        found = read(**claimed)
        assert found.name.strip() == found.name != ""
        assert 0 < len(found.subject) <= 255
        assert all(0 < len(each) <= 150 and each.isprintable() for each in found.groups)
        assert not any(each.startswith("system:") for each in found.groups)
        assert list(found.groups) == sorted(set(found.groups))
