"""Job controller, scheduler, queue controller and garbage collector on one store, through the one door."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.store import Create, store
from kube.resources import JOBS, NODES, POD_GROUPS, PODS
from tests.builders import node
from tests.jobs.control import phase, report
from tests.jobs.made import runner, settle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
SEEDS = Path(__file__).parents[1] / "golden" / "jobs"
ADMIN = access.SYSTEM


@pytest.fixture
def system():
    bootstrap()
    store.write(Create(NODES, node("n1", allocatable={"cpu": "8", "memory": "32Gi"})))
    return [runner(name) for name in ("jobs", "scheduler", "queues", "garbage")]


def become(system, of_pods):
    report(of_pods)
    settle(*system)


@pytest.mark.shows("6.1/owners", "coscheduling 2/owner")
@pytest.mark.parametrize("name", ["tf-job", "spark-job", "mpi-job"])
def test_job_of_the_seed_runs_to_its_end_and_goes_with_all_it_made(system, name):
    api.create(ADMIN, JOBS, yaml.safe_load((SEEDS / f"{name}.in.yaml").read_text()))
    settle(*system)
    assert all(pod.object["spec"].get("nodeName") == "n1" for pod in store.find(PODS))
    become(system, "Running")
    assert phase(name) == "Running"
    become(system, "Succeeded")
    assert (phase(name), store.find(POD_GROUPS)) == ("Completed", [])
    api.delete(ADMIN, JOBS, "default", name)
    settle(*system)
    assert store.find(JOBS) == store.find(PODS) == []
