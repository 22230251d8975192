"""The effective values of fields that a job's text leaves out, or writes in a way that counts as another: the form shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from cluster.rules.checks import RulesView
from cluster.rules.pod import pods
from kube import lenient
from kube.meta import Object


def of(written: Object, stored: Object, view: RulesView) -> dict[str, str]:
    """Return the values of a job with its defaults that differ from what was written, by path.

    This includes the default class of pods that name none, which is not stored.
    """
    effective = dict(_leaves(written.get("spec"), stored.get("spec"), "spec"))
    namespace = lenient.text(stored, "metadata", "namespace")
    if namespace != lenient.text(written, "metadata", "namespace"):
        effective["metadata.namespace"] = namespace
    if not lenient.text(stored, "spec", "priorityClassName") and (chosen := pods.default_class(view)).name:
        effective["spec.priorityClassName"] = chosen.name
    return effective


def _leaves(before: Any, after: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield each scalar of `after` that differs from `before`, with its path."""
    if isinstance(after, dict):
        for key, value in after.items():
            yield from _leaves(lenient.mapping(before).get(key), value, f"{path}.{key}")
    elif isinstance(after, list):
        old_items = before if isinstance(before, list) else ()
        for number, (old, new) in enumerate(zip_longest(old_items, after)):
            yield from _leaves(old, new, f"{path}[{number}]")
    elif after is not None and after != before:
        yield path, after if isinstance(after, str) else json.dumps(after)
