"""Jobs that came by a cluster's own API where no admission filled them in."""

from __future__ import annotations

import copy

import pytest
from msgspec import json

from cluster.store import store
from jobs.controller import facts, unfilled
from jobs.rules import admission
from kube.resources import POD_GROUPS
from tests.jobs.builders import CLUSTER, task
from tests.jobs.control import admit, pods, state, submit
from tests.tables import cases

PLAIN = {"name": "", "replicas": 2, "template": task()["template"]}


def sent(**spec):
    """A job as vcctl sends it: without a queue, and tasks without names."""
    tasks = [{key: value for key, value in PLAIN.items() if value}]
    return {"metadata": {"name": "tiny", "namespace": "default"}, "spec": {"tasks": tasks, **spec}}


def admitted(obj):
    job = copy.deepcopy(obj)
    admission.default(job, None, CLUSTER)
    return job


@cases("spec", {
    "nothing": {},
    "of vcctl": {"minAvailable": 1, "schedulerName": "volcano"},
    "without a task's name": {"queue": "default", "schedulerName": "volcano", "maxRetry": 3},
    "without a queue": {"tasks": [task()]},
    "with a plugin that needs another": {"tasks": [task()], "plugins": {"pytorch": []}},
})  # fmt: skip
def test_job_is_read_as_admission_would_have_stored_it(spec):
    job = sent(**spec)
    assert json.decode(unfilled.filled_in(json.encode(job))) == admitted(job)


def test_job_that_was_admitted_is_taken_as_it_is():
    lowered = admitted(sent())
    lowered["spec"]["minAvailable"] = 0
    body = json.encode(lowered)
    assert unfilled.filled_in(body) is body
    assert facts.read_job(body).min_available == 0


@pytest.mark.django_db(transaction=True)
def test_unfilled_job_gets_its_pods(controller):
    """Nobody judges it here, as in a cluster that has no webhooks."""
    submit(controller, sent())
    assert [group.object["spec"]["minMember"] for group in store.find(POD_GROUPS)] == [2]
    admit(controller)
    assert pods() == ["tiny-default0-0", "tiny-default0-1"]
    assert state("tiny")["pending"] == 2
