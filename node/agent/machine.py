"""A machine as a node: its Node object, with its capacity and conditions, and its lease."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from cluster import clock
from cluster.rules.node import node_devices, node_engines, node_rights, node_walls
from cluster.rules.node.leases import (
    LEASE_ANNOTATION,
    LEASE_NAMESPACE,
    LEASE_S,
    STATE_DIRECTORY,
    other_state_directory,
    state_directory_of,
)
from cluster.store import Create, Group, Patch, Stored, Write
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.kinds.core import Node
from kube.meta import Object
from kube.resources import LEASES, NAMESPACES, NODES
from node.agent.readings import Readings
from node.attempt import SHUTDOWN, time_text
from node.containers import hosts, walls
from node.containers.control_groups import Groups
from node.containers.engines import EngineLookup
from node.containers.found_devices import FoundDevices, Inventory, describe
from node.pods.cluster import Cluster
from node.rules import programs
from node.shim.order import Wall

MAX_PODS = 250
LOOPBACK = "127.0.0.1"
BEAT_S = 10.0
RETRY_S = 0.5
RUNS = ("AgentReady", "The agent runs.")  # reason and message of the condition Ready
STOPPED = (SHUTDOWN, "The cluster on this machine was stopped, or is about to be.")
VOLUMES_ANNOTATION = "ui.volcano.sh/volumes"
LIMITS_ANNOTATION = "ui.volcano.sh/limits"
VOLUMES = {
    "none": "directories: containers find their volumes by the variables VOLUME_<NAME>",
    "user": "mounted: containers see their volumes at their mount paths",
    "root": "mounted: containers see their volumes at their mount paths",
}


def valid_name(hostname: str) -> str:
    """Return a host name as the name of a node: lower case, only letters, digits, dashes and dots."""
    text = re.sub(r"[^a-z0-9.-]+", "-", hostname.lower())[:253]
    labels = [label.strip("-")[:63].strip("-") for label in text.split(".")]
    return ".".join(label for label in labels if label) or "this-machine"


class Occupied(Exception):
    """Another agent, on another state directory, is the node of this name; the message says where."""


def lease(name: str, now_us: int, transitions: int = 0, location: str | None = None) -> Object:
    """Return a lease that was renewed at a time; `location` names the machine and state directory of its holder."""
    return {
        "metadata": {"namespace": LEASE_NAMESPACE, "name": name, **_location_annotation(location)},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_S,
            "renewTime": time_text(now_us),
            "leaseTransitions": transitions,
        },
    }


def _location_annotation(location: str | None) -> Object:
    return {} if location is None else {"annotations": {STATE_DIRECTORY: location}}


class Writer(Protocol):
    """What leases are written with: the store, or an agent's cluster."""

    def write(self, *writes: Write) -> list[Stored]:
        """Do all the writes or raise the first ApiError."""

    def commit(self, groups: Sequence[Group]) -> list[list[Stored] | ApiError]:
        """Do groups of writes."""


def renew(cluster: Writer, name: str, now_us: int, location: str | None = None, version: int | None = None) -> None:
    """Renew a lease, or create it where there is none; Conflict where it does not have the version, if one is given."""
    patch = {"metadata": _location_annotation(location), "spec": {"renewTime": time_text(now_us)}}
    try:
        cluster.write(Patch(LEASES, LEASE_NAMESPACE, name, patch, version=str(version or "")))
    except NotFound:
        cluster.commit([Group([Create(NAMESPACES, {"metadata": {"name": LEASE_NAMESPACE}})])])
        cluster.commit([Group([Create(LEASES, lease(name, now_us, location=location))])])


def condition(kind: str, value: bool, reason: str, message: str, now_us: int, previous: Node | None) -> dict[str, str]:
    """Return a node condition; the transition time stays as long as the value does."""
    status = "True" if value else "False"
    same_kind = [one for one in previous.status.conditions if one.type == kind] if previous else []
    unchanged = bool(same_kind) and same_kind[0].status == status and bool(same_kind[0].last_transition_time)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": time_text(now_us),
        "lastTransitionTime": same_kind[0].last_transition_time if unchanged else time_text(now_us),
    }


class Machine:
    """The Node object of a machine, and its heartbeat."""

    def __init__(
        self,
        readings: Readings,
        name: str,
        wall: Wall,
        reach: tuple[str, ...],
        cluster: Cluster,
        devices: FoundDevices | None = None,
        engine: EngineLookup | None = None,
        address: str = LOOPBACK,
        groups: Groups | None = None,
        location: str = "",
    ) -> None:
        self.location = location or None
        self.readings = readings
        self.cluster = cluster
        self.engine = engine or EngineLookup()
        self.groups = groups or Groups()
        self.devices = devices or FoundDevices(finders=(), folders=())
        self.wall = wall
        self.reach = reach
        self.name = valid_name(name)
        self.address = address
        # Bound pods have this in their JSON: a cheap look before a change is decoded.
        self.needle = f'"nodeName":"{self.name}"'.encode()
        self.capacity = {**readings.capacity(), "pods": MAX_PODS}
        # A tenth of memory and disk is left to the machine, because the cluster itself runs on it too.
        self.allocatable = {
            name: amount * 9 // 10 if name in ("memory", "ephemeral-storage") else amount
            for name, amount in self.capacity.items()
        }
        self.due = 0.0
        self.departs = False
        self._reported = ("", "", Inventory())
        self._annotations: dict[str, str] = {}  # annotations that may change

    def pod_address(self, uid: str, taken: Collection[str]) -> str:
        """Return the address of a pod: one of its own on the loopback, or the machine's where others must reach it by that."""
        return hosts.address(uid, taken) if self.address == LOOPBACK else self.address

    def announce(self) -> None:
        """Make the Node object, or bring it up to date; then it is ready for pods, unless it departs."""
        now_us, inventory = clock.microseconds(), self._inventory_annotations()
        metadata = {
            "name": self.name,
            "labels": {
                node_rights.HOSTNAME: node_rights.hostname(self.name),
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": self.readings.info()["architecture"],
            },
            "annotations": {
                VOLUMES_ANNOTATION: VOLUMES[self.wall.mounts],
                LIMITS_ANNOTATION: walls.limits(self.groups),
                node_walls.ANNOTATION: walls.describe(self.wall),
                node_engines.ANNOTATION: node_engines.written(
                    self.engine.engine.display_name if self.engine.engine else "", self.engine.why
                ),
                LEASE_ANNOTATION: self.name,
                **inventory,
            },
        }
        try:
            self.cluster.write(Create(NODES, {"metadata": metadata, "spec": {}, "status": self._status(now_us, None)}))
        except AlreadyExists:
            self.cluster.write(Patch(NODES, "", self.name, {"metadata": metadata}))
        self._annotations = inventory
        self._write_status(now_us)
        self.due = clock.monotonic() + BEAT_S

    def beat(self) -> bool:
        """Renew the lease and write what changed of conditions, programs and devices when that is due; return whether it was.

        Occupied where another agent has become this node, as one may while this one was stopped for longer than its lease lasts.
        """
        if clock.monotonic() < self.due:
            return False
        self.due = clock.monotonic() + RETRY_S
        now_us = clock.microseconds()
        self._renew(self.location)
        if self._reported != self._problems() or self._is_ready() == self.departs:
            self._write_status(now_us)
        # What was installed since the last beat counts from this one.
        inventory = self._inventory_annotations()
        if inventory != self._annotations:
            patch = {"metadata": {"annotations": inventory}}
            with contextlib.suppress(NotFound):  # deleted just now: the next beat makes it anew
                self.cluster.write(Patch(NODES, "", self.name, patch))
                self._annotations = inventory
        self.due = clock.monotonic() + BEAT_S
        return True

    def depart(self) -> None:
        """Write that this node stops in order, so that nothing is placed on it from now on; Occupied where it is another agent's."""
        self.departs = True
        self._renew(self.location)
        self._write_status(clock.microseconds())
        # Whoever comes next need not wait for the lease's end.
        self._renew(self.location and "")

    def take_lease(self) -> None:
        """Become this node; Occupied while another agent is it: of two on one cluster each would run every pod."""
        self._renew(self.location, takes_over=True)

    def _renew(self, location: str | None, *, takes_over: bool = False) -> None:
        """Renew the lease as its holder; one that takes over may also follow a holder whose lease has expired."""
        while True:
            version = None
            with contextlib.suppress(NotFound):
                lease = self.cluster.get(LEASES, LEASE_NAMESPACE, self.name)
                self._check_holder(lease.object, takes_over=takes_over)
                version = lease.revision
            try:
                renew(self.cluster, self.name, clock.microseconds(), location, version)
            except Conflict:
                continue  # it was written meanwhile: read it again
            return

    def _check_holder(self, lease: Object, *, takes_over: bool) -> None:
        own = self.location or ""
        if takes_over:
            other = other_state_directory(lease, own, clock.milliseconds())
        else:
            # Another agent took over the expired lease and runs the pods here, whatever has become of it since.
            other = "" if state_directory_of(lease) == own else state_directory_of(lease)
        if other:
            raise Occupied(f"the node {self.name} is the agent's in {other}")

    def _inventory_annotations(self) -> dict[str, str]:
        """Return the annotations that list the programs and devices of the machine."""
        listed = [node_devices.NodeDevice(*each) for each in describe(self.devices.inventory)]
        return {
            programs.ANNOTATION: programs.written(self.readings.programs()),
            **({node_devices.ANNOTATION: node_devices.written(listed)} if listed else {}),
        }

    def _write_status(self, now_us: int) -> None:
        problems = self._problems()
        try:
            previous = self.cluster.get(NODES, "", self.name).read(Node)
            self.cluster.write(Patch(NODES, "", self.name, {"status": self._status(now_us, previous)}, "status"))
        except NotFound:  # the node was deleted by somebody
            self.announce()
        self._reported = problems

    def _is_ready(self) -> bool:
        """Whether the store has this node as ready: after missed heartbeats it does not, and the status is due."""
        try:
            node = self.cluster.get(NODES, "", self.name).read(Node)
        except NotFound:
            return False
        return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)

    def _problems(self) -> tuple[str, str, Inventory]:
        """Return what the conditions and amounts follow from, without times and figures."""
        inventory = self.devices.inventory._replace(figures={})
        return self.readings.memory_problem(), self.readings.disk_problem(), inventory

    def _status(self, now_us: int, previous: Node | None) -> dict[str, Any]:
        memory, disk, inventory = self._problems()
        missing, engine = inventory.problem(), self.engine.engine
        runtime = {"containerRuntimeVersion": f"{engine.kind}://{engine.version}"} if engine else {}
        return {
            "capacity": _quantities(self.capacity) | _counts(inventory, healthy=False),
            "allocatable": _quantities(self.allocatable) | _counts(inventory, healthy=True),
            "conditions": [
                condition("MemoryPressure", bool(memory), "LowMemory" if memory else "EnoughMemory",
                          memory or "There is enough memory.", now_us, previous),
                condition("DiskPressure", bool(disk), "LowDisk" if disk else "EnoughDisk",
                          disk or "There is enough room on the disk.", now_us, previous),
                *([condition("DevicesMissing", bool(missing), "DeviceGone" if missing else "AllDevicesThere",
                             missing or "All devices are there.", now_us, previous)] if inventory.kinds else []),
                condition("Ready", not self.departs, *(STOPPED if self.departs else RUNS), now_us, previous),
            ],
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": self.readings.info() | runtime,
        }  # fmt: skip


def _counts(inventory: Inventory, *, healthy: bool) -> dict[str, str]:
    return {resource: str(count) for resource, count in inventory.counts(healthy=healthy).items()}


def _quantities(amounts: dict[str, int]) -> dict[str, str]:
    cpu, memory, disk = amounts["cpu"], amounts["memory"], amounts["ephemeral-storage"]
    return {
        "cpu": str(cpu // 1000) if cpu % 1000 == 0 else f"{cpu}m",
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk // 1024}Ki",
        "pods": str(amounts["pods"]),
    }
