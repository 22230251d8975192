"""A kind of its own whose schema has every shape, and steps that managers take on one object of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import yaml

from kube import apply, resources
from kube.apply import fieldset
from tests.tables import GOLDEN

NOW = 1_760_000_000_000
LATER = NOW + 60_000
NAMES = {"group": "example.org", "kind": "Thing", "plural": "things", "singular": "thing", "short_names": ()}
SCHEMA = yaml.safe_load((GOLDEN / "kube/things.yaml").read_text())
THINGS = replace(resources.CONFIGMAPS, **NAMES, status_subresource=True, schema=SCHEMA)
HOW = {"!": "force", "=": "update"}


def thing(metadata: dict[str, Any] | None = None, **parts):
    metadata = {"name": "x", "namespace": "default", **(metadata or {})}
    return {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": metadata, **parts}


@dataclass
class Step:
    """What a manager does: in text `a {text: x}` is an apply, `a!` one by force, `a=` a PUT, `a/status=` one of the status."""

    manager: str
    parts: dict[str, Any]
    how: str = "apply"
    subresource: str = ""


def step(text):
    who, fields = text.strip().split(" ", 1)
    manager, _, subresource = who.rstrip("!=").partition("/")
    return Step(manager, yaml.safe_load(fields), HOW.get(who[-1], "apply"), subresource)


def take(live, done, now=NOW, resource=THINGS):
    """Return the object after a step."""
    done = step(done) if isinstance(done, str) else done
    options = {"manager": done.manager, "subresource": done.subresource, "now": now}
    if done.how == "update":
        obj = {**live, **done.parts} if done.subresource else thing(**done.parts)
        return apply.track(live, obj, resource, **options)
    return apply.apply(live, thing(**done.parts), resource, force=done.how == "force", **options)


def run(steps):
    """Return the object after several, as `a {text: x}; u= {text: y}`."""
    live = None
    for each in steps.split("; ") if isinstance(steps, str) else steps:
        live = take(live, each)
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
