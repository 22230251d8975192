"""Which names a definition gets, and its status about that.

The first definition of a group with a name has it; another one with the same
name is not served until the name is free or it has changed its own.
Source: k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kube import resources
from kube.lenient import mapping, sequence, text, texts
from kube.meta import Object, timestamp

NAMES_ACCEPTED, ESTABLISHED, TERMINATING = "NamesAccepted", "Established", "Terminating"
_KIND_NAMES = ("kind", "listKind")
_REASONS = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


class GroupNames(NamedTuple):
    """The names of a group that others have."""

    resources: frozenset[str]
    kinds: frozenset[str]


def names_in_use(group: str, others: Iterable[Object]) -> GroupNames:
    """Return the names of a group that built-in kinds and other definitions have."""
    plural, kinds = set[str](), set[str]()
    for built_in in resources.BUILT_IN:
        if built_in.group == group:
            plural |= {built_in.plural, built_in.singular, *built_in.short_names}
            kinds |= {built_in.kind, built_in.list_kind}
    for other in others:
        if text(other, "spec", "group") == group:
            called = mapping(other, "status", "acceptedNames")
            plural |= {text(called, "plural"), text(called, "singular"), *texts(called, "shortNames")}
            kinds |= {text(called, "kind"), text(called, "listKind")}
    return GroupNames(frozenset(plural - {""}), frozenset(kinds - {""}))


def status(crd: Object, others: GroupNames, now: int) -> Object:
    """Return what the status of a definition must be; equal to the one it has when nothing changed."""
    old = mapping(crd, "status")
    accepted, conflict = _accepted(mapping(crd, "spec", "names"), mapping(old, "acceptedNames"), others)
    conditions = [dict(item) for item in sequence(old, "conditions") if isinstance(item, dict)]
    if conflict is None:
        _set(conditions, NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found", now)
        _set(conditions, ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted", now)
    else:
        _set(conditions, NAMES_ACCEPTED, "False", *conflict, now)
        if not any(condition.get("type") == ESTABLISHED for condition in conditions):
            _set(conditions, ESTABLISHED, "False", "NotAccepted", "not all names are accepted", now)
    return {**old, "acceptedNames": accepted, "conditions": conditions, "storedVersions": _stored(crd, old)}


def with_condition(status: Object, kind: str, value: str, reason: str, message: str, now: int) -> Object:
    """Return a status with a condition set."""
    conditions = [dict(item) for item in sequence(status, "conditions") if isinstance(item, dict)]
    _set(conditions, kind, value, reason, message, now)
    return {**status, "conditions": conditions}


def _accepted(wanted: Object, had: Object, others: GroupNames) -> tuple[Object, tuple[str, str] | None]:
    accepted: dict[str, Any] = {key: value for key, value in had.items() if value}
    conflict: tuple[str, str] | None = None
    for field in ("plural", "singular", "shortNames", "kind", "listKind"):  # the last conflict is reported
        used = others.kinds if field in _KIND_NAMES else others.resources
        own = _names(had, field)
        taken = [f'"{name}" is already in use' for name in _names(wanted, field) if name in used and name not in own]
        if taken:
            conflict = _REASONS[field], taken[0] if len(taken) == 1 else f"[{', '.join(taken)}]"
        else:
            _set_or_drop(accepted, field, wanted.get(field))
    _set_or_drop(accepted, "categories", texts(wanted, "categories"))
    return accepted, conflict


def _names(called: Object, field: str) -> list[str]:
    name = text(called, field)
    return [name] if name else texts(called, field)


def _set_or_drop(fields: dict[str, Any], key: str, value: Any) -> None:
    if value:
        fields[key] = value
    else:
        fields.pop(key, None)


def _stored(crd: Object, old: Object) -> list[str]:
    versions = texts(old, "storedVersions")
    for version in sequence(crd, "spec", "versions"):
        name = text(version, "name")
        if mapping(version).get("storage") is True and name not in versions:
            versions.append(name)
    return versions


def _set(conditions: list[Object], kind: str, value: str, reason: str, message: str, now: int) -> None:
    existing = next((condition for condition in conditions if condition.get("type") == kind), None)
    if existing is None:
        existing = {"type": kind}
        conditions.append(existing)
    if existing.get("status") != value or not existing.get("lastTransitionTime"):
        existing["lastTransitionTime"] = timestamp(now)
    existing.update(status=value, reason=reason, message=message)
