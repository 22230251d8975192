"""Gangs that are to be close together in the network (docs/design/topology.md)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube import resources

from .world import World

RACKS = "; ".join(f"node {rack}0..1 rack={rack}; hypernode rack-{rack} 1 rack={rack}" for rack in "abc")
ROW = f"{RACKS}; node z0; hypernode row 2 of=rack-a,rack-b,rack-c"


def fullness(world, name, fading):
    """Return what a node is worth by the definition: how full the CPUs of its rack and its row are, 1 where it is in none."""

    def full(members):
        whole = sum(int(world.get(resources.NODES, each)["status"]["allocatable"]["cpu"]) for each in members)
        used = sum(at in members for at in world.where().values())
        return used / whole if used <= whole else 0  # holding more than there is, it is worth nothing

    nodes = [key[2] for key in world.objects if key[0] == "nodes"]
    rack = [each for each in nodes if each[0] == name[0] and each[0] != "z"]
    row = [each for each in nodes if each[0] != "z"] if rack else []
    return (full(rack) if rack else 1) + fading * (full(row) if row else 1)


@pytest.mark.shows("scheduler 3.12/hypernode.binpack.normal-pod", "scheduler 3.12/weight")
@given(
    st.lists(st.sampled_from(["a0", "a1", "b0", "b1", "c0", "c1"]), max_size=8),
    st.sampled_from([0, 0.5, 1]),
    st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_ordinary_pods_fill_one_hyper_node_after_the_other(there, fading, weight):
    """One pod of each cycle goes to a node that is worth most, of those with room; of equals by the usual order."""
    arguments = f"hypernode.binpack.memory: 0, weight: {weight}, hypernode.binpack.normal-pod.fading: {fading}"
    configured = f"conf enqueue, allocate: {{name: network-topology-aware, arguments: {{{arguments}}}}}"
    world = World(
        ROW, configured, "group o 1/0x1 phase=Running", *(f"pod o-{n} group=o @{at}" for n, at in enumerate(there))
    )
    for number in range(4):
        used = Counter(world.where().values())
        open_nodes = [key[2] for key in world.objects if key[0] == "nodes" and used[key[2]] < 4]
        best = max(fullness(world, name, fading) for name in open_nodes)
        worth = {name: fullness(world, name, fading) for name in open_nodes}
        world.put(f"group n{number} 1x1")
        world.cycle(seconds=1)
        assert worth[world.where()[f"n{number}-0"]] == pytest.approx(best)
