"""How much of something is used, in words and as a bar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from django.utils.safestring import SafeString

from dashboard.parts import svg
from kube import amounts

FIRST = ("cpu", "memory", "pods")  # the order in which readers expect them
TITLES = {"cpu": "CPU", "memory": "Memory", "pods": "Pods", "ephemeral-storage": "Ephemeral storage"}
ICONS = {"cpu": "cpu", "memory": "memory-stick", "pods": "boxes", "ephemeral-storage": "hard-drive"}


class Use(NamedTuple):
    """One resource: what it is called, how much is used, and the words for it."""

    resource: str
    title: str
    used: int
    capacity: int
    text: str
    bar: SafeString

    @property
    def icon(self) -> str:
        return ICONS.get(self.resource, "circle-dashed")

    @property
    def amount(self) -> str:
        """The number that is used, for large type; `rest` is the remainder of the words."""
        return self.text.partition(" ")[0]

    @property
    def rest(self) -> str:
        return self.text.partition(" ")[2]


def of(resource: str, used: int, capacity: int, kept: int = 0) -> Use:
    """Return the use of one resource; a capacity of nought means that there is no limit.

    kept is how much is kept for others: what of it is free is told apart from what is idle.
    """
    text = plain(resource, used)
    if capacity > 0:
        text = f"{text} of {plain(resource, capacity)}"
    idle = min(kept, max(capacity - used, 0))
    if idle > 0:
        text = f"{text}, {plain(resource, idle)} of the rest kept"
    title = TITLES.get(resource, resource)
    bar = svg.bar(used, capacity, f"{title}: {text}", kept=idle)
    return Use(resource, title, used, capacity, text, bar)


def plain(resource: str, amount: int) -> str:
    """An amount without the resource's name, which stands beside it as the title."""
    return amounts.show(resource, amount).rpartition(" ")[0]


def table(used: Mapping[str, int], capacity: Mapping[str, int], kept: Mapping[str, int] | None = None) -> list[Use]:
    """Return every resource that is used or limited, the usual ones first; kept is how much is kept for others."""
    named = {name for each in (used, capacity) for name, amount in each.items() if amount}
    keeping = kept or {}
    return [of(name, used.get(name, 0), capacity.get(name, 0), keeping.get(name, 0)) for name in in_order(named)]


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of resources in the order in which readers expect them."""
    named = set(names)
    return [name for name in FIRST if name in named] + sorted(named - set(FIRST))
