"""What may be written about scheduling gates, and what only while a pod is held back by them.

Kubernetes' rules (Pod Scheduling Readiness): gates are given when a pod is created and only taken away later. While
there are any, what the pod asks of nodes may be narrowed: labels added to the node selector, expressions added to the
terms of the required node affinity. What it merely prefers may change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube import gates, lenient, names
from kube.errors import Cause, duplicate, forbidden, invalid, required
from kube.meta import Object

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
BOUND = "cannot be set until all schedulingGates have been cleared"
ONLY_LABELS = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
ONLY_TERMS = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
ONLY_EXPRESSIONS = "only additions are allowed (no mutations or deletions)"


def check(spec: Any, path: str) -> Iterator[Cause]:
    """Refuse gates that have no name that a label could have, or the name of another."""
    seen: set[str] = set()
    for number, gate in enumerate(lenient.sequence(spec, "schedulingGates")):
        name, where = lenient.text(gate, "name"), f"{path}.schedulingGates[{number}]"
        if not name:
            yield required(f"{where}.name", "a gate needs a name, such as example.com/quota.")
        elif problem := names.qualified_name(name):
            yield invalid(f"{where}.name", name, problem)
        elif name in seen:
            yield duplicate(where, name)
        seen.add(name)


def check_new(pod: Object) -> Iterator[Cause]:
    """Refuse a new pod that is held back from the scheduler and has a node already."""
    if gates.is_gated(pod) and lenient.text(pod, "spec", "nodeName"):
        yield forbidden("spec.nodeName", BOUND)


def check_removed(pod: Object, old: Object) -> Iterator[Cause]:
    """Refuse gates that a pod did not have before."""
    before = {lenient.text(gate, "name") for gate in lenient.sequence(old, "spec", "schedulingGates")}
    for number, gate in enumerate(lenient.sequence(pod, "spec", "schedulingGates")):
        name = lenient.text(gate, "name")
        if name not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden(f"spec.schedulingGates[{number}].name", detail)


def check_narrowed(pod: Object, old: Object) -> Iterator[Cause]:
    """Refuse that a pod that was held back asks less of its node than before."""
    labels = lenient.mapping(pod, "spec", "nodeSelector")
    if any(labels.get(key) != value for key, value in lenient.mapping(old, "spec", "nodeSelector").items()):
        yield invalid("spec.nodeSelector", labels, ONLY_LABELS)
    terms, before = _terms(pod), _terms(old)
    if before and len(terms) != len(before):
        yield invalid(TERMS, terms, ONLY_TERMS)
        return
    for number, (term, had) in enumerate(zip(terms, before, strict=False)):
        if not _narrows(term, had):
            yield invalid(f"{TERMS}[{number}]", term, ONLY_EXPRESSIONS)


def _terms(pod: Object) -> list[Any]:
    return lenient.sequence(pod, "spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")


def _narrows(term: Any, before: Any) -> bool:
    """Whether a term asks for all that it asked for before; one that asked for nothing chose no node, and stays so."""
    fields = ("matchExpressions", "matchFields")
    had = {field: lenient.sequence(before, field) for field in fields}
    has = {field: lenient.sequence(term, field) for field in fields}
    if not any(had.values()):
        return not any(has.values())
    return all(has[field][: len(had[field])] == had[field] for field in fields)
