"""How lists and maps merge by their definitions, for strategic merge patch and server-side apply.

A list without a rule is atomic: it is replaced whole, and has one owner. A map or object without a
rule merges key by key.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from kube import definitions


class ListRule(NamedTuple):
    """How one field merges.

    type is `map` (items told apart by keys), `set` (plain values) or `atomic` for a
    server-side apply. strategy and merge_key are those of a strategic merge patch, which knows
    one key at most; without a strategy such a patch replaces the field.
    """

    type: str
    keys: tuple[str, ...] = ()
    strategy: str = ""
    merge_key: str = ""


def rule(definition: str, field: str) -> ListRule | None:
    """Return how a field of a definition merges, None where nothing special holds."""
    return rules(definition).get(field)


@cache
def rules(definition: str) -> dict[str, ListRule]:
    """Return the fields of a definition that merge in a special way."""
    found = {}
    for name, schema in definitions.properties(definition).items():
        is_list = schema.get("type") == "array"
        kind = schema.get(definitions.LIST_TYPE if is_list else definitions.MAP_TYPE, "")
        strategy = schema.get("x-kubernetes-patch-strategy", "")
        if strategy or kind not in ("", "granular", "atomic" if is_list else ""):
            keys = tuple(schema.get(definitions.MAP_KEYS, ()))
            found[name] = ListRule(kind, keys, strategy, schema.get("x-kubernetes-patch-merge-key", ""))
    return found


def is_atomic(definition: str) -> bool:
    """Whether objects of a definition have one owner and are replaced whole by server-side apply."""
    return bool(definition) and definitions.named(definition).get(definitions.MAP_TYPE) == "atomic"
