"""The status of HyperNodes follows the nodes and the other HyperNodes."""

from __future__ import annotations

import pytest

from cluster.controllers.hyper_nodes import HyperNodeController
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Patch, store
from kube.resources import HYPER_NODES, NODES

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def runner():
    found = Runner(registry.get("hypernodes"), 0, HyperNodeController())
    settle(found)
    return found


def settle(runner):
    while runner.step():
        pass


def node(name, **labels):
    store.write(Create(NODES, {"metadata": {"name": name, "labels": labels}, "spec": {}}))


def hyper_node(name, tier, *members):
    store.write(Create(HYPER_NODES, {"metadata": {"name": name}, "spec": {"tier": tier, "members": list(members)}}))


def rack(name):
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": name}}}}


def below(name):
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def told(name):
    status = store.get(HYPER_NODES, "", name).object["status"]
    (condition,) = status["conditions"]
    return status["nodeCount"], condition["status"], condition["reason"]


def test_nodes_are_counted_as_they_come_move_and_go(runner):
    node("n1", rack="a")
    hyper_node("a", 1, rack("a"))
    hyper_node("row", 2, below("a"), below("b"))
    settle(runner)
    assert told("a") == (1, "True", "MembersFound")
    assert told("row") == (1, "False", "MemberNotFound")
    hyper_node("b", 1, rack("b"))
    node("n2", rack="b")
    settle(runner)
    assert told("row") == (2, "True", "MembersFound")
    store.write(Patch(NODES, "", "n2", {"metadata": {"labels": {"rack": "a"}}}))
    settle(runner)
    assert [told(name) for name in ("a", "b", "row")] == [
        (2, "True", "MembersFound"),
        (0, "False", "NoNodes"),
        (2, "True", "MembersFound"),
    ]
    store.write(Delete(NODES, "", "n1"))
    store.write(Delete(HYPER_NODES, "", "b"))
    settle(runner)
    assert told("a") == (1, "True", "MembersFound")
    assert told("row") == (1, "False", "MemberNotFound")


def test_what_nodes_say_of_themselves_changes_nothing(runner):
    node("n1", rack="a")
    hyper_node("a", 1, rack("a"))
    settle(runner)
    before = store.get(HYPER_NODES, "", "a").revision
    store.write(Patch(NODES, "", "n1", {"status": {"phase": "Running"}}, "status"))
    settle(runner)
    assert not runner.state.is_stale
    assert store.get(HYPER_NODES, "", "a").revision == before


def test_a_fresh_process_writes_nothing_where_all_is_said(runner):
    node("n1", rack="a")
    hyper_node("a", 1, rack("a"))
    settle(runner)
    before = store.get(HYPER_NODES, "", "a").revision
    settle(Runner(registry.get("hypernodes"), 0, HyperNodeController()))
    assert store.get(HYPER_NODES, "", "a").revision == before
