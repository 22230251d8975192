from __future__ import annotations

import pytest

from cluster.controllers.nodes import NodeLifecycle, NodeStep, step
from cluster.runtime.consumer import Runner
from cluster.runtime.registry import get
from cluster.store import Create, Delete, Patch, store
from kube.errors import NotFound
from kube.resources import NODES, PODS
from node.agent.machine import renew
from tests.tables import cases


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


def add_node(name="n"):
    ready = {"type": "Ready", "status": "True"}
    store.write(Create(NODES, {"metadata": {"name": name}, "spec": {}, "status": {"conditions": [ready]}}))


def add_pod(name="p", node="n", phase="Running"):
    body = {"metadata": {"name": name, "namespace": "d"}, "spec": {"nodeName": node}, "status": {"phase": phase}}
    store.write(Create(PODS, body))


def node(name="n"):
    return store.get(NODES, "", name).object


def pod(name="p"):
    try:
        return store.get(PODS, "d", name).object["status"]
    except NotFound:
        return None


def ready():
    return node()["status"]["conditions"][0]["status"]


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
    assert {taint["effect"] for taint in node()["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
    world(1)
    assert pod()["phase"] == "Running"
    world(60)
    assert (pod()["phase"], pod()["reason"]) == ("Failed", "NodeLost")
    assert "Node n has not been heard of for" in pod()["message"]
    assert pod("done")["phase"] == "Succeeded"


def test_renewal_keeps_a_node_however_far_its_clock_is_off(world):
    add_node()
    for stamp in range(1, 10):
        renew(store, "n", stamp)
        world(30)
    assert ready() == "True"


def test_node_that_returns_loses_its_taint(world):
    add_node()
    renew(store, "n", 1)
    world()
    world(41)
    renew(store, "n", 2)
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    store.write(Patch(NODES, "", "n", status, "status"))
    world(1)
    assert "taints" not in node()["spec"]


@cases("silent", {
    "unreachable": 50,
    "given up": 500,
})  # fmt: skip
def test_node_that_is_made_again_has_the_time_of_a_new_one(world, silent):
    add_node()
    renew(store, "n", 1)
    world()
    world(silent)
    assert ready() == "Unknown"
    store.write(Delete(NODES, "", "n"))
    add_node()
    world(1)
    assert (ready(), "taints" in node()["spec"]) == ("True", False)
    world(38)
    assert ready() == "True"
    add_pod()
    world(2)
    assert ready() == "Unknown"
    world(1)
    world(59)
    assert pod()["phase"] == "Running"
    world(1)
    assert pod()["phase"] == "Failed"


def test_node_that_comes_to_a_silent_lease_has_the_time_of_a_new_one(world):
    renew(store, "n", 1)
    world()
    world(100)
    add_node()
    world()
    assert ready() == "True"


def test_taints_of_others_stay(world):
    add_node()
    own = [{"key": "maintenance", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]
    store.write(Patch(NODES, "", "n", {"spec": {"taints": own}}))
    world()
    world(41)
    renew(store, "n", 2)
    store.write(Patch(NODES, "", "n", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "status"))
    world()
    assert node()["spec"]["taints"] == own


def test_deleted_pod_on_a_node_that_is_gone_is_finished(world):
    add_pod("deleted", node="gone")
    add_pod("left", node="gone")
    store.write(Delete(PODS, "d", "deleted"))
    assert pod("deleted")
    world()
    assert pod("deleted") is None
    assert pod("left")["phase"] == "Running"
    world(61)
    assert pod("left")["reason"] == "NodeLost"


def test_deleted_pod_on_a_lost_node_is_finished(world):
    add_node()
    add_pod()
    world()
    world(41)
    world()
    world(61)
    add_pod("late")
    store.write(Delete(PODS, "d", "late"))
    world(1)
    assert pod("late") is None
