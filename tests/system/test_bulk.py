"""A bulk operation in the running system, whose worker is killed while it is at it."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from cluster.writes import Create, Group
from jobs.models import Operation, OperationItem
from kube.resources import COMMANDS, JOBS
from tests.jobs import control
from tests.waiting import until

JOBS_COUNT = 2000
KILLS = 3
OPERATIONS = "/jobs/-/operations/"


def giant(number):
    """A job that waits for ever: no node has so much."""
    (container,) = (task := control.task("main", 1))["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "6400"}}
    return control.job(f"giant-{number:04d}", tasks=[task])


@pytest.mark.system
def test_a_killed_worker_neither_loses_a_job_of_a_bulk_operation_nor_asks_one_twice(system, person, watcher):
    store = watcher.store
    store.commit([Group([Create(JOBS, giant(number))]) for number in range(JOBS_COUNT)])
    page = person.post(OPERATIONS, action="suspend", which="all", q="giant-").headers["location"]
    number = int(page.strip("/").rpartition("/")[2])
    assert person.post(f"{page}confirm/").status_code == 302
    items = OperationItem.objects.using(store.using).filter(operation=number)
    for begun in range(KILLS):
        until(lambda least=begun * 500: items.exclude(result="Not begun").count() > least)
        os.kill(system.children()["controllers"], signal.SIGKILL)
        until(lambda: "controllers" in system.children())
    until(lambda: Operation.objects.using(store.using).get(pk=number).over, what="the operation's end")
    assert Counter(items.values_list("result", flat=True)) == {"Done": JOBS_COUNT}
    assert {stored.object["status"]["state"]["phase"] for stored in store.find(JOBS)} == {"Aborted"}
    orders = Counter(
        change.object["target"]["name"]
        for change in watcher.everything()
        if change.resource == COMMANDS.id and change.verb == "ADDED"
    )
    assert len(orders) == JOBS_COUNT
    assert set(orders.values()) == {1}
    assert f"{JOBS_COUNT} of {JOBS_COUNT} jobs have a result" in person.get(page).text
