"""Which pod has which devices: stored beside the pod's files, so that an agent that was killed gives nothing out twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster.rules.node import node_devices
from kube.kinds.core import Pod
from node.containers.found_devices import FoundDevices
from node.paths import DEVICES, Layout
from node.rules import devices
from node.rules.devices import Assigned, Short
from node.shim.shim import read_json, write_json


class DeviceHolders:
    """The devices of all pods that run or are about to. A pod keeps its own until nothing of it is left."""

    def __init__(self, layout: Layout, found_devices: FoundDevices) -> None:
        self._layout = layout
        self.found_devices = found_devices
        self._assigned: dict[str, Assigned] = {}

    def take_over(self, uid: str) -> None:
        """Read what an earlier agent has assigned to a pod; to be called for every pod before any is assigned something."""
        stored = read_json(str(self._file(uid)))
        if stored:
            self._assigned[uid] = {name: tuple(map(str, ids)) for name, ids in stored.items()}

    def assign(self, pod: Pod) -> Assigned:
        """Return the devices that a pod has, given to it now unless it has them already.

        Short when too few are free or one that it has is gone; OSError when it cannot be written down.
        """
        inventory, uid = self.found_devices.inventory, pod.metadata.uid
        assigned = self._assigned.get(uid)
        if assigned is None:
            requested = devices.requested(pod, inventory.kinds)
            if not requested:
                return {}
            assigned = devices.assign(inventory.kinds, self._assigned.values(), requested, inventory.gone)
            write_json(str(self._file(uid)), assigned, sync=True)
            self._assigned[uid] = assigned
        # What this agent has never seen is gone, too: its driver may not have answered since it began.
        present = {(kind.resource, one.id) for kind in inventory.kinds for one in kind.devices} - inventory.gone
        if missing := [
            f"{each} ({name})" for name, ids in assigned.items() for each in ids if (name, each) not in present
        ]:
            raise Short(f"the device {missing[0]}, which the pod has, is gone")
        return assigned

    def describe(self, pod: Pod, status: dict[str, Any]) -> None:
        """Add to a pod's status which devices its containers have, as long as it has them."""
        assigned = self._assigned.get(pod.metadata.uid)
        if not assigned:
            return
        shares = devices.shares(pod, assigned)
        for kind in ("containerStatuses", "initContainerStatuses"):
            for each in status.get(kind, ()):
                if share := shares.get(each["name"]):
                    each[node_devices.STATUS_FIELD] = node_devices.status(share, self.found_devices.inventory.gone)

    def release(self, uid: str) -> None:
        """Take back what a pod had of which nothing is left."""
        if self._assigned.pop(uid, None) is not None:
            self._file(uid).unlink(missing_ok=True)

    def _file(self, uid: str) -> Path:
        return self._layout.pod(uid) / DEVICES
