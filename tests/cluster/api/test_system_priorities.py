"""Classes whose names begin with "system-" are for administrators of everything, in whatever names them."""

from __future__ import annotations

import pytest

from cluster import api
from cluster.store import Create, store
from jobs.editor import choices
from kube import resources
from kube.errors import Forbidden, NotFound
from tests.tables import cases

from .conftest import job

pytestmark = pytest.mark.django_db
CRITICAL = "system-node-critical"
CONTAINERS = [{"name": "main", "image": "any", "command": ["true"]}]


@pytest.fixture(autouse=True)
def _cluster(cluster):
    for name, value in ((CRITICAL, 2_000_001_000), ("high", 1000)):
        store.write(Create(resources.PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value}))


def pod_spec(name, **fields):
    return {"containers": CONTAINERS, "restartPolicy": "Never", "priorityClassName": name, **fields}


def of_tasks(name):
    return {"tasks": [{"name": "t", "replicas": 1, "template": {"spec": pod_spec(name)}}]}


def made(kind, spec):
    return {"metadata": {"name": "x", "namespace": "default"}, "spec": spec}


CASES = {
    "a pod": (resources.PODS, lambda name: made("Pod", pod_spec(name))),
    "a pod group": (resources.POD_GROUPS, lambda name: made("PodGroup", {"minMember": 1, "priorityClassName": name})),
    "a job": (resources.JOBS, lambda name: job("x", priorityClassName=name)),
    "a task": (resources.JOBS, lambda name: job("x", **of_tasks(name))),
    "a template": (resources.JOB_TEMPLATES, lambda name: made("JobTemplate", of_tasks(name))),
    "a cron job": (
        resources.CRON_JOBS,
        lambda name: made("CronJob", {"schedule": "@daily", "jobTemplate": {"spec": of_tasks(name)}}),
    ),
    "a patch of a flow": (
        resources.JOB_FLOWS,
        lambda name: made("JobFlow", {"flows": [{"name": "a", "patch": {"jobSpec": of_tasks(name)}}]}),
    ),
    "a batch job": (resources.BATCH_JOBS, lambda name: made("Job", {"template": {"spec": pod_spec(name)}})),
}


@cases("kind, body", CASES)
@pytest.mark.parametrize("role", ["submitter", "operator", "administrator"])
def test_a_class_of_the_system_takes_an_administrator_of_everything(person, kind, body, role):
    sam = person("sam", default=role)
    with pytest.raises(Forbidden, match=f'"x" is forbidden: priorityClassName "{CRITICAL}" is not allowed') as no:
        api.create(sam, kind, body(CRITICAL))
    assert "use another class, or ask an administrator to make one" in str(no.value)
    with pytest.raises(NotFound):
        store.get(kind, "default", "x")
    api.create(sam, kind, body("high"))


@cases("kind, body", CASES)
def test_an_administrator_of_everything_may_use_it(admin, kind, body):
    api.create(admin, kind, body(CRITICAL))


def test_nobody_gives_it_to_a_job_later_and_whose_it_is_may_still_be_scaled(person, admin):
    sam, olga = person("sam", default="submitter"), person("olga", default="operator")
    api.create(sam, resources.JOBS, job("own"))
    with pytest.raises(Forbidden, match="priorityClassName"):
        api.patch(sam, resources.JOBS, "default", "own", {"spec": {"priorityClassName": CRITICAL}})
    api.create(admin, resources.JOBS, job("critical", priorityClassName=CRITICAL))
    api.patch(olga, resources.JOBS, "default", "critical", {"metadata": {"labels": {"a": "b"}}})


def test_nobody_decides_what_runs_later_above_everybody(person, admin):
    kind, body = CASES["a cron job"]
    api.create(admin, kind, body(CRITICAL))
    olga = person("olga", default="operator")
    api.patch(olga, kind, "default", "x", {"spec": {"suspend": True}})
    other = body(CRITICAL)["spec"]
    other["jobTemplate"]["spec"]["tasks"][0]["template"]["spec"]["containers"] = [
        {**CONTAINERS[0], "command": ["false"]}
    ]
    with pytest.raises(Forbidden, match="priorityClassName"):
        api.patch(olga, kind, "default", "x", {"spec": other})
    api.patch(admin, kind, "default", "x", {"spec": other})


def test_the_form_offers_a_class_to_who_may_use_it(person, admin):
    def offered(actor):
        return [choice.value for choice in choices._priorities(actor)]

    assert offered(person("sam", default="submitter")) == ["high"]
    assert offered(admin) == [CRITICAL, "high"]
