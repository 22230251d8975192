"""Which fields of a pod an update may change: not where it runs, and not what it asks for.

The scheduler counts on both. Kubernetes' own rule for updates of pods: what
asks for nodes may be narrowed while scheduling gates hold the pod back.
"""

from __future__ import annotations

from typing import Any

from cluster.rules import gates
from cluster.rules.checks import RulesView
from kube import lenient
from kube.errors import Cause, forbidden
from kube.gates import is_gated
from kube.meta import Object

CHANGEABLE = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates")
CONTAINERS = ("containers", "initContainers")


def check_pod(pod: Object, old: Object | None, _view: RulesView) -> list[Cause]:
    """Refuse an update that binds a pod, or changes more than images, deadline, grace, tolerations and gates."""
    if old is None:
        return list(gates.check_new(pod))
    spec, before = lenient.mapping(pod, "spec"), lenient.mapping(old, "spec")
    if spec.get("nodeName") and spec.get("nodeName") != before.get("nodeName"):
        detail = "the scheduler sets it when there is room; choose nodes with nodeSelector."
        return [forbidden("spec.nodeName", detail)]
    causes = list(gates.check_removed(pod, old))
    if is_gated(old):
        causes += gates.check_narrowed(pod, old)
    if _fixed(spec, narrowed=is_gated(old)) != _fixed(before, narrowed=is_gated(old)):
        detail = (
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
            "`spec.terminationGracePeriodSeconds`,`spec.tolerations`; delete the pod and create another."
        )
        causes.append(forbidden("spec", detail))
    return causes


def _fixed(spec: Object, *, narrowed: bool) -> dict[str, Any]:
    """Return the part of a pod's spec that stays; what asks for nodes is not in it when that may be narrowed."""
    rest = {key: value for key, value in spec.items() if key not in CHANGEABLE}
    if narrowed:
        rest.pop("nodeSelector", None)
        others = {key: value for key, value in (rest.pop("affinity", None) or {}).items() if value}
        others.pop("nodeAffinity", None)
        rest["affinity"] = others
    for field in CONTAINERS:
        if field in rest:
            rest[field] = [{k: v for k, v in item.items() if k != "image"} for item in rest[field] or ()]
    return rest
