"""Limit ranges and quotas bind the pods of jobs; what they refuse is made when there is room."""

from __future__ import annotations

import pytest

from cluster import access, api
from cluster.store import Create, Delete, Patch, store
from kube.resources import JOBS, LIMIT_RANGES, PODS, RESOURCE_QUOTAS
from proof.modes.mode import others
from tests.builders import of, pod
from tests.jobs.control import Controller, job, messages, pods, remove, state, task
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
EXCEEDED = "exceeded quota: q, requested: pods={}, used: pods={}, limited: pods={}."


def quota(**hard):
    amounts = {name.replace("_", "."): str(value) for name, value in hard.items()}
    store.write(Create(RESOURCE_QUOTAS, of(RESOURCE_QUOTAS, "q", hard=amounts)))


def limit(**fields):
    store.write(Create(LIMIT_RANGES, of(LIMIT_RANGES, "l", limits=[{"type": "Container", **fields}])))


def begin(controller, *jobs):
    for each in jobs:
        controller.submit(each)
    controller.admit()


def message():
    return state()["state"]["message"]


@pytest.mark.shows("3.7/FailedCreate")
def test_gang_waits_as_a_whole_until_there_is_room(controller):
    quota(pods=2)
    begin(controller, job(replicas=3))
    assert (pods(), state()["state"]["reason"]) == ([], "FailedCreate")
    refusal = f'pods "demo-main-0" is forbidden: {EXCEEDED.format(3, 0, 2)}'
    assert message() == f"Waiting until the job's 3 pods may be made together: {refusal}"
    assert messages("FailedCreate") == [message()]
    store.write(Patch(RESOURCE_QUOTAS, "default", "q", {"spec": {"hard": {"pods": "3"}}}))
    controller.settle()
    assert (len(pods()), state()["state"]["reason"]) == (3, "WaitingForPods")


TWO_TASKS = {"tasks": [task("a", 3, minAvailable=1), task("b", 2, minAvailable=1)]}


@cases("bounds, spec, made, words", {
    "an elastic job gets what fits beyond its minimum": (
        {"pods": 3}, {"replicas": 5}, ["main-0", "main-1", "main-2"],
        f'More are not made: pods "demo-main-3" is forbidden: {EXCEEDED.format(1, 3, 3)}'),
    "the minimum of every task comes first": ({"pods": 3}, TWO_TASKS, ["a-0", "a-1", "b-0"], ""),
    "a quota of other things does not bind": ({"configmaps": 0, "pods": 2}, {"replicas": 2}, ["main-0", "main-1"], ""),
})  # fmt: skip
def test_pods_within_a_quota_are_made(controller, bounds, spec, made, words):
    quota(**bounds)
    begin(controller, job(minAvailable=2, **spec))
    assert pods() == [f"demo-{name}" for name in made]
    assert words in message()


def test_next_job_goes_on_when_pods_end(controller):
    quota(pods=2)
    begin(controller, job("first"), job("second"))
    assert pods() == ["first-main-0", "first-main-1"]
    controller.become("Running")
    controller.become("Succeeded", code=0)
    assert "second-main-0" in pods()
    assert controller.state.refused == {}


def test_jobs_planned_together_do_not_take_the_same_room(controller):
    controller.submit(job("first"))
    controller.submit(job("second"))
    quota(pods=3)
    controller.admit()
    assert len(pods()) == 2


def test_new_process_remembers_who_waits_and_a_job_that_waits_may_be_deleted(controller):
    quota(pods=1)
    begin(controller, job(), job("other"))
    store.write(Delete(JOBS, "default", "other"))
    controller.settle()
    assert [*controller.state.refused] == ["default/demo"]
    successor = Controller()
    successor.settle()
    store.write(Delete(RESOURCE_QUOTAS, "default", "q"))
    successor.settle()
    assert len(pods()) == 2


def test_quota_that_must_know_the_request_is_told_by_the_limit_range(controller):
    quota(requests_cpu="1")
    begin(controller, job(replicas=2))
    assert "must specify requests.cpu for: main" in message()
    limit(defaultRequest={"cpu": "500m"})
    controller.settle()
    made = [each.object for each in store.find(PODS)]
    assert [each["spec"]["containers"][0]["resources"]["requests"] for each in made] == [{"cpu": "500m"}] * 2
    note = "LimitRanger plugin set: cpu request for container main"
    assert made[0]["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == note


def test_pods_out_of_bounds_wait_until_the_bounds_change(controller):
    limit(min={"cpu": "1"})
    begin(controller, job())
    assert pods() == []
    words = 'pods "demo-main-0" is forbidden: minimum cpu usage per Container is 1.  No request is specified.'
    assert message().endswith(words)
    store.write(Delete(LIMIT_RANGES, "default", "l"))
    controller.settle()
    assert len(pods()) == 2


@pytest.fixture
def between(controller, monkeypatch):
    """Have something done by somebody else after the controller planned pods, and before it commits them."""
    plan, deeds = controller.consumer.plan, []

    def planned(*args):
        found = plan(*args)
        if deeds and any(write.resource is PODS for group in found.groups for write in group.writes):
            with others():
                deeds.pop()()
        return found

    monkeypatch.setattr(controller.consumer, "plan", planned)
    return deeds.append


def rival():
    api.create(access.SYSTEM, PODS, pod("rival"))


@pytest.mark.embedded  # elsewhere each pod is a request, and those that were made stay
def test_creation_in_between_does_not_lead_beyond_the_quota(controller, between):
    quota(pods=2)
    between(rival)
    begin(controller, job(replicas=2))
    assert pods() == ["rival"]
    assert messages("FailedCreate")[-1].endswith(EXCEEDED.format(2, 1, 2))
    remove("rival")
    controller.settle()
    assert pods() == ["demo-main-0", "demo-main-1"]


def test_creation_in_between_leaves_room_for_fewer_pods_of_an_elastic_job(controller, between):
    quota(pods=3)
    between(rival)
    begin(controller, job(replicas=3, minAvailable=2))
    assert pods() == ["demo-main-0", "demo-main-1", "rival"]


@pytest.mark.embedded  # elsewhere each pod is a request, and those that were made stay
def test_quota_that_appears_in_between_binds(controller, between):
    between(lambda: quota(pods=1))
    begin(controller, job(replicas=2))
    assert pods() == []


@pytest.mark.embedded  # elsewhere each pod is a request, and those that were made stay
def test_of_jobs_planned_together_only_those_wait_that_lost_their_room(controller, between):
    quota(pods=4)
    controller.submit(job("first"))
    controller.submit(job("second"))
    between(rival)
    controller.admit()
    assert pods() == ["first-main-0", "first-main-1", "rival"]
