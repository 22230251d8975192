"""Which devices a node has and which of them a pod has, as both say it: pure.

A node lists them in an annotation, because Kubernetes' Node has only their number. A pod has them where Kubernetes says
so, in `containerStatuses[].allocatedResourcesStatus` (KEP-4680).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kube import lenient
from kube.meta import Object

ANNOTATION = "ui.volcano.sh/devices"
STATUS_FIELD = "allocatedResourcesStatus"
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"  # Kubernetes' words


class NodeDevice(NamedTuple):
    """One device of a node; the resource is what pods ask for."""

    resource: str
    id: str
    name: str = ""
    gone: bool = False


def written(devices: Iterable[NodeDevice]) -> str:
    """Return the annotation's value, "" for a node without devices."""
    listed = [list(each) for each in devices]
    return json.dumps(listed, separators=(",", ":")) if listed else ""


def read(annotations: Mapping[str, str]) -> list[NodeDevice]:
    """Return what a node with these annotations says it has; what cannot be read is nothing."""
    try:
        listed = json.loads(annotations.get(ANNOTATION) or "[]")
        return [NodeDevice(str(resource), str(id_), str(name), gone is True) for resource, id_, name, gone in listed]
    except (TypeError, ValueError, RecursionError):
        return []


def status(share: Mapping[str, Iterable[str]], gone: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return what a container's status says of its devices, by resource."""
    unwell = set(gone)
    return [
        {
            "name": resource,
            "resources": [
                {"resourceID": each, "health": UNHEALTHY if (resource, each) in unwell else HEALTHY} for each in ids
            ],
        }
        for resource, ids in sorted(share.items())
    ]


def of_pod(pod: Object) -> Iterator[tuple[str, str]]:
    """Yield the resource and id of each device that a pod has, by its status; containers may share one."""
    seen = set()
    for kind in ("containerStatuses", "initContainerStatuses"):
        for container in lenient.sequence(pod, "status", kind):
            for each in lenient.sequence(container, STATUS_FIELD):
                for one in lenient.sequence(each, "resources"):
                    device = (lenient.text(each, "name"), lenient.text(one, "resourceID"))
                    if device not in seen:
                        seen.add(device)
                        yield device
