"""Nodes that administrators make and change, and leases."""

from __future__ import annotations

from cluster.rules.checks import RulesView, one_of
from kube import lenient, names
from kube.errors import Cause, duplicate, forbidden, invalid
from kube.kinds.core import TaintEffect
from kube.meta import Object

FIXED = ("podCIDR", "podCIDRs", "providerID")
MACHINE = (
    *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion"),
    *("machineID", "operatingSystem", "osImage", "systemUUID"),
)


def default(node: Object, old: Object | None, view: RulesView) -> None:
    """Fill in a node: the label with its name and, of a new one, what it can allocate and the fields of nodeInfo."""
    metadata = node["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {"kubernetes.io/hostname": metadata["name"], **(metadata.get("labels") or {})}
    if old is None:
        node["spec"] = node.get("spec") or {}
        status = node["status"] = dict(node.get("status") or {})
        if status.get("capacity") and status.get("allocatable") is None:
            status["allocatable"] = dict(status["capacity"])
        status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
        status["nodeInfo"] = {**dict.fromkeys(MACHINE, ""), **(status.get("nodeInfo") or {})}


def validate(node: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a node; what was given to it stays."""
    spec = lenient.mapping(node, "spec")
    causes: list[Cause] = []
    seen = set()
    for number, taint in enumerate(spec.get("taints") or ()):
        path, key, value = f"spec.taints[{number}]", taint.get("key") or "", taint.get("value")
        if problem := names.qualified_name(key):
            causes.append(invalid(f"{path}.key", key, problem))
        if problem := names.label_value(value or ""):
            causes.append(invalid(f"{path}.value", value, problem))
        causes += one_of(taint.get("effect"), TaintEffect, f"{path}.effect")
        if (key, taint.get("effect")) in seen:
            cause = duplicate(path, taint)
            causes.append(cause._replace(message=f"{cause.message}: taints must be unique by key and effect pair"))
        seen.add((key, taint.get("effect")))
    for field in FIXED:
        before = lenient.mapping(old, "spec").get(field)
        if before and spec.get(field) != before:
            causes.append(forbidden(f"spec.{field}", "node updates may not change it once it is set"))
    return causes


def validate_lease(lease: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a lease."""
    spec = lenient.mapping(lease, "spec")
    transitions, before = spec.get("leaseTransitions"), lenient.mapping(old, "spec").get("leaseTransitions")
    if transitions is not None and before is not None and transitions < before:
        return [invalid("spec.leaseTransitions", transitions, "cannot be decremented")]
    return []
