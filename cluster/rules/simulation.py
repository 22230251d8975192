"""Simulated nodes, and how a pod asks for one.

Nothing runs on a simulated node, so a pod must never come to one by accident: each carries a taint. A pod asks for them
by the node selector `ui.volcano.sh/simulated: "true"` and gets the toleration when it is made, as Kubernetes' plug-in
ExtendedResourceToleration adds those of devices. It may also write the toleration itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kube import lenient
from kube.kinds.core import TaintEffect
from kube.meta import Object

SIMULATED = "ui.volcano.sh/simulated"  # label and annotation of the nodes, and the key of their taint
TAINT = {"key": SIMULATED, "value": "true", "effect": str(TaintEffect.NO_SCHEDULE)}
TOLERATION = {"key": SIMULATED, "operator": "Exists", "effect": str(TaintEffect.NO_SCHEDULE)}
WISH = f'nodeSelector {SIMULATED}: "true"'
# What simulated nodes read of a pod, and nobody else.
SCRIPT = tuple(f"ui.volcano.sh/{name}" for name in ("duration-seconds", "exit-code", "wait-for-job", "hold"))


def asks(spec: Any) -> bool:
    """Whether a pod's spec asks for simulated nodes."""
    return lenient.text(spec, "nodeSelector", SIMULATED) == "true"


def may_be_simulated(spec: Any) -> bool:
    """Whether a pod may come to a simulated node: it asks for one, or bears the taint."""
    keys = [lenient.text(each, "key") for each in lenient.sequence(spec, "tolerations")]
    return asks(spec) or SIMULATED in keys or "" in keys


def tolerate(spec: dict[str, Any]) -> None:
    """Give the spec of a pod that asks for simulated nodes the toleration; the list that it has is not changed."""
    written = spec.get("tolerations") or []
    if asks(spec) and isinstance(written, list) and TOLERATION not in written:
        spec["tolerations"] = [*written, dict(TOLERATION)]


def tainted(taints: Iterable[Object]) -> list[Object]:
    """Return the taints of a simulated node: the one that it must have, and others that it has."""
    others = [each for each in taints if (each.get("key"), each.get("effect")) != (SIMULATED, TAINT["effect"])]
    return [dict(TAINT), *others]


def warnings(template: Any, path: str) -> Iterator[str]:
    """Name the annotations without effect of a pod that does not ask for the nodes that read them."""
    spec = lenient.mapping(template, "spec")
    if may_be_simulated(spec):
        return
    for name in lenient.mapping(template, "metadata", "annotations"):
        if name in SCRIPT:
            yield f"{path}metadata.annotations[{name}]: only simulated nodes read it; ask for them with {WISH}."
