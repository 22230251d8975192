"""Pages in front of a cluster in which people act as themselves: they show and offer what its own roles say."""

from __future__ import annotations

import pytest

from cluster.models import RoleBinding
from cluster.remote import viewer
from cluster.store import store
from kube.resources import COMMANDS, CONFIGMAPS, EVENTS, JOBS, NODES, POD_GROUPS, PODS, QUEUES
from tests.cluster.remote.review_server import deciding, rule
from tests.dashboard.pages.conftest import page, pod, put

pytestmark = pytest.mark.django_db
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


def links(shown):
    return {each.get("href") for each in shown.all(tag="a")}


def test_without_a_right_there_nothing_is_shown_and_our_own_pages_stay(vera):
    shown = page(vera, "/")
    assert "You may not see jobs anywhere. The cluster dev decides this" in shown.text(tag="main")
    assert {"/audit/", "/access/"} <= links(shown)
    assert not {"/queues/", "/nodes/"} & links(shown)
    assert "train" not in shown.text(tag="main")
    assert page(vera, "/jobs/").rows() == []
    assert page(vera, JOB).status == 403


@pytest.mark.parametrize(("kind", "address"), [(QUEUES, "/queues/"), (NODES, "/nodes/")], ids=["queues", "nodes"])
def test_each_kind_that_lies_in_no_namespace_is_granted_by_itself(remote, vera, kind, address):
    assert page(vera, address).status == 403
    give(remote, "", rule("list", kind.id))
    assert page(vera, address).status == 200
    assert address in links(page(vera, "/"))
    other = ({"/queues/", "/nodes/"} - {address}).pop()
    assert other not in links(page(vera, "/"))


@pytest.fixture
def own_pod():
    """A pod of the job."""
    kind, obj = pod("train-main-0")
    (train,) = store.find(JOBS, name="train")
    obj["metadata"]["ownerReferences"][0]["uid"] = train.uid
    put((kind, obj))


def test_right_to_jobs_says_nothing_about_pods_and_events(remote, vera, own_pod):
    give(remote, "team-a", rule("get list", JOBS.id))
    assert "train" in page(vera, "/jobs/").text(id="table-rows")
    assert "other" not in page(vera, "/jobs/").text(id="table-rows")
    shown = page(vera, JOB)
    said = shown.text(tag="main")
    assert "You may not see the pods, pod groups and events of team-a" in said
    assert "You may not see the pods of team-a" in said
    assert not {"?tab=logs", "?tab=events"} & links(shown)
    assert "train-main-0" not in said
    assert page(vera, f"{JOB}log/?pod=train-main-0").status == 403
    assert "cannot get resource" in page(vera, f"{JOB}?tab=logs&pod=train-main-0").text(tag="main")
    assert page(vera, "/events/").rows() == []
    give(remote, "team-a", rule("get list", PODS.id, POD_GROUPS.id, EVENTS.id, "pods/log"))
    shown = page(vera, JOB)
    assert "You may not see" not in shown.text(tag="main")
    assert {"?tab=logs", "?tab=events"} <= links(shown)
    assert "train-main-0" in shown.text(tag="main")


def test_offers_follow_what_may_be_done(remote, vera):
    give(remote, "team-a", rule("get list", JOBS.id))
    assert "/jobs/new/" not in links(page(vera, "/jobs/"))
    assert "You need the right" in page(vera, "/jobs/new/").text(tag="main") or page(vera, "/jobs/new/").status == 403
    give(remote, "team-a", rule("create delete", JOBS.id), rule("create", COMMANDS.id))
    assert "/jobs/new/" in links(page(vera, "/jobs/"))
    assert "namespace: team-a" in page(vera, "/jobs/new/").text(tag="main")
    buttons = page(vera, JOB).text(id="job-actions")
    assert "Suspend" in buttons
    assert "Delete" in buttons
    assert "Edit" not in buttons
    assert "/sweeps/" not in links(page(vera, "/jobs/"))
    give(remote, "team-a", rule("list", CONFIGMAPS.id))
    assert "/sweeps/" in links(page(vera, "/jobs/"))


def test_page_access_says_who_decides(vera):
    assert "its own roles decide what they see and may do there" in page(vera, "/access/").text(tag="main")


def test_cluster_that_never_answered_is_said_to_be_away(remote, vera):
    remote.refused = 503, "starting"
    for address in ("/", "/jobs/", JOB, "/jobs/new/"):
        shown = page(vera, address)
        assert shown.status == 503
        assert "The cluster dev does not answer: starting" in shown.text(tag="main")


def test_last_answers_count_while_the_cluster_is_away(remote, vera):
    give(remote, "team-a", rule("get list", JOBS.id), rule("create", COMMANDS.id))
    assert "Suspend" in page(vera, JOB).text(id="job-actions")
    remote.refused = 503, "starting"
    remote.clock.move(viewer.FRESH_S + 1)
    assert "train" in page(vera, "/jobs/").text(id="table-rows")
    answer = vera.post(f"{JOB}suspend/", follow=True)
    assert "nothing was changed" in answer.content.decode()
    assert not RoleBinding.objects.exists(), "no role of ours was asked"
