"""Who manages which fields: the entries of `metadata.managedFields`.

An entry belongs to a manager and an operation: Apply for configurations,
Update for all other writes, the latter told apart by apiVersion too. Each
subresource has entries of its own (reference: kubernetes-api §3.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kube import conversion, resources
from kube.apply import fieldset
from kube.apply.fieldset import Fields, FieldsError, Path
from kube.errors import Cause, Conflict
from kube.meta import Object, parse_time, timestamp
from kube.resources import Resource

APPLY, UPDATE = "Apply", "Update"
MAX_UPDATES = 10  # entries of updates; older ones are thrown together
ANCIENT = "ancient-changes"
BEFORE_APPLY = "before-first-apply"
LONGEST_MANAGER = 128
_IDENTITY = ("operation", "manager", "apiVersion", "subresource")


class Key(NamedTuple):
    """Whose entry it is; version is "" for Apply, so that a manager has one such entry."""

    manager: str
    operation: str
    version: str
    subresource: str

    def __str__(self) -> str:
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class ManagerEntry:
    """What one manager manages, in which version of the kind, and since when.

    The fields are named as in the version of the write that looks at them.
    """

    fields: Fields
    version: str
    time: str


Entries = dict[Key, ManagerEntry]


def key(manager: str, operation: str, resource: Resource, subresource: str) -> Key:
    """Return whose entry a write by a manager belongs to."""
    version = resource.api_version if operation == UPDATE else ""
    return Key(manager or "unknown", operation, version, subresource)


def is_reset(managed: Any) -> bool:
    """Whether a client drops all managers: by an empty list, or one that holds an empty entry."""
    return type(managed) is list and (not managed or managed == [{}])


def stored_entries(obj: Object, resource: Resource) -> Entries:
    """Return the entries of an object from the store; none where they cannot be read."""
    try:
        return _entries(_listed(obj), resource, _as_it_is)
    except FieldsError:
        return {}


def requested_entries(obj: Object, old: Object | None, resource: Resource) -> Entries:
    """Return the entries of an object that a client wants stored: its own, otherwise those of the old one."""
    listed_new = _listed(obj)
    listed_old = _listed(old) if old is not None else None
    if not listed_new or listed_new == listed_old:
        return stored_entries(old, resource) if old is not None else {}
    try:
        entries = _entries(listed_new, resource, fieldset.parse)
    except FieldsError:
        entries = {}
    return entries or (stored_entries(old, resource) if old is not None else {})


def _listed(obj: Object) -> Any:
    return (obj.get("metadata") or {}).get("managedFields")


def _as_it_is(fields: Any) -> Fields:
    if type(fields) is not dict:
        raise FieldsError("FieldsV1 is made of objects.")
    return fields


def _entries(listed: Any, resource: Resource, parse: Any) -> Entries:
    if type(listed) is not list:
        return {}
    entries: Entries = {}
    for item in listed:
        whose, entry = _entry(item, parse)
        form = _form(entry.version, resource)
        if form is resource:
            entries[whose] = entry
        elif form is not None:
            entries[whose] = replace(entry, fields=conversion.fields(entry.fields, form, resource))
    return entries


def _entry(item: Any, parse: Any) -> tuple[Key, ManagerEntry]:
    if type(item) is not dict:
        raise FieldsError("An entry of managedFields is an object.")
    operation, version, kind = (_text(item, name) for name in ("operation", "apiVersion", "fieldsType"))
    manager, subresource = _text(item, "manager"), _text(item, "subresource")
    if operation not in (APPLY, UPDATE) or not version or kind != "FieldsV1":
        raise FieldsError("An entry of managedFields has an operation, an apiVersion and fieldsType FieldsV1.")
    if len(manager) > LONGEST_MANAGER:
        raise FieldsError(f"The name of a manager has at most {LONGEST_MANAGER} characters.")
    whose = Key(manager, operation, version if operation == UPDATE else "", subresource)
    return whose, ManagerEntry(parse(item.get("fieldsV1") or {}), version, _time(item.get("time")))


def _text(item: Object, name: str) -> str:
    value = item.get(name) or ""
    if type(value) is not str:
        raise FieldsError(f"{name} of an entry of managedFields is a text.")
    return value


def _time(value: Any) -> str:
    if not value:
        return ""
    try:
        return timestamp(parse_time(value))
    except (TypeError, ValueError):
        raise FieldsError("The time of an entry of managedFields is an RFC 3339 time.") from None


def _form(version: str, resource: Resource) -> Resource | None:
    """Return the kind in a version; None for one that is not served, whose entries are dropped."""
    if version == resource.api_version:
        return resource
    other = resources.by_kind(version, resource.kind)
    return other if other is not None and other.id == resource.id else None


def listed(entries: Entries, resource: Resource) -> list[Object]:
    """Return the entries as `managedFields` lists them: applied ones first, then by time; each in its own version."""
    ordered = sorted(entries.items(), key=_order)
    return [_written(whose, entry, resource) for whose, entry in ordered if entry.fields]


def _order(item: tuple[Key, ManagerEntry]) -> tuple[str, ...]:
    whose, entry = item
    return (whose.operation, entry.time, whose.manager, entry.version, whose.subresource)


def _written(whose: Key, entry: ManagerEntry, resource: Resource) -> Object:
    fields = conversion.fields(entry.fields, resource, _form(entry.version, resource) or resource)
    item: Object = {"manager": whose.manager, "operation": whose.operation, "apiVersion": entry.version}
    if entry.time:
        item["time"] = entry.time
    item |= {"fieldsType": "FieldsV1", "fieldsV1": fields}
    if whose.subresource:
        item["subresource"] = whose.subresource
    return item


def without(entries: Entries, *gone: Fields) -> Entries:
    """Return the entries without these fields; who has none left goes."""
    result = {}
    for whose, entry in entries.items():
        left = entry.fields
        for fields in gone:
            left = fieldset.difference(left, fields)
        if left:
            result[whose] = entry if left is entry.fields else replace(entry, fields=left)
    return result


def capped(entries: Entries) -> Entries:
    """Return the entries with the oldest of too many updates thrown together, those of one version into one."""
    updates = sorted((item for item in entries.items() if item[0].operation == UPDATE), key=_order)
    surplus = len(updates) - MAX_UPDATES
    if surplus <= 0:
        return entries
    result, first = dict(entries), dict[str, Key]()
    for whose, _ in updates:
        bucket = Key(ANCIENT, UPDATE, whose.version, "")
        if whose.version not in first or whose == bucket:
            first.setdefault(whose.version, whose)
            continue
        if bucket not in result:
            result[bucket] = result.pop(first[whose.version])
        older, newer = result[bucket], result.pop(whose)
        fields = fieldset.union(older.fields, newer.fields)
        result[bucket] = ManagerEntry(fields, newer.version, max(older.time, newer.time))
        surplus -= 1
        if not surplus:
            break
    return result


class ConflictsError(Exception):
    """Fields that an applied configuration changes and others manage."""

    def __init__(self, found: Sequence[tuple[Key, Path]]) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found = found

    def error(self) -> Conflict:
        """Return the answer of the API: every field with who manages it, in Kubernetes' words."""
        causes = [
            Cause("FieldManagerConflict", f"conflict with {whose}", fieldset.text(path)) for whose, path in self.found
        ]
        if len(causes) == 1:
            only = causes[0]
            return Conflict(f"Apply failed with 1 conflict: {only.message}: {only.field}", causes=causes)
        lines = []
        for whose in dict.fromkeys(whose for whose, _ in self.found):
            lines.append(f"conflicts with {whose}:")
            lines += [f"- {fieldset.text(path)}" for other, path in self.found if other == whose]
        return Conflict(f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines), causes=causes)


def conflicts(entries: Entries, changed: Fields) -> list[tuple[Key, Path]]:
    """Return who manages which of the changed fields, in a fixed order."""
    return [
        (whose, path)
        for whose in sorted(entries)
        for path in fieldset.paths(fieldset.intersection(entries[whose].fields, changed))
    ]


def same_but_times(a: Any, b: Any) -> bool:
    """Whether two lists of entries are the same but for their times."""
    return _timeless(a) == _timeless(b)


def _timeless(entries: Any) -> list[Any]:
    if type(entries) is not list:
        return []
    items = [{name: value for name, value in item.items() if name != "time"} for item in entries]
    return sorted(items, key=lambda item: [str(item.get(name)) for name in _IDENTITY])
