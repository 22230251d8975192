"""A sync of the job controller asks the database a bounded number of times, however much it is about."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster.store import Create, Group, Patch, store
from kube.resources import JOBS, POD_GROUPS, PODS
from tests.jobs.control import job
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)
BOUND = 25  # 19 for the smallest; large batches go in several statements


@cases("jobs, replicas", {
    "one pod": (1, 1),
    "100 jobs of one pod": (100, 1),
    "1000 jobs of one pod": (1000, 1),
    "one job of 1000 pods": (1, 1000),
    "50 jobs of 20 pods": (50, 20),
})  # fmt: skip
def test_a_sync_asks_a_bounded_number_of_times(controller, jobs, replicas):
    controller.settle()
    commit([Create(JOBS, job(f"job-{number}", replicas=replicas)) for number in range(jobs)])
    begun = queries_of_a_step(controller)
    groups = store.find(POD_GROUPS)
    assert len(groups) == jobs
    status = {"status": {"phase": "Inqueue"}}
    commit([Patch(POD_GROUPS, group.namespace, group.name, status) for group in groups])
    made = queries_of_a_step(controller)
    assert store.count(PODS) == {"Pending": jobs * replicas}
    status = {"status": {"phase": "Running"}}
    commit([Patch(PODS, pod.namespace, pod.name, status, "status") for pod in store.find(PODS)])
    ran = queries_of_a_step(controller)
    assert store.count(JOBS) == {"Running": jobs}
    assert max(begun, made, ran) <= BOUND


def commit(writes):
    outcomes = store.commit([Group([write]) for write in writes])
    assert all(isinstance(outcome, list) for outcome in outcomes), outcomes[0]


def queries_of_a_step(controller):
    with CaptureQueriesContext(connection) as asked:
        controller.step()
    return len(asked)
