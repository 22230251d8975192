"""Which nodes a pod may use: node selector, required node affinity, taints.

Semantics are kube-scheduler's (reference/volcano-scheduler §3.7, filters
NodeUnschedulable, NodeAffinity, TaintToleration).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import msgspec

from kube import selector as selecting
from kube.kinds.core import Taint, TaintEffect, Toleration
from kube.kinds.fields import View
from scheduler.engine.cause import Exclusion, ExclusionKind, Lacking
from scheduler.records.reading import NodeView

# Limits of the search for label values that resemble a requested one: it is slow for many or long values.
MAX_COMPARED, MAX_WANTED, LONGEST_VALUE = 50, 4, 63
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=TaintEffect.NO_SCHEDULE)
REPELLING = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)

NOT_READY = Exclusion(ExclusionKind.NOT_READY, "node(s) were not ready")
UNSCHEDULABLE = Exclusion(ExclusionKind.UNSCHEDULABLE, "node(s) were unschedulable")
SELECTOR = Exclusion(ExclusionKind.SELECTOR, "node(s) didn't match Pod's node affinity/selector")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The fields of a node that rules look at."""

    name: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    unschedulable: bool
    ready: bool


def facts_of(name: str, view: NodeView) -> NodeFacts:
    """Return the facts of a node."""
    return NodeFacts(
        name,
        view.metadata.labels or {},
        view.spec.taints or [],
        bool(view.spec.unschedulable),
        any(c.type == "Ready" and c.status == "True" for c in view.status.conditions or ()),
    )


class FieldRequirement(View):
    """One requirement about a field of a node, which can only be its name."""

    operator: str = ""
    values: list[str] = []


class Term(View):
    """Requirements that must all hold."""

    match_expressions: list[dict[str, Any]] | None = None
    match_fields: list[FieldRequirement] | None = None


class NodeSelector(View):
    """Terms of which one must hold."""

    node_selector_terms: list[Term] | None = None


class PreferredTerm(View):
    """A term, and how much it counts where it holds."""

    weight: int = 0
    preference: Term = Term()


class NodeAffinity(View):
    """Which nodes a pod needs, and which it prefers; preferences that cannot be read are left out."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: Any = None


class Affinity(View):
    """The part of a pod's affinity that is about nodes."""

    node_affinity: NodeAffinity | None = None


_Selectors = tuple[selecting.LabelSelector, selecting.LabelSelector]
"""What a term requires of a node's labels, and of its name."""

NAME = "metadata.name"
NOTHING = selecting.LabelSelector(nothing=True)
_NO_NODE = NodeAffinity(required_during_scheduling_ignored_during_execution=NodeSelector())


class Placing(View):
    """Everything in a pod spec that closes nodes to it."""

    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None


class NodeRule:
    """Where pods may run, as written in their specs. What cannot be read matches no node."""

    def __init__(self, selector: Any, affinity: Any, tolerations: Any) -> None:
        written = {"nodeSelector": selector, "affinity": affinity, "tolerations": tolerations}
        try:
            placing = msgspec.convert(written, Placing)
        except msgspec.ValidationError:
            placing = Placing(affinity=Affinity(node_affinity=_NO_NODE))
        self._selector = placing.node_selector or {}
        affinity = (placing.affinity and placing.affinity.node_affinity) or NodeAffinity()
        required = affinity.required_during_scheduling_ignored_during_execution
        # Any of the required terms must match; None when there are none.
        self._terms = None if required is None else [_selectors(each) for each in required.node_selector_terms or ()]
        self._preferred: list[tuple[int, _Selectors]] = []
        with suppress(msgspec.ValidationError):
            preferred = affinity.preferred_during_scheduling_ignored_during_execution or []
            for each in msgspec.convert(preferred, list[PreferredTerm]):
                if each.weight > 0:
                    self._preferred.append((each.weight, _selectors(each.preference)))
        self._tolerations = placing.tolerations or []

    def exclusion(self, node: NodeFacts) -> Exclusion | None:
        """Return what closes a node to these pods, the firmest reason first; None where it is open."""
        if not self._selects(node):
            return SELECTOR
        if not node.ready:
            return NOT_READY
        if node.unschedulable and not self._tolerates(UNSCHEDULABLE_TAINT):
            return UNSCHEDULABLE
        taint = self._repelling(node)
        if taint is None:
            return None
        text = f"{taint.key}={taint.value}" if taint.value else taint.key
        return Exclusion(ExclusionKind.TAINT, f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}", text)

    def tolerates(self, node: NodeFacts) -> bool:
        """Whether no taint of a node keeps these pods off it."""
        return self._repelling(node) is None

    def avoided(self, node: NodeFacts) -> int:
        """Return how many PreferNoSchedule taints of a node these pods do not tolerate."""
        return sum(each.effect == TaintEffect.PREFER_NO_SCHEDULE and not self._tolerates(each) for each in node.taints)

    @property
    def prefers(self) -> bool:
        """Whether these pods prefer some nodes to others."""
        return bool(self._preferred)

    def matched(self, node: NodeFacts) -> int:
        """Return the sum of the weights of the preferences that a node meets."""
        return sum(
            weight
            for weight, (labels, fields) in self._preferred
            if labels.matches(node.labels) and fields.matches({NAME: node.name})
        )

    def lacking(self, nodes: Collection[NodeFacts]) -> Lacking | None:
        """Return the label that these pods need and none of the nodes has; None unless exactly one is missing everywhere."""
        needed = [selecting.Requirement(key, "In", frozenset((value,))) for key, value in self._selector.items()]
        if self._terms is not None and len(self._terms) == 1:
            needed.extend(self._terms[0][0].requirements)
        unmet = [each for each in needed if not any(each.matches(node.labels) for node in nodes)]
        if len(unmet) != 1 or unmet[0].operator not in ("In", "Exists"):
            return None
        key, values = unmet[0].key, sorted(unmet[0].values)
        existing = sorted({node.labels[key] for node in nodes if key in node.labels})
        is_short = len(existing) <= MAX_COMPARED and len(values) <= MAX_WANTED
        wanted = [value for value in values if is_short and len(value) <= LONGEST_VALUE]
        similar = (close for value in wanted for close in get_close_matches(value, existing))
        return Lacking(key, tuple(values), tuple(dict.fromkeys(similar)))

    def _repelling(self, node: NodeFacts) -> Taint | None:
        return next((each for each in node.taints if each.effect in REPELLING and not self._tolerates(each)), None)

    def _selects(self, node: NodeFacts) -> bool:
        if any(node.labels.get(key) != value for key, value in self._selector.items()):
            return False
        return self._terms is None or any(
            labels.matches(node.labels) and fields.matches({NAME: node.name}) for labels, fields in self._terms
        )

    def _tolerates(self, taint: Taint) -> bool:
        return any(_tolerates(toleration, taint) for toleration in self._tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("Lt", "Gt"):  # the taint's value is compared with the toleration's
        compared = {"key": taint.key, "operator": toleration.operator, "values": [toleration.value]}
        return bool(toleration.key) and _labels([compared]).matches({taint.key: taint.value})
    return bool(toleration.key) and toleration.operator in ("", "Equal") and toleration.value == taint.value


def _selectors(term: Term) -> _Selectors:
    """Read a term; an empty one, or one that cannot be read, matches nothing."""
    expressions, fields = term.match_expressions or [], term.match_fields or []
    if not expressions and not fields:
        return NOTHING, NOTHING
    named = [
        selecting.Requirement(NAME, "In" if each.operator == "In" else "NotIn", frozenset(each.values))
        for each in fields
        if each.operator in ("In", "NotIn")
    ]
    if len(named) < len(fields):
        return NOTHING, NOTHING
    return _labels(expressions), selecting.LabelSelector(tuple(named))


def _labels(expressions: list[dict[str, Any]]) -> selecting.LabelSelector:
    try:
        return selecting.requirements(expressions)
    except selecting.SelectorError:
        return NOTHING
