"""A machine as a node: its Node object and lease, by which it says what it has, how it is, and that it is alive."""

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
    PLACE_ANNOTATION,
    other_place,
    place_of,
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
from node.containers.found_devices import FoundDevices, Seen, describe
from node.pods.cluster import Cluster
from node.rules import programs
from node.shim.order import Wall

PODS_MOST = 250
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


def lease(name: str, now_us: int, transitions: int = 0, place: str | None = None) -> Object:
    """Return a lease that says its holder was alive at a time, and perhaps where its state directory is."""
    return {
        "metadata": {"namespace": LEASE_NAMESPACE, "name": name, **_placed(place)},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_S,
            "renewTime": time_text(now_us),
            "leaseTransitions": transitions,
        },
    }


def _placed(place: str | None) -> Object:
    return {} if place is None else {"annotations": {PLACE_ANNOTATION: place}}


class Writer(Protocol):
    """What leases are written with: the store, or an agent's cluster."""

    def write(self, *writes: Write) -> list[Stored]:
        """Do all the writes or raise the first ApiError."""

    def commit(self, groups: Sequence[Group]) -> list[list[Stored] | ApiError]:
        """Do groups of writes."""


def renew(cluster: Writer, name: str, now_us: int, place: str | None = None, version: int | None = None) -> None:
    """Say that the holder of a lease is alive, making the lease when it is not there; Conflict unless it has a version that is given."""
    patch = {"metadata": _placed(place), "spec": {"renewTime": time_text(now_us)}}
    try:
        cluster.write(Patch(LEASES, LEASE_NAMESPACE, name, patch, version=str(version or "")))
    except NotFound:
        cluster.commit([Group([Create(NAMESPACES, {"metadata": {"name": LEASE_NAMESPACE}})])])
        cluster.commit([Group([Create(LEASES, lease(name, now_us, place=place))])])


def condition(kind: str, value: bool, reason: str, message: str, now_us: int, before: Node | None) -> dict[str, str]:
    """Return a node condition; the transition time is kept while the value stays."""
    status = "True" if value else "False"
    old = [one for one in before.status.conditions if one.type == kind] if before else []
    same = bool(old) and old[0].status == status and bool(old[0].last_transition_time)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": time_text(now_us),
        "lastTransitionTime": old[0].last_transition_time if same else time_text(now_us),
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
        place: str = "",
    ) -> None:
        self.place = place or None
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
        self.capacity = {**readings.capacity(), "pods": PODS_MOST}
        # A tenth of memory and disk is left to the machine, because the cluster itself runs on it too.
        self.allocatable = {
            name: amount * 9 // 10 if name in ("memory", "ephemeral-storage") else amount
            for name, amount in self.capacity.items()
        }
        self.due = 0.0
        self.departs = False
        self._said = ("", "", Seen())
        self._listed: dict[str, str] = {}  # annotations that may change

    def pod_address(self, uid: str, taken: Collection[str]) -> str:
        """Return the address of a pod: one of its own on the loopback, or the machine's where others must reach it by that."""
        return hosts.address(uid, taken) if self.address == LOOPBACK else self.address

    def announce(self) -> None:
        """Make the Node object, or bring it up to date; then it is ready for pods, unless it departs."""
        now_us, listed = clock.microseconds(), self._lists()
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
                    self.engine.engine.shown if self.engine.engine else "", self.engine.why
                ),
                LEASE_ANNOTATION: self.name,
                **listed,
            },
        }
        try:
            self.cluster.write(Create(NODES, {"metadata": metadata, "spec": {}, "status": self._status(now_us, None)}))
        except AlreadyExists:
            self.cluster.write(Patch(NODES, "", self.name, {"metadata": metadata}))
        self._listed = listed
        self._write_status(now_us)
        self.due = clock.monotonic() + BEAT_S

    def beat(self) -> bool:
        """When it is time, renew the lease, and write what changed of the node's conditions, programs and devices; say whether it was.

        Occupied where another agent has become this node, as one may while this one stood still for longer than its lease lasts.
        """
        if clock.monotonic() < self.due:
            return False
        self.due = clock.monotonic() + RETRY_S
        now_us = clock.microseconds()
        self._renew(self.place)
        if self._said != self._problems() or self._is_ready() == self.departs:
            self._write_status(now_us)
        # What was installed since the last beat counts from this one.
        listed = self._lists()
        if listed != self._listed:
            patch = {"metadata": {"annotations": listed}}
            with contextlib.suppress(NotFound):  # deleted just now: the next beat makes it anew
                self.cluster.write(Patch(NODES, "", self.name, patch))
                self._listed = listed
        self.due = clock.monotonic() + BEAT_S
        return True

    def depart(self) -> None:
        """Say that this node stops in order, so that nothing is placed on it from now on; Occupied where it is another agent's."""
        self.departs = True
        self._renew(self.place)
        self._write_status(clock.microseconds())
        # Whoever comes next need not wait for the lease's end.
        self._renew(self.place and "")

    def take_lease(self) -> None:
        """Become this node; Occupied while another agent is it: of two on one cluster each would run every pod."""
        self._renew(self.place, takes_over=True)

    def _renew(self, place: str | None, *, takes_over: bool = False) -> None:
        """Renew the lease as the one who has it; one that takes over may also come after another who is silent for too long."""
        while True:
            version = None
            with contextlib.suppress(NotFound):
                found = self.cluster.get(LEASES, LEASE_NAMESPACE, self.name)
                self._check_place(found.object, takes_over=takes_over)
                version = found.revision
            try:
                renew(self.cluster, self.name, clock.microseconds(), place, version)
            except Conflict:
                continue  # somebody has written it meanwhile: it is looked at again
            return

    def _check_place(self, lease: Object, *, takes_over: bool) -> None:
        own = self.place or ""
        if takes_over:
            other = other_place(lease, own, clock.milliseconds())
        else:
            # Whoever took it over has found this agent silent, and runs its pods, whatever became of him since.
            other = "" if place_of(lease) == own else place_of(lease)
        if other:
            raise Occupied(f"the node {self.name} is the agent's in {other}")

    def _lists(self) -> dict[str, str]:
        """Return the annotations that list the programs and devices of the machine."""
        found = [node_devices.NodeDevice(*each) for each in describe(self.devices.seen)]
        return {
            programs.ANNOTATION: programs.written(self.readings.programs()),
            **({node_devices.ANNOTATION: node_devices.written(found)} if found else {}),
        }

    def _write_status(self, now_us: int) -> None:
        said = self._problems()
        try:
            before = self.cluster.get(NODES, "", self.name).read(Node)
            self.cluster.write(Patch(NODES, "", self.name, {"status": self._status(now_us, before)}, "status"))
        except NotFound:  # the node was deleted by somebody
            self.announce()
        self._said = said

    def _is_ready(self) -> bool:
        """Whether the store calls this node ready: after a long silence it does not, and is to be told."""
        try:
            found = self.cluster.get(NODES, "", self.name).read(Node)
        except NotFound:
            return False
        return any(one.type == "Ready" and one.status == "True" for one in found.status.conditions)

    def _problems(self) -> tuple[str, str, Seen]:
        """Return what the conditions and amounts follow from, without times and figures."""
        seen = self.devices.seen._replace(figures={})
        return self.readings.memory_problem(), self.readings.disk_problem(), seen

    def _status(self, now_us: int, before: Node | None) -> dict[str, Any]:
        memory, disk, seen = self._problems()
        lost, engine = seen.problem(), self.engine.engine
        runtime = {"containerRuntimeVersion": f"{engine.kind}://{engine.version}"} if engine else {}
        return {
            "capacity": _quantities(self.capacity) | _counts(seen, healthy=False),
            "allocatable": _quantities(self.allocatable) | _counts(seen, healthy=True),
            "conditions": [
                condition("MemoryPressure", bool(memory), "LowMemory" if memory else "EnoughMemory",
                          memory or "There is enough memory.", now_us, before),
                condition("DiskPressure", bool(disk), "LowDisk" if disk else "EnoughDisk",
                          disk or "There is enough room on the disk.", now_us, before),
                *([condition("DevicesMissing", bool(lost), "DeviceGone" if lost else "AllDevicesThere",
                             lost or "All devices are there.", now_us, before)] if seen.kinds else []),
                condition("Ready", not self.departs, *(STOPPED if self.departs else RUNS), now_us, before),
            ],
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": self.readings.info() | runtime,
        }  # fmt: skip


def _counts(seen: Seen, *, healthy: bool) -> dict[str, str]:
    return {resource: str(count) for resource, count in seen.counts(healthy=healthy).items()}


def _quantities(found: dict[str, int]) -> dict[str, str]:
    cpu, memory, disk = found["cpu"], found["memory"], found["ephemeral-storage"]
    return {
        "cpu": str(cpu // 1000) if cpu % 1000 == 0 else f"{cpu}m",
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk // 1024}Ki",
        "pods": str(found["pods"]),
    }
