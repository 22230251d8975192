"""Nodes that fall silent, and how many nodes HyperNodes have."""

from __future__ import annotations

import pytest

from cluster.controllers.hyper_nodes import HyperNodeController
from cluster.controllers.nodes import NodeLifecycle, NodeStep, step
from cluster.runtime.consumer import Runner
from cluster.runtime.registry import get
from cluster.store import Create, Delete, Patch, store
from kube.resources import HYPER_NODES, NODES, PODS
from node.agent.machine import renew
from tests import builders
from tests.tables import cases

from . import running


@cases("ready, tainted, silent, unreachable, expected", {
    "heard of": ("True", False, 39, 0, NodeStep.NOTHING),
    "not ready by its own word": ("False", False, 39, 0, NodeStep.NOTHING),
    "silent": ("True", False, 40, 0, NodeStep.UNREACHABLE),
    "silent after it stopped": ("False", False, 40, 0, NodeStep.UNREACHABLE),
    "its taint was taken off by hand": ("Unknown", False, 40, 0, NodeStep.UNREACHABLE),
    "unreachable": ("Unknown", True, 99, 59, NodeStep.NOTHING),
    "given up": ("Unknown", True, 99, 60, NodeStep.LOST),
    "heard of, has not said how it is": ("Unknown", True, 0, 99, NodeStep.NOTHING),
    "back": ("True", True, 0, 0, NodeStep.RETURNED),
    "back but not ready": ("False", True, 0, 0, NodeStep.NOTHING),
})  # fmt: skip
def test_step(ready, tainted, silent, unreachable, expected):
    given = {"tainted": tainted, "silent_s": silent, "unreachable_s": unreachable, "lost_s": 60}
    assert step(ready, **given) is expected


@pytest.fixture
def world(transactional_db, redis_url, settings, moved_clock):
    """A function that lets some seconds pass, and then the controller look."""
    settings.REDIS_URL = redis_url
    runner = Runner(get("nodes"), 0, NodeLifecycle())

    def after(seconds=0.0):
        moved_clock.move(seconds)
        changes, timers = [], [object()]
        if runner.state is None:
            runner.step()
        for change in store.changes(runner.position, runner.registration.resources):
            runner.consumer.apply(runner.state, change)
            runner.position = change.revision
        plan = runner.consumer.plan(runner.state, changes, timers, 1_800_000_000_000)
        store.commit(plan.groups)
        assert plan.timers[0].due == 1_800_000_010_000

    return after


def add_node(name="n", **labels):
    store.write(Create(NODES, builders.node(name, labels=labels)))


def add_pod(name="p", node="n", phase="Running"):
    store.write(Create(PODS, builders.pod(name, nodeName=node, status={"phase": phase})))


def node():
    return store.get(NODES, "", "n").object


def ready():
    return node()["status"]["conditions"][0]["status"]


def says_ready():
    store.write(Patch(NODES, "", "n", {"status": builders.node("n")["status"]}, "status"))


def taints():
    return node().get("spec", {}).get("taints", [])


def pods():
    """Return the phases of the pods, and the reasons where there are some."""
    found = {stored.name: stored.object["status"] for stored in store.find(PODS)}
    return {name: " ".join([status["phase"], status.get("reason", "")]).strip() for name, status in found.items()}


def test_node_that_falls_silent_is_tainted_then_its_pods_are_given_up(world):
    add_node()
    add_pod()
    add_pod("done", phase="Succeeded")
    renew(store, "n", 1)
    world()
    world(39)
    assert ready() == "True"
    world(2)
    assert ready() == "Unknown"
    assert {taint["effect"] for taint in taints()} == {"NoSchedule", "NoExecute"}
    world(1)
    assert pods() == {"p": "Running", "done": "Succeeded"}
    world(60)
    assert pods() == {"p": "Failed NodeLost", "done": "Succeeded"}
    message = store.get(PODS, "default", "p").object["status"]["message"]
    assert "Node n has not been heard of for" in message
    add_pod("late")
    store.write(Delete(PODS, "default", "late"))
    world(1)
    assert pods().keys() == {"p", "done"}


def test_renewal_keeps_a_node_however_far_its_clock_is_off(world):
    add_node()
    for stamp in range(1, 10):
        renew(store, "n", stamp)
        world(30)
    assert ready() == "True"


@cases("own", {
    "none": [],
    "maintenance": [{"key": "maintenance", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}],
})  # fmt: skip
def test_node_that_returns_loses_its_taints_but_not_those_of_others(world, own):
    add_node()
    store.write(Patch(NODES, "", "n", {"spec": {"taints": own or None}}))
    renew(store, "n", 1)
    world()
    world(41)
    assert len(taints()) == len(own) + 2
    renew(store, "n", 2)
    says_ready()
    world(1)
    assert taints() == own


@cases("silent", {"unreachable": 50, "given up": 500})
def test_node_that_is_made_again_has_the_time_of_a_new_one(world, silent):
    add_node()
    renew(store, "n", 1)
    world()
    world(silent)
    assert ready() == "Unknown"
    store.write(Delete(NODES, "", "n"))
    add_node()
    world(1)
    assert (ready(), taints()) == ("True", [])
    world(38)
    assert ready() == "True"
    add_pod()
    world(2)
    assert ready() == "Unknown"
    world(1)
    world(59)
    assert pods() == {"p": "Running"}
    world(1)
    assert pods() == {"p": "Failed NodeLost"}


def test_node_that_comes_to_a_silent_lease_has_the_time_of_a_new_one(world):
    renew(store, "n", 1)
    world()
    world(100)
    add_node()
    world()
    assert ready() == "True"


def test_deleted_pod_on_a_node_that_is_gone_is_finished(world):
    add_pod("deleted", node="gone")
    add_pod("left", node="gone")
    store.write(Delete(PODS, "default", "deleted"))
    assert pods() == {"deleted": "Running", "left": "Running"}
    world()
    assert pods() == {"left": "Running"}
    world(61)
    assert pods() == {"left": "Failed NodeLost"}


# HyperNodes.


def hyper_node(name, tier, *members):
    store.write(Create(HYPER_NODES, builders.of(HYPER_NODES, name, tier=tier, members=list(members))))


def rack(name):
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": name}}}}


def below(name):
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def counted():
    """Return how many nodes each HyperNode has, and the reason of its condition."""
    found = {}
    for stored in store.find(HYPER_NODES):
        (condition,) = stored.object["status"]["conditions"]
        assert condition["status"] == str(condition["reason"] == "MembersFound")
        found[stored.name] = f"{stored.object['status']['nodeCount']} {condition['reason']}"
    return found


@pytest.mark.django_db(transaction=True)
def test_nodes_of_hyper_nodes_are_counted_as_they_come_move_and_go():
    runner = running.started("hypernodes", HyperNodeController())
    add_node("n", rack="a")
    hyper_node("a", 1, rack("a"))
    hyper_node("row", 2, below("a"), below("b"))
    running.settle(runner)
    assert counted() == {"a": "1 MembersFound", "row": "1 MemberNotFound"}
    before = store.revision()
    says_ready()
    running.settle(runner)
    assert not runner.state.is_stale, "what a node says of itself changes nothing"
    runner = running.started("hypernodes", HyperNodeController())
    assert store.changes(before, [HYPER_NODES]) == []
    hyper_node("b", 1, rack("b"))
    add_node("n2", rack="b")
    running.settle(runner)
    assert counted() == {"a": "1 MembersFound", "b": "1 MembersFound", "row": "2 MembersFound"}
    store.write(Patch(NODES, "", "n2", {"metadata": {"labels": {"rack": "a"}}}))
    running.settle(runner)
    assert counted() == {"a": "2 MembersFound", "b": "0 NoNodes", "row": "2 MembersFound"}
    store.write(Delete(NODES, "", "n"))
    store.write(Delete(HYPER_NODES, "", "b"))
    running.settle(runner)
    assert counted() == {"a": "1 MembersFound", "row": "1 MemberNotFound"}
