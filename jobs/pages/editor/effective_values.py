"""Which values hold where the text of a job leaves a field out, or writes one that counts as another: what the form shows in its place."""

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
    """Return the values of a job with its defaults that are not as they were written, by path.

    Also the priority class that pods get which name none: it is stored nowhere.
    """
    effective = dict(_leaves(written.get("spec"), stored.get("spec"), "spec"))
    namespace = lenient.text(stored, "metadata", "namespace")
    if namespace != lenient.text(written, "metadata", "namespace"):
        effective["metadata.namespace"] = namespace
    if not lenient.text(stored, "spec", "priorityClassName") and (chosen := pods.default_class(view)).name:
        effective["spec.priorityClassName"] = chosen.name
    return effective


def _leaves(before: Any, after: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield each single value of `after` that is not in `before`, with its path."""
    if isinstance(after, dict):
        for key, value in after.items():
            yield from _leaves(lenient.mapping(before).get(key), value, f"{path}.{key}")
    elif isinstance(after, list):
        old_items = before if isinstance(before, list) else ()
        for number, (old, new) in enumerate(zip_longest(old_items, after)):
            yield from _leaves(old, new, f"{path}[{number}]")
    elif after is not None and after != before:
        yield path, after if isinstance(after, str) else json.dumps(after)
