from __future__ import annotations

import pytest
from django.core.management import call_command

from cluster.access import accounts, identities
from cluster.claims import Person
from cluster.models import AuditEntry, RoleBinding
from kube.errors import ApiError, Conflict, Forbidden, Invalid
from tests.cluster.api.conftest import make_user
from tests.tables import cases

pytestmark = pytest.mark.django_db
ALICE = Person("https://p", "1", "alice", ("staff", "team-a"))


def bindings():
    return [(each.group.name, each.namespace, each.role) for each in RoleBinding.objects.all()]


def test_a_login_is_in_the_audit_with_its_groups():
    identities.log_in(ALICE, "::1")
    found = list(AuditEntry.objects.order_by("id").values_list("verb", "message"))
    assert found == [
        ("create", "At the first login at https://p."),
        ("update", "As the provider says."),
        ("login", "Logged in at https://p from ::1."),
    ]
    assert "team-a" in str(AuditEntry.objects.get(verb="update").changes)


@cases("prepare, person, error", {
    "taken": (lambda: make_user("alice"), ALICE, Conflict),
    "no name of ours": (lambda: None, Person("https://p", "1", "system:a b", ()), Invalid),
    "deactivated": (lambda: setattr(user := identities.log_in(ALICE, ""), "is_active", False) or user.save(), ALICE,
        Forbidden),
})  # fmt: skip
def test_who_is_refused_changes_nothing(prepare, person, error):
    prepare()
    before = AuditEntry.objects.count(), len(accounts.users())
    with pytest.raises(error):
        identities.log_in(person, "::1")
    assert (AuditEntry.objects.count(), len(accounts.users())) == before


def test_the_same_subject_of_another_provider_is_somebody_else():
    identities.log_in(ALICE, "::1")
    with pytest.raises(Conflict, match='The name "alice" belongs to a user'):
        identities.log_in(Person("https://other", "1", "alice", ()), "::1")


def test_a_user_may_take_another_account_of_the_provider():
    user = make_user("al")
    identities.connect(user, ALICE)
    identities.connect(user, ALICE)
    identities.connect(user, Person("https://p", "2", "alice-two", ()))
    assert identities.subject_of(user, "https://p") == "2"
    assert not user.groups.exists()
    assert identities.log_in(ALICE, "::1").username == "alice"


def test_the_administrators_group_is_appointed_at_the_start_once(settings, capsys):
    settings.OIDC_ADMIN_GROUP = ""
    call_command("bootstrap")
    assert bindings() == []
    settings.OIDC_ADMIN_GROUP = "staff"
    capsys.readouterr()
    call_command("bootstrap")
    assert capsys.readouterr().out == "Made administrators/staff.\n"
    call_command("bootstrap")
    assert capsys.readouterr().out == "Everything is there.\n"
    assert bindings() == [("staff", "*", "administrator")]


def test_passwords_that_are_switched_off_are_not_given(settings, admin):
    settings.PASSWORD_LOGIN = False
    with pytest.raises(ApiError, match="switched off here"):
        accounts.set_password(admin, make_user("al"), "correct horse battery")
    with pytest.raises(ApiError, match="VOLCANO_UI_PASSWORD_LOGIN"):
        accounts.create_user(admin, "bob", password="correct horse battery")
