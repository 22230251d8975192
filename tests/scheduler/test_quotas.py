"""Quotas of namespaces at the entry: no group enters whose pods would be refused."""

from __future__ import annotations

import pytest

from kube import resources
from tests.tables import cases

from .world import World


def quota(name="q", used=None, *, namespace="ns", hard=None, **spec):
    metadata = {"name": name, "namespace": namespace}
    return resources.RESOURCE_QUOTAS, {
        "metadata": metadata,
        "spec": {"hard": hard or {}, **spec},
        "status": {"used": used or {}},
    }


def after_a_cycle(*objects):
    world = World("node n1 99 pods:99", *objects)
    world.cycle()
    return world


G = "group g 4 minMember=2 phase="


@pytest.mark.shows("scheduler 3.11 others/resourcequota", "coscheduling 4/quota")
@cases("quotas, more, enters", {
    "just enough": ([quota(hard={"cpu": "4"})], "", True),
    "less than it needs": ([quota(hard={"cpu": "3"})], "", False),
    "others use the rest": ([quota(hard={"cpu": "5"}, used={"cpu": "2"})], "", False),
    "by the name of requests": ([quota(hard={"requests.cpu": "3"})], "", False),
    "limits as the job states them": ([quota(hard={"limits.cpu": "3"})], "limits.cpu:3500m", False),
    "limits that nobody states": ([quota(hard={"limits.cpu": "3"})], "", True),
    "as many pods as its minimum": ([quota(hard={"pods": "1"})], "", False),
    "pods as objects": ([quota(hard={"count/pods": "1"})], "", False),
    "of what it does not ask for": ([quota(hard={"memory": "1Gi"})], "", True),
    "of another namespace": ([quota(hard={"cpu": "1"}, namespace="other")], "", True),
    "with scopes": ([quota(hard={"cpu": "1"}, scopes=["BestEffort"])], "", True),
    "one of two": ([quota("a", hard={"cpu": "9"}), quota("b", hard={"cpu": "1"})], "", False),
})  # fmt: skip
def test_who_enters(quotas, more, enters):
    assert after_a_cycle(*quotas, f"{G} {more}").phase() == ("Inqueue" if enters else "Pending")


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
    world = after_a_cycle(some, G)
    assert (world.reason(), world.told()) == ("QuotaExceeded", told)


TWO = "group a 4 minMember=2 phase=; group b 4 minMember=2 phase="


@pytest.mark.shows("coscheduling 4/quota")
def test_groups_do_not_take_the_same_room():
    """What has entered counts until its pods are there, which the quota's own status counts."""
    world = after_a_cycle(quota(hard={"cpu": "6"}), TWO)
    assert world.inside() == {"a"}
    world.cycle(seconds=6)
    assert world.inside() == {"a"}
    world.put("pod a-0..1 2 group=a", quota(hard={"cpu": "8"}, used={"cpu": "4"}))
    world.cycle(seconds=1)
    assert world.inside() == {"b"}


@pytest.mark.shows("coscheduling 4/quota")
@cases("on", {"": "", "and run": "@n1"})
@cases("name", {each: each for each in ("cpu", "requests.cpu", "pods")})
def test_pods_count_also_before_the_status_of_the_quota_does(name, on):
    """Whoever counts them writes it down a moment after they were made; a group let in by then would keep its place in vain."""
    hard = {name: "3" if name == "pods" else "6"}
    here = World("node n1 99 pods:99; group a minMember=2 phase=Inqueue; group b 4 minMember=2 phase=")
    here.put(quota(hard=hard), f"pod a-0..1 2 group=a {on}")
    here.cycle(seconds=1)
    assert here.phase("b") == "Pending"
    assert here.reason("b") == "QuotaExceeded"
    here.put(quota(hard={name: "8"}, used={name: "4"}))
    here.cycle(seconds=1)
    assert here.phase("b") == "Inqueue"


@cases("strategy", {"traverse": "traverse", "fifo": "fifo"})
def test_nobody_else_waits_for_it(strategy):
    groups = "group a 6 minMember=2 phase=; group b 4 minMember=2 phase="
    assert after_a_cycle(f"queue default dequeueStrategy={strategy}", quota(hard={"cpu": "5"}), groups).inside() == {
        "b"
    }


def test_it_enters_when_there_is_room_or_no_quota_any_more():
    world = after_a_cycle(quota(hard={"cpu": "5"}, used={"cpu": "2"}), G)
    assert world.inside() == set()
    world.put(quota(hard={"cpu": "5"}, used={"cpu": "1"}))
    world.cycle(seconds=1)
    assert world.inside() == {"g"}
    assert world.snapshot.quotas.keys() == world.rebuilt().quotas.keys()
    world.remove(resources.RESOURCE_QUOTAS, "q")
    assert not world.snapshot.quotas


def test_who_has_his_pods_already_is_not_asked():
    world = after_a_cycle(quota(hard={"cpu": "4"}, used={"cpu": "4"}), G, "pod g-0..1 2 group=g")
    assert world.placed() == "g n1 n1"


def test_without_the_action_enqueue_nobody_is_asked():
    assert after_a_cycle(quota(hard={"cpu": "1"}), G, "conf actions: allocate").inside() == {"g"}
