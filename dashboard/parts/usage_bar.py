"""The use of a resource, in words and as a bar."""

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
    """One resource: its title, its use, and that in words and as a bar."""

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
        """The number that is used, for large type; `rest` is the remainder of the text."""
        return self.text.partition(" ")[0]

    @property
    def rest(self) -> str:
        return self.text.partition(" ")[2]


def of(resource: str, used: int, capacity: int, reserved: int = 0) -> Use:
    """Return the use of one resource; a capacity of 0 means that there is no limit.

    `reserved` is how much is reserved for others; the part of it that is free is shown apart from what anybody may use.
    """
    text = plain(resource, used)
    if capacity > 0:
        text = f"{text} of {plain(resource, capacity)}"
    idle = min(reserved, max(capacity - used, 0))
    if idle > 0:
        text = f"{text}, {plain(resource, idle)} of the rest kept"
    title = TITLES.get(resource, resource)
    bar = svg.bar(used, capacity, f"{title}: {text}", reserved=idle)
    return Use(resource, title, used, capacity, text, bar)


def plain(resource: str, amount: int) -> str:
    """Return an amount without the resource's name, which is beside it as the title."""
    return amounts.show(resource, amount).rpartition(" ")[0]


def table(used: Mapping[str, int], capacity: Mapping[str, int], reserved: Mapping[str, int] | None = None) -> list[Use]:
    """Return every resource that is used or limited, the usual ones first; `reserved` is how much is reserved for others."""
    named = {name for each in (used, capacity) for name, amount in each.items() if amount}
    reserved_amounts = reserved or {}
    return [
        of(name, used.get(name, 0), capacity.get(name, 0), reserved_amounts.get(name, 0)) for name in in_order(named)
    ]


def in_words(some: Mapping[str, int]) -> str:
    """Return amounts in words but for the number of pods, such as `4 CPU, 3 GiB memory`; "" for none."""
    named = in_order(name for name, amount in some.items() if amount and name != "pods")
    return ", ".join(amounts.show(name, some[name]) for name in named)


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of resources in the order in which readers expect them."""
    named = set(names)
    return [name for name in FIRST if name in named] + sorted(named - set(FIRST))
