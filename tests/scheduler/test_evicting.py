"""Evictions on the real store, with the controller of the jobs: the victims' job sees them, and who waits for them runs."""

from __future__ import annotations

import pytest

from cluster.runtime.registry import get
from cluster.store import Create, Delete, Patch, store
from jobs.controller.job_controller import JobConsumer
from jobs.rules import admission
from kube.evictions import FIRST_EVICTED
from kube.resources import DISRUPTION_BUDGETS, EVENTS, JOBS, NAMESPACES, POD_GROUPS, PODS
from proof.modes.mode import Runner
from scheduler.consumer import SchedulerConsumer

from .test_consumer import Hasty
from .world import configuration, node, priority_class, queue

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]


@pytest.fixture
def settle(runner_mode):
    """A function that lets job controller and scheduler work until there is nothing left to do."""
    create((NAMESPACES, {"metadata": {"name": "ns"}}), queue(), node("n1", cpu="2"), priority_class("high", 100))
    runners = [Runner(get("jobs"), 0, JobConsumer()), Runner(get("scheduler"), 0, SchedulerConsumer())]

    def run():
        while any(list(map(Runner.step, runners))):
            pass

    return run


def create(*objects):
    store.write(*(Create(resource, obj) for resource, obj in objects))


def submit(name, replicas, **spec):
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    task = {"name": "t", "replicas": replicas, "template": {"spec": {"containers": containers}}}
    obj = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"tasks": [task], **spec}}
    admission.default(obj, None, None)
    create((JOBS, obj))


def full(settle, **spec):
    """A job whose two pods run on all of the node."""
    submit("low", 2, **spec)
    settle()
    for name in on_node():
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        store.write(Patch(PODS, "ns", name, {"status": status}, "status"))


def urgent(settle):
    """A job that is more urgent."""
    submit("high", 1, priorityClassName="high")
    settle()


def end_all(settle):
    """Let nodes end what is going."""
    for name in going():
        store.write(Delete(PODS, "ns", name, grace=0))
    settle()


def drain(runner):
    while runner.step():
        pass


def pods():
    return {each.name: each.object for each in store.find(PODS)}


def going():
    return sorted(name for name, pod in pods().items() if "deletionTimestamp" in pod["metadata"])


def on_node():
    return sorted(name for name, pod in pods().items() if pod["spec"].get("nodeName"))


def reasons(kind):
    return {e.object["reason"] for e in store.find(EVENTS) if e.object["involvedObject"]["kind"] == kind}


def status(kind, name):
    return next(each.object["status"] for each in store.find(kind) if each.name.startswith(name))


@pytest.mark.shows("coscheduling 2/controllers", "scheduler 10.1/16")
def test_evicted_pod_is_made_again_and_who_is_more_urgent_runs(settle):
    full(settle, minAvailable=1, policies=[{"event": "PodEvicted", "action": "RestartPod"}])
    urgent(settle)
    drain(Runner(get("scheduler"), 0, SchedulerConsumer()))
    assert going() == ["low-t-1"], "a scheduler that comes next evicts nobody else"
    conditions = status(POD_GROUPS, "high")["conditions"]
    assert [each["reason"] for each in conditions if each["status"] == "True"] == ["WaitingForVictims"]
    assert "Evict" in reasons("Pod")
    end_all(settle)
    assert on_node() == ["high-t-0", "low-t-0"]
    assert "PodEvicted" in reasons("Job")
    assert sorted(pods()) == ["high-t-0", "low-t-0", "low-t-1"]


def test_a_budget_that_comes_and_goes_is_heard(settle):
    """Also by a scheduler that loads the world anew."""
    full(settle, minAvailable=1)
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"volcano.sh/job-name": "low"}}}
    create((DISRUPTION_BUDGETS, {"metadata": {"name": "calm", "namespace": "ns"}, "spec": spec}))
    urgent(settle)
    assert "2 pods by disruption budget ns/calm" in status(POD_GROUPS, "high")["conditions"][-1]["message"]
    drain(Runner(get("scheduler"), 0, SchedulerConsumer()))
    assert going() == []
    store.write(Delete(DISRUPTION_BUDGETS, "ns", "calm"))
    settle()
    assert going() == ["low-t-1"]


@pytest.mark.shows("scheduler 2.4/gangs", "coscheduling 2/controllers", "coscheduling 4/preemption")
def test_whole_gang_goes_and_its_job_begins_anew(settle):
    full(settle, policies=[{"event": "PodEvicted", "action": "RestartJob"}])
    urgent(settle)
    assert going() == ["low-t-0", "low-t-1"]
    end_all(settle)
    end_all(settle)
    assert on_node() == ["high-t-0"]
    job, groups = store.get(JOBS, "ns", "low").object, store.find(POD_GROUPS)
    assert job["status"]["state"]["phase"] in ("Restarting", "Pending")
    assert job["status"]["retryCount"] == 1
    noted = {each.object["metadata"].get("annotations", {}).get(FIRST_EVICTED) for each in groups}
    assert noted == {None, job["metadata"]["annotations"][FIRST_EVICTED]}, "its next pod group was evicted as well"


def test_victim_that_ended_meanwhile_costs_nobody_else_his_place(settle):
    full(settle, minAvailable=1)
    submit("high", 1, priorityClassName="high")
    jobs, hasty = Runner(get("jobs"), 0, JobConsumer()), Runner(get("scheduler"), 0, Hasty())
    while not any(name.startswith("high") for name in pods()):
        jobs.step()
        hasty.step()
    hasty.consumer.meanwhile = lambda: store.write(Delete(PODS, "ns", "low-t-1", grace=0))
    drain(hasty)
    settle()
    end_all(settle)
    assert on_node() == ["high-t-0", "low-t-0"]
    assert going() == []


EVEN = """
actions: enqueue, allocate, shuffle
tiers:
- plugins:
  - name: nodeorder
  - name: rescheduling
    arguments: {strategies: [{name: lowNodeUtilization, params: {targetThresholds: {cpu: 50}}}]}
"""


@pytest.mark.shows("scheduler 2.7/shuffle")
def test_moved_pod_is_made_again_on_the_emptier_node(settle):
    full(settle, minAvailable=1)
    create(node("n2", cpu="2"), configuration(EVEN))
    settle()
    assert going() == ["low-t-1"]
    end_all(settle)
    assert {name: pod["spec"].get("nodeName") for name, pod in pods().items()} == {"low-t-0": "n1", "low-t-1": "n2"}
    assert "PodEvicted" in reasons("Job")
    assert status(JOBS, "low")["state"]["phase"] == "Running"
