"""HyperNodes of `topology.volcano.sh/v1alpha1` (reference: volcano-queue-podgroup-cli §7.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.rules.checks import RulesView, check_selector
from kube import lenient, patterns
from kube.errors import Cause, invalid, required
from kube.meta import Object
from kube.volcano import topology

_FIELDS = ("exactMatch", "regexMatch", "labelMatch")


def validate(hyper_node: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a HyperNode."""
    members = lenient.sequence(hyper_node, "spec", "members")
    if not members:
        return [required("spec.members", "member must have at least one member")]
    name = lenient.text(hyper_node, "metadata", "name")
    return [cause for number, each in enumerate(members) for cause in _check(each, f"spec.members[{number}]", name)]


def warn(hyper_node: Object, old: Object | None, view: RulesView) -> Iterator[str]:
    """Yield what is odd about a HyperNode: members that count for nothing."""
    for number, member in enumerate(lenient.sequence(hyper_node, "spec", "members")):
        selector = lenient.mapping(member, "selector")
        if lenient.text(member, "type") == topology.HYPER_NODE and selector.get("exactMatch") is None:
            yield f"spec.members[{number}].selector: HyperNodes are members by exactMatch only, so this one selects nothing"


def _check(member: Any, path: str, own_name: str) -> Iterator[Cause]:
    """Yield what is wrong with one member; types of fields are the schema's."""
    selector = lenient.mapping(member, "selector")
    matchers = [field for field in _FIELDS if selector.get(field) is not None]
    if len(matchers) != 1:
        detail = "exactly one of exactMatch, regexMatch and labelMatch must be given"
        if matchers:
            yield invalid(f"{path}.selector", matchers, f"{detail}; remove the others")
        else:
            yield required(f"{path}.selector", detail)
    if "labelMatch" in matchers:
        yield from check_selector(selector["labelMatch"], f"{path}.selector.labelMatch")
    if problem := patterns.problem(pattern := lenient.text(selector, "regexMatch", "pattern")):
        detail = f"member regexMatch pattern is invalid: {problem}"
        yield invalid(f"{path}.selector.regexMatch.pattern", pattern, detail)
    named = lenient.text(selector, "exactMatch", "name")
    if lenient.text(member, "type") == topology.HYPER_NODE and named and named == own_name:
        detail = "a HyperNode cannot be a member of itself; name others"
        yield invalid(f"{path}.selector.exactMatch.name", named, detail)
