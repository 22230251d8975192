"""Gangs that a cluster binds pod by pod: their minima, what is announced of them, and what becomes of half ones."""

import pytest

from kube.resources import EVENTS, POD_GROUPS, PODS
from scheduler.cycle.cycle import schedule
from scheduler.reasons.message import CAUSE
from scheduler.writes import groups_of
from tests.tables import cases

from .world import World, group, made, pod

UNKNOWN = {"type": "Scheduled", "status": "Unknown", "reason": "Binding"}


def announced(minimum=3, **spec):
    """A pod group whose pods somebody was about to bind."""
    kind, found = group(minimum=minimum, **spec)
    found["status"]["conditions"] = [UNKNOWN]
    return kind, found


def planned(world):
    """The writes of the next cycle for the group."""
    decisions = schedule(world.snapshot, world.now)
    (found,) = [each for each in groups_of(decisions, world.now) if each.key]
    return found


def names_of(found, minimum):
    return [found.writes[index].name for index in minimum.among]


def test_minimum_of_each_task_is_among_its_own_pods():
    pods = [made(f"{role}-{number}", role=role) for role in ("a", "b") for number in range(3)]
    world = World("node n 9", group(minimum=4, minTaskMember={"a": 1, "b": 2}), *pods)
    found = planned(world)
    of_a, of_b, rest = found.minima
    assert (of_a.need, names_of(found, of_a)) == (1, ["a-0", "a-1", "a-2"])
    assert (of_b.need, names_of(found, of_b)) == (2, ["b-0", "b-1", "b-2"])
    assert (rest.need, len(names_of(found, rest))) == (4, 6)


def test_pods_of_higher_priority_are_a_minimum_of_their_own():
    pods = [made("driver-0", priority=9), *(made(f"worker-{number}", priority=1) for number in range(5))]
    found = planned(World("node n 9", group(minimum=3), *pods))
    assert [(each.need, len(each.among)) for each in found.minima] == [(1, 1), (2, 5)]
    assert names_of(found, found.minima[0]) == ["driver-0"]


@cases("objects, is_announced", {
    "nothing is bound": ([made("p-0"), made("p-1")], True),
    "some run": ([made("p-0"), made("p-1"), made("p-2", node="n", phase="Running")], False),
    "nobody makes one again": ([made("p-0"), pod("p-1")], False),
})  # fmt: skip
def test_gang_is_announced_where_it_could_be_given_back(objects, is_announced):
    found = planned(World("node n 9", group(minimum=len(objects)), *objects))
    assert bool(found.announced) is is_announced
    if is_announced:
        (write,) = found.announced
        (condition,) = write.patch["status"]["conditions"]
        assert UNKNOWN.items() <= condition.items()
        (last,) = [each for each in found.writes if each.resource == POD_GROUPS]
        assert [each["status"] for each in last.patch["status"]["conditions"]] == ["True"]


def test_single_pod_is_not_announced():
    found = planned(World("node n", group(), made("p-0")))
    assert not found.announced
    assert [each.need for each in found.minima] == [1]


def half(*others, cpu="2", marked=None):
    """A gang of three, two of whose pods hold the whole node."""
    bound = [made(f"p-{number}", node="n", phase="Running") for number in range(2)]
    return World(f"node n {cpu}", marked or announced(), *bound, *others)


def removals(found):
    return [each.name for each in found.writes if not hasattr(each, "object") and not hasattr(each, "patch")]


@pytest.mark.shows("scheduler 1.9/half bound", "scheduler 11/24")
def test_half_bound_gang_is_bound_where_the_others_find_room():
    world = half(made("p-2"), cpu="3")
    world.cycle()
    assert world.placed() == "p n"
    assert world.condition(kind="Scheduled")["status"] == "True"
    assert not any(removals(each) for each in groups_of(schedule(world.snapshot, world.now), world.now))


@pytest.mark.shows("scheduler 1.9/half bound", "scheduler 11/24")
def test_half_bound_gang_gives_back_where_they_do_not():
    found = planned(half(made("p-2")))
    of = {kind: [each for each in found.writes if each.resource == kind] for kind in (PODS, POD_GROUPS, EVENTS)}
    marks = [each.name for each in of[PODS] if hasattr(each, "patch") and each.patch.get("metadata")]
    assert marks == removals(found) == ["p-0", "p-1"]
    (status,), (event,) = of[POD_GROUPS], of[EVENTS]
    statuses = {each["type"]: each["status"] for each in status.patch["status"]["conditions"]}
    assert statuses == {"Scheduled": "False", "Unschedulable": "True", CAUSE: "True"}
    assert event.object["reason"] == "GivenBack"
    assert "2 of the 3 pods" in event.object["message"]


@cases("world", {
    "never announced": half(made("p-2"), marked=group(minimum=3)),
    "one of its pods has ended": half(made("p-2"), made("p-3", phase="Failed", node="n")),
    "its minimum is bound": half(made("p-2"), marked=announced(minimum=2)),
})  # fmt: skip
def test_what_was_whole_keeps_its_nodes(world):
    assert not removals(planned(world))
