"""Namespaces: what a new one holds (§4.6). How one goes is `cluster.controllers.namespaces`."""

from __future__ import annotations

from cluster.rules.checks import RulesView
from kube.meta import Object
from kube.resources import NAMESPACES

FINALIZER = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"


def default(namespace: Object, old: Object | None, view: RulesView) -> None:
    """Give a namespace its label, and a new one its finalizer and phase."""
    metadata = namespace["metadata"]
    if old is None and not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = view.free_name(NAMESPACES, "", metadata["generateName"])
    metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"]}
    spec = namespace["spec"] = dict(namespace.get("spec") or {})
    finalizers = ((old or namespace).get("spec") or {}).get("finalizers") or []
    if old is None:
        namespace["status"] = {"phase": "Active"}
        finalizers = finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]
    if finalizers:
        spec["finalizers"] = finalizers
    else:
        spec.pop("finalizers", None)
