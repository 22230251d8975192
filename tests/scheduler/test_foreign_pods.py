"""On a cluster with another scheduler: its pods take room, and nothing else is done about them."""

from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import quantity, resources, usage
from tests.campaign import examples

from .world import World, group, node, pod, queue

NODES = ("n1", "n2")
COLUMNS = ("cpu", "memory", "example.com/gpu", "pods")
AMOUNTS = {"cpu": ("500m", "1", "1500m"), "memory": ("1Gi", "2Gi"), "example.com/gpu": ("1", "2")}

requests = st.fixed_dictionaries({}, optional={name: st.sampled_from(each) for name, each in AMOUNTS.items()})
containers = st.builds(lambda requested_of, **more: {"resources": {"requests": requested_of}, **more}, requests)
starting = st.builds(lambda one, policy: one | policy, containers, st.sampled_from([{}, {"restartPolicy": "Always"}]))
specs = st.fixed_dictionaries(
    {
        "containers": st.lists(containers, min_size=1, max_size=2),
        "initContainers": st.lists(starting, max_size=3),
        "overhead": st.one_of(st.just({}), requests),
    }
)
numbers = count()
TAINTS = [[], [], *([{"key": "k", "effect": each}] for each in ("NoSchedule", "NoExecute", "PreferNoSchedule"))]
OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u-agent", "controller": True}


@st.composite
def others(draw):
    """A pod that is not ours to place: of a DaemonSet, of another scheduler, in any namespace."""
    kind, made = pod(
        f"other-{next(numbers)}",
        "",
        node=draw(st.sampled_from(["", *NODES])),
        phase=draw(st.sampled_from(["Pending", "Running", "Running", "Succeeded", "Failed", "Unknown"])),
        scheduler=draw(st.sampled_from(["default-scheduler", "other"])),
        deleted=draw(st.sampled_from(["", "", "2026-01-01T00:00:00Z"])),
        tolerations=draw(st.sampled_from([[], [{"operator": "Exists"}]])),
        **draw(specs),
    )
    made["metadata"]["namespace"] = draw(st.sampled_from(["ns", "kube-system"]))
    made["metadata"]["ownerReferences"] = draw(st.sampled_from([[], [OWNER]]))
    return kind, made


@st.composite
def offers(draw, name):
    """A node of which the system keeps a part, perhaps closed in one of the ways there are."""
    cpu, pods = draw(st.sampled_from(["2", "4"])), draw(st.integers(2, 6))
    taints, ready = draw(st.sampled_from(TAINTS)), draw(st.sampled_from([True, True, True, False]))
    cordoned, more = draw(st.sampled_from([False, False, True])), draw(st.sampled_from([{}, {"example.com/gpu": "2"}]))
    kind, made = node(name, cpu, "4Gi", pods, taints=taints, ready=ready, unschedulable=cordoned, **more)
    made["status"]["capacity"] = {"cpu": "64", "memory": "640Gi", "pods": "640", "example.com/gpu": "64"}
    return kind, made


def asked(spec):
    """What Kubernetes reserves for a pod, resource by resource: slow and obvious."""
    found = {}
    for name in COLUMNS[:-1]:
        beside = most = 0
        for one in spec.get("initContainers", ()):
            mine = amount(name, one["resources"]["requests"])
            if one.get("restartPolicy") == "Always":
                beside += mine
                most = max(most, beside)
            else:
                most = max(most, beside + mine)
        running = beside + sum(amount(name, one["resources"]["requests"]) for one in spec["containers"])
        found[name] = max(most, running) + amount(name, spec.get("overhead") or {})
    return found | {"pods": 1}


def amount(name, listed):
    found = quantity.parse(listed[name]) if name in listed else 0
    return int(found * 1000) if name == "cpu" else int(found)


def room(world, name):
    """What pods leave of what a node offers to pods."""
    offered = world.get(resources.NODES, name)["status"]["allocatable"]
    free = Counter({each: amount(each, offered) for each in COLUMNS})
    for (kind, *_), one in world.objects.items():
        if kind == "pods" and one["spec"].get("nodeName") == name:
            free.subtract(asked(one["spec"]) if one["status"]["phase"] not in ("Succeeded", "Failed") else ())
    return free


def fits(spec, free):
    return all(free[each] >= needed for each, needed in asked(spec).items() if needed)


def is_open(world, name):
    """Whether a node takes pods that tolerate nothing."""
    one = world.get(resources.NODES, name)
    is_ready = any(each["status"] == "True" for each in one["status"]["conditions"])
    closing = [each for each in one["spec"]["taints"] if each["effect"] != "PreferNoSchedule"]
    return is_ready and not one["spec"]["unschedulable"] and not closing


@pytest.mark.shows("scheduler 1.2/containers", "scheduler 1.2/init containers", "scheduler 1.2/overhead")
@pytest.mark.shows("scheduler 1.5/allocatable", "scheduler 1.5/all pods", "scheduler 1.6/other schedulers")
@pytest.mark.shows(
    "scheduler 4.2/--scheduler-name", "coscheduling 3/other schedulers", "coscheduling 4/multi-scheduler"
)
@examples(300)
@given(
    offered=st.tuples(*(offers(name) for name in NODES)),
    around=st.lists(others(), max_size=6),
    ours=st.lists(specs, max_size=6),
)
def test_pods_get_exactly_the_room_that_all_pods_leave(offered, around, ours):
    """In every state each pod of ours that waits would fit on no open node, and each that was placed did."""
    mine = [group(f"g{number}") for number in range(len(ours))]
    mine += [pod(f"p{number}", f"g{number}", **spec) for number, spec in enumerate(ours)]
    world = World(*offered, queue(), *around, *mine, schedulers=usage.VOLCANO)
    foreign = {key: each["spec"].get("nodeName") for key, each in world.objects.items() if key[2].startswith("other")}
    before = {name: room(world, name) for name in NODES}
    decisions = world.cycle()
    assert not decisions.adoptions, "what another scheduler places is none of ours"
    assert {key: world.objects[key]["spec"].get("nodeName") for key in foreign} == foreign
    for name in NODES:
        placed = [spec for number, spec in enumerate(ours) if world.where().get(f"p{number}") == name]
        assert not placed or is_open(world, name)
        total = sum((Counter(asked(spec)) for spec in placed), Counter())
        assert all(before[name][each] >= needed for each, needed in total.items())
    for number, spec in enumerate(ours):
        if f"p{number}" not in world.where():
            assert not any(is_open(world, name) and fits(spec, room(world, name)) for name in NODES)
