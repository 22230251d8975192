"""The status of HyperNodes: how many nodes they have, and what is wrong with their members.

All of them are looked at when one of them, or the name or labels of a node, changes; what else happens to nodes costs a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cluster.consumers.consumer import Consumer, Plan
from cluster.controllers.status_counter import condition, status_update
from cluster.store import Change, Group, store
from cluster.writes import Timer
from kube import lenient
from kube.kinds.fields import View
from kube.meta import Object
from kube.resources import HYPER_NODES, NODES
from kube.volcano import topology
from kube.volcano.topology import Domain, HyperNode

CONDITION = "Ready"
MAX_REPORTED = 3  # problems of one HyperNode that its condition names


class _Meta(View):
    labels: dict[str, str] | None = None


class _Node(View):
    metadata: _Meta = _Meta()


_node = msgspec.json.Decoder(_Node).decode


@dataclass(slots=True)
class HyperNodesState:
    """All HyperNodes, as stored and as read, and the labels of all nodes, by name."""

    objects: dict[str, Object] = field(default_factory=dict)
    hyper_nodes: dict[str, HyperNode] = field(default_factory=dict)
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    is_stale: bool = True


class HyperNodeController(Consumer[HyperNodesState]):
    """Keeps the status of each HyperNode."""

    name = "hypernodes"

    def load(self, shard: int, revision: int) -> HyperNodesState:
        """Read all HyperNodes and nodes."""
        state = HyperNodesState()
        for stored in store.find(HYPER_NODES):
            _put(state, stored.name, stored.object)
        state.nodes = {stored.name: _labels(stored.body) for stored in store.find(NODES)}
        return state

    def apply(self, state: HyperNodesState, change: Change) -> None:
        """Take over a change; the state is stale if it changes which node is in which HyperNode."""
        is_gone = change.verb == "DELETED"
        if change.resource == HYPER_NODES.id:
            _put(state, change.name, None if is_gone else change.object)
            return
        labels = None if is_gone else _labels(change.body)
        if labels == state.nodes.get(change.name):
            return
        state.is_stale = True
        if labels is None:
            del state.nodes[change.name]
        else:
            state.nodes[change.name] = labels

    def plan(self, state: HyperNodesState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Write each status that is not what it should be."""
        for timer in timers:
            state.is_stale = state.is_stale or timer.key in state.objects
        if not state.is_stale:
            return Plan()
        state.is_stale = False
        groups = []
        for domain in topology.domains(state.hyper_nodes, state.nodes):
            stored = state.objects[domain.name]
            wanted = status(stored, domain, now)
            if wanted != stored.get("status"):
                groups.append(Group([status_update(HYPER_NODES, stored, wanted)], domain.name))
        return Plan(groups)


def status(hyper_node: Object, domain: Domain, now: int) -> dict[str, Any]:
    """Return the status of a HyperNode with the nodes and problems of its domain."""
    before = lenient.mapping(hyper_node, "status")
    generation = lenient.whole(hyper_node, "metadata", "generation") or 0
    reason = domain.problems[0].reason if domain.problems else "MembersFound"
    message = " ".join(problem.message for problem in domain.problems[:MAX_REPORTED])
    ready = condition(before, CONDITION, reason, message, now, holds=not domain.problems, generation=generation)
    others = [each for each in lenient.sequence(before, "conditions") if each.get("type") != CONDITION]
    return {"nodeCount": len(domain.nodes), "conditions": [*others, ready]}


def _put(state: HyperNodesState, name: str, obj: Object | None) -> None:
    """Take over a HyperNode; a change of its status alone leaves the state as it is."""
    if obj is None:
        state.objects.pop(name, None)
        state.is_stale = state.hyper_nodes.pop(name, None) is not None or state.is_stale
        return
    state.objects[name] = obj
    hyper_node = topology.read(obj)
    if state.hyper_nodes.get(name) != hyper_node:
        state.hyper_nodes[name] = hyper_node
        state.is_stale = True


def _labels(body: bytes) -> dict[str, str]:
    try:
        return _node(body).metadata.labels or {}
    except msgspec.ValidationError:
        return {}
