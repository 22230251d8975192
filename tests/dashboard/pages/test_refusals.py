"""What is refused about an object stands on its page, for whoever may see it."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from cluster.access import Actor
from cluster.runtime import retries
from cluster.runtime.retries import Retries
from cluster.store import Create, store
from cluster.writes import Group
from dashboard.live import TopicRequest, topics
from kube.errors import Forbidden, NotFound
from kube.meta import controller_reference
from kube.resources import CRON_JOBS, JOB_FLOWS, JOBS, POD_GROUPS, QUEUES
from tests.dashboard.pages.conftest import page
from tests.tables import cases

pytestmark = pytest.mark.django_db

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
JOB = {"tasks": [{"name": "main", "replicas": 1, "template": TEMPLATE}], "queue": "default"}
SPECS = {
    JOBS: JOB,
    QUEUES: {"weight": 1, "parent": "root"},
    JOB_FLOWS: {"flows": [{"name": "one"}]},
    CRON_JOBS: {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}},
}
WORDS = 'pods "demo-main-0" is forbidden: <b>exceeded</b> quota'


def create(kind, name="demo", **metadata):
    namespace = "team-a" if kind.namespaced else ""
    obj = {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": SPECS.get(kind, {})}
    store.write(Create(kind, obj))
    return store.get(kind, namespace, name)


def refuse(consumer, key, times=retries.TOLD_AFTER):
    kept = Retries(consumer, f"{consumer}/0", "default")
    for second in range(times):
        kept.timers([Group([], key)], [Forbidden(WORDS)], 1_800_000_000_000 + second * 1000)
    return kept


def shown(browser, address):
    """What the page says is refused."""
    read = page(browser, address)
    assert read.status == 200
    return read.text(id="refusals")


@cases("kind, consumer, address", {
    "job": (JOBS, "jobs", "/jobs/team-a/demo/"),
    "queue": (QUEUES, "queues", "/queues/demo/"),
    "flow": (JOB_FLOWS, "jobflows", "/flows/team-a/demo/"),
    "cron job": (CRON_JOBS, "cronjobs", "/cronjobs/team-a/demo/"),
})  # fmt: skip
def test_page_says_what_is_refused_in_whose_words_and_since_when(admin, kind, consumer, address):
    create(kind)
    assert shown(admin, address) == ""
    kept = refuse(consumer, "team-a/demo" if kind.namespaced else "demo")
    text = shown(admin, address)
    assert f"What this {kind.kind} needs next is refused since 2027-01-15 08:00:00 UTC" in text
    assert "is forbidden: <b>exceeded</b> quota" in text
    assert f"Tried {retries.TOLD_AFTER} times" in text
    kept.timers([Group([], "team-a/demo" if kind.namespaced else "demo")], [[]], 1_800_000_100_000)
    assert shown(admin, address) == ""


def test_job_says_what_is_refused_about_its_pod_group(admin):
    job = create(JOBS)
    create(POD_GROUPS, "demo-1", ownerReferences=[controller_reference(JOBS, "demo", job.uid)])
    create(POD_GROUPS, "other")
    refuse("scheduler", "team-a/other")
    assert shown(admin, "/jobs/team-a/demo/") == ""
    refuse("scheduler", "team-a/demo-1")
    assert "What the scheduler decided about this Job is refused" in shown(admin, "/jobs/team-a/demo/")


def topic(browser, **params):
    query = QueryDict(mutable=True)
    query.update(params)
    return topics.find("refusals")(TopicRequest(Actor(browser.user.username, user_id=browser.user.id), query))


PLACE = {"kind": JOBS.id, "namespace": "team-a", "name": "demo"}


def test_page_looks_again_when_it_was_tried_again(admin):
    create(JOBS)
    assert topic(admin, **PLACE).again is None
    refuse("jobs", "team-a/demo")
    (standing,) = retries.standing({"jobs": "team-a/demo"})
    assert topic(admin, **PLACE).again > standing.due


def test_who_may_not_see_the_object_is_told_nothing(alice, stranger):
    create(JOBS)
    assert topic(alice, **PLACE).parts
    with pytest.raises(Forbidden):
        topic(stranger, **PLACE)
    with pytest.raises(NotFound):
        topic(alice, kind="secrets", namespace="team-a", name="demo")
