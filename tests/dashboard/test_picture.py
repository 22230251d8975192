from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TransactionTestCase

from cluster.store import Create, Delete, Patch, store
from dashboard import cluster_usage
from kube.resources import PODS
from tests.dashboard.pages.conftest import node, pod, put, queue

STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "finish", "fail", "remove"]), st.integers(0, 5), st.sampled_from(["one", "two", ""])), max_size=12
)  # fmt: skip


def do(what, number, place):
    """Do one thing to a pod, if it can be done."""
    name = f"p{number}"
    exists = name in {each.name for each in store.find(PODS)}
    if what == "create" and not exists:
        resource, obj = pod(name, node=place, queue=f"q{number % 2}")
        store.write(Create(resource, obj))
    elif what == "remove" and exists:
        store.write(Delete(PODS, "team-a", name, grace=0))
    elif what in ("finish", "fail") and exists:
        phase = "Succeeded" if what == "finish" else "Failed"
        store.write(Patch(PODS, "team-a", name, {"status": {"phase": phase}}, "status"))


def plain(shown):
    """Use without what is nought, which may or may not be said."""
    return [
        {where: {r: n for r, n in taken.items() if n} for where, taken in used.items() if any(taken.values())}
        for used in (shown.on_node, shown.in_queue)
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


@pytest.fixture
def shown(db):
    put(
        node("one"), node("two", ready=False), queue("root", parent=""), queue("a"), queue("b", parent="a"), queue("c", parent="b"),
        queue("x", parent="y"), queue("y", parent="x"), pod("p", queue="b"), pod("r", queue="c", cpu="1.5"), pod("s", queue="a", node=""),
    )  # fmt: skip
    cluster_usage.forget()
    with cluster_usage.current(store.revision()) as current:
        yield current
    cluster_usage.forget()


def test_queues_use_what_those_below_them_use_and_nodes_what_is_on_them(shown):
    assert shown.capacity()["cpu"] == 8000, "of ready nodes alone"
    assert [shown.subtree_use(name).get("cpu", 0) for name in "abc"] == [3500, 3500, 1500]
    assert [queue.name for queue in shown.children("")] == ["a"]
    assert {queue.name for queue in shown.below("root")} == {"a", "b", "c"}
    assert [queue.name for queue in shown.below("x")] == ["y"], "a circle of parents ends where it began"
    assert "" not in shown.on_node


@pytest.mark.django_db
def test_a_queue_may_take_no_more_than_those_above_it():
    cluster_usage.forget()
    limits = {"cpu": "64", "memory": "1Gi"}
    put(queue("large", capability={"cpu": "8"}), queue("small", parent="large", capability=limits))
    with store.reading() as head, cluster_usage.current(head) as shown:
        found = shown.limits("small", {"cpu": 40_000, "pods": 110})
    cluster_usage.forget()
    assert found == {"cpu": 8000, "memory": 2**30, "pods": 110}
