"""The HyperNodes of the log in the engine's form."""

from __future__ import annotations

from collections.abc import Mapping

from kube.volcano import topology
from kube.volcano.topology import HyperNode
from scheduler.engine.hyper_nodes import HyperNodes, Named


def hyper_nodes_of(written: Mapping[str, HyperNode], nodes: Mapping[str, Mapping[str, str]]) -> HyperNodes:
    """Return the engine's HyperNodes. written holds HyperNodes by name, nodes the labels of nodes in the order of a cycle."""
    numbers = {name: number for number, name in enumerate(nodes)}
    return HyperNodes(
        (
            Named(each.name, each.tier, each.tier_name, sorted(numbers[name] for name in each.nodes))
            for each in topology.domains(written, nodes)
        ),
        list(nodes),
    )
