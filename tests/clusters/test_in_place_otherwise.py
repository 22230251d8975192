"""Our controllers on another cluster with several workers for jobs, and with PostgreSQL: gang, refusal, and kill."""

from __future__ import annotations

import html
import os
import re
import signal
from urllib.parse import urlsplit

import psycopg
import pytest

from cluster.runtime.registry import shard_of
from cluster.store import Create, Patch
from kube.resources import JOBS, NAMESPACES, NODES, POD_GROUPS, RESOURCE_QUOTAS
from proof.harness.waiting import until
from proof.systems.system import running
from proof.systems.work import job, shell
from tests.clusters.test_in_place import check, first, in_place, judged, outgoing, telling
from tests.system.pair import here, kubeconfig, person, there

__all__ = ["first", "here", "kubeconfig", "person", "there"]  # fixtures
pytestmark = pytest.mark.system
NAME = "volcano_ui_in_place"
SHARDS = 2


@pytest.fixture(scope="module")
def database(postgres_url):
    """The address of a database of their own."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {NAME}")
        yield urlsplit(postgres_url)._replace(path=f"/{NAME}").geturl()
        connection.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@pytest.fixture(scope="module", params=["workers", "postgres"])
def second(request, kubeconfig, tmp_path_factory):
    """The system that works there."""
    settings = {"VOLCANO_UI_JOB_WORKERS": str(SHARDS)}
    if request.param == "postgres":
        settings = {"DATABASE_URL": request.getfixturevalue("database")}
    folder = tmp_path_factory.mktemp(request.param)
    with running(folder / "data", **in_place(kubeconfig), **settings) as started:
        started.way = request.param
        yield started


def test_gang_that_has_no_room_holds_nothing_and_a_smaller_one_runs(second, person, there):
    name = f"large-{second.way}"
    cores = sum(int(node.object["status"]["allocatable"]["cpu"]) for node in there.store.find(NODES))
    person.create(job(name, shell("true", replicas=3, cpu=str(cores * 0.4))))
    until(lambda: "NeverFits" in reasons(there, name), what="a word on why it waits")
    assert all(not pod["spec"].get("nodeName") for pod in there.pods(name).values())
    person.post(f"/jobs/default/{name}/delete/")
    person.create(job(f"{name}-fits", shell("true", replicas=3, cpu=str(cores * 0.2))))
    there.reaches(f"{name}-fits", "Completed")


def reasons(watcher, name):
    """The reasons of the conditions of a job's pod group."""
    found = watcher.store.find(POD_GROUPS, owner=watcher.store.get(JOBS, "default", name).uid)
    return [each["reason"] for group in found for each in (group.object.get("status") or {}).get("conditions", ())]


def test_refusal_stands_on_the_page_and_the_job_goes_on_after_it(second, person, there):
    namespace = f"tight-{second.way}"
    quota = {"metadata": {"name": "groups", "namespace": namespace}, "spec": {"hard": {f"count/{POD_GROUPS.id}": "0"}}}
    there.store.write(Create(NAMESPACES, {"metadata": {"name": namespace}}), Create(RESOURCE_QUOTAS, quota))
    held = job("held", shell("true"), namespace=namespace)
    until(lambda: person.submit(held).status_code == 302, what="the namespace in the mirror")
    until(lambda: "exceeded quota: groups" in refusals(person, namespace), what="the word on the page of the job")
    more = {"spec": {"hard": {f"count/{POD_GROUPS.id}": "5"}}}
    there.store.write(Patch(RESOURCE_QUOTAS, namespace, "groups", more))
    until(lambda: phase(there, namespace) == "Completed", what="its end")
    until(lambda: "exceeded" not in refusals(person, namespace), what="the page to be silent")


def phase(watcher, namespace):
    return ((watcher.job("held", namespace).get("status") or {}).get("state") or {}).get("phase")


def refusals(person, namespace):
    """What the page of a job says is refused."""
    found = re.search(r'<div id="refusals".*?<nav', person.get(f"/jobs/{namespace}/held/").text, re.DOTALL)
    return html.unescape(found[0])


def test_nothing_is_lost_nor_doubled_when_workers_are_killed_amid_their_plans(second, person, here, there, tmp_path):
    ran = tmp_path / "out" / "ran"
    names = [f"killed-{second.way}-{number}" for number in range(6)]
    if second.way == "workers":
        assert {shard_of(f"default/{name}", SHARDS) for name in names} == set(range(SHARDS))
    for number, name in enumerate(names):
        person.create(job(name, telling(ran, 1 + number % 3)))
        kill_one(second, here, ("jobs/", "scheduler/")[number % 2])
    check(names, ran, here, there)
    judged(there)


def kill_one(system, watcher, cursors):
    """Kill the worker of a plan that is on its way."""
    cursor = until(
        lambda: next((each for each in outgoing(watcher) if each.startswith(cursors)), ""), every_s=0.001, what="a plan"
    )
    queue, _, shard = cursor.partition("/")
    program = queue if shard == "0" else f"{queue}-{shard}"
    os.kill(until(lambda: system.children().get(program), what="its process"), signal.SIGKILL)
