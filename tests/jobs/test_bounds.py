"""Limit ranges and quotas bind the pods of jobs; what they refuse is made when there is room."""

from __future__ import annotations

import pytest

from cluster import access, api
from cluster.store import Create, Delete, Patch, store
from kube.resources import EVENTS, LIMIT_RANGES, PODS, RESOURCE_QUOTAS
from proof.modes.mode import others
from tests.jobs.control import Controller, admit, become, job, pods, state, submit, task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
FULL = "exceeded quota: q, requested: pods=1, used: pods={used}, limited: pods={hard}"


def quota(**hard):
    hard = {name.replace("_", "."): str(value) for name, value in hard.items()}
    store.write(Create(RESOURCE_QUOTAS, {"metadata": named("q"), "spec": {"hard": hard}}))


def named(name):
    return {"name": name, "namespace": "default"}


def limit(**fields):
    spec = {"limits": [{"type": "Container", **fields}]}
    store.write(Create(LIMIT_RANGES, {"metadata": named("l"), "spec": spec}))


def start(controller, *jobs):
    for each in jobs:
        submit(controller, each)
    admit(controller)


def told():
    reasons = [(e.object["reason"], e.object["message"]) for e in store.find(EVENTS)]
    return [message for reason, message in reasons if reason == "FailedCreate"]


@pytest.mark.shows("3.7/FailedCreate")
def test_gang_waits_as_a_whole_until_there_is_room(controller):
    quota(pods=2)
    start(controller, job(replicas=3))
    assert pods() == []
    assert state()["state"]["reason"] == "FailedCreate"
    refusal = 'pods "demo-main-0" is forbidden: exceeded quota: q, requested: pods=3, used: pods=0, limited: pods=2'
    text = f"Waiting until the job's 3 pods may be made together: {refusal}."
    assert state()["state"]["message"] == text
    assert told() == [text]
    store.write(Patch(RESOURCE_QUOTAS, "default", "q", {"spec": {"hard": {"pods": "3"}}}))
    controller.settle()
    assert len(pods()) == 3
    assert state()["state"]["reason"] == "WaitingForPods"


def test_elastic_job_gets_what_fits_beyond_its_minimum(controller):
    quota(pods=3)
    start(controller, job(replicas=5, minAvailable=2))
    assert pods() == ["demo-main-0", "demo-main-1", "demo-main-2"]
    assert (
        f'More are not made: pods "demo-main-3" is forbidden: {FULL.format(used=3, hard=3)}.'
        in (state()["state"]["message"])
    )


def test_minimum_of_every_task_comes_first(controller):
    quota(pods=3)
    tasks = [task("a", 3, minAvailable=1), task("b", 2, minAvailable=1)]
    start(controller, job(tasks=tasks, minAvailable=2))
    assert pods() == ["demo-a-0", "demo-a-1", "demo-b-0"]


def test_next_job_goes_on_when_pods_end(controller):
    quota(pods=2)
    start(controller, job("first"), job("second"))
    assert pods() == ["first-main-0", "first-main-1"]
    become(controller, "Running", *pods())
    become(controller, "Succeeded", *pods(), code=0)
    assert "second-main-0" in pods()
    assert controller.state.refused == {}


def test_jobs_planned_together_do_not_take_the_same_room(controller):
    submit(controller, job("first"))
    submit(controller, job("second"))
    quota(pods=3)
    admit(controller)
    assert len(pods()) == 2


def test_new_process_remembers_who_waits(controller):
    quota(pods=1)
    start(controller, job())
    successor = Controller()
    successor.settle()
    store.write(Delete(RESOURCE_QUOTAS, "default", "q"))
    successor.settle()
    assert len(pods()) == 2


def test_quota_that_must_know_the_request_is_told_by_the_limit_range(controller):
    quota(requests_cpu="1")
    start(controller, job(replicas=2))
    assert "must specify requests.cpu for: main" in state()["state"]["message"]
    limit(defaultRequest={"cpu": "500m"})
    controller.settle()
    made = store.find(PODS)
    assert [pod.object["spec"]["containers"][0]["resources"]["requests"] for pod in made] == [{"cpu": "500m"}] * 2
    note = "LimitRanger plugin set: cpu request for container main"
    assert made[0].object["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == note


def test_pods_out_of_bounds_wait_until_the_bounds_change(controller):
    limit(min={"cpu": "1"})
    start(controller, job())
    assert pods() == []
    text = 'pods "demo-main-0" is forbidden: minimum cpu usage per Container is 1.  No request is specified.'
    assert state()["state"]["message"].endswith(text)
    store.write(Delete(LIMIT_RANGES, "default", "l"))
    controller.settle()
    assert len(pods()) == 2


def test_job_that_waits_may_be_deleted(controller):
    from kube.resources import JOBS

    quota(pods=1)
    start(controller, job())
    store.write(Delete(JOBS, "default", "demo"))
    controller.settle()
    assert controller.state.refused == {}


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
    spec = {"containers": [{"name": "c", "image": "i", "command": ["true"]}]}
    api.create(access.SYSTEM, PODS, {"metadata": named("rival"), "spec": spec})


@pytest.mark.embedded  # elsewhere each pod is a request, and those that were made stay
def test_creation_in_between_does_not_lead_beyond_the_quota(controller, between):
    quota(pods=2)
    between(rival)
    start(controller, job(replicas=2))
    assert pods() == ["rival"]
    assert told()[-1].endswith("exceeded quota: q, requested: pods=2, used: pods=1, limited: pods=2.")
    store.write(Delete(PODS, "default", "rival", grace=0))
    controller.settle()
    assert pods() == ["demo-main-0", "demo-main-1"]


def test_creation_in_between_leaves_room_for_fewer_pods_of_an_elastic_job(controller, between):
    quota(pods=3)
    between(rival)
    start(controller, job(replicas=3, minAvailable=2))
    assert pods() == ["demo-main-0", "demo-main-1", "rival"]


@pytest.mark.embedded  # elsewhere each pod is a request, and those that were made stay
def test_quota_that_appears_in_between_binds(controller, between):
    between(lambda: quota(pods=1))
    start(controller, job(replicas=2))
    assert pods() == []


@pytest.mark.embedded  # elsewhere each pod is a request, and those that were made stay
def test_of_jobs_planned_together_only_those_wait_that_lost_their_room(controller, between):
    quota(pods=4)
    submit(controller, job("first"))
    submit(controller, job("second"))
    between(rival)
    admit(controller)
    assert pods() == ["first-main-0", "first-main-1", "rival"]


def test_quotas_of_other_things_do_not_bind(controller):
    quota(configmaps=0, pods=2)
    start(controller, job())
    assert len(pods()) == 2
