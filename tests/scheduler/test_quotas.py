"""Quotas of namespaces at the entry: no group enters whose pods would be refused."""

from __future__ import annotations

import pytest

from kube import resources
from scheduler.engine.message import people
from tests.tables import cases

from .world import World, configuration, group, node, pod, queue

NODE = node("n1", cpu="99", pods=99)


def quota(name="q", used=None, *, namespace="ns", hard=None, **spec):
    metadata = {"name": name, "namespace": namespace}
    return resources.RESOURCE_QUOTAS, {
        "metadata": metadata,
        "spec": {"hard": hard or {}, **spec},
        "status": {"used": used or {}},
    }


def asking(name="g", minimum=2, *, queue="default", **least):
    return group(name, minimum, phase="", queue=queue, minResources=least or {"cpu": "4"})


def inside(world, *names):
    return [name for name in names if world.status(name).get("phase") == "Inqueue"]


@pytest.mark.shows("scheduler 3.11 others/resourcequota", "coscheduling 4/quota")
@cases("quotas, least, enters", {
    "just enough": ([quota(hard={"cpu": "4"})], {"cpu": "4"}, True),
    "less than it needs": ([quota(hard={"cpu": "3"})], {"cpu": "4"}, False),
    "others use the rest": ([quota(hard={"cpu": "5"}, used={"cpu": "2"})], {"cpu": "4"}, False),
    "by the name of requests": ([quota(hard={"requests.cpu": "3"})], {"cpu": "4"}, False),
    "limits as the job states them": ([quota(hard={"limits.cpu": "3"})], {"cpu": "4", "limits.cpu": "3500m"}, False),
    "limits that nobody states": ([quota(hard={"limits.cpu": "3"})], {"cpu": "4"}, True),
    "as many pods as its minimum": ([quota(hard={"pods": "1"})], {"cpu": "4"}, False),
    "pods as objects": ([quota(hard={"count/pods": "1"})], {"cpu": "4"}, False),
    "of what it does not ask for": ([quota(hard={"memory": "1Gi"})], {"cpu": "4"}, True),
    "of another namespace": ([quota(hard={"cpu": "1"}, namespace="other")], {"cpu": "4"}, True),
    "with scopes": ([quota(hard={"cpu": "1"}, scopes=["BestEffort"])], {"cpu": "4"}, True),
    "one of two": ([quota("a", hard={"cpu": "9"}), quota("b", hard={"cpu": "1"})], {"cpu": "4"}, False),
})  # fmt: skip
def test_who_enters(quotas, least, enters):
    world = World(NODE, queue(), *quotas, asking(**least))
    world.cycle()
    assert inside(world, "g") == (["g"] if enters else [])


@cases("some, told", {
    "for a while": (
        quota(hard={"requests.cpu": "5"}, used={"requests.cpu": "2"}),
        "Waits for quota q of its namespace: its minimum needs 4 CPU (requests.cpu), 3 CPU of 5 CPU left.",
    ),
    "for ever": (
        quota(hard={"cpu": "3"}),
        "This can never start: its minimum needs 4 CPU, and quota q of its namespace allows 3 CPU. "
        "Ask for less, or have the quota raised.",
    ),
})  # fmt: skip
def test_it_says_why(some, told):
    world = World(NODE, queue(), some, asking())
    world.cycle()
    assert world.condition("g")["reason"] == "QuotaExceeded"
    assert people(world.condition("g")["message"]) == told


@pytest.mark.shows("coscheduling 4/quota")
def test_groups_do_not_take_the_same_room():
    """What has entered counts until its pods are there, which the quota's own status counts."""
    world = World(NODE, queue(), quota(hard={"cpu": "6"}), asking("a"), asking("b"))
    world.cycle()
    assert inside(world, "a", "b") == ["a"]
    world.cycle(seconds=6)
    assert inside(world, "a", "b") == ["a"]
    world.put(pod("a-0", "a", "2"), pod("a-1", "a", "2"), quota(hard={"cpu": "8"}, used={"cpu": "4"}))
    world.cycle(seconds=1)
    assert inside(world, "b") == ["b"]


@pytest.mark.shows("coscheduling 4/quota")
@pytest.mark.parametrize("on", ["", "n1"])
@pytest.mark.parametrize("name", ["cpu", "requests.cpu", "pods"])
def test_pods_count_also_before_the_status_of_the_quota_does(name, on):
    """Whoever counts them writes it down a moment after they were made; a group let in by then would keep its place in vain."""
    more = {"node": on, "phase": "Running"} if on else {}
    hard = {name: "3" if name == "pods" else "6"}
    here = World(NODE, queue(), quota(hard=hard), group("a", 2, phase="Inqueue"), asking("b"))
    here.put(pod("a-0", "a", "2", **more), pod("a-1", "a", "2", **more))
    here.cycle(seconds=1)
    assert not inside(here, "b")
    assert here.condition("b")["reason"] == "QuotaExceeded"
    here.put(quota(hard={name: "8"}, used={name: "4"}))
    here.cycle(seconds=1)
    assert inside(here, "b") == ["b"]


@pytest.mark.parametrize("strategy", ["traverse", "fifo"])
def test_nobody_else_waits_for_it(strategy):
    world = World(NODE, queue(dequeueStrategy=strategy), quota(hard={"cpu": "5"}), asking("a", cpu="6"), asking("b"))
    world.cycle()
    assert inside(world, "a", "b") == ["b"]


def test_it_enters_when_there_is_room_or_no_quota_any_more():
    world = World(NODE, queue(), quota(hard={"cpu": "5"}, used={"cpu": "2"}), asking())
    world.cycle()
    assert not inside(world, "g")
    world.put(quota(hard={"cpu": "5"}, used={"cpu": "1"}))
    world.cycle(seconds=1)
    assert inside(world, "g") == ["g"]
    assert world.snapshot.quotas.keys() == world.rebuilt().quotas.keys()
    world.remove(resources.RESOURCE_QUOTAS, "q")
    assert not world.snapshot.quotas


def test_who_has_his_pods_already_is_not_asked():
    world = World(
        NODE, queue(), quota(hard={"cpu": "4"}, used={"cpu": "4"}), asking(), pod("g-0", cpu="2"), pod("g-1", cpu="2")
    )
    world.cycle()
    assert len(world.where()) == 2


def test_without_the_action_enqueue_nobody_is_asked():
    world = World(NODE, queue(), quota(hard={"cpu": "1"}), asking(), configuration("actions: allocate"))
    world.cycle()
    assert inside(world, "g") == ["g"]
