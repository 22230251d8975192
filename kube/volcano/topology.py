"""HyperNodes: which nodes are close together in the network (reference: volcano-queue-podgroup-cli §7.4).

A HyperNode names nodes, or HyperNodes of lower tiers, whose nodes it has then as well. A member whose tier is not
lower counts for nothing: so there are no circles, whatever is written. Nodes may be in several HyperNodes of one tier;
each of them has them, and reports that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kube import lenient, patterns, selector
from kube.meta import Object
from kube.selector import LabelSelector

NODE, HYPER_NODE = "Node", "HyperNode"
ALLOCATED = "volcano.sh/job-allocated-hypernode"
"""The annotation of a pod group in which the scheduler says where its pods are."""


class Member(NamedTuple):
    """Nodes of a HyperNode, by their name, a pattern or their labels; or, by its name, a HyperNode below it."""

    is_node: bool
    name: str = ""
    pattern: str = ""
    labels: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A HyperNode as it is written; tier_name is "" where it has none."""

    name: str
    tier: int
    tier_name: str
    members: tuple[Member, ...]


class Problem(NamedTuple):
    """What is odd about a HyperNode: a word for programs and a sentence for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Domain:
    """What a HyperNode comes to: the names of its nodes and of the HyperNodes right below it, sorted."""

    name: str
    tier: int
    tier_name: str
    nodes: tuple[str, ...]
    below: tuple[str, ...]
    problems: tuple[Problem, ...]


def read(obj: Object) -> HyperNode:
    """Return a HyperNode as it is written; what cannot be read is left out."""
    spec = lenient.mapping(obj, "spec")
    return HyperNode(
        lenient.text(obj, "metadata", "name"),
        lenient.whole(spec, "tier") or 0,
        lenient.text(spec, "tierName"),
        tuple(_member(each) for each in lenient.sequence(spec, "members")),
    )


def domains(hyper_nodes: Mapping[str, HyperNode], nodes: Mapping[str, Mapping[str, str]]) -> list[Domain]:
    """Return what HyperNodes come to among nodes, given by their labels; the lowest tier first, then by name."""
    nodes_of: dict[str, set[str]] = {}
    problems: dict[str, list[Problem]] = {}
    ordered = sorted(hyper_nodes.values(), key=lambda each: (each.tier, each.name))
    for each in ordered:
        nodes_of[each.name] = set(_own_nodes(each, nodes)).union(
            *(nodes_of[name] for name in _below(each, hyper_nodes))
        )
        problems[each.name] = list(_problems(each, hyper_nodes, nodes))
    for tier in dict.fromkeys(each.tier for each in ordered):
        names = [each.name for each in ordered if each.tier == tier]
        for name, problem in _overlaps(names, nodes_of):
            problems[name].append(problem)
    for each in ordered:
        if not nodes_of[each.name]:
            problems[each.name].append(Problem("NoNodes", "None of its members is a node of the cluster."))
    return [
        Domain(
            each.name,
            each.tier,
            each.tier_name,
            tuple(sorted(nodes_of[each.name])),
            tuple(_below(each, hyper_nodes)),
            tuple(problems[each.name]),
        )
        for each in ordered
    ]


def _member(written: object) -> Member:
    chosen = lenient.mapping(written, "selector")
    labels = None
    if isinstance(chosen.get("labelMatch"), dict):
        try:
            labels = selector.from_object(chosen["labelMatch"])
        except selector.SelectorError:
            labels = None
    return Member(
        lenient.text(written, "type") != HYPER_NODE,
        lenient.text(chosen, "exactMatch", "name"),
        lenient.text(chosen, "regexMatch", "pattern"),
        labels,
    )


def _own_nodes(hyper_node: HyperNode, nodes: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the nodes that a HyperNode names itself."""
    for member in hyper_node.members:
        if not member.is_node:
            continue
        if member.name in nodes:
            yield member.name
        if pattern := member.pattern:
            yield from (name for name in nodes if patterns.matches(pattern, name))
        if (labels := member.labels) is not None:
            yield from (name for name, has in nodes.items() if labels.matches(has))


def _below(hyper_node: HyperNode, hyper_nodes: Mapping[str, HyperNode]) -> list[str]:
    """Return the HyperNodes that count as its members."""
    named = {member.name for member in hyper_node.members if not member.is_node}
    return sorted(name for name in named if (other := hyper_nodes.get(name)) and other.tier < hyper_node.tier)


def _problems(
    hyper_node: HyperNode, hyper_nodes: Mapping[str, HyperNode], nodes: Mapping[str, Mapping[str, str]]
) -> Iterator[Problem]:
    for member in hyper_node.members:
        if not member.name:
            continue
        if member.is_node:
            if member.name not in nodes:
                yield Problem("MemberNotFound", f"There is no node {member.name}.")
            continue
        other = hyper_nodes.get(member.name)
        if other is None:
            yield Problem("MemberNotFound", f"There is no HyperNode {member.name}.")
        elif _leads_to(member.name, hyper_node.name, hyper_nodes):
            yield Problem("Circle", f"HyperNode {member.name} has it as a member in turn; take one out of the other.")
        elif other.tier >= hyper_node.tier:
            yield Problem(
                "TierNotLower",
                f"HyperNode {member.name} has tier {other.tier}, which is not below {hyper_node.tier}, so it does not count.",
            )


def _leads_to(start: str, goal: str, hyper_nodes: Mapping[str, HyperNode]) -> bool:
    """Whether a HyperNode is another one or has it as a member, directly or not."""
    visited: set[str] = set()
    pending = [start]
    while pending:
        name = pending.pop()
        if name == goal:
            return True
        if name not in visited and name in hyper_nodes:
            visited.add(name)
            pending += [member.name for member in hyper_nodes[name].members if not member.is_node]
    return False


def _overlaps(names: list[str], nodes_of: Mapping[str, set[str]]) -> Iterator[tuple[str, Problem]]:
    """Yield each HyperNode of a tier that shares nodes with others, with one of these."""
    owners: dict[str, list[str]] = {}
    for name in names:
        for node in nodes_of[name]:
            owners.setdefault(node, []).append(name)
    reported: set[str] = set()
    for node in sorted(owners):
        if len(owners[node]) == 1:
            continue
        for name in owners[node]:
            if name not in reported:
                reported.add(name)
                other = next(each for each in owners[node] if each != name)
                message = f"Node {node} is in HyperNode {other} of the same tier, too; take it out of one."
                yield name, Problem("Overlap", message)
