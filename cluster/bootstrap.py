"""What every cluster has from its first moment: namespaces, queues and priority classes, and the first one's limits."""

from __future__ import annotations

from typing import Any

from cluster.store import Create, Group, store
from kube.errors import AlreadyExists, ApiError
from kube.kinds.scheduling import DequeueStrategy
from kube.meta import Object
from kube.resources import LIMIT_RANGES, NAMESPACES, PRIORITY_CLASSES, QUEUES, Resource

NAMESPACE_NAMES = ("default", "kube-system", "kube-public", "kube-node-lease")
CLASSES = (
    ("system-node-critical", 2_000_001_000, "For pods that a node cannot do without."),
    ("system-cluster-critical", 2_000_000_000, "For pods that the cluster cannot do without."),
    ("master-pri", 1000, "The class that the examples of Volcano's Job API give to their driver."),
)


def bootstrap(first_limits: Object | None = None) -> list[str]:
    """Make what is missing, and leave alone what is there; return what was made, such as `queues/default`.

    The limits of a namespace are made together with it and never again: who
    deletes or changes them has done so for good.
    """
    namespaces: list[Object] = [
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        for name in NAMESPACE_NAMES
    ]
    classes = [
        {
            "metadata": {"name": name},
            "value": value,
            "globalDefault": False,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        for name, value, description in CLASSES
    ]
    wanted = [[(NAMESPACES, each)] for each in namespaces]
    wanted += [[each] for each in queues()] + [[(PRIORITY_CLASSES, each)] for each in classes]
    if first_limits is not None:
        namespace = first_limits["metadata"]["namespace"]
        group = next(each for each in wanted if each[0][1]["metadata"]["name"] == namespace)
        group.append((LIMIT_RANGES, first_limits))
    outcomes = store.commit([Group([Create(kind, obj) for kind, obj in each]) for each in wanted])
    created = []
    for each, outcome in zip(wanted, outcomes, strict=True):
        if not isinstance(outcome, ApiError):
            created += [f"{kind.plural}/{obj['metadata']['name']}" for kind, obj in each]
        elif not isinstance(outcome, AlreadyExists):
            raise outcome
    return created


def queues() -> list[tuple[Resource, Object]]:
    """The built-in queues (reference: volcano-queue-podgroup-cli §1.5)."""
    root = _queue("root", {"weight": 1, "reclaimable": False, "state": "Open"})
    default = _queue("default", {"weight": 1, "reclaimable": True, "parent": "root", "state": "Open"})
    return [root, default]


def _queue(name: str, spec: dict[str, Any]) -> tuple[Resource, Object]:
    spec = {"dequeueStrategy": DequeueStrategy.TRAVERSE.value, **spec}
    return QUEUES, {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}
