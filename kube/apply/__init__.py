"""Server-side apply: who manages which field, and what becomes of an object when a manager applies its configuration.

`apply` lays a manager's whole configuration over an object; `track` records who changed
what in any other write. Both return a new object with its `managedFields`
and change none of their arguments, of which the result shares parts. The
semantics are Kubernetes' own (reference: kubernetes-api §3.5; "Server-Side
Apply" in its documentation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kube.apply import domain, fieldset, kubectl, managed, merge, shape
from kube.apply.managed import APPLY, BEFORE_APPLY, UPDATE, ConflictsError, Entries, Key, ManagerEntry
from kube.apply.shape import Shape
from kube.errors import BadRequest, Cause, Invalid
from kube.meta import Object, timestamp
from kube.resources import Resource

Complete = Callable[[Object], Object]

__all__ = ["apply", "same_but_times", "track"]


def apply(
    live: Object | None,
    config: Object,
    resource: Resource,
    *,
    manager: str,
    force: bool = False,
    subresource: str = "",
    complete: Complete | None = None,
    now: int,
) -> Object:
    """Return the object after a manager has applied its configuration; live None: there is none yet.

    complete fills in what the server would: what comes out of it as it was
    has not changed, and nobody manages what it drops.

    What the manager applied before and leaves out now goes, unless others
    manage it too. To change what others manage is a Conflict that names
    each such field, or with `force` takes it from them. A uid or
    resourceVersion in the configuration is a precondition that is left to
    the store. BadRequest for a configuration that cannot be read.
    """
    _check(config, resource, manager)
    try:
        write = _Write(resource, subresource, live, config, complete)
        return _apply(write, manager, force, now)
    except RecursionError:
        raise BadRequest("The configuration or the object is nested too deeply.") from None
    except merge.ConfigError as error:
        raise BadRequest(f"failed to create typed patch object ({_about(config)}): {error}") from None
    except ConflictsError as error:
        raise error.error() from None


def _check(config: Object, resource: Resource, manager: str) -> None:
    if not manager:
        cause = Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
        raise Invalid.of("PatchOptions.meta.k8s.io", "", [cause])
    metadata = config.get("metadata")
    if metadata is not None and type(metadata) is not dict:
        raise BadRequest("metadata must be an object")
    if metadata and metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    if config.get("apiVersion") != resource.api_version:
        raise BadRequest(
            "Incorrect version specified in apply patch. Specified patch version: "
            f"{config.get('apiVersion') or ''}, expected: {resource.api_version}"
        )


def _about(config: Object) -> str:
    metadata = config.get("metadata") or {}
    name = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
    return f"{name}; {config.get('apiVersion')}, Kind={config.get('kind')}"


class _Write:
    """One apply: what it is about, and what is there before."""

    def __init__(
        self, resource: Resource, subresource: str, live: Object | None, config: Object, complete: Complete | None
    ) -> None:
        self.resource = resource
        self.subresource = subresource
        self.live = live
        self.config = config
        self.complete = complete if live is not None else None
        self.form = shape.of(resource)
        self.base = live if live is not None else {}
        self.before = self.part(self.base)

    def part(self, obj: Object) -> Object:
        return domain.part(obj, self.resource, self.subresource)

    def whole(self, part: Object) -> Object:
        """Return the object with another part."""
        return domain.put(_with_identity(self.base, self.config), part, self.resource, self.subresource)

    def completed(self, part: Object) -> Object:
        """Return a part with what the server fills in."""
        return part if self.complete is None else self.part(self.complete(self.whole(part)))


def _apply(write: _Write, manager: str, force: bool, now: int) -> Object:
    live, resource = write.live, write.resource
    applied = write.part(write.config)
    if not applied.get("metadata"):
        applied.pop("metadata", None)  # an empty one claims nothing
    entries = _entries_before(write, now) if live is not None else {}
    whose = managed.key(manager, APPLY, resource, write.subresource)
    try:
        part, after = _applied(write, applied, entries, whose, force)
    except ConflictsError as error:
        if manager != kubectl.MANAGER or live is None:
            raise
        mine = kubectl.still_applied(live, write.part, write.completed, write.form)
        others = [(other, path) for other, path in error.found if not fieldset.holds(mine, path)]
        if others:
            raise ConflictsError(others) from None
        part, after = _applied(write, applied, entries, whose, True)
    _set_time(after, entries, whose, resource, part != write.before, now)
    result = write.whole(part)
    if manager == kubectl.MANAGER and not write.subresource:
        result = kubectl.with_annotation(result, write.config)
    return domain.with_managed(result, managed.listed(after, resource))


def _with_identity(base: Object, config: Object) -> Object:
    """Return the object with the configuration's preconditions, and its name where it is new."""
    metadata = config.get("metadata") or {}
    fields = domain.PRECONDITIONS if base else (*domain.PRECONDITIONS, "name", "namespace")
    identity = {f: metadata[f] for f in fields if metadata.get(f)}
    return {**base, "metadata": {**(base.get("metadata") or {}), **identity}}


def _entries_before(write: _Write, now: int) -> Entries:
    """Return who manages what before an apply; fields without a recorded manager get one of their own."""
    resource, form = write.resource, write.form
    entries = _current(managed.stored_entries(write.base, resource), form)
    if entries:
        return entries
    fields, _ = merge.changes(domain.empty(write.before), write.before, form)
    whose = managed.key(BEFORE_APPLY, UPDATE, resource, write.subresource)
    return {whose: ManagerEntry(fields, resource.api_version, timestamp(now))} if fields else {}


def _current(entries: Entries, form: Shape) -> Entries:
    """Return the entries in the terms of the shape that the kind has now."""
    return {whose: replace(entry, fields=merge.collapsed(entry.fields, form)) for whose, entry in entries.items()}


def _applied(write: _Write, applied: Object, entries: Entries, whose: Key, force: bool) -> tuple[Object, Entries]:
    """Return the part after the apply and who manages what then; ConflictsError unless forced."""
    form = write.form
    claimed = merge.fields(applied, form)
    owned = fieldset.union(claimed, {"f:metadata": fieldset.LEAF})
    others = {key: entry for key, entry in entries.items() if key != whose}
    for entry in others.values():
        owned = fieldset.union(owned, entry.fields)
    part = merge.merged(write.before, applied, form)
    if whose in entries:
        pruned = merge.pruned(part, form, entries[whose].fields, owned)
        part = {} if pruned is shape.MISSING else pruned
    if write.complete is not None:
        part = write.completed(part)
        claimed = fieldset.intersection(claimed, merge.changes({}, part, form)[0])
    changed, removed = merge.changes(write.before, part, form)
    conflicts = managed.conflicts(others, changed)
    if conflicts and not force:
        raise ConflictsError(conflicts)
    after = managed.without(others, changed, removed)
    if claimed:
        after[whose] = ManagerEntry(claimed, "", "")
    return part, after


def _set_time(after: Entries, entries: Entries, whose: Key, resource: Resource, changed: bool, now: int) -> None:
    """Date the entry of the manager: anew when anything changed for it, otherwise as it was."""
    if whose not in after:
        return
    entry, last = after[whose], entries.get(whose)
    unchanged = last is not None and last.fields == entry.fields and not changed
    time = last.time if last is not None and unchanged and last.time else timestamp(now)
    after[whose] = ManagerEntry(entry.fields, resource.api_version, time)


def track(
    old: Object | None, new: Object, resource: Resource, *, manager: str, subresource: str = "", now: int
) -> Object:
    """Return the object after a write other than apply, with what it changed recorded as the manager's.

    A new object is tracked from the start, an old one when its managers are
    recorded. In `new` a client may send the managedFields that it read, changed
    ones, or none, which retains the old; an empty list or one with an empty
    entry drops all managers. Through a subresource they cannot be changed.
    """
    managed_fields = (new.get("metadata") or {}).get("managedFields")
    if subresource and old is not None:
        entries = managed.stored_entries(old, resource)
    else:
        entries = {} if managed.is_reset(managed_fields) else managed.requested_entries(new, old, resource)
    if old is not None and not entries:
        return new if managed_fields is None else domain.with_managed(new, [])
    form = shape.of(resource)
    entries = _current(entries, form)
    after = domain.part(new, resource, subresource)
    before = domain.empty(after) if old is None else domain.part(old, resource, subresource)
    changed, removed = merge.changes(before, after, form)
    if changed or removed:
        entries = managed.without(entries, changed, removed)
    if changed:
        whose = managed.key(manager, UPDATE, resource, subresource)
        mine = fieldset.union(entries[whose].fields, changed) if whose in entries else changed
        entries[whose] = ManagerEntry(mine, resource.api_version, timestamp(now))
    return domain.with_managed(new, managed.listed(managed.capped(entries), resource))


def same_but_times(a: Object, b: Object) -> bool:
    """Whether two objects differ in nothing but the times of their managedFields."""
    one, two = a.get("metadata") or {}, b.get("metadata") or {}
    if "managedFields" not in one and "managedFields" not in two:
        return a == b
    if not managed.same_but_times(one.get("managedFields"), two.get("managedFields")):
        return False
    return domain.with_managed(a, []) == domain.with_managed(b, [])
