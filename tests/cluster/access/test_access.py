"""Who may what: the roles that somebody has, from where they come, and how a refusal reads. The table of roles: test_roles.py."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.db import connection

from cluster import access
from cluster.access import Actor
from cluster.access.roles import ALL, Role
from cluster.models import RoleBinding
from kube.errors import Forbidden
from kube.resources import JOBS
from tests.cluster.api.conftest import make_user
from tests.tables import cases

pytestmark = pytest.mark.django_db


def bind(role, namespace="a", group="team"):
    group, _ = Group.objects.get_or_create(name=group)
    RoleBinding.objects.create(group=group, namespace=namespace, role=role)


def test_roles_of_a_user_and_of_his_groups_add_up_while_he_is_active_and_in_them():
    user = make_user("alice", group="team")
    RoleBinding.objects.create(user=user, namespace="a", role="viewer")
    bind("operator")
    bind("viewer", "b")
    actor = access.for_user(user)
    assert access.grants(actor).roles == {"a": Role.OPERATOR, "b": Role.VIEWER}
    user.groups.clear()
    assert access.grants(actor).roles == {"a": Role.VIEWER}
    user.is_active = False
    user.save()
    assert access.grants(access.for_user(user)).roles == {}


def test_superusers_and_the_system_may_do_everything_and_somebody_unknown_nothing(django_assert_num_queries):
    root = access.for_user(make_user("root", is_superuser=True))
    assert access.allowed(root, "delete", "namespaces", "x")
    assert access.namespaces(root, JOBS) is ALL
    inactive = access.for_user(make_user("gone", is_superuser=True, is_active=False))
    assert access.grants(inactive).roles == {}
    unknown = access.for_user(AnonymousUser())
    with django_assert_num_queries(0):
        assert access.allowed(access.SYSTEM, "update", "pods/binding", "default")
        assert access.namespaces(access.SYSTEM, "pods") is ALL
        assert not access.allowed(unknown, "list", JOBS, "default")
        assert access.namespaces(unknown, JOBS) == frozenset()


def test_a_request_has_one_actor_and_without_an_account_the_groups_that_are_vouched_for_count(rf):
    request = rf.get("/")
    request.user = make_user("alice")
    assert access.of(request) is access.of(request)
    request.user = make_user("bob")
    assert access.of(request).name == "bob"
    bind("submitter", group="ci")
    assert access.allowed(Actor("robot", ("ci",)), "create", JOBS, "a")
    assert not access.allowed(Actor("robot", ("others",)), "create", JOBS, "a")


@pytest.mark.parametrize("where", ["here", "by another process"])
def test_roles_are_read_in_one_query_and_kept_until_they_are_taken_away(
    person, monkeypatch, django_assert_num_queries, django_capture_on_commit_callbacks, where
):
    actor = person("alice", default="operator")
    with django_assert_num_queries(1):
        for verb in ("get", "create", "delete"):
            assert access.allowed(actor, verb, JOBS, "default")
    if where == "here":
        RoleBinding.objects.get().delete()
    else:
        with connection.cursor() as cursor:  # no signal reaches this process
            cursor.execute("DELETE FROM cluster_rolebinding")
        assert access.allowed(actor, "delete", JOBS, "default")
        monkeypatch.setattr(actor._known, "until", 0.0)
    assert not access.allowed(actor, "delete", JOBS, "default")


OPERATOR = "It takes the role operator in default; ask an administrator for it."
EVERYWHERE = "It takes the role administrator in all namespaces; ask an administrator for it."


@cases("resource, namespace, name, refused", {
    "an object": (JOBS, "default", "x", ('jobs.batch.volcano.sh "x"', '"jobs" in API group "batch.volcano.sh"', OPERATOR)),
    "a kind": ("pods", "default", "", ("pods", '"pods" in API group ""', OPERATOR)),
    "the cluster": ("nodes", "", "n", ('nodes "n"', '"nodes" in API group ""', EVERYWHERE)),
    "what no role may": ("pods/binding", "default", "p", ('pods "p"', '"pods/binding" in API group ""', "Nobody may do this by hand.")),
})  # fmt: skip
def test_a_refusal_says_who_what_where_and_what_it_takes(person, resource, namespace, name, refused):
    what, kind, needed = refused
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    with pytest.raises(Forbidden) as caught:
        access.require(person("eve"), "delete", resource, namespace, name)
    assert caught.value.message == f'{what} is forbidden: User "eve" cannot delete resource {kind} {where}. {needed}'
