"""Groups whose pods start in sub-groups (docs/design/topology.md)."""

from __future__ import annotations

import pytest

from kube import resources
from tests.scheduler.test_topology import close, cluster, placed, racks, reason
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


@pytest.mark.shows("scheduler 1.4/subgroups", "scheduler 3.1/subgroups", "groups 3.1/subGroupPolicy")
def test_a_sub_group_starts_whole_or_not_at_all():
    world = World(*nodes(3, 4), grouped(3, policy(3, 1)), *partition(0, 3), *partition(1, 3), *partition(2, 3))
    world.cycle()
    assert whole(world, 3) == {0: 3, 1: 3}
    told = {c["message"] for n in (6, 7, 8) for c in world.get(resources.PODS, f"g-work-{n}")["status"]["conditions"]}
    assert told == {"6 of 9 pods have a node; sub-group work-2 of the others starts only whole, with 3 pods at once."}


@pytest.mark.shows("scheduler 1.4/minSubGroups")
def test_as_many_sub_groups_start_with_the_gang_as_it_asks_for():
    world = World(*nodes(3, 4), grouped(3, policy(3, 3)), *(p for n in range(3) for p in partition(n, 3)))
    world.cycle()
    assert placed(world) == {}
    assert reason(world) == (
        "SubGroups",
        "2 of 3 sub-groups fit that must start together; each needs room for 3 pods at once",
    )
    world.put(node("n2", "3"))
    world.cycle(10)
    assert whole(world, 3) == {0: 3, 1: 3, 2: 3}


@pytest.mark.shows("scheduler 3.1/subgroups")
def test_the_minimum_is_made_of_whole_sub_groups():
    world = World(*nodes(8), grouped(5, policy(4)), *partition(0, 4), *partition(1, 4))
    world.cycle()
    assert whole(world, 4) == {0: 4, 1: 4}
    world = World(*nodes(7), grouped(5, policy(4)), *partition(0, 4), *partition(1, 4))
    world.cycle()
    assert placed(world) == {}
    assert reason(world) == (
        "SubGroups",
        "4 of 5 pods fit in whole sub-groups; each sub-group needs room for 4 pods at once",
    )


def test_where_too_little_is_free_for_all_pods_that_is_the_reason():
    world = World(*nodes(3), grouped(5, policy(4)), *partition(0, 4), *partition(1, 4))
    world.cycle()
    assert reason(world)[0] == "NotEnoughResources"


@pytest.mark.shows("scheduler 3.12/subgroups")
def test_each_sub_group_is_close_together_and_they_may_be_apart():
    topology = close(highestTierAllowed=1)
    asked = grouped(12, policy(6, 2, **topology))
    world = World(*cluster(), asked, *partition(0, 6), *partition(1, 6))
    world.cycle()
    found = placed(world)
    of = [{found[f"g-work-{n}"][0] for n in range(first, first + 6)} for first in (0, 6)]
    assert sorted(map(len, of)) == [1, 1]
    assert of[0] | of[1] == {"a", "b"}


def test_a_sub_group_that_fits_nowhere_close_together_names_the_tier():
    world = World(*cluster(), grouped(9, policy(9, 1, **close(highestTierAllowed=1))), *partition(0, 9))
    world.cycle()
    assert reason(world) == (
        "SubGroups",
        "0 of 1 sub-groups fit that must start together; each needs room for 9 pods at once in one HyperNode of tier 1 or lower",
    )


@pytest.mark.shows("scheduler 3.12/subgroups")
def test_sub_groups_stay_within_the_hyper_node_of_their_gang():
    asked = grouped(4, policy(2, 2, **close(highestTierAllowed=1)), **close(highestTierAllowed=1))
    world = World(*cluster(nodes=1), asked, *partition(0, 2), *partition(1, 2), *partition(2, 2))
    world.cycle()
    assert racks(world) == {"a"}
    assert whole(world, 2) == {0: 2, 1: 2}


def test_pods_of_a_sub_group_that_runs_are_replaced_one_by_one_beside_the_others():
    asked = grouped(3, policy(3, 1, **close(highestTierAllowed=1)), phase="Running")
    there = partition(0, 2, node="b0", phase="Running")
    world = World(*cluster(), asked, *there, *partition(0, 3)[2:])
    world.cycle()
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
    world = World(*nodes(9), grouped(3, policy(3, 1), phase="Running"), *done, *partition(0, 3)[2:])
    world.cycle()
    assert "g-work-2" in placed(world)


def test_pods_without_a_sub_group_are_placed_as_ever():
    roles = {"role": "master", "labels": {TASK: "master"}}
    world = World(*nodes(3), grouped(3, policy(2, 1)), pod("g-master-0", **roles), *partition(0, 2), *partition(1, 2))
    world.cycle()
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
    world = World(*nodes(5), grouped(1, asked), *(p for n in range(3) for p in partition(n, 2)))
    world.cycle()
    assert whole(world, 2) == expected


def test_no_sub_group_is_broken_up_by_an_eviction():
    classes = (priority_class("low", 1), priority_class("high", 10))
    running = [each for n in range(2) for each in partition(n, 2, node="n0", phase="Running")]
    world = World(*nodes(4), *classes, grouped(2, policy(2, 1), phase="Running", priorityClassName="low"), *running)
    world.put(group("h", 1, priorityClassName="high"), pod("h-0", "h"))
    world.cycle()
    assert len(world.going()) in (0, 4)


def test_a_gang_that_fits_when_others_have_ended_is_not_told_that_it_never_does():
    """Its sub-groups are more than its minMember, and neither finds room in the HyperNodes as they are."""
    others = [
        pod(f"o-{n}", "o", node=name, cpu=cpu, phase="Running")
        for n, (name, cpu) in enumerate((("a0", "4"), ("a1", "3"), ("b0", "4"), ("b1", "3")))
    ]
    world = World(
        *cluster(),
        group("o", 1, phase="Running"),
        *others,
        grouped(2, policy(4, 2), **close(highestTierAllowed=1)),
        *partition(0, 4),
        *partition(1, 4),
    )
    world.cycle()
    assert "never" not in reason(world)[1]
    for each in range(4):
        world.remove(resources.PODS, f"o-{each}")
    world.cycle(seconds=10)
    assert len(placed(world)) == 8
