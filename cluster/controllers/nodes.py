"""Nodes whose lease is not renewed: they become unreachable, and later their pods are given up.

A node is alive while its lease is renewed. How long it has been silent is measured on this process's monotonic clock,
from when a renewal was *observed*: so neither a clock that is set nor a laptop that was suspended costs a node. Many
nodes may share a lease, which they name in an annotation.

The rule is Kubernetes' (node lifecycle controller: 40 s to Unknown, taint `node.kubernetes.io/unreachable`); pods are
given up after `NODE_LOST_S` more instead of 300 s, because batch jobs would rather start again than wait.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec
from django.conf import settings

from cluster import clock
from cluster.consumers.consumer import Consumer, Plan
from cluster.rules.node.leases import LEASE_ANNOTATION, LEASE_NAMESPACE, LEASE_S
from cluster.store import Change, Delete, Group, Patch, Write, store
from cluster.writes import Timer
from kube.kinds.core import Lease, Node, PodPhase, TaintEffect
from kube.meta import now_text
from kube.resources import LEASES, NODES, PODS

TAINT = "node.kubernetes.io/unreachable"
LOOK_S = 10
UNFINISHED = (PodPhase.PENDING, PodPhase.RUNNING, PodPhase.UNKNOWN, "")


class NodeStep(StrEnum):
    """What is to be done about a node."""

    NOTHING = "nothing"
    UNREACHABLE = "unreachable"
    RETURNED = "returned"
    LOST = "lost"


def step(ready: str, *, tainted: bool, silent_s: float, unreachable_s: float, lost_s: float) -> NodeStep:
    """Return what is to be done about a node, from its Ready condition and how long it has been silent."""
    if silent_s < LEASE_S:
        return NodeStep.RETURNED if tainted and ready == "True" else NodeStep.NOTHING
    if ready != "Unknown" or not tainted:
        return NodeStep.UNREACHABLE
    return NodeStep.LOST if unreachable_s >= lost_s else NodeStep.NOTHING


@dataclass(slots=True)
class NodeWatch:
    """Nodes and the renewals of their leases, with the times at which they were observed (monotonic seconds)."""

    nodes: dict[str, Node] = field(default_factory=dict)
    first_observed: dict[str, float] = field(default_factory=dict)  # by uid of a node: since when
    renew_times: dict[str, str | None] = field(default_factory=dict)
    renewed_at: dict[str, float] = field(default_factory=dict)  # by lease
    unreachable: dict[str, float] = field(default_factory=dict)  # by uid of a node: since when
    absent: dict[str, float] = field(default_factory=dict)  # nodes that have pods and do not exist

    def see_node(self, name: str, node: Node, at: float) -> None:
        """Note a node. One that has the name of another is a new one, whatever was observed of that."""
        before = self.nodes.get(name)
        if before is not None and before.metadata.uid != node.metadata.uid:
            self.forget_node(name)
        self.nodes[name] = node
        self.first_observed.setdefault(node.metadata.uid, at)

    def forget_node(self, name: str) -> None:
        """Note that a node is gone."""
        node = self.nodes.pop(name, None)
        if node is not None:
            self.first_observed.pop(node.metadata.uid, None)
            self.unreachable.pop(node.metadata.uid, None)

    def see_lease(self, name: str, lease: Lease, at: float) -> None:
        """Note a lease; only a new renewal counts."""
        if self.renew_times.get(name) != lease.spec.renew_time:
            self.renew_times[name] = lease.spec.renew_time
            self.renewed_at[name] = at

    def silent_s(self, node: Node, at: float) -> float:
        """Return for how long a node's lease has not been renewed, at most since the node was first observed."""
        lease = node.metadata.annotations.get(LEASE_ANNOTATION) or node.metadata.name
        since = self.first_observed[node.metadata.uid]
        return at - max(since, self.renewed_at.get(lease, since))


class NodeLifecycle(Consumer[NodeWatch]):
    """Watches leases, and marks nodes that become unreachable or return."""

    name = "nodes"

    def load(self, shard: int, revision: int) -> NodeWatch:
        """Return all nodes and leases; silence is counted from here on."""
        watch, at = NodeWatch(), clock.monotonic()
        for stored in store.find(NODES):
            watch.see_node(stored.name, stored.read(Node), at)
        for stored in store.find(LEASES, namespace=LEASE_NAMESPACE):
            watch.see_lease(stored.name, stored.read(Lease), at)
        return watch

    def apply(self, state: NodeWatch, change: Change) -> None:
        """Take over one change of a node or lease."""
        if change.resource == LEASES.id:
            if change.namespace == LEASE_NAMESPACE and change.verb != "DELETED":
                state.see_lease(change.name, change.read(Lease), clock.monotonic())
        elif change.verb == "DELETED":
            state.forget_node(change.name)
        else:
            state.see_node(change.name, change.read(Node), clock.monotonic())

    def plan(self, state: NodeWatch, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Return what is to be done about every node, and look again soon."""
        at = clock.monotonic()
        groups: list[Group] = []
        lost: dict[str, str] = {}
        for name, node in state.nodes.items():
            silent = int(state.silent_s(node, at))
            match self._step(node, state, at):
                case NodeStep.UNREACHABLE:
                    groups.append(Group(_unreachable(name, node, silent, now), key=name))
                case NodeStep.RETURNED:
                    groups.append(Group([_taints(name, node, without=True, now=now)], key=name))
                case NodeStep.LOST:
                    lost[name] = f"Node {name} has not renewed its lease for {silent} seconds."
        groups += _give_up(lost)
        if timers or not changes:
            # Pods may be bound to nodes which are not there.
            holding = set(store.count(PODS, by="node", phase=UNFINISHED)) - set(state.nodes) - {""}
            state.absent = {name: state.absent.get(name, at) for name in holding}
            messages = {name: f"Node {name} does not exist any more." for name in holding}
            recent = {name for name, since in state.absent.items() if at - since < settings.NODE_LOST_S}
            groups += _give_up(messages, only_deleted=recent)
        return Plan(groups, [Timer("look", "", now + LOOK_S * 1000)])

    def _step(self, node: Node, state: NodeWatch, at: float) -> NodeStep:
        ready = next((one.status for one in node.status.conditions if one.type == "Ready"), "")
        uid = node.metadata.uid
        if ready != "Unknown":
            state.unreachable.pop(uid, None)
            since = 0.0
        else:
            since = at - state.unreachable.setdefault(uid, at)
        return step(
            ready,
            tainted=any(taint.key == TAINT for taint in node.spec.taints),
            silent_s=state.silent_s(node, at),
            unreachable_s=since,
            lost_s=settings.NODE_LOST_S,
        )


def _unreachable(name: str, node: Node, silent_s: int, now: int) -> list[Write]:
    """Return the writes that mark a node as unreachable: conditions Unknown, and the taints."""
    text = now_text(now)
    conditions = [
        {
            "type": one.type,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": f"The node's agent has not renewed its lease for {silent_s} seconds.",
            "lastHeartbeatTime": one.last_heartbeat_time or text,
            "lastTransitionTime": one.last_transition_time if one.status == "Unknown" else text,
        }
        for one in node.status.conditions
    ]
    if not any(one["type"] == "Ready" for one in conditions):
        conditions.append(
            {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": text}
        )
    status = Patch(NODES, "", name, {"status": {"conditions": conditions}}, "status", uid=node.metadata.uid)
    return [_taints(name, node, without=False, now=now), status]


def _taints(name: str, node: Node, *, without: bool, now: int) -> Write:
    taints: list[dict[str, Any]] = [msgspec.to_builtins(one) for one in node.spec.taints if one.key != TAINT]
    if not without:
        added = now_text(now)[:19] + "Z"
        effects = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)
        taints += [{"key": TAINT, "effect": str(effect), "timeAdded": added} for effect in effects]
    meta = node.metadata
    return Patch(NODES, "", name, {"spec": {"taints": taints or None}}, uid=meta.uid, version=meta.resource_version)


def _give_up(messages: Mapping[str, str], *, only_deleted: Collection[str] = ()) -> list[Group]:
    """Return the writes that end the pods of these nodes: those being deleted go, the others have failed.

    On the nodes in only_deleted the others are left alone for now.
    """
    groups = []
    for stored in store.find(PODS, node=list(messages), phase=UNFINISHED) if messages else ():
        namespace, name, uid = stored.namespace, stored.name, stored.uid
        node = stored.object["spec"]["nodeName"]
        if "deletionTimestamp" in stored.object["metadata"]:
            groups.append(Group([Delete(PODS, namespace, name, uid=uid, grace=0)], key=node))
        elif node not in only_deleted:
            text = f"{messages[node]} The pod was given up."
            failed = {"status": {"phase": "Failed", "reason": "NodeLost", "message": text}}
            write = Patch(PODS, namespace, name, failed, "status", uid=uid, version=stored.version)
            groups.append(Group([write], key=node))
    return groups
