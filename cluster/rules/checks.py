"""What rules may ask about the cluster, and what many of them say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, Protocol

from kube import quantity, selector
from kube.errors import Cause, invalid, not_supported, required
from kube.meta import Object
from kube.resources import Resource

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"


class RulesView(Protocol):
    """What rules may ask about the cluster; `cluster.api.cluster_view.ClusterView` answers."""

    def namespace(self, name: str) -> Object | None: ...
    def priority_class(self, name: str) -> Object | None: ...
    def priority_classes(self) -> list[Object]: ...
    def service_account(self, namespace: str, name: str) -> Object | None: ...
    def listed(self, resource: Resource, namespace: str) -> list[Object]: ...
    def free_name(self, resource: Resource, namespace: str, base: str) -> str: ...
    def needs_commands(self) -> bool: ...
    def runs_images(self) -> bool: ...


def fixed(new: Object, old: Object, fields: Iterable[str], path: str = "spec") -> Iterator[Cause]:
    """Refuse changes of fields that stay as they were created; absent and empty are the same."""
    for field in fields:
        if (new.get(field) or None) != (old.get(field) or None):
            yield invalid(f"{path}.{field}" if path else field, new.get(field), IMMUTABLE)


def not_negative(owner: Object, fields: Iterable[str], path: str) -> Iterator[Cause]:
    """Refuse numbers below zero."""
    for field in fields:
        value = owner.get(field)
        if value is not None and value < 0:
            yield invalid(f"{path}.{field}", value, NOT_NEGATIVE)


def one_of(value: Any, allowed: Iterable[str], path: str, *, optional: bool = False) -> Iterator[Cause]:
    """Refuse a text outside a list of allowed ones, and its absence."""
    if not value:
        if not optional:
            yield required(path)
    elif value not in tuple(allowed):
        yield not_supported(path, value, [str(item) for item in allowed])


def check_selector(written: Any, path: str) -> Iterator[Cause]:
    """Refuse a label selector that cannot be read."""
    try:
        selector.from_object(written or {})
    except selector.SelectorError as error:
        yield invalid(path, written, str(error))


def amount(written: Any) -> Fraction:
    """Return a quantity that the schema has accepted."""
    return quantity.parse(written)
