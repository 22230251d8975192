"""Job controller, scheduler, queue controller and garbage collector on one store, through the one door."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.runtime import registry
from cluster.store import Create, Patch, store
from kube.errors import Forbidden, Invalid
from kube.resources import JOBS, NODES, POD_GROUPS, PODS, QUEUES
from proof.modes.mode import Runner
from tests.jobs.builders import container, job, task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
SEEDS = Path(__file__).parents[1] / "golden" / "jobs"
NAMES = ("jobs", "scheduler", "queues", "garbage")


@pytest.fixture
def system():
    bootstrap()
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"capacity": capacity, "allocatable": capacity, "conditions": ready}
    store.write(Create(NODES, {"metadata": {"name": "n1"}, "spec": {}, "status": status}))
    return [Runner(registry.get(name), 0, registry.get(name).make()) for name in NAMES]


@pytest.fixture
def admin():
    return access.SYSTEM


def settle(system):
    while any(runner.step() for runner in system):
        pass


def become(system, phase):
    for pod in store.find(PODS):
        store.write(Patch(PODS, "default", pod.name, {"status": {"phase": phase}}, "status"))
    settle(system)


def phase(name):
    return store.get(JOBS, "default", name).object["status"]["state"]["phase"]


@pytest.mark.parametrize("name", ["tf-job", "spark-job", "mpi-job"])
def test_job_of_the_seed_runs_to_its_end(system, admin, name):
    api.create(admin, JOBS, yaml.safe_load((SEEDS / f"{name}.in.yaml").read_text()))
    settle(system)
    assert all(pod.object["spec"].get("nodeName") == "n1" for pod in store.find(PODS))
    become(system, "Running")
    assert phase(name) == "Running"
    become(system, "Succeeded")
    assert phase(name) == "Completed"
    assert store.find(POD_GROUPS) == []


def test_job_too_large_for_the_node_waits_and_says_why(system, admin):
    wants = {"containers": [container(resources={"requests": {"cpu": "5"}})]}
    api.create(admin, JOBS, job(task(replicas=2, pod=wants)))
    settle(system)
    state = store.get(JOBS, "default", "demo").object["status"]["state"]
    assert (state["phase"], state["reason"]) == ("Pending", "Unschedulable")
    assert "CPU" in state["message"] or "cpu" in state["message"]
    assert store.get(JOBS, "default", "demo").object["status"]["waitingReason"] == "NeverFits"
    assert store.names(JOBS, trouble="NeverFits")


@pytest.mark.shows("6.1/owners", "coscheduling 2/owner")
def test_deleting_a_job_deletes_all_it_made(system, admin):
    api.create(admin, JOBS, job(task(replicas=3)))
    settle(system)
    become(system, "Succeeded")
    api.delete(admin, JOBS, "default", "demo")
    settle(system)
    assert store.find(JOBS) == store.find(PODS) == store.find(POD_GROUPS) == []


def test_closed_queue_refuses_jobs_and_may_then_be_deleted(system, admin):
    api.create(admin, QUEUES, {"metadata": {"name": "team"}, "spec": {}})
    api.create(admin, JOBS, job(queue="team"))
    settle(system)
    with pytest.raises(Forbidden, match="close it first"):
        api.delete(admin, QUEUES, "", "team")
    api.patch(admin, QUEUES, "", "team", {"spec": {"state": "Closed"}})
    settle(system)
    with pytest.raises(Invalid, match="status is `Closing`"):
        api.create(admin, JOBS, job(queue="team", name="late"))
    become(system, "Running")
    become(system, "Succeeded")
    assert store.get(QUEUES, "", "team").object["status"]["state"] == "Closed"
    api.delete(admin, QUEUES, "", "team")
    assert [queue.name for queue in store.find(QUEUES)] == ["default", "root"]
