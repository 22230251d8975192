"""What a node may do over the API: Kubernetes' node authorizer and its admission plugin NodeRestriction, as one table.

A node reads and changes what it is responsible for: its own Node and lease, the pods that are bound to it, and what
these mention. It cannot bind pods, nor change where they run, nor say of itself what others go by to trust it. What is
not listed is denied. Whether a condition holds, `cluster.access.nodes` looks up.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

from cluster.rules import mentions as naming
from cluster.rules.node.leases import LEASE_ANNOTATION, LEASE_NAMESPACE
from cluster.rules.simulation import SIMULATED
from kube import lenient
from kube.meta import Object
from kube.resources import CLAIMS, CONFIGMAPS, EVENTS, LEASES, NODES, PODS, SECRETS


class If(Enum):
    """Under which condition a node may do something."""

    OWN = auto()  # the object has the node's name; a lease also lies in the namespace of those
    BOUND = auto()  # it is a pod that is bound to the node
    SELECTED = auto()  # what is asked for is limited to pods that are bound to the node
    MENTIONED = auto()  # a pod that is bound to the node mentions it
    ABOUT = auto()  # it is an event about a pod that is bound to the node


_OWN = MappingProxyType(dict.fromkeys(("get", "create", "update", "patch"), If.OWN))
_WRITES_ABOUT = MappingProxyType(dict.fromkeys(("create", "update", "patch"), If.ABOUT))
RIGHTS: Mapping[str, Mapping[str, If]] = MappingProxyType(
    {
        NODES.id: _OWN,
        f"{NODES.id}/status": MappingProxyType(dict.fromkeys(("get", "update", "patch"), If.OWN)),
        f"{NODES.id}/link": MappingProxyType({"create": If.OWN}),
        LEASES.id: _OWN,
        PODS.id: MappingProxyType({"get": If.BOUND, "list": If.SELECTED, "watch": If.SELECTED, "delete": If.BOUND}),
        f"{PODS.id}/status": MappingProxyType(dict.fromkeys(("get", "update", "patch"), If.BOUND)),
        **{each.id: MappingProxyType({"get": If.MENTIONED}) for each in (CONFIGMAPS, SECRETS, CLAIMS)},
        EVENTS.id: _WRITES_ABOUT,
    }
)
HOSTNAME = "kubernetes.io/hostname"
# Labels that say what a node is to others are not its own to give (NodeRestriction).
RESTRICTED = "node-restriction.kubernetes.io"
ITS_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
ITS_OWN_LABELS = frozenset(
    {"kubernetes.io/os", "kubernetes.io/arch", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
)
SYSTEMS_DOMAINS = ("kubernetes.io", "k8s.io", "volcano.sh")


def condition(verb: str, target: str) -> If | None:
    """Return under which condition a node may do a verb to a resource (by its id, perhaps with a subresource)."""
    return RIGHTS.get(target, {}).get(verb)


def is_own(node: str, target: str, namespace: str, name: str) -> bool:
    """Whether an object of a kind that nodes keep is the node's."""
    expected = LEASE_NAMESPACE if target == LEASES.id else ""
    return name == node and namespace == expected


def selects_own(node: str, fields: str) -> bool:
    """Whether a field selector limits a list to the pods of a node. Only the one plain form does."""
    return fields in (f"spec.nodeName={node}", f"spec.nodeName=={node}")


def is_bound(node: str, pod: Object) -> bool:
    """Whether a pod is bound to a node."""
    return bool(node) and lenient.text(pod, "spec", "nodeName") == node


def mentions(pod: Object) -> frozenset[tuple[str, str]]:
    """Return what a pod mentions, as (kind's id, name): ConfigMaps, Secrets and claims in its own namespace."""
    return frozenset((each.resource.id, each.name) for each in naming.of(lenient.mapping(pod, "spec"), "spec"))


def about(event: Object) -> tuple[str, str, str]:
    """Return namespace, name and uid of the pod that an event is about; "" for all where it is about something else."""
    aim = lenient.mapping(event, "involvedObject") or lenient.mapping(event, "regarding")
    if aim.get("kind") != PODS.kind or aim.get("apiVersion", "v1") != PODS.api_version:
        return "", "", ""
    return lenient.text(aim, "namespace"), lenient.text(aim, "name"), lenient.text(aim, "uid")


def refusal(node: str, old: Object, new: Object) -> str:
    """Return why a node may not make its own Node so, "" where it may; old is {} for one that is made.

    It may not change its `spec`: taints and cordon are what others decide about it.
    """
    if (lenient.mapping(new, "spec") or {}) != (lenient.mapping(old, "spec") or {}):
        return "a node may not change its own spec, which has its taints"
    for part, is_free in (("labels", _is_free_label), ("annotations", _is_free_annotation)):
        before, after = (lenient.mapping(each, "metadata", part) for each in (old, new))
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key) and not is_free(node, key, after.get(key)):
                return f"a node may not change its own {part.removesuffix('s')} {key}"
    return ""


def hostname(node: str) -> str:
    """Return by which label of its host's name a node is found: its own name, as far as a label's value may be long."""
    return node[:63].strip(".-")


def _is_free_label(node: str, key: str, value: object) -> bool:
    if key == HOSTNAME:  # by another's it would be given pods that are meant for that one
        return value == hostname(node)
    if key in ITS_OWN_LABELS:
        return True
    domain, _, _ = key.rpartition("/")
    if _lies_in(domain, (RESTRICTED,)):
        return False
    return _lies_in(domain, ITS_OWN_DOMAINS) or not _lies_in(domain, SYSTEMS_DOMAINS)


def _is_free_annotation(node: str, key: str, value: object) -> bool:
    if key == LEASE_ANNOTATION:  # by another's lease it would seem alive when it is not
        return value == node
    return key != SIMULATED


def _lies_in(domain: str, domains: tuple[str, ...]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in domains)
