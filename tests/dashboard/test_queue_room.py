from __future__ import annotations

import pytest

from cluster import access
from cluster.access import SYSTEM
from cluster.store import store
from dashboard import cluster_usage, queue_room
from kube.resources import JOBS
from tests.dashboard.pages.conftest import job, node, pod, put, queue
from tests.tables import cases


@pytest.fixture(autouse=True)
def _picture(db):
    cluster_usage.forget()
    yield
    cluster_usage.forget()


def rooms():
    waiting = queue_room.jobs_by_queue(access.namespaces(SYSTEM, JOBS), queue_room.WAITING)
    with cluster_usage.current(store.revision()) as picture:
        return {room.name: room for room in queue_room.rooms(picture, waiting)}


TREE = [queue("root", parent=""), queue("team", capability={"cpu": "6"}), queue("sub", parent="team"), queue("free")]


NODE, SIMULATED = node("n"), node("s", simulated=True)
SMALL = node("n", cpu="2")
WAITING = [job("a", "", queue="free"), job("b", "Restarting", queue="free"), job("c", queue="free")]


def uses(queue, cpu, node="n"):
    return pod("p", node=node, queue=queue, cpu=cpu)


@cases("objects, name, words", {
    "no node": ([], "free", "no node is ready"),
    "all of the cluster": ([NODE], "free", "8 of 8 CPU free"),
    "a node that is not ready": ([NODE, node("lost", ready=False)], "free", "8 of 8 CPU free"),
    "simulated nodes alone": ([SIMULATED], "free", "simulated nodes 8 of 8 CPU free"),
    "real and simulated nodes": (
        [SMALL, SIMULATED, uses("default", "3", "s")], "free", "2 of 2 CPU free · simulated nodes 5 of 8 CPU free",
    ),
    "fewer nodes than it might take": ([SMALL], "sub", "2 of 2 CPU free"),
    "as much as the queue above may take": ([NODE], "sub", "6 of 6 CPU free"),
    "what the queue above takes": ([NODE, uses("team", "4")], "sub", "2 of 6 CPU free"),
    "what it takes itself": ([NODE, uses("sub", "1.5")], "sub", "4.5 of 6 CPU free"),
    "what others leave": ([NODE, uses("free", "7")], "sub", "1 of 6 CPU free"),
    "more than it may": ([NODE, uses("sub", "7")], "sub", "0 of 6 CPU free"),
    "a job waits": ([NODE, job("a", "Pending", queue="free")], "free", "8 of 8 CPU free · 1 job waits"),
    "jobs wait": ([NODE, *WAITING, job("d", "Pending", queue="sub")], "free", "8 of 8 CPU free · 2 jobs wait"),
})  # fmt: skip
def test_the_room_of_a_queue_in_words(objects, name, words):
    put(*TREE, *objects)
    assert str(rooms()[name]) == words


def keeping(cpu):
    return {"deserved": {"cpu": cpu}, "guarantee": {"resource": {"cpu": cpu}}}


@cases("objects, name, words", {
    "what is kept for another queue": ([], "free", "5 of 8 CPU free"),
    "it is free for the queue itself": ([], "kept", "8 of 8 CPU free"),
    "what is used of it was kept before": ([uses("kept", "2")], "free", "5 of 8 CPU free"),
    "all of it is used": ([uses("kept", "4")], "free", "4 of 8 CPU free"),
    "others took it before it was kept": ([uses("free", "7")], "free", "0 of 8 CPU free"),
    "below the same ceiling": ([], "sub", "3 of 6 CPU free"),
    "the ceiling, for the queue itself": ([uses("sub", "2")], "beside", "4 of 6 CPU free"),
})  # fmt: skip
def test_what_guarantees_keep_is_free_for_nobody_else(objects, name, words):
    guaranteed = "beside" if name in ("sub", "beside") else "kept"
    others = [
        queue(each, parent=above, **(keeping("3") if each == guaranteed else {}))
        for each, above in (("kept", "root"), ("beside", "team"))
    ]
    put(*TREE, *others, node("n"), *objects)
    assert str(rooms()[name]) == words


def test_devices_are_told_beside_the_cpus():
    kind, obj = node("n")
    obj["status"]["allocatable"]["nvidia.com/gpu"] = "4"
    put(*TREE, (kind, obj))
    assert str(rooms()["free"]) == "8 of 8 CPU free · 4 of 4 nvidia.com/gpu free"


def test_a_queue_that_takes_nothing_says_why():
    put(*TREE, queue("old", state="Closed"), queue("x", parent="y"), queue("y", parent="x"))
    found = {name: room.refusal for name, room in rooms().items()}
    below = "has queues below it"
    assert found == {"team": below, "sub": "", "free": "", "old": "closed", "x": below, "y": below}
