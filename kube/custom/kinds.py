"""A CustomResourceDefinition as entries of the resource table."""

from __future__ import annotations

from kube import indexes
from kube.custom import definition
from kube.custom.structural import Structural
from kube.lenient import mapping, sequence, text, texts
from kube.meta import Object
from kube.resource import VERBS, Column, Resource, ScalePaths, Subresource

_NAME = Column("Name", path="metadata.name")
_AGE = Column(
    "Age",
    path=".metadata.creationTimestamp",
    type="date",
    description=(
        "CreationTimestamp is a timestamp representing the server time when this object was created. It is not"
        " guaranteed to be set in happens-before order across separate operations. Clients may not set this value."
        " It is represented in RFC3339 form and is in UTC."
    ),
)
_SCALE = Subresource("scale", ("get", "patch", "update"), "Scale", "autoscaling", "v1")
_TERMINATING_VERBS = tuple(verb for verb in VERBS if verb != "create")


def resource_of(crd: Object) -> list[Resource]:
    """Return a resource for each version that is served, and for the one in which objects are stored.

    A definition that is not established has none.
    """
    if not definition.is_established(crd):
        return []
    return [
        _resource(crd, version)
        for version in sequence(crd, "spec", "versions")
        if version.get("served") is True or version.get("storage") is True
    ]


def _resource(crd: Object, version: Object) -> Resource:
    spec, called = mapping(crd, "spec"), mapping(crd, "status", "acceptedNames")
    subresources = mapping(version, "subresources")
    scale = _scale(subresources)
    verbs = _TERMINATING_VERBS if text(crd, "metadata", "deletionTimestamp") else VERBS
    warning = ""
    if version.get("deprecated") is True:
        kind = f"{text(spec, 'group')}/{text(version, 'name')} {text(called, 'kind')}"
        warning = text(version, "deprecationWarning") or f"{kind} is deprecated"
    return Resource(
        group=text(spec, "group"),
        version=text(version, "name"),
        kind=text(called, "kind"),
        plural=text(called, "plural"),
        singular=text(called, "singular"),
        short_names=tuple(texts(called, "shortNames")),
        namespaced=text(spec, "scope") == "Namespaced",
        status_subresource=subresources.get("status") is not None,
        columns=_columns(version),
        index=indexes.plain,
        fields=tuple(text(field, "jsonPath").removeprefix(".") for field in sequence(version, "selectableFields")),
        verbs=verbs,
        subresources=() if scale is None else (_SCALE,),
        categories=tuple(texts(called, "categories")),
        schema=Structural(mapping(version, "schema", "openAPIV3Schema")),
        scale=scale,
        served=version.get("served") is True,
        storage=version.get("storage") is True,
        deprecation=warning,
        lists_as=text(called, "listKind"),
    )


def _scale(subresources: Object) -> ScalePaths | None:
    if subresources.get("scale") is None:
        return None
    paths = mapping(subresources, "scale")
    return ScalePaths(
        text(paths, "specReplicasPath"), text(paths, "statusReplicasPath"), text(paths, "labelSelectorPath")
    )


def _columns(version: Object) -> tuple[Column, ...]:
    columns = [
        Column(
            text(column, "name"),
            path=text(column, "jsonPath"),
            type=text(column, "type") or "string",
            priority=column["priority"] if isinstance(column.get("priority"), int) else 0,
            description=text(column, "description"),
            format=text(column, "format"),
        )
        for column in sequence(version, "additionalPrinterColumns")
        if isinstance(column, dict)
    ]
    return (_NAME, *(columns or (_AGE,)))
