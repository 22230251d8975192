"""The Node objects of a simulated fleet, and its heartbeat."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

from cluster import clock
from cluster.rules.node.leases import LEASE_ANNOTATION, LEASE_NAMESPACE
from cluster.rules.simulation import SIMULATED, TAINT, tainted, tolerate
from cluster.store import Create, Delete, Group, Patch, Stored, store
from kube.errors import ApiError
from kube.kinds.core import Node, PodPhase
from kube.meta import Object
from kube.resources import LEASES, NODES, PODS
from node.agent.machine import condition, lease, renew
from node.attempt import time_text

LEASE = "simulated-nodes"
FAIL_AT = "ui.volcano.sh/fail-at-seconds"
BEAT_S = 10.0
RETRY_S = 0.5
ATTEMPTS = 5  # at correcting nodes that others write to as well
log = logging.getLogger(__name__)


class Size(NamedTuple):
    """What each simulated node has."""

    cpu: str = "32"
    memory: str = "256Gi"
    pods: str = "256"


def name_of(index: int) -> str:
    """Return the name of the n-th simulated node, counted from 1."""
    return f"sim-{index:04d}"


def address_of(index: int) -> str:
    """Return the address that a simulated node shows."""
    return f"10.{64 + index // 65536 % 64}.{index // 256 % 256}.{index % 256}"


# The Python client refuses a node that leaves one of them out.
NODE_INFO = {
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
    "kernelVersion": "simulated",
    "osImage": "simulated",
    "containerRuntimeVersion": "simulated://1.0",
    "kubeletVersion": "volcano-ui",
    "kubeProxyVersion": "",
    "operatingSystem": "linux",
    "architecture": "amd64",
}


class Fleet:
    """All simulated nodes. They share one lease; a node that is to be lost gets one of its own."""

    def __init__(self, count: int, size: Size) -> None:
        self.count = count
        self.size = size
        self.due = 0.0
        self.addresses = {name_of(index): address_of(index) for index in range(1, count + 1)}
        self.lost: set[str] = set()
        self.loss_due: dict[str, float] = {}  # monotonic seconds

    def announce(self) -> None:
        """Make the fleet what it should be: create, correct and remove nodes, all at once."""
        renew(store, LEASE, clock.microseconds())
        for _ in range(ATTEMPTS):
            outcomes = store.commit(list(self._corrections(clock.microseconds())))
            if not any(isinstance(outcome, ApiError) for outcome in outcomes):
                break
        self.due = clock.monotonic() + BEAT_S
        store.commit(list(_tolerations()))

    def _corrections(self, now_us: int) -> Iterator[Group]:
        nodes = store.find(NODES)
        present = {
            one.name: one for one in nodes if (one.object["metadata"].get("labels") or {}).get(SIMULATED) == "true"
        }
        yield from (Group([Delete(NODES, "", name)]) for name in present if name not in self.addresses)
        for name, address in self.addresses.items():
            wanted = self._node(name, address, now_us)
            if name not in present:
                yield Group([Create(NODES, wanted)])
            elif self._differs(present[name], wanted):
                stored = present[name]
                patch = {"metadata": wanted["metadata"], "spec": {"taints": tainted(_taints(stored))}}
                # The list of taints is written whole, so only if nobody else has changed the node.
                yield Group([
                    Patch(NODES, "", name, patch, version=stored.version),
                    Patch(NODES, "", name, {"status": wanted["status"]}, "status"),
                ])  # fmt: skip

    def _differs(self, stored: Stored, wanted: Object) -> bool:
        """Whether a node is not ready, without its taint, of another size, described otherwise or bound to another lease."""
        node = stored.read(Node)
        ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
        annotations = node.metadata.annotations
        same = (
            node.status.capacity == wanted["status"]["capacity"]
            and node.status.allocatable == wanted["status"]["allocatable"]
            and stored.object["status"].get("nodeInfo") == NODE_INFO
            and annotations.get(LEASE_ANNOTATION) == LEASE
            and TAINT in _taints(stored)
        )
        return not (ready and same)

    def _node(self, name: str, address: str, now_us: int) -> Object:
        return {
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    SIMULATED: "true",
                },
                "annotations": {SIMULATED: "true", LEASE_ANNOTATION: LEASE},
            },
            "spec": {"taints": tainted(())},
            "status": self._status(name, address, now_us),
        }

    def _status(self, name: str, address: str, now_us: int) -> dict[str, Any]:
        amounts = {"cpu": self.size.cpu, "memory": self.size.memory, "pods": self.size.pods}
        return {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                condition("MemoryPressure", False, "EnoughMemory", "There is enough memory.", now_us, None),
                condition("DiskPressure", False, "EnoughDisk", "There is enough room on the disk.", now_us, None),
                condition("Ready", True, "AgentReady", "The simulator runs.", now_us, None),
            ],
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "nodeInfo": NODE_INFO,
        }

    def observe(self, name: str, node: Node) -> bool:
        """Apply a node's annotation to be lost, or its absence; return whether the node has just come back."""
        if name not in self.addresses:
            return False
        text = node.metadata.annotations.get(FAIL_AT, "")
        if not text:
            self.loss_due.pop(name, None)
            if name in self.lost:
                self.lost.discard(name)
                now_us = clock.microseconds()
                metadata = {"metadata": {"annotations": {LEASE_ANNOTATION: LEASE}}}
                status = {"status": self._status(name, self.addresses[name], now_us)}
                store.commit([
                    Group([Patch(NODES, "", name, metadata), Patch(NODES, "", name, status, "status")]),
                    Group([Delete(LEASES, LEASE_NAMESPACE, name)]),
                ])  # fmt: skip
                return True
        elif name not in self.lost and name not in self.loss_due:
            self.loss_due[name] = clock.monotonic() + _parsed_seconds(text)
        return False

    def lose(self) -> None:
        """Stop the heartbeat of the nodes whose time has come."""
        now = clock.monotonic()
        names = [name for name, due in self.loss_due.items() if due <= now]
        groups = []
        for name in names:
            patch = {"metadata": {"annotations": {LEASE_ANNOTATION: name}}}
            groups += [
                Group([Create(LEASES, lease(name, clock.microseconds()))]),
                Group([Patch(NODES, "", name, patch)]),
            ]
        store.commit(groups)
        for name in names:
            del self.loss_due[name]
            self.lost.add(name)
            log.info("simulated node %s fails as it was told to", name)

    def beat(self) -> bool:
        """Renew the lease when that is due, and correct living nodes that count as unready; return whether it was."""
        if clock.monotonic() < self.due:
            return False
        self.due = clock.monotonic() + RETRY_S
        now_us = clock.microseconds()
        renew(store, LEASE, now_us)
        groups = [
            Group([Patch(NODES, "", one.name, {"status": self._status(one.name, address, now_us)}, "status")])
            for one in store.find(NODES, phase=["Unknown", "NotReady"])
            if (address := self.addresses.get(one.name)) and one.name not in self.lost
        ]
        store.commit(groups)
        self.due = clock.monotonic() + BEAT_S
        return True

    def depart(self) -> None:
        """Write that the whole fleet stops in order."""
        now_us = clock.microseconds()
        ready = condition("Ready", False, "NodeShutdown", "The simulator was stopped.", now_us, None)
        ready["lastTransitionTime"] = time_text(now_us)
        store.commit([
            Group([Patch(NODES, "", name, {"status": {"conditions": [ready]}}, "status")])
            for name in self.addresses
            if name not in self.lost
        ])  # fmt: skip


def _tolerations() -> Iterator[Group]:
    """Yield the tolerations of waiting pods that selected simulated nodes when these had no taint yet."""
    for stored in store.find(PODS, phase=PodPhase.PENDING):
        old_spec = stored.object["spec"]
        spec = dict(old_spec)
        tolerate(spec)
        if spec != old_spec:
            wanted = {"spec": {"tolerations": spec["tolerations"]}}
            yield Group([Patch(PODS, stored.namespace, stored.name, wanted, version=stored.version)])


def _taints(stored: Stored) -> list[dict[str, Any]]:
    return (stored.object.get("spec") or {}).get("taints") or []


def _parsed_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < 1e9 else 0.0
