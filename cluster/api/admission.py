"""What every object passes before it is stored: shape, then defaults, then rules.

One chain for form, YAML and API. The order is the API server's (reference/kubernetes-api-and-batch-job.md §6.1): decode
and limits, the schema of the kind, metadata (§4.5), the namespace (§6.3), defaulting, validation, bounds of the
namespace (limit ranges, then quotas). Rules of a kind come from the applications, which `register` them in their
`ready()`. Something wrong with the shape is reported alone, because rules may rely on the shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from cluster.api import custom_kinds, metadata, quota_room
from cluster.api.cluster_view import ClusterView
from cluster.backend import Admitted
from kube import definitions, resources, schema
from kube.custom import scale, structural
from kube.errors import ApiError, BadRequest, Cause, Forbidden, NotFound, RequestEntityTooLarge, quoted
from kube.meta import Object
from kube.resources import Resource

LARGEST = 1024 * 1024  # bytes of one object's JSON; etcd's request limit is of this order (§2.3)
PERMANENT_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


Default = Callable[["Object", "Object | None", ClusterView], None]
Validate = Callable[["Object", "Object | None", ClusterView], "list[Cause]"]
Warn = Callable[["Object", "Object | None", ClusterView], "list[str]"]
Release = Callable[["Object", ClusterView], "list[Cause]"]


@dataclass(frozen=True)
class Rules:
    """What one application knows about a kind: it may fill in, refuse, and warn."""

    default: Default | None = None
    validate: Validate | None = None
    warn: Warn | None = None
    delete: Release | None = None
    status: Validate | None = None
    bound: Validate | None = None


_rules: dict[str, list[Rules]] = defaultdict(list)


def register(
    resource: Resource,
    default: Default | None = None,
    validate: Validate | None = None,
    warn: Warn | None = None,
    delete: Release | None = None,
    status: Validate | None = None,
    bound: Validate | None = None,
) -> None:
    """Add rules for a kind, after those that it has.

    Each is called with the object (a copy, which `default` changes in place), the stored object that it is to replace
    or None, and the view. `delete` is called with the stored object that somebody wants to delete and the view, and
    says why it must stay. `status` judges a write to the status subresource. `bound` is asked last, about what is
    otherwise right. Where Kubernetes answers 403 and not 422, `default`, `validate` and `bound` raise Forbidden.
    """
    _rules[resource.id].append(Rules(default, validate, warn, delete, status, bound))


def has_rules(resource: Resource) -> bool:
    """Whether some application has rules for a kind."""
    return bool(_rules.get(resource.id))


def admit(
    resource: Resource, obj: Object, old: Object | None, view: ClusterView, *, warnings: bool = False
) -> Admitted:
    """Take an object through the whole chain; obj itself stays as it is."""
    return judge(shape(resource, obj, old), old, view, warnings=warnings)


def shape(resource: Resource, obj: Object, old: Object | None = None, subresource: str = "") -> Admitted:
    """Do the part that needs nothing but the object: a copy of it, and what is wrong with its shape.

    Of a custom resource, unknown fields are dropped and the defaults of its schema filled in.
    BadRequest and RequestEntityTooLarge are raised: there is no object to speak of then.
    """
    copy, nulls = _copy(resource, obj)
    causes = schema.check(copy, definitions.of(resource))
    reported = {cause.field for cause in causes}
    causes += (cause for cause in metadata.check(resource, copy, old) if cause.field not in reported)
    if not causes and nulls:
        copy = schema.without_nulls(copy, definitions.of(resource))
    if resource.schema is None or causes:
        return Admitted(resource, copy, tuple(causes))
    # What was wrong before with a custom resource by its schema may stay.
    schema_ = structural.of(resource)
    dropped = structural.shape(schema_, copy)
    is_status = subresource == "status"
    if is_status and old is not None:
        causes = structural.check_status(schema_, copy, old)
    else:
        causes = structural.check(schema_, copy, old)
    if resource.scale is not None:
        causes += scale.check(copy, resource.scale, only_status=is_status)
    return Admitted(resource, copy, tuple(causes), dropped=tuple(dropped))


def judge(
    shaped: Admitted, old: Object | None, view: ClusterView, *, warnings: bool = False, fill: bool = True
) -> Admitted:
    """Do the part that needs the cluster: namespace, defaults (unless fill is false) and rules. Changes shaped.object."""
    if shaped.causes:
        return shaped
    resource, obj = shaped.resource, shaped.object
    if old is None:
        problem = custom_kinds.creation_problem(resource, view) if resource.schema is not None else None
        if problem is None and resource.namespaced:
            problem = _namespace_problem(obj["metadata"]["namespace"], view)
        if problem is not None:
            return Admitted(resource, obj, problem.causes, error=problem)
    rules = _rules[resource.id]
    try:
        if fill:
            _fill(resource, obj, old, view)
        causes = [c for rule in rules if rule.validate is not None for c in rule.validate(obj, old, view)]
        if not causes:
            causes = [c for rule in rules if rule.bound is not None for c in rule.bound(obj, old, view)]
            quota_room.admit(resource, obj, old, view)
    except ApiError as error:
        return Admitted(resource, obj, error.causes or (Cause(error.reason, error.message, ""),), error=error)
    odd: list[str] = []
    if warnings:
        of_kind = resource.schema is None
        unknown = schema.unknown_fields(obj, definitions.of(resource)) if of_kind else shaped.dropped
        odd = [f'unknown field "{path}"' for path in unknown] + list(oddities(resource, obj, old, view))
    return Admitted(resource, obj, tuple(causes), tuple(odd))


def _fill(resource: Resource, obj: Object, old: Object | None, view: ClusterView) -> None:
    for rule in _rules[resource.id]:
        if rule.default is not None:
            rule.default(obj, old, view)


def completed(resource: Resource, obj: Object, old: Object | None, view: ClusterView, subresource: str = "") -> Object:
    """Return an object, new or to replace old, with what would be filled in; as it is when something is wrong with it."""
    try:
        shaped = shape(resource, obj, old, subresource)
        if not shaped.causes and not subresource:
            _fill(resource, shaped.object, old, view)
    except ApiError:
        return obj
    return obj if shaped.causes else shaped.object


def judge_status(shaped: Admitted, old: Object, view: ClusterView) -> Admitted:
    """Do the same for a write to the status: nothing is filled in, and only the rules for it are asked."""
    if shaped.causes:
        return shaped
    rules = [rule.status for rule in _rules[shaped.resource.id] if rule.status is not None]
    causes = [cause for rule in rules for cause in rule(shaped.object, old, view)]
    return Admitted(shaped.resource, shaped.object, tuple(causes))


def release(resource: Resource, obj: Object, view: ClusterView) -> None:
    """Raise Forbidden when a rule wants a stored object to stay."""
    name = metadata.name_of(obj)
    if resource is resources.NAMESPACES and name in PERMANENT_NAMESPACES:
        raise Forbidden.of(resource.id, name, "this namespace may not be deleted")
    causes = [c for rule in _rules[resource.id] if rule.delete is not None for c in rule.delete(obj, view)]
    if causes:
        detail = " ".join(cause.message.removeprefix("Forbidden: ") for cause in causes)
        raise Forbidden(
            f'{resource.id} "{name}" is forbidden: {detail}', causes=causes, resource=resource.id, name=name
        )


def oddities(resource: Resource, obj: Object, old: Object | None, view: ClusterView) -> Iterable[str]:
    """Return what the rules of a kind find odd about an admitted object, though not wrong."""
    for rule in _rules[resource.id]:
        if rule.warn is not None:
            yield from rule.warn(obj, old, view)


def plain(resource: Resource, obj: Object) -> Object:
    """Return a copy of an object, which is plain JSON and of this kind; the errors are those of `shape`."""
    return _copy(resource, obj)[0]


def _copy(resource: Resource, obj: Object) -> tuple[Object, bool]:
    """Return a deep copy, which says its kind and namespace and is plain JSON, and whether it may hold nulls."""
    if not isinstance(obj, dict):
        raise BadRequest(f"An object is a mapping of fields, not {quoted(obj)}.")
    try:
        body = _encode(obj)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadRequest(f"The object cannot be written as JSON: {error}.") from None
    if len(body) > LARGEST:
        raise RequestEntityTooLarge(
            f"The object has {len(body):,} bytes; at most {LARGEST:,} are allowed."
            " Keep large data in a file or a volume and name it in the object."
        )
    try:
        copy = _decode(body)
    except (RecursionError, msgspec.DecodeError) as error:
        raise BadRequest(f"The object cannot be read: {error}.") from None
    version, kind = copy.get("apiVersion") or resource.api_version, copy.get("kind") or resource.kind
    if (version, kind) != (resource.api_version, resource.kind):
        raise BadRequest(
            f"{kind!s:.100} in version {quoted(version)} cannot be handled as a {resource.kind}:"
            f" give apiVersion {resource.api_version} and kind {resource.kind}."
        )
    copy["apiVersion"], copy["kind"] = resource.api_version, resource.kind
    meta = copy.setdefault("metadata", {}) if resource.namespaced else copy.get("metadata")
    if isinstance(meta, dict) and resource.namespaced:
        meta["namespace"] = meta.get("namespace") or "default"
    elif isinstance(meta, dict) and isinstance(meta.get("namespace"), str):
        del meta["namespace"]  # as Kubernetes does with that of an object of the whole cluster
    return copy, b"null" in body


def _namespace_problem(name: str, view: ClusterView) -> ApiError | None:
    """NamespaceLifecycle (§6.3): nothing new in a namespace that is missing or on its way out."""
    namespace = view.namespace(name)
    field, kind = "metadata.namespace", resources.NAMESPACES.id
    if namespace is None:
        cause = Cause(
            "FieldValueNotFound", f"There is no namespace {quoted(name)}; choose another or create it.", field
        )
        return NotFound(f'namespaces "{name}" not found', causes=[cause], resource=kind, name=name)
    if (namespace.get("status") or {}).get("phase") == "Terminating" or namespace["metadata"].get("deletionTimestamp"):
        cause = Cause("NamespaceTerminating", f"namespace {name} is being terminated", field)
        text = f"unable to create new content in namespace {name} because it is being terminated"
        return Forbidden(text, causes=[cause], resource=kind, name=name)
    return None
