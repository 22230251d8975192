"""What nobody changes by hand in a pod: where it runs and what it asks for.

The scheduler counts on both. Kubernetes' own rule for updates of pods, without
its exceptions that have no meaning here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kube.errors import Cause, forbidden

if TYPE_CHECKING:
    from cluster.rules.view import View
    from kube.meta import Object

CHANGEABLE = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations")
CONTAINERS = ("containers", "initContainers")


def check_pod(pod: Object, old: Object | None, _view: View) -> list[Cause]:
    """Refuse a node chosen by hand, and an update of more than images, deadline, grace and tolerations."""
    spec, before = pod.get("spec") or {}, (old or {}).get("spec") or {}
    if spec.get("nodeName") and spec.get("nodeName") != before.get("nodeName"):
        detail = "the scheduler sets it when there is room; choose nodes with nodeSelector."
        return [forbidden("spec.nodeName", detail)]
    if old is not None and _fixed(spec) != _fixed(before):
        detail = (
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
            "`spec.terminationGracePeriodSeconds`,`spec.tolerations`; delete the pod and create another."
        )
        return [forbidden("spec", detail)]
    return []


def _fixed(spec: Object) -> dict[str, Any]:
    """Return the part of a pod's spec that stays."""
    kept = {key: value for key, value in spec.items() if key not in CHANGEABLE}
    for field in CONTAINERS:
        if field in kept:
            kept[field] = [{k: v for k, v in item.items() if k != "image"} for item in kept[field] or ()]
    return kept
