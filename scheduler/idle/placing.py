"""Which nodes a waiting pod may use, and how many pods like it they have room for: a naive count.

The rules are Kubernetes' (reference: volcano-scheduler §3.7, filters
NodeUnschedulable, NodeAffinity and TaintToleration), implemented a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube import selector
from kube.amounts import Amounts
from kube.kinds.core import Taint
from kube.kinds.pod import Toleration
from scheduler.idle.facts import Node
from scheduler.idle.waiting_pod import WaitingPod, WaitingSpec

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


_decode = msgspec.json.Decoder(WaitingPod).decode


def read(body: bytes) -> WaitingPod | None:
    """Read a waiting pod from its JSON; None for what cannot be read."""
    try:
        return _decode(body)
    except msgspec.ValidationError:
        return None


def room(
    request: Amounts,
    waiting: WaitingPod,
    nodes: Mapping[str, Node],
    used: Mapping[str, Mapping[str, int]],
    most: int | None = None,
) -> int:
    """Return how many pods with this request fit on the nodes that they may use; counting stops at `most`."""
    requested = {name: amount for name, amount in request.items() if amount > 0}
    total = 0
    for name, node in nodes.items():
        on_node = used.get(name, {})
        pods = min((node.offers.get(each, 0) - on_node.get(each, 0)) // amount for each, amount in requested.items())
        if pods > 0 and may_use(waiting.spec, name, node):
            total += pods
            if most is not None and total >= most:
                break
    return total


def may_use(spec: WaitingSpec, name: str, node: Node) -> bool:
    """Tell whether a node is open to a pod."""
    labels = node.labels
    if not node.is_ready or any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    taints = [taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    taints += [UNSCHEDULABLE] if node.unschedulable else []
    if not all(any(_tolerates(each, taint) for each in spec.tolerations) for taint in taints):
        return False
    required = ((spec.affinity or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_matches(term, name, labels) for term in required.get("nodeSelectorTerms") or ())


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    # Numeric comparisons are not implemented: such a node counts as closed, which reports nothing false.
    return toleration.operator in ("", "Equal") and bool(toleration.key) and toleration.value == taint.value


def _matches(term: dict[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    try:
        return selector.requirements(expressions).matches(labels) and all(
            (name in (each.get("values") or ())) == (each.get("operator") == "In") for each in fields
        )
    except selector.SelectorError:
        return False


def likeness(request: Amounts, waiting: WaitingPod) -> bytes:
    """Return a key that is equal for pods that no node distinguishes."""
    spec = waiting.spec
    return msgspec.json.encode([request, spec.node_selector, spec.affinity, spec.tolerations], order="sorted")
