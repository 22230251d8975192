"""Tiers of the network that a job asks for and that no HyperNode has: it would wait (`scheduler.engine.arrange`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from kube import lenient
from kube.meta import Object
from kube.resource import Resource
from kube.resources import HYPER_NODES
from kube.volcano import topology
from kube.volcano.topology import HyperNode

WHOLE = 1
"""The tier of the whole cluster where there is no HyperNode (`scheduler.engine.hyper_nodes`)."""


class HyperNodesView(Protocol):
    """What may be asked about HyperNodes."""

    def listed(self, resource: Resource, namespace: str) -> list[Object]: ...


def of_job(spec: dict[str, Any], view: HyperNodesView) -> Iterator[str]:
    """Yield what is odd about what a job, and each of its tasks' partitions, ask of the network."""
    owners = {"spec": spec}
    for number, task in enumerate(lenient.sequence(spec, "tasks")):
        owners[f"spec.tasks[{number}].partitionPolicy"] = lenient.mapping(task, "partitionPolicy")
    asked = {path: lenient.mapping(owner, "networkTopology") for path, owner in owners.items()}
    asked = {path: each for path, each in asked.items() if each and lenient.text(each, "mode") != "soft"}
    if not asked:
        return
    hyper_nodes = [topology.read(each) for each in view.listed(HYPER_NODES, "")]
    for path, each in asked.items():
        if problem := _missing(each, hyper_nodes):
            yield f"{path}.networkTopology.{problem}"


def _missing(asked: dict[str, Any], hyper_nodes: list[HyperNode]) -> str:
    """Return the field by which no HyperNode is found and why, "" where there is one or none is asked for."""
    name, highest = lenient.text(asked, "highestTierName"), lenient.whole(asked, "highestTierAllowed")
    wait = "so the pods wait until there is one"
    if name and all(each.tier_name != name for each in hyper_nodes):
        known = sorted({each.tier_name for each in hyper_nodes if each.tier_name})
        remedy = f"choose {' or '.join(known)}" if known else "give highestTierAllowed, or leave both out"
        return f"highestTierName: no HyperNode has the tier {name}, {wait}; {remedy}."
    lowest = min((each.tier for each in hyper_nodes), default=WHOLE)
    if highest is not None and highest < lowest:
        return (
            f"highestTierAllowed: no HyperNode has tier {highest} or a lower one, {wait}; set it to {lowest} or more."
        )
    return ""
