"""What the overview offers to run while there are no jobs; the jobs application registers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Offer(NamedTuple):
    """Something to run with one click: a POST to url."""

    title: str
    text: str
    icon: str
    url: str


_sources: dict[str, Callable[[], Sequence[Offer]]] = {}


def source(offers: Callable[[], Sequence[Offer]]) -> Callable[[], Sequence[Offer]]:
    """Register a function that returns offers, in the order in which they are shown."""
    _sources[f"{offers.__module__}.{offers.__qualname__}"] = offers
    return offers


def current() -> list[Offer]:
    """Return everything that is offered."""
    return [offer for offers in _sources.values() for offer in offers()]
