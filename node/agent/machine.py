"""This machine as a node: what it has, how it is, and that it is alive."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster import clock
from cluster.rules.leases import LEASE_ANNOTATION, LEASE_NAMESPACE, LEASE_S
from cluster.store import Create, Group, Patch, store
from kube.errors import AlreadyExists, ApiError, NotFound
from kube.kinds.core import Node
from kube.resources import LEASES, NAMESPACES, NODES
from node.attempt import time_text

if TYPE_CHECKING:
    from kube.meta import Object

PODS_MOST = 250
BEAT_S = 10.0
RETRY_S = 0.5
VOLUMES_ANNOTATION = "ui.volcano.sh/volumes"
DISK_LEAST_SHARE = 0.02  # of the file system with the state directory
DISK_LEAST_BYTES = 256 << 20
MEMORY_LEAST_BYTES = 128 << 20
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


def lease(name: str, now_us: int, transitions: int = 0) -> Object:
    """Return a lease that says its holder was alive at a time."""
    return {
        "metadata": {"namespace": LEASE_NAMESPACE, "name": name},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_S,
            "renewTime": time_text(now_us),
            "leaseTransitions": transitions,
        },
    }


def renew(name: str, now_us: int) -> None:
    """Say that the holder of a lease is alive, making the lease when it is not there."""
    patch = {"spec": {"renewTime": time_text(now_us)}}
    try:
        store.write(Patch(LEASES, LEASE_NAMESPACE, name, patch))
    except NotFound:
        store.commit([Group([Create(NAMESPACES, {"metadata": {"name": LEASE_NAMESPACE}})])])
        store.commit([Group([Create(LEASES, lease(name, now_us))])])


def condition(
    kind: str, value: bool, reason: str, message: str, now_us: int, before: Node | None
) -> dict[str, str]:
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
    """The Node object of this machine, and its heartbeat."""

    def __init__(self, data: Path, name: str, mounts: str) -> None:
        self.data = data
        self.mounts = mounts
        self.name = valid_name(name or socket.gethostname())
        self.address = "127.0.0.1"
        # Bound pods have this in their JSON: a cheap look before a change is decoded.
        self.needle = f'"nodeName":"{self.name}"'.encode()
        self.capacity = _capacity(data)
        self.allocatable = _allocatable(self.capacity)
        self.due = 0.0
        self._said: tuple[tuple[str, str], ...] = ()

    def announce(self) -> None:
        """Make the Node object, or bring it up to date; then it is ready for pods."""
        renew(self.name, clock.microseconds())
        now_us = clock.microseconds()
        metadata = {
            "name": self.name,
            "labels": self._labels(),
            "annotations": {VOLUMES_ANNOTATION: VOLUMES[self.mounts], LEASE_ANNOTATION: self.name},
        }
        try:
            store.write(
                Create(NODES, {"metadata": metadata, "spec": {}, "status": self._status(now_us, None)})
            )
        except AlreadyExists:
            store.write(Patch(NODES, "", self.name, {"metadata": metadata}))
        self._write_status(now_us)
        self.due = clock.monotonic() + BEAT_S

    def beat(self) -> bool:
        """When it is time, renew the lease, and write the node's conditions if they changed; say whether it was."""
        if clock.monotonic() < self.due:
            return False
        self.due = clock.monotonic() + RETRY_S
        now_us = clock.microseconds()
        renew(self.name, now_us)
        if self._said != self._readings() or not self._is_ready():
            self._write_status(now_us)
        self.due = clock.monotonic() + BEAT_S
        return True

    def depart(self) -> None:
        """Say that this node stops in order, so that nothing is placed on it meanwhile."""
        now_us = clock.microseconds()
        before = store.get(NODES, "", self.name).read(Node)
        status = self._status(now_us, before)
        message = "The cluster on this machine was stopped."
        ready = condition("Ready", False, "NodeShutdown", message, now_us, before)
        status["conditions"] = [*(one for one in status["conditions"] if one["type"] != "Ready"), ready]
        store.write(Patch(NODES, "", self.name, {"status": status}, "status"))

    def _write_status(self, now_us: int) -> None:
        said = self._readings()
        try:
            before = store.get(NODES, "", self.name).read(Node)
            store.write(Patch(NODES, "", self.name, {"status": self._status(now_us, before)}, "status"))
        except ApiError:  # the node was deleted by somebody: it is made again with the next beat
            self.announce()
        self._said = said

    def _is_ready(self) -> bool:
        """Whether the store calls this node ready: after a long silence it does not, and is to be told."""
        try:
            found = store.get(NODES, "", self.name).read(Node)
        except NotFound:
            return False
        return any(one.type == "Ready" and one.status == "True" for one in found.status.conditions)

    def _readings(self) -> tuple[tuple[str, str], ...]:
        """Return what the conditions say, without their times."""
        return (("MemoryPressure", _memory_problem()), ("DiskPressure", disk_problem(self.data)))

    def _status(self, now_us: int, before: Node | None) -> dict[str, Any]:
        memory, disk = _memory_problem(), disk_problem(self.data)
        return {
            "capacity": _quantities(self.capacity),
            "allocatable": _quantities(self.allocatable),
            "conditions": [
                condition("MemoryPressure", bool(memory), "LowMemory" if memory else "EnoughMemory",
                          memory or "There is enough memory.", now_us, before),
                condition("DiskPressure", bool(disk), "LowDisk" if disk else "EnoughDisk",
                          disk or "There is enough room on the disk.", now_us, before),
                condition("Ready", True, "AgentReady", "The agent runs.", now_us, before),
            ],
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": _node_info(),
        }  # fmt: skip

    def _labels(self) -> dict[str, str]:
        return {
            "kubernetes.io/hostname": self.name[:63].strip(".-"),
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": ARCHITECTURES.get(platform.machine(), platform.machine()),
        }


ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}


def _capacity(data: Path) -> dict[str, int]:
    memory = _meminfo().get("MemTotal", 0)
    return {
        "cpu": len(os.sched_getaffinity(0)) * 1000,
        "memory": memory,
        "pods": PODS_MOST,
        "ephemeral-storage": shutil.disk_usage(_existing(data)).total,
    }


def _allocatable(capacity: dict[str, int]) -> dict[str, int]:
    """Leave a tenth of the memory to the machine, because the cluster itself runs on it too."""
    return {
        **capacity,
        "memory": capacity["memory"] * 9 // 10,
        "ephemeral-storage": capacity["ephemeral-storage"] * 9 // 10,
    }


def _quantities(found: dict[str, int]) -> dict[str, str]:
    cpu, memory, disk = found["cpu"], found["memory"], found["ephemeral-storage"]
    return {
        "cpu": str(cpu // 1000) if cpu % 1000 == 0 else f"{cpu}m",
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk // 1024}Ki",
        "pods": str(found["pods"]),
    }


def _meminfo() -> dict[str, int]:
    found = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        found[name] = int(rest.split()[0]) * 1024
    return found


def _memory_problem() -> str:
    free = _meminfo().get("MemAvailable", MEMORY_LEAST_BYTES)
    return (
        ""
        if free >= MEMORY_LEAST_BYTES
        else "This machine has less than 128 MiB of memory left; stop something."
    )


def _existing(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if one.exists())


def disk_problem(data: Path) -> str:
    """Return what is wrong with the disk under the state directory, in words; empty when nothing is."""
    usage = shutil.disk_usage(_existing(data))
    least = min(int(usage.total * DISK_LEAST_SHARE), DISK_LEAST_BYTES)
    if usage.free >= least and os.access(_existing(data), os.W_OK):
        return ""
    if usage.free >= least:
        return f"The state directory {data} cannot be written; correct its owner or permissions."
    return f"The disk with the state directory {data} is full; make room, and what waits goes on by itself."


def _node_info() -> dict[str, str]:
    release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    return {
        "machineID": _first_line("/etc/machine-id"),
        "systemUUID": _first_line("/etc/machine-id"),
        "bootID": _first_line("/proc/sys/kernel/random/boot_id"),
        "kernelVersion": platform.release(),
        "osImage": release.get("PRETTY_NAME", "Linux"),
        "containerRuntimeVersion": "process://1.0",
        "kubeletVersion": "volcano-ui",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
    }


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().splitlines()[0]
    except (OSError, IndexError):
        return ""
