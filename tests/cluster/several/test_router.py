"""One set of accounts for several clusters, and roles that each cluster gives by itself."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session

from cluster import access
from cluster.access import accounts
from cluster.access.roles import Role
from cluster.models import AuditEntry, Identity, LoginFailure, LoginLink, Object, RoleBinding, Token
from cluster.several import router
from cluster.several.entries import Entry
from jobs.models import Operation
from kube.errors import Conflict, Forbidden
from tests.cluster.api.conftest import make_user


@pytest.fixture
def elsewhere(settings):
    """Let this process be about a cluster that is not the first of several; its accounts are in the same database here."""
    home = settings.DATA

    def go(place):
        settings.HOME, settings.DATA = home, home / "clusters" / place if place else home
        settings.ROLES_OF = place

    return go


@pytest.mark.parametrize(
    "model", [User, Group, User.groups.through, Session, RoleBinding, Identity, LoginLink, LoginFailure]
)
def test_accounts_are_in_the_database_of_the_first(settings, model):
    settings.ACCOUNTS_DATABASE = "accounts"
    assert router.Accounts().db_for_read(model) == router.Accounts().db_for_write(model) == "accounts"


@pytest.mark.parametrize("model", [Object, AuditEntry, Token, Operation])
def test_all_else_is_a_clusters_own(settings, model):
    settings.ACCOUNTS_DATABASE = "accounts"
    assert router.Accounts().db_for_read(model) == router.Accounts().db_for_write(model) == "default"


@pytest.mark.django_db
def test_a_role_counts_in_the_cluster_that_gave_it(elsewhere):
    user = make_user("alice")
    elsewhere("dev-1")
    accounts.bind_role(access.CONSOLE, Role.OPERATOR, "team", user=user)
    assert access.allowed(access.for_user(user), "delete", "jobs.batch.volcano.sh", "team")
    assert [each.role for each in accounts.role_bindings()] == [Role.OPERATOR]
    for other in ("", "prod-2"):
        elsewhere(other)
        assert not access.allowed(access.for_user(user), "list", "jobs.batch.volcano.sh", "team")
        assert accounts.role_bindings() == []
        assert accounts.users()[0].bindings == ()


@pytest.mark.django_db
def test_the_same_role_is_given_and_taken_in_each_cluster_by_itself(elsewhere):
    user = make_user("alice")
    for place in ("", "dev-1"):
        elsewhere(place)
        accounts.bind_role(access.CONSOLE, Role.VIEWER, "team", user=user)
    accounts.unbind_role(access.CONSOLE, "team", user=user)
    assert accounts.role_bindings() == []
    elsewhere("")
    assert [each.role for each in accounts.role_bindings()] == [Role.VIEWER]


@pytest.mark.django_db
def test_every_cluster_keeps_somebody_who_administers_it(elsewhere):
    """An account that is needed in one cluster cannot be closed in another."""
    here, there = make_user("here"), make_user("there")
    accounts.bind_role(access.CONSOLE, Role.ADMINISTRATOR, "*", user=here)
    elsewhere("dev-1")
    accounts.bind_role(access.CONSOLE, Role.ADMINISTRATOR, "*", user=there)
    elsewhere("")
    with pytest.raises(Conflict, match="nobody who administers"):
        accounts.set_active(access.CONSOLE, there, active=False)
    make_user("root", is_superuser=True)
    accounts.set_active(access.CONSOLE, there, active=False)


@pytest.mark.django_db
def test_accounts_are_changed_only_in_the_cluster_that_keeps_them(settings):
    settings.ACCOUNTS_DATABASE, settings.CLUSTERS = "accounts", (Entry("home"), Entry("dev", "/c"))
    root = access.for_user(User(pk=1, username="root"))
    for verb in ("create", "update", "delete"):
        with pytest.raises(Forbidden, match="kept by the cluster home; change them there"):
            access.require(root, verb, "users", "")
    assert router.refusal("list", "users") == router.refusal("update", "roles") == ""
    settings.ACCOUNTS_DATABASE = "default"
    assert router.refusal("update", "users") == ""
