"""People act as themselves: the cluster decides about its objects, in what is shown, offered and done."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from cluster import access
from cluster.access.roles import EVERYWHERE
from cluster.api.rights import QUEUE_STATE
from cluster.models import RoleBinding
from cluster.remote import recorder, server, viewer
from cluster.remote.authorizer import AWAY_S, ClusterAuthorizer
from cluster.remote.request import Impersonation
from cluster.store import store
from cluster.writes import Mirror
from kube.errors import Forbidden, ServiceUnavailable
from kube.resources import COMMANDS, JOBS, NAMESPACES, NODES, QUEUES
from tests.cluster.remote.log_server import connected
from tests.cluster.remote.review_server import ReviewServer, rule

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(tmp_path, settings, moved_clock):
    """A cluster with two namespaces that decides; its clock stands."""
    settings.IMPERSONATE = True
    recorder.claim("https://one")
    for name in ("team-a", "team-b"):
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "8"}
        store.write(Mirror(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
    with connected(ReviewServer(), tmp_path, settings) as running:
        access.delegate(ClusterAuthorizer())
        running.clock = moved_clock
        yield running
        access.delegate(None)


@pytest.fixture
def ada(cluster):
    user = User.objects.create_user("ada", password="x")
    user.groups.add(Group.objects.create(name="speech"))
    return access.for_user(user)


def test_the_clusters_roles_decide_about_its_objects_and_ours_about_the_rest(cluster, ada):
    RoleBinding.objects.create(user_id=ada.user_id, namespace=EVERYWHERE, role="administrator")
    assert not access.allowed(ada, "create", JOBS, "team-a")
    assert access.namespaces(ada, JOBS) == frozenset()
    assert access.allowed(ada, "create", "users", "")
    assert access.namespaces(ada, "audit") is access.ALL
    cluster.grants.give("ada", "team-a", rule("list create", JOBS.id))
    cluster.clock.move(viewer.FRESH_S + 1)
    assert access.allowed(ada, "create", JOBS, "team-a")
    assert not access.allowed(ada, "delete", JOBS, "team-a", owner="ada"), "nobody owns anything there"
    assert access.namespaces(ada, JOBS) == {"team-a"}
    assert access.namespaces(ada, JOBS, "create") == {"team-a"}
    assert access.somewhere(ada, "create", JOBS)
    assert not access.somewhere(ada, "delete", JOBS)


def test_one_is_known_there_by_the_names_of_account_and_groups(cluster, ada, settings):
    cluster.grants.give("speech", "team-b", rule("list", JOBS.id))
    assert access.namespaces(ada, JOBS) == {"team-b"}
    assert set(map(str, cluster.heard)) == {str(("ada", ["speech"]))}


def test_prefixes_stand_before_names(cluster, ada, settings):
    settings.IMPERSONATE_USER_PREFIX, settings.IMPERSONATE_GROUP_PREFIX = "oidc:", "idp:"
    assert server.impersonation(ada) == Impersonation("oidc:ada", ("idp:speech",))


@pytest.mark.parametrize("name", ["system:masters", "system:serviceaccounts:kube-system", " speech"])
def test_groups_that_would_pass_for_others_are_not_passed_on(cluster, ada, name):
    User.objects.get(pk=ada.user_id).groups.add(Group.objects.create(name=name))
    assert server.impersonation(ada).groups == ("speech",)


def test_no_prefix_makes_a_group_one_of_the_systems(cluster, ada, settings):
    User.objects.get(pk=ada.user_id).groups.add(Group.objects.create(name="stem:masters"))
    settings.IMPERSONATE_GROUP_PREFIX = "sy"
    assert server.impersonation(ada).groups == ("syspeech",)


def test_who_is_deactivated_is_nobody_there(cluster, ada):
    cluster.grants.give("ada", "", rule("*", JOBS.id))
    assert access.allowed(ada, "list", JOBS, "")
    user = User.objects.get(pk=ada.user_id)
    user.is_active = False
    user.save()
    assert not access.allowed(ada, "list", JOBS, "")
    assert access.namespaces(ada, JOBS) == frozenset()
    with pytest.raises(Forbidden):
        server.acting_as(ada)


def test_parts_of_the_system_act_as_the_user_of_the_kubeconfig(cluster):
    assert access.allowed(access.SYSTEM, "delete", JOBS, "team-a")
    assert server.acting_as(access.CONSOLE) is None
    assert cluster.heard == []


def test_refusal_says_what_who_where_and_whom_to_ask(cluster, ada, settings):
    settings.IMPERSONATE_USER_PREFIX = "oidc:"
    with pytest.raises(Forbidden) as refused:
        access.require(ada, "create", JOBS, "team-a", "train")
    assert refused.value.message == (
        'jobs.batch.volcano.sh "train" is forbidden: User "oidc:ada" cannot create resource "jobs" in API group '
        '"batch.volcano.sh" in the namespace "team-a". The cluster dev decides this; ask who administers it for a '
        "role there."
    )


def test_right_to_one_object_counts_for_that_object(cluster, ada):
    cluster.grants.give("ada", "team-a", {**rule("delete", JOBS.id), "resourceNames": ["train"]})
    access.require(ada, "delete", JOBS, "team-a", "train")
    with pytest.raises(Forbidden):
        access.require(ada, "delete", JOBS, "team-a", "other")
    assert not access.allowed(ada, "delete", JOBS, "team-a")


def test_queue_is_closed_by_who_may_create_commands_where_those_to_queues_lie(cluster, ada):
    assert not access.allowed(ada, "update", QUEUE_STATE, "")
    cluster.grants.give("ada", "default", rule("create", COMMANDS.id))
    cluster.clock.move(viewer.FRESH_S + 1)
    assert access.allowed(ada, "update", QUEUE_STATE, "")


def test_what_lies_in_no_namespace_asks_about_none(cluster, ada):
    cluster.grants.give("ada", "team-a", rule("list", NODES.id, NAMESPACES.id))
    cluster.grants.give("ada", "", rule("list", QUEUES.id))
    assert access.namespaces(ada, NODES) == frozenset()
    assert access.namespaces(ada, QUEUES) is access.ALL
    assert len(cluster.heard) == 1


def test_namespaces_are_seen_by_who_may_get_them(cluster, ada):
    cluster.grants.give("ada", "team-b", rule("get", NAMESPACES.id))
    assert access.namespaces(ada, NAMESPACES) == {"team-b"}


def test_cluster_that_is_away_shows_what_was_and_lets_nothing_be_changed(cluster, ada):
    cluster.grants.give("ada", "team-a", rule("list get create", JOBS.id))
    assert access.namespaces(ada, JOBS) == {"team-a"}
    before = access.scope(ada)
    cluster.refused = 503, "starting"
    cluster.clock.move(viewer.FRESH_S + 1)
    assert access.namespaces(ada, JOBS) == {"team-a"}
    assert access.scope(ada) == before
    access.require(ada, "get", JOBS, "team-a", "train")
    with pytest.raises(ServiceUnavailable, match=r"starting.*nothing was changed. Try again later"):
        access.require(ada, "create", JOBS, "team-a", "train")
    with pytest.raises(ServiceUnavailable, match="not known yet"):
        access.allowed(access.for_user(User.objects.create_user("bob")), "list", JOBS, "team-a")
    cluster.refused = None
    cluster.clock.move(AWAY_S + 0.1)
    access.require(ada, "create", JOBS, "team-a", "train")


def test_cluster_that_is_away_is_not_asked_for_each_button(cluster, ada):
    access.namespaces(ada, JOBS)
    cluster.refused = 503, "starting"
    cluster.clock.move(viewer.FRESH_S + 1)
    cluster.heard.clear()
    for _ in range(20):
        access.allowed(ada, "create", JOBS, "team-a")
    assert len(cluster.heard) == 1


@pytest.mark.parametrize(
    ("code", "is_away"),
    [(401, True), (429, True), (500, True), (403, False)],
    ids=["an expired token", "overload", "a defect", "no right to impersonate"],
)
def test_what_an_error_means(cluster, ada, code, is_away):
    cluster.grants.give("ada", "", rule("*", JOBS.id))
    assert access.allowed(ada, "list", JOBS, "team-a")
    cluster.refused = code, "pages cannot impersonate"
    cluster.clock.move(viewer.FRESH_S + 1)
    assert access.allowed(ada, "list", JOBS, "team-a") is is_away
    if not is_away:
        with pytest.raises(Forbidden, match="does not tell what ada may do: pages cannot impersonate"):
            access.require(ada, "list", JOBS, "team-a")


def test_cluster_with_webhooks_is_asked_each_question_by_itself(cluster, ada):
    cluster.grants.is_incomplete = True
    cluster.grants.give("ada", "team-b", rule("list get", JOBS.id, f"{JOBS.id}/status"))
    assert access.namespaces(ada, JOBS) == {"team-b"}
    assert access.allowed(ada, "get", f"{JOBS.id}/status", "team-b")
    assert not access.allowed(ada, "delete", JOBS, "team-b")
    before = access.scope(ada)
    cluster.grants.take("ada", "team-b")
    cluster.clock.move(viewer.FRESH_S + 1)
    assert access.scope(ada) != before
    assert access.namespaces(ada, JOBS) == frozenset()
