"""The rules of `metadata`, the same for every kind (reference/kubernetes-api-and-batch-job.md §2.3, §4.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from kube import names, resources
from kube.errors import Cause, duplicate, invalid, required, too_long, wrong_type
from kube.meta import Object
from kube.resources import Resource

ANNOTATIONS_BYTES = 256 * 1024
LABEL_NAMED = frozenset({resources.NAMESPACES.id, resources.SERVICES.id})  # named by a DNS label, others by a subdomain
LEGACY_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")

# The same few texts come again and again; longer ones than a valid key are not worth keeping.
LONGEST_CACHED = 320


def _cached(rule: Callable[[str], str | None]) -> Callable[[str], str | None]:
    cached = lru_cache(4096)(rule)
    return lambda text: cached(text) if len(text) <= LONGEST_CACHED else rule(text)


_dns_label = _cached(names.dns_label)
_qualified_name = _cached(names.qualified_name)
_label_value = _cached(names.label_value)


def name_of(obj: Object) -> str:
    """Return the object's name, or the start of the one that it will get; "" for neither."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        return ""
    return str(meta.get("name") or meta.get("generateName") or "")


def namespace_of(resource: Resource, obj: Object) -> str:
    """Return the namespace in which an object is meant to be, "" for a kind that lives in none."""
    meta = obj.get("metadata")
    namespace = meta.get("namespace") if isinstance(meta, dict) else ""
    return str(namespace or "default") if resource.namespaced else ""


def check(resource: Resource, obj: Object, old: Object | None = None) -> list[Cause]:
    """Return what is wrong with an object's metadata; types are checked as far as needed to read on."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        return [required("metadata", "name or generateName is required")]
    causes = list(_names(resource, meta, old))
    if resource.namespaced:
        namespace = meta.get("namespace")
        if not isinstance(namespace, str):
            causes.append(wrong_type("metadata.namespace", namespace, "must be a text"))
        elif problem := _dns_label(namespace):
            causes.append(invalid("metadata.namespace", namespace, problem))
    causes += _labels(meta.get("labels")) if meta.get("labels") else []
    causes += _annotations(meta.get("annotations")) if meta.get("annotations") else []
    causes += _owners(meta.get("ownerReferences")) if meta.get("ownerReferences") else []
    causes += _finalizers(resource, meta.get("finalizers")) if meta.get("finalizers") else []
    return causes


def _names(resource: Resource, meta: Object, old: Object | None) -> Iterator[Cause]:
    field = "name" if meta.get("name") else "generateName"
    name = meta.get(field)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif not isinstance(name, str):
        yield wrong_type(f"metadata.{field}", name, "must be a text")
    elif old is None:
        # A generated name goes on after the prefix, so the prefix may end in a dash.
        whole = name if field == "name" else f"{name}x"
        rule = names.dns_label if resource.id in LABEL_NAMED else names.dns_subdomain
        if problem := rule(whole):
            yield invalid(f"metadata.{field}", name, problem)


def _labels(labels: Any) -> Iterator[Cause]:
    if not isinstance(labels, dict):
        yield wrong_type("metadata.labels", labels, "must be a mapping of texts")
        return
    for key, value in labels.items():
        if problem := _qualified_name(key):
            yield invalid("metadata.labels", key, problem)
        if not isinstance(value, str):
            yield wrong_type(f"metadata.labels[{key}]", value, 'must be a text; write it in quotes, such as "1"')
        elif problem := _label_value(value):
            yield invalid(f"metadata.labels[{key}]", value, problem)


def _annotations(annotations: Any) -> Iterator[Cause]:
    if not isinstance(annotations, dict):
        yield wrong_type("metadata.annotations", annotations, "must be a mapping of texts")
        return
    size = 0
    for key, value in annotations.items():
        # Prefixes of annotations may be in capitals, as Kubernetes accepts them.
        if problem := _qualified_name(key.lower()):
            yield invalid("metadata.annotations", key, problem)
        if not isinstance(value, str):
            yield wrong_type(f"metadata.annotations[{key}]", value, 'must be a text; write it in quotes, such as "1"')
            continue
        size += len(key.encode()) + len(value.encode())
    if size > ANNOTATIONS_BYTES:
        yield too_long("metadata.annotations", ANNOTATIONS_BYTES)


def _owners(references: Any) -> Iterator[Cause]:
    path = "metadata.ownerReferences"
    if not isinstance(references, list) or not all(isinstance(item, dict) for item in references):
        yield wrong_type(path, references, "must be a list of owner references")
        return
    for index, reference in enumerate(references):
        for field in OWNER_FIELDS:
            value = reference.get(field)
            if not value:
                yield required(f"{path}[{index}].{field}", "must not be empty")
            elif not isinstance(value, str):
                yield wrong_type(f"{path}[{index}].{field}", value, "must be a text")
    if sum(reference.get("controller") is True for reference in references) > 1:
        yield invalid(path, len(references), "Only one reference can have Controller set to true")


def _finalizers(resource: Resource, finalizers: Any) -> Iterator[Cause]:
    path = "metadata.finalizers"
    if not isinstance(finalizers, list) or not all(isinstance(item, str) for item in finalizers):
        yield wrong_type(path, finalizers, "must be a list of texts")
        return
    # Finalizers of these may be named as they were before their names had a path.
    is_extension = resource.schema is not None or resource is resources.CUSTOM_RESOURCE_DEFINITIONS
    for index, name in enumerate(finalizers):
        if name in finalizers[:index]:
            yield duplicate(f"{path}[{index}]", name)
        if problem := _qualified_name(name):
            yield invalid(f"{path}[{index}]", name, problem)
        elif "/" not in name and name not in LEGACY_FINALIZERS and not is_extension:
            problem = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"{path}[{index}]", name, problem)
