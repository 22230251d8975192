from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.db import connection

from cluster import access
from cluster.access import Actor
from cluster.access.roles import ALL, Role
from cluster.models import RoleBinding
from kube import resources
from kube.errors import Forbidden
from tests.cluster.api.conftest import make_user
from tests.tables import cases

pytestmark = pytest.mark.django_db
JOBS = resources.JOBS


def test_a_superuser_administers_everything():
    actor = access.for_user(make_user("root", is_superuser=True))
    assert access.allowed(actor, "delete", "namespaces", "x")
    assert access.namespaces(actor, JOBS) is ALL


def test_roles_of_a_user_and_of_his_groups_add_up():
    user = make_user("alice", group="team")
    RoleBinding.objects.create(user=user, namespace="a", role="viewer")
    RoleBinding.objects.create(group=Group.objects.get(name="team"), namespace="a", role="operator")
    RoleBinding.objects.create(group=Group.objects.get(name="team"), namespace="b", role="viewer")
    assert access.grants(access.for_user(user)).roles == {"a": Role.OPERATOR, "b": Role.VIEWER}


def test_an_inactive_account_may_do_nothing():
    user = make_user("alice", is_superuser=True, is_active=False, group="team")
    RoleBinding.objects.create(group=Group.objects.get(name="team"), namespace="*", role="operator")
    assert access.grants(access.for_user(user)).roles == {}


def test_without_an_account_the_groups_that_are_vouched_for_count():
    group = Group.objects.create(name="ci")
    RoleBinding.objects.create(group=group, namespace="a", role="submitter")
    assert access.allowed(Actor("robot", ("ci",)), "create", JOBS, "a")
    assert not access.allowed(Actor("robot", ("others",)), "create", JOBS, "a")


def test_somebody_unknown_may_do_nothing_and_costs_no_query(django_assert_num_queries):
    actor = access.for_user(AnonymousUser())
    with django_assert_num_queries(0):
        assert not access.allowed(actor, "list", JOBS, "default")
        assert access.namespaces(actor, JOBS) == frozenset()


def test_the_system_may_do_everything_without_a_query(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert access.allowed(access.SYSTEM, "update", "pods/binding", "default")
        assert access.namespaces(access.SYSTEM, "pods") is ALL


def test_roles_are_read_in_one_query_and_kept(person, django_assert_num_queries):
    actor = person("alice", default="operator")
    with django_assert_num_queries(1):
        for verb in ("get", "create", "delete"):
            assert access.allowed(actor, verb, JOBS, "default")


def test_a_request_has_one_actor(rf, django_assert_num_queries):
    request = rf.get("/")
    request.user = make_user("alice")
    assert access.of(request) is access.of(request)
    request.user = make_user("bob")
    assert access.of(request).name == "bob"


def test_a_role_that_is_taken_away_is_gone_at_once_for_an_actor_that_is_kept(
    person, django_capture_on_commit_callbacks
):
    actor = person("alice", default="operator")
    assert access.allowed(actor, "delete", JOBS, "default")
    RoleBinding.objects.get().delete()
    assert not access.allowed(actor, "delete", JOBS, "default")


def test_leaving_a_group_takes_its_roles_away():
    user = make_user("alice", group="team")
    group = Group.objects.get()
    RoleBinding.objects.create(group=group, namespace="a", role="viewer")
    actor = access.for_user(user)
    assert access.allowed(actor, "get", JOBS, "a")
    user.groups.remove(group)
    assert not access.allowed(actor, "get", JOBS, "a")


def test_roles_changed_by_another_process_are_seen_when_the_old_ones_are_no_longer_fresh(person, monkeypatch):
    actor = person("alice", default="operator")
    assert access.allowed(actor, "delete", JOBS, "default")
    with connection.cursor() as cursor:  # as another process would: no signal reaches this one
        cursor.execute("DELETE FROM cluster_rolebinding")
    monkeypatch.setattr(actor._known, "until", 0.0)
    assert not access.allowed(actor, "delete", JOBS, "default")


@cases("resource, namespace, name, message", {
    "an object": (JOBS, "default", "x",
        'jobs.batch.volcano.sh "x" is forbidden: User "eve" cannot delete resource "jobs" in API group "batch.volcano.sh" in the namespace "default". It takes the role operator in default; ask an administrator for it.'),
    "a kind": ("pods", "default", "",
        'pods is forbidden: User "eve" cannot delete resource "pods" in API group "" in the namespace "default". It takes the role operator in default; ask an administrator for it.'),
    "the cluster": ("nodes", "", "n",
        'nodes "n" is forbidden: User "eve" cannot delete resource "nodes" in API group "" at the cluster scope. It takes the role administrator in all namespaces; ask an administrator for it.'),
    "what no role may": ("pods/binding", "default", "p",
        'pods "p" is forbidden: User "eve" cannot delete resource "pods/binding" in API group "" in the namespace "default". Nobody may do this by hand.'),
})  # fmt: skip
def test_a_refusal_says_who_what_where_and_what_it_takes(person, resource, namespace, name, message):
    with pytest.raises(Forbidden) as caught:
        access.require(person("eve"), "delete", resource, namespace, name)
    assert caught.value.message == message
