"""Which nodes a waiting pod may use, and how many pods like it they have room for: a naive count.

The rules are Kubernetes' (reference: volcano-scheduler §3.7, filters
NodeUnschedulable, NodeAffinity and TaintToleration), written down once more.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kube import selector
from kube.kinds.core import Taint
from kube.kinds.fields import View
from kube.kinds.pod import Toleration
from tests.invariants.views import Condition

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NAME = "metadata.name"


class WaitingSpec(View):
    """What decides about the nodes that a pod may use."""

    node_selector: dict[str, str] = {}
    affinity: Any = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[Any] = []
    containers: list[dict[str, Any]] = []
    scheduling_gates: list[Any] = []


class WaitingStatus(View):
    """What a pod that waits was told."""

    conditions: list[Condition] = []


class WaitingPod(View):
    """A pod that waits for its node."""

    spec: WaitingSpec = WaitingSpec()
    status: WaitingStatus = WaitingStatus()

    @property
    def is_gated(self):
        """Whether a scheduling gate holds it back."""
        return bool(self.spec.scheduling_gates)

    @property
    def has_rules(self):
        """Whether it matters to it which other pods are on a node."""
        spec = self.spec
        affinity = spec.affinity or {}
        return bool(
            spec.topology_spread_constraints
            or affinity.get("podAffinity")
            or affinity.get("podAntiAffinity")
            or any(port.get("hostPort") for each in spec.containers for port in each.get("ports") or ())
        )

    @property
    def told(self):
        """What its condition PodScheduled says."""
        conditions = self.status.conditions
        return next((each.message for each in conditions if each.type == "PodScheduled"), "")


_decode = msgspec.json.Decoder(WaitingPod).decode


def read(pod):
    """Return what a pod of the picture waits for; None for what cannot be read."""
    try:
        return _decode(pod.waiting)
    except msgspec.ValidationError:
        return None


def room(request, waiting, nodes, used):
    """Return for how many pods that ask for the same there is room on nodes that they may use."""
    return sum(
        _times(request, node.offers, used.get(name, {}))
        for name, node in nodes.items()
        if may_use(waiting.spec, name, node)
    )


def _times(request, offers, used):
    asked = {name: amount for name, amount in request.items() if amount > 0}
    return max(min((offers.get(name, 0) - used.get(name, 0)) // amount for name, amount in asked.items()), 0)


def may_use(spec, name, node):
    """Say whether a node is open to a pod."""
    labels = node.metadata.labels
    if not node.is_ready or any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    taints = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
    taints += [UNSCHEDULABLE] if node.spec.unschedulable else []
    if not all(any(_tolerates(each, taint) for each in spec.tolerations) for taint in taints):
        return False
    return _is_near(spec.affinity or {}, name, labels)


def _tolerates(toleration, taint):
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    # A comparison of numbers is not done here: such a node counts as closed, which accuses nobody.
    return toleration.operator in ("", "Equal") and toleration.key and toleration.value == taint.value


def _is_near(affinity, name, labels):
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    terms = required.get("nodeSelectorTerms") or ()
    return any(_matches(term, name, labels) for term in terms)


def _matches(term, name, labels):
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    try:
        return selector.requirements(expressions).matches(labels) and all(
            (name in (each.get("values") or ())) == (each.get("operator") == "In") for each in fields
        )
    except selector.SelectorError:
        return False


def likeness(pod, waiting):
    """Return something that is the same for pods that are the same to every node."""
    spec = waiting.spec
    return msgspec.json.encode(
        [pod.ask.request, spec.node_selector, spec.affinity, spec.tolerations], order="sorted"
    )
