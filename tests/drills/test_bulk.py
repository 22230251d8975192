"""A bulk operation in the running system, which is interrupted while it is at it."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from cluster.api.bulk import BATCH
from cluster.writes import Create, Group
from jobs.models import Operation, OperationItem
from kube.resources import COMMANDS, JOBS
from proof.harness.waiting import until
from proof.systems.system import System
from proof.systems.work import Person, Watcher
from tests.jobs import control

JOBS_COUNT = 2000
INTERRUPTIONS = 3
OPERATIONS = "/jobs/-/operations/"


def giant(number):
    """A job that waits for ever: no node has so much."""
    (container,) = (task := control.task("main", 1))["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "6400"}}
    return control.job(f"giant-{number:04d}", tasks=[task])


def kill_worker(system):
    before = until(lambda: system.children().get("controllers"))
    os.kill(before, signal.SIGKILL)
    until(lambda: system.children().get("controllers", before) != before)


def restart(system):
    system.stop()
    system.start()


@pytest.mark.system
@pytest.mark.parametrize("interrupt", [kill_worker, restart])
def test_an_interrupted_bulk_operation_loses_no_job_and_asks_none_twice(tmp_path, interrupt):
    with System(tmp_path / "data") as system, system.store() as store, Person(system) as person:
        store.commit([Group([Create(JOBS, giant(number))]) for number in range(JOBS_COUNT)])
        page = person.post(OPERATIONS, action="suspend", which="all", q="giant-").headers["location"]
        number = int(page.strip("/").rpartition("/")[2])
        assert person.post(f"{page}confirm/").status_code == 302
        operations = Operation.objects.using(store.using).filter(pk=number)
        items = OperationItem.objects.using(store.using).filter(operation=number)
        for batches in range(INTERRUPTIONS):
            until(lambda least=batches * BATCH: items.exclude(result="Not begun").count() > least)
            interrupt(system)
        until(lambda: operations.get().over, what="the operation's end")
        # A machine that takes longer than 30 s to start again has the jobs of that time looked at by people.
        results = Counter(items.values_list("result", flat=True))
        assert results["Done"] + results["Timed out"] == JOBS_COUNT, results
        until(lambda: store.count(JOBS) == {"Aborted": JOBS_COUNT}, what=lambda: store.count(JOBS))
        assert set(orders(Watcher(store)).values()) == {1}
        assert f"{JOBS_COUNT} of {JOBS_COUNT} jobs have a result" in person.get(page).text


def orders(watcher):
    """How many Commands each job was ever sent."""
    found = Counter(
        change.object["target"]["name"]
        for change in watcher.everything()
        if change.resource == COMMANDS.id and change.verb == "ADDED"
    )
    assert len(found) == JOBS_COUNT
    return found
