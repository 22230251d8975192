"""How much of the disk a pod may use, and the message for one that uses more: pure.

The rules are a kubelet's (local ephemeral storage, Kubernetes' eviction
manager): an emptyDir has its `sizeLimit`, and one in memory that has none what
the pod's containers may have of memory; a container's log counts against its
own limit of `ephemeral-storage`; logs, scratch directories and emptyDirs
together count against the sum of the limits, where every container has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kube import amounts, quantity
from kube.kinds.core import Pod, Volume
from kube.quantity import QuantityError

RESOURCE = "ephemeral-storage"
UNCOUNTED = 1 << 62  # bytes: what is more than can be counted counts as this much


class Limits(NamedTuple):
    """Bytes that a pod may use: of volumes and logs by name, and of everything together."""

    volumes: Mapping[str, int]
    logs: Mapping[str, int]
    total: int | None = None

    def __bool__(self) -> bool:
        return bool(self.volumes or self.logs or self.total is not None)


class Used(NamedTuple):
    """Bytes that a pod uses, as `Limits`; scratch is what its containers have beside volumes and logs.

    `beyond` names the bound of what can be counted, where some of them are `UNCOUNTED`.
    """

    volumes: Mapping[str, int]
    logs: Mapping[str, int]
    scratch: int = 0
    memory: Mapping[str, int] = MappingProxyType({})  # of volumes that are no part of the disk
    beyond: str = ""

    @property
    def total(self) -> int:
        """All of it that is on the disk."""
        return sum(self.volumes.values()) + sum(self.logs.values()) + self.scratch


def limits(pod: Pod) -> Limits:
    """Return what a pod may use; an amount that cannot be read is no limit."""
    volumes = {
        volume.name: limit
        for volume in pod.spec.volumes
        if volume.empty_dir and (limit := _bytes(volume.empty_dir.get("sizeLimit")) or _memory(pod, volume))
    }
    each = {
        container.name: limit
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        if (limit := _bytes(container.resources.limits.get(RESOURCE)))
    }
    main = [each.get(container.name) for container in pod.spec.containers]
    limited = [limit for limit in main if limit]
    return Limits(volumes, each, sum(limited) if limited and len(limited) == len(main) else None)


def is_in_memory(volume: Volume) -> bool:
    """Whether a volume is an emptyDir that asks for memory."""
    return volume.empty_dir is not None and volume.empty_dir.get("medium") == "Memory"


def _memory(pod: Pod, volume: Volume) -> int:
    """Return how much a volume in memory may have without a limit of its own; 0: there is no limit."""
    each = [_bytes(container.resources.limits.get("memory")) for container in pod.spec.containers]
    return sum(each) if is_in_memory(volume) and all(each) else 0


def excess(limits: Limits, used: Used) -> str:
    """Return in a sentence what a pod has too much of, "" when nothing."""
    volumes = {**used.volumes, **used.memory}
    for name, limit in limits.volumes.items():
        if volumes.get(name, 0) > limit:
            return f'Usage of EmptyDir volume "{name}" exceeds the limit: {_of(volumes[name], limit, used)}.'
    for name, limit in limits.logs.items():
        if used.logs.get(name, 0) > limit:
            return f"Container {name} exceeded its local ephemeral storage limit: its log has {_of(used.logs[name], limit, used)}."
    if limits.total is not None and used.total > limits.total:
        return (
            "Pod ephemeral local storage usage exceeds the total limit of containers: "
            f"{_of(used.total, limits.total, used)} in its directories, emptyDirs and logs."
        )
    return ""


def _of(number: int, limit: int, used: Used) -> str:
    has = _quantity(number) if number < UNCOUNTED else f"{used.beyond}, which cannot be counted"
    return f"{has}, and {_quantity(limit)} are allowed"


def _quantity(number: int) -> str:
    return amounts.show(RESOURCE, number).rpartition(" ")[0]


def _bytes(text: object) -> int:
    try:
        return quantity.units(text) if isinstance(text, (str, int)) else 0
    except QuantityError:
        return 0
