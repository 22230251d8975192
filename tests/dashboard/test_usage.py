"""What is used of the cluster and of each queue, and the room that is left."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TransactionTestCase

from cluster import access
from cluster.access import SYSTEM
from cluster.runtime.picture import SharedPicture
from cluster.store import Create, Delete, Patch, store
from dashboard import cluster_usage, queue_room
from kube.resources import JOBS, PODS
from proof.harness.waiting import HANG_S
from tests.dashboard.pages.conftest import _picture, job, node, pod, put, queue
from tests.tables import cases

__all__ = ["_picture"]  # a fixture
pytestmark = pytest.mark.django_db

STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "finish", "fail", "remove"]), st.integers(0, 5), st.sampled_from(["one", "two", ""])), max_size=12
)  # fmt: skip


def do(what, number, node_name):
    """Do one thing to a pod, if it can be done."""
    name = f"p{number}"
    exists = name in {each.name for each in store.find(PODS)}
    if what == "create" and not exists:
        resource, obj = pod(name, node=node_name, queue=f"q{number % 2}")
        store.write(Create(resource, obj))
    elif what == "remove" and exists:
        store.write(Delete(PODS, "team-a", name, grace=0))
    elif what in ("finish", "fail") and exists:
        phase = "Succeeded" if what == "finish" else "Failed"
        store.write(Patch(PODS, "team-a", name, {"status": {"phase": phase}}, "status"))


def plain(picture):
    """Use without what is nought, which may or may not be said."""
    return [
        {where: {r: n for r, n in taken.items() if n} for where, taken in used.items() if any(taken.values())}
        for used in (picture.on_node, picture.in_queue)
    ]


class TestFollowing(TransactionTestCase):
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=STEPS, looks=st.sets(st.integers(0, 12)))
    def test_a_picture_that_follows_equals_one_that_is_loaded(self, steps, looks):
        cluster_usage.forget()
        for number, step in enumerate(steps):
            do(*step)
            if number in looks:
                with cluster_usage.current(store.revision()):
                    pass
        head = store.revision()
        with cluster_usage.current(head) as followed:
            assert plain(followed) == plain(cluster_usage.Picture.loaded(head))
        cluster_usage.forget()


def test_queues_use_what_those_below_them_use_and_nodes_what_is_on_them():
    put(
        node("one"), node("two", ready=False), queue("root", parent=""), queue("a"), queue("b", parent="a"), queue("c", parent="b"),
        queue("x", parent="y"), queue("y", parent="x"), pod("p", queue="b"), pod("r", queue="c", cpu="1.5"), pod("s", queue="a", node=""),
    )  # fmt: skip
    picture = cluster_usage.Picture.loaded(store.revision())
    assert picture.capacity()["cpu"] == 8000, "of ready nodes alone"
    assert [picture.subtree_use(name).get("cpu", 0) for name in "abc"] == [3500, 3500, 1500]
    assert [queue.name for queue in picture.children("")] == ["a"]
    assert {queue.name for queue in picture.below("root")} == {"a", "b", "c"}
    assert [queue.name for queue in picture.below("x")] == ["y"], "a circle of parents ends where it began"
    assert "" not in picture.on_node


def test_a_queue_may_take_no_more_than_those_above_it():
    limits = {"cpu": "64", "memory": "1Gi"}
    put(queue("large", capability={"cpu": "8"}), queue("small", parent="large", capability=limits))
    found = cluster_usage.Picture.loaded(store.revision()).limits("small", {"cpu": 40_000, "pods": 110})
    assert found == {"cpu": 8000, "memory": 2**30, "pods": 110}


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


KEEPS = {"deserved": {"cpu": "3"}, "guarantee": {"resource": {"cpu": "3"}}}


@cases("guaranteed, objects, name, words", {
    "what is kept for another queue": ("kept", [], "free", "5 of 8 CPU free"),
    "it is free for the queue itself": ("kept", [], "kept", "8 of 8 CPU free"),
    "what is used of it was kept before": ("kept", [uses("kept", "2")], "free", "5 of 8 CPU free"),
    "all of it is used": ("kept", [uses("kept", "4")], "free", "4 of 8 CPU free"),
    "others took it before it was kept": ("kept", [uses("free", "7")], "free", "0 of 8 CPU free"),
    "below the same ceiling": ("beside", [], "sub", "3 of 6 CPU free"),
    "the ceiling, for the queue itself": ("beside", [uses("sub", "2")], "beside", "4 of 6 CPU free"),
})  # fmt: skip
def test_what_guarantees_keep_is_free_for_nobody_else(guaranteed, objects, name, words):
    put(*TREE, queue(guaranteed, parent={"kept": "root", "beside": "team"}[guaranteed], **KEEPS), node("n"), *objects)
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


def test_readers_look_at_one_picture_together_and_whoever_needs_a_newer_one_waits_for_them():
    shared, later = SharedPicture((), lambda head: SimpleNamespace(revision=head)), 1_000_000

    def newest():
        with shared.current(later) as picture:
            return picture.revision

    with ThreadPoolExecutor() as pool:
        with shared.current(1) as picture, shared.current(1) as other:
            assert picture is other
            waiting = pool.submit(newest)
            with pytest.raises(TimeoutError):
                waiting.result(0.2)
        assert waiting.result(HANG_S) == later
