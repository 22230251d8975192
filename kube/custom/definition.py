"""Whether a CustomResourceDefinition is right, what its defaults are, and what it may not change.

Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
What differs: objects are never converted by a webhook, so that strategy is
refused; and a kind that is built in cannot be defined again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from kube import names, resources
from kube.custom import schemas
from kube.errors import Cause, duplicate, forbidden, invalid, not_supported, required, too_many
from kube.lenient import mapping, sequence, text, texts
from kube.meta import Object

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"  # holds a definition until its objects are gone
APPROVED = "api-approved.kubernetes.io"
LONGEST_ID = 128  # characters of plural.group, which is part of the key of every object
MAX_SELECTABLE = 8
MAX_VERSIONS = 100  # each is a group version of its own in all documents about the API
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SCOPES = ("Cluster", "Namespaced")
_SELECTABLE_TYPES = ("string", "boolean", "integer")


def default(crd: Object) -> None:
    """Fill in what follows from the rest: the singular, the list kind, the conversion, and what holds it back."""
    spec = mapping(crd, "spec")
    called = mapping(spec, "names")
    kind = text(called, "kind")
    if kind and not called.get("singular"):
        called["singular"] = kind.lower()
    if kind and not called.get("listKind"):
        called["listKind"] = f"{kind}List"
    if spec and not spec.get("conversion"):
        spec["conversion"] = {"strategy": "None"}
    metadata = mapping(crd, "metadata")
    finalizers = metadata.get("finalizers") or []
    if metadata and not metadata.get("deletionTimestamp") and CLEANUP not in finalizers:
        metadata["finalizers"] = [*finalizers, CLEANUP]


def check(crd: Object, old: Object | None) -> list[Cause]:
    """Return what is wrong with a definition, and with how it differs from the one that it replaces."""
    spec = mapping(crd, "spec")
    causes = [*_check_name(crd, spec), *_check_spec(spec)]
    if old is not None:
        causes += _check_change(spec, old)
        causes += _check_stored(spec, old)
    causes += _check_approval(crd, spec, old)
    if spec.get("preserveUnknownFields") is True:
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        causes.append(invalid("spec.preserveUnknownFields", True, detail))
    return causes


def warnings(crd: Object) -> list[str]:
    """Return what is odd about a definition."""
    if any(_has_rules(version.get("schema")) for version in _versions(mapping(crd, "spec"))):
        return [
            "spec.versions[*].schema: x-kubernetes-validations are stored but not evaluated by this cluster;"
            " objects that break these rules are accepted"
        ]
    return []


def _has_rules(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value.get("x-kubernetes-validations")) or any(map(_has_rules, value.values()))
    return isinstance(value, list) and any(map(_has_rules, value))


def _versions(spec: Object) -> list[dict[str, Any]]:
    return [version for version in sequence(spec, "versions") if isinstance(version, dict)]


def _check_name(crd: Object, spec: Object) -> Iterator[Cause]:
    name = text(crd, "metadata", "name")
    if name != f"{text(spec, 'names', 'plural')}.{text(spec, 'group')}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    elif len(name) > LONGEST_ID:
        yield invalid("metadata.name", name, f"must be no more than {LONGEST_ID} characters here")
    elif resources.is_built_in(name):
        detail = "this kind is built into the cluster, which serves it already; leave the definition out"
        yield forbidden("metadata.name", detail)


def _check_spec(spec: Object) -> Iterator[Cause]:
    yield from _check_group(text(spec, "group"))
    if not text(spec, "scope"):
        yield required("spec.scope")
    elif spec["scope"] not in _SCOPES:
        yield not_supported("spec.scope", spec["scope"], _SCOPES)
    if len(_versions(spec)) > MAX_VERSIONS:
        yield too_many("spec.versions", len(_versions(spec)), MAX_VERSIONS)
        return
    version_names: list[str] = []
    for index, version in enumerate(_versions(spec)):
        path, name = f"spec.versions[{index}]", text(version, "name")
        if not mapping(version, "schema", "openAPIV3Schema"):
            yield required(f"{path}.schema.openAPIV3Schema")
        if wrong := names.dns1035_label(name):
            yield invalid(f"{path}.name", name, wrong)
        yield from _check_version(version, path)
        version_names.append(name)
    if len(set(version_names)) < len(version_names):
        yield invalid("spec.versions", version_names, "must contain unique version names")
    if sum(version.get("storage") is True for version in _versions(spec)) != 1:
        yield invalid("spec.versions", version_names, "must have exactly one version marked as storage version")
    yield from _check_names(mapping(spec, "names"))
    yield from _check_conversion(mapping(spec, "conversion"))


def _check_group(group: str) -> Iterator[Cause]:
    if not group:
        yield required("spec.group")
    elif wrong := names.dns_subdomain(group):
        yield invalid("spec.group", group, wrong)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _check_names(called: Object) -> Iterator[Cause]:
    for field in ("plural", "singular", "kind", "listKind"):
        value, path = text(called, field), f"spec.names.{field}"
        if not value:
            yield required(path)
        elif field in ("plural", "singular"):
            if wrong := names.dns1035_label(value):
                yield invalid(path, value, wrong)
        elif wrong := names.dns1035_label(value.lower()):
            yield invalid(path, value, f"may have mixed case, but should otherwise match: {wrong}")
    kind = text(called, "kind")
    if kind and kind == text(called, "listKind"):
        yield invalid("spec.names.listKind", kind, "kind and listKind may not be the same")
    for field in ("shortNames", "categories"):
        for index, value in enumerate(texts(called, field)):
            if wrong := names.dns1035_label(value):
                yield invalid(f"spec.names.{field}[{index}]", value, wrong)


def _check_conversion(conversion: Object) -> Iterator[Cause]:
    strategy = text(conversion, "strategy")
    if conversion and not strategy:
        yield required("spec.conversion.strategy")
    elif strategy == "Webhook":
        detail = (
            "this cluster does not call conversion webhooks; with strategy None all versions share one content, "
            "and only apiVersion differs"
        )
        yield invalid("spec.conversion.strategy", strategy, detail)
    elif strategy and strategy != "None":
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif conversion.get("webhook"):
        detail = "should not be set when strategy is not set to Webhook"
        yield forbidden("spec.conversion.webhook", detail)


def _check_version(version: Object, path: str) -> Iterator[Cause]:
    yield from _check_deprecation(version, f"{path}.deprecationWarning")
    schema = mapping(version, "schema", "openAPIV3Schema")
    subresources = mapping(version, "subresources")
    if schema:
        has_status = subresources.get("status") is not None
        yield from schemas.check(schema, f"{path}.schema.openAPIV3Schema", has_status=has_status)
    if subresources.get("scale") is not None:
        yield from _check_scale(mapping(subresources, "scale"), f"{path}.subresources.scale")
    for index, column in enumerate(sequence(version, "additionalPrinterColumns")):
        yield from _check_column(column, f"{path}.additionalPrinterColumns[{index}]")
    yield from _check_selectable(sequence(version, "selectableFields"), schema, f"{path}.selectableFields")


def _check_deprecation(version: Object, path: str) -> Iterator[Cause]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    warning = str(warning)
    if not version.get("deprecated"):
        yield invalid(path, warning, "can only be set for deprecated versions")
    if len(warning.encode(errors="replace")) > 256:
        yield invalid(path, warning, "must be <= 256 characters long")
    if not warning:
        yield invalid(path, warning, "must not be an empty string")
    for index, char in enumerate(warning):
        if not char.isprintable():
            where = f"non-printable character found at index {index}"
            yield invalid(path, warning, f"must only contain printable UTF-8 characters; {where}")
            break


def _check_scale(scale: Object, path: str) -> Iterator[Cause]:
    for field, places, where in (
        ("specReplicasPath", (".spec.",), ".spec"),
        ("statusReplicasPath", (".status.",), ".status"),
        ("labelSelectorPath", (".spec.", ".status."), "either .spec or .status"),
    ):
        value = text(scale, field)
        if not value:
            if field != "labelSelectorPath":
                yield required(f"{path}.{field}")
        elif not value.startswith("."):
            yield invalid(f"{path}.{field}", value, "must be a simple json path starting with .")
        elif not value.startswith(places):
            yield invalid(f"{path}.{field}", value, f"should be a json path under {where}")


def _check_column(column: Object, path: str) -> Iterator[Cause]:
    kind, json_path, form = text(column, "type"), text(column, "jsonPath"), text(column, "format")
    if not text(column, "name"):
        yield required(f"{path}.name")
    if not kind:
        yield required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif kind not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
    if form and form not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not json_path:
        yield required(f"{path}.JSONPath")
    elif not json_path.startswith("."):
        yield invalid(f"{path}.JSONPath", json_path, "must be a simple json path starting with .")


def _check_selectable(fields: list[Any], schema: Object, path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, field in enumerate(fields):
        json_path, where = text(field, "jsonPath"), f"{path}[{index}].jsonPath"
        if not json_path:
            yield required(where)
            continue
        field_schema = _field(schema, json_path)
        if field_schema is None:
            yield invalid(where, json_path, "is an invalid path: it names no field of the schema")
            continue
        if json_path.startswith(".metadata"):
            yield invalid(where, json_path, "must not point to fields in metadata")
        if field_schema.get("type") not in _SELECTABLE_TYPES:
            detail = (
                "must point to a field of type string, boolean or integer."
                " Enum string fields and strings with formats are allowed."
            )
            yield invalid(where, json_path, detail)
        if json_path in seen:
            yield duplicate(where, json_path)
        seen.add(json_path)
    if len(seen) > MAX_SELECTABLE:
        yield too_many(path, len(seen), MAX_SELECTABLE)


def _field(schema: Object, json_path: str) -> Object | None:
    """Return the schema of the field at a path like `.spec.color`."""
    if not json_path.startswith("."):
        return None
    field: Any = schema
    for name in json_path[1:].split("."):
        inner = mapping(field, "properties").get(name)
        if inner is None and isinstance(mapping(field).get("additionalProperties"), dict):
            inner = field["additionalProperties"]
        if not isinstance(inner, dict):
            return None
        field = inner
    return field if isinstance(field, dict) else None


def is_established(crd: Object) -> bool:
    """Whether a definition is served."""
    return _condition(crd, "Established") == "True"


def _condition(crd: Object, kind: str) -> str:
    for condition in sequence(crd, "status", "conditions"):
        if text(condition, "type") == kind:
            return text(condition, "status")
    return ""


def _check_change(spec: Object, old: Object) -> Iterator[Cause]:
    before = mapping(old, "spec")
    paths: list[tuple[str, ...]] = [("group",), ("names", "plural")]
    if is_established(old):
        paths = [("scope",), ("names", "kind"), *paths]
    for path in paths:
        if text(spec, *path) != text(before, *path):
            yield invalid(f"spec.{'.'.join(path)}", text(spec, *path), "field is immutable")


def _check_stored(spec: Object, old: Object) -> Iterator[Cause]:
    """Objects may still lie in a version that was the storage version once."""
    present = {text(version, "name") for version in _versions(spec)}
    for index, version in enumerate(texts(old, "status", "storedVersions")):
        if version not in present:
            detail = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {version} "
                f"and removes {version} from status.storedVersions"
            )
            yield invalid(f"status.storedVersions[{index}]", version, detail)


def _check_approval(crd: Object, spec: Object, old: Object | None) -> Iterator[Cause]:
    """Groups of the Kubernetes community need a note that the API was approved, or that it was not."""
    group = text(spec, "group")
    if not any(group == own or group.endswith(f".{own}") for own in ("k8s.io", "kubernetes.io")):
        return
    approval = text(crd, "metadata", "annotations", APPROVED)
    if old is not None and approval == text(old, "metadata", "annotations", APPROVED):
        return
    path = f"metadata.annotations[{APPROVED}]"
    need = f'protected groups must have approval annotation "{APPROVED}"'
    more = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not approval:
        yield required(path, f"{need}, {more}")
    elif not approval.startswith("unapproved") and not _is_url(approval):
        detail = f'{need} with either a URL or a reason starting with "unapproved", {more}'
        yield invalid(path, approval, detail)


def _is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)
