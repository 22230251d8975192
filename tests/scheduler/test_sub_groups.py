"""Groups whose pods start in sub-groups (docs/design/topology.md)."""

from __future__ import annotations

import pytest

from kube import resources
from tests.scheduler.test_topology import after_a_cycle, close, cluster, placed, racks, reason
from tests.scheduler.world import World, group, node, pod, priority_class, queue
from tests.tables import cases

TASK, PARTITION = "volcano.sh/task-spec", "volcano.sh/partition-id"


def policy(size, least=0, name="work", **more):
    selector = {"matchLabels": {TASK: name}}
    return {
        "name": name,
        "labelSelector": selector,
        "matchLabelKeys": [PARTITION],
        "subGroupSize": size,
        "minSubGroups": least,
        **more,
    }


def grouped(minimum, *policies, **more):
    return group(minimum=minimum, subGroupPolicy=list(policies), **more)


def partition(number, count, *, size=None, name="work", **more):
    """Pods of a partition, as the job controller makes them."""
    first = number * (count if size is None else size)
    labels = {TASK: name, PARTITION: str(number)}
    return [pod(f"g-{name}-{first + n}", labels=labels, **more) for n in range(count)]


def partitions(*counts, **more):
    return [each for number, count in enumerate(counts) for each in partition(number, count, **more)]


def nodes(*cpus):
    return [queue(), *(node(f"n{number}", str(cpu)) for number, cpu in enumerate(cpus))]


def whole(world, size, name="work"):
    """Return how many pods of each partition have nodes."""
    found: dict[int, int] = {}
    for each in placed(world):
        if each.startswith(f"g-{name}-"):
            number = int(each.rpartition("-")[2]) // size
            found[number] = found.get(number, 0) + 1
    return found


@cases("cpus, minimum, policies, counts, started, told", {
    "the minimum is made of whole sub-groups | scheduler 3.1/subgroups": ((8,), 5, policy(4), (4, 4), {0: 4, 1: 4}, None),
    "or not at all | scheduler 3.1/subgroups": (
        (7,), 5, policy(4), (4, 4), {},
        ("SubGroups", "4 of 5 pods fit in whole sub-groups; each sub-group needs room for 4 pods at once"),
    ),
    "too little is free for all pods": (
        (3,), 5, policy(4), (4, 4), {},
        ("NotEnoughResources", "3 of 5 pods fit; each needs 1 CPU, the most free on one node then is 0 CPU (n0)"),
    ),
})  # fmt: skip
def test_how_many_sub_groups_start(cpus, minimum, policies, counts, started, told):
    world = after_a_cycle(*nodes(*cpus), grouped(minimum, policies), *partitions(*counts))
    assert whole(world, counts[0]) == started
    assert (reason(world) if told else None) == told


@pytest.mark.shows("scheduler 1.4/subgroups", "scheduler 3.1/subgroups", "groups 3.1/subGroupPolicy")
def test_a_sub_group_starts_whole_or_not_at_all():
    world = after_a_cycle(*nodes(3, 4), grouped(3, policy(3, 1)), *partitions(3, 3, 3))
    assert whole(world, 3) == {0: 3, 1: 3}
    told = {c["message"] for n in (6, 7, 8) for c in world.get(resources.PODS, f"g-work-{n}")["status"]["conditions"]}
    assert told == {"6 of 9 pods have a node; sub-group work-2 of the others starts only whole, with 3 pods at once."}


@pytest.mark.shows("scheduler 1.4/minSubGroups")
def test_as_many_sub_groups_start_with_the_gang_as_it_asks_for():
    world = after_a_cycle(*nodes(3, 4), grouped(3, policy(3, 3)), *partitions(3, 3, 3))
    assert placed(world) == {}
    words = "2 of 3 sub-groups fit that must start together; each needs room for 3 pods at once"
    assert reason(world) == ("SubGroups", words)
    world.put("node n2 3")
    world.cycle(10)
    assert whole(world, 3) == {0: 3, 1: 3, 2: 3}


CLOSE = close(highestTierAllowed=1)


@pytest.mark.shows("scheduler 3.12/subgroups")
def test_each_sub_group_is_close_together_and_they_may_be_apart():
    found = placed(after_a_cycle(*cluster(), grouped(12, policy(6, 2, **CLOSE)), *partitions(6, 6)))
    of = [{found[f"g-work-{n}"][0] for n in range(first, first + 6)} for first in (0, 6)]
    assert sorted(map(len, of)) == [1, 1]
    assert of[0] | of[1] == {"a", "b"}


def test_a_sub_group_that_fits_nowhere_close_together_names_the_tier():
    world = after_a_cycle(*cluster(), grouped(9, policy(9, 1, **CLOSE)), *partitions(9))
    words = "0 of 1 sub-groups fit that must start together; each needs room for 9 pods at once in one HyperNode of tier 1 or lower"
    assert reason(world) == ("SubGroups", words)


@pytest.mark.shows("scheduler 3.12/subgroups")
def test_sub_groups_stay_within_the_hyper_node_of_their_gang():
    world = after_a_cycle(*cluster(nodes=1), grouped(4, policy(2, 2, **CLOSE), **CLOSE), *partitions(2, 2, 2))
    assert racks(world) == {"a"}
    assert whole(world, 2) == {0: 2, 1: 2}


def test_pods_of_a_sub_group_that_runs_are_replaced_one_by_one_beside_the_others():
    there = partition(0, 2, node="b0", phase="Running")
    asked = grouped(3, policy(3, 1, **CLOSE), phase="Running")
    world = after_a_cycle(*cluster(), asked, *there, *partition(0, 3)[2:])
    assert racks(world) == {"b"}
    assert len(placed(world)) == 3


def test_a_sub_group_whose_pods_are_not_all_there_waits_for_them():
    world = World(*nodes(9), grouped(3, policy(3, 2)), *partition(0, 3), *partition(1, 2, size=3))
    world.cycle(60)
    assert placed(world) == {}
    assert reason(world) == ("NotEnoughTasks", "5 of 6 pods exist; waiting for the others to be created")
    world.put(*partition(1, 3)[2:])
    world.cycle(10)
    assert whole(world, 3) == {0: 3, 1: 3}


def test_pods_that_succeeded_count_for_their_sub_group():
    done = partition(0, 2, phase="Succeeded", node="n0")
    world = after_a_cycle(*nodes(9), grouped(3, policy(3, 1), phase="Running"), *done, *partition(0, 3)[2:])
    assert "g-work-2" in placed(world)


def test_pods_without_a_sub_group_are_placed_as_ever():
    master = pod("g-master-0", role="master", labels={TASK: "master"})
    world = after_a_cycle(*nodes(3), grouped(3, policy(2, 1)), master, *partitions(2, 2))
    assert whole(world, 2) == {0: 2}
    assert "g-master-0" in placed(world)


@pytest.mark.shows("scheduler 1.4/subgroups", "scheduler 1.4/subgroups without keys", "scheduler 3.1/subgroups")
@pytest.mark.shows("groups 3.1/subGroupPolicy")
@cases("changes, expected", {
    "as a job has it": ({}, {0: 2, 1: 2}),
    "without a selector all pods": ({"labelSelector": None}, {0: 2, 1: 2}),
    "a selector of others": ({"labelSelector": {"matchLabels": {TASK: "other"}}}, {0: 2, 1: 2, 2: 1}),
    "a label that no pod has": ({"matchLabelKeys": ["none"]}, {0: 2, 1: 2, 2: 1}),
    "without keys one sub-group": ({"matchLabelKeys": None, "subGroupSize": 6}, {}),
})  # fmt: skip
def test_who_is_in_which_sub_group(changes, expected):
    asked = {key: value for key, value in (policy(2) | changes).items() if value is not None}
    assert whole(after_a_cycle(*nodes(5), grouped(1, asked), *partitions(2, 2, 2)), 2) == expected


LOW = priority_class("low", -5)


def test_no_sub_group_is_broken_up_by_an_eviction():
    asked = grouped(2, policy(2, 1), phase="Running", priorityClassName="low")
    world = after_a_cycle(
        *nodes(4), asked, *partitions(2, 2, node="n0", phase="Running"), "group h 1x1 high; group i low"
    )
    assert len(world.going()) in (0, 4)


def test_a_gang_that_fits_when_others_have_ended_is_not_told_that_it_never_does():
    """Its sub-groups are more than its minMember, and neither finds room in the HyperNodes as they are."""
    others = "pod o-0 4 @a0; pod o-1 3 @a1; pod o-2 4 @b0; pod o-3 3 @b1"
    world = after_a_cycle(*cluster(), others, grouped(2, policy(4, 2), **CLOSE), *partitions(4, 4))
    assert "never" not in reason(world)[1]
    world.put("-pod o-0..3")
    world.cycle(seconds=10)
    assert len(placed(world)) == 8
