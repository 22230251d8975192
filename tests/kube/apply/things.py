"""A kind of its own whose schema has every shape, and steps that managers take on one object of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kube import apply, resources
from kube.apply import fieldset
from tests.kube.custom.samples import ANYTHING, INTEGER, TEXT, TEXTS, keyed, objects

NOW = 1_760_000_000_000
LATER = NOW + 60_000
SET = {**TEXTS, "x-kubernetes-list-type": "set"}


def maps(item):
    return {"type": "object", "additionalProperties": item}


SCHEMA = objects(
    text=TEXT,
    number=INTEGER,
    struct=objects(name=TEXT, value=INTEGER),
    map=maps(TEXT),
    mapOfMaps=maps(maps(TEXT)),
    mapOfSets=maps(SET),
    set=SET,
    list=keyed("name", items=objects(name=TEXT, value=INTEGER, more=SET, labels=maps(TEXT))),
    ports=keyed("port", "protocol", items=objects(port=INTEGER, protocol={**TEXT, "default": "TCP"}, name=TEXT)),
    plainList=TEXTS,
    atomicMap={**maps(TEXT), "x-kubernetes-map-type": "atomic"},
    free=ANYTHING,
    template={**objects(), "x-kubernetes-embedded-resource": True},
    status=objects(phase=TEXT, conditions=keyed("type", items=objects(type=TEXT, status=TEXT))),
)
NAMES = {"group": "example.org", "kind": "Thing", "plural": "things", "singular": "thing", "short_names": ()}
THINGS = replace(resources.CONFIGMAPS, **NAMES, status_subresource=True, schema=SCHEMA)


def thing(metadata: dict[str, Any] | None = None, **parts):
    metadata = {"name": "x", "namespace": "default", **(metadata or {})}
    return {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": metadata, **parts}


@dataclass
class Step:
    manager: str
    parts: dict[str, Any]
    how: str = "apply"
    subresource: str = ""


def applies(who="a", /, **parts):
    return Step(who, parts)


def forces(who="a", /, **parts):
    return Step(who, parts, "force")


def updates(who="u", /, **parts):
    """A PUT of the whole object."""
    return Step(who, parts, "update")


def reports(who="c", /, **status):
    """A PUT of the status."""
    return Step(who, {"status": status}, "update", "status")


def take(live, step, now=NOW, resource=THINGS):
    """Return the object after a step."""
    options = {"manager": step.manager, "subresource": step.subresource, "now": now}
    if step.how == "update":
        obj = {**live, **step.parts} if step.subresource else thing(**step.parts)
        return apply.track(live, obj, resource, **options)
    return apply.apply(live, thing(**step.parts), resource, force=step.how == "force", **options)


def run(*steps):
    live = None
    for step in steps:
        live = take(live, step)
    return live


def content(obj):
    """Return what is in an object beside type and metadata."""
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}


def owned(obj):
    """Return {manager: [paths]}; the manager's name says the subresource too."""
    found = {}
    for entry in obj["metadata"].get("managedFields", ()):
        who = entry["manager"] + (f"/{entry['subresource']}" if "subresource" in entry else "")
        name = who if who not in found else f"{who} {entry['operation']}"
        found[name] = [fieldset.text(path) for path in fieldset.paths(entry["fieldsV1"])]
    return found
