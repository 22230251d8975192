"""What a table offers to do with many of its objects at once; the application of a kind says what.

A form with the id `bulk` takes the ticked rows (`uid`) or all that match the
table's filters, and sends them to the page that prepares a bulk operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cluster.access import Actor


class Choice(NamedTuple):
    """One action: what the form sends, and what people read."""

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Bulk:
    """Where the form goes, what it offers, and where earlier bulk operations are listed."""

    url: str
    choices: Sequence[Choice]
    earlier: str


_sources: dict[str, Callable[[Actor], Bulk | None]] = {}


def source(kind: str) -> Callable[[Callable[[Actor], Bulk | None]], Callable[[Actor], Bulk | None]]:
    """Register a function that says what an actor may do with many objects of a kind, by its resource id."""

    def remember(offer: Callable[[Actor], Bulk | None]) -> Callable[[Actor], Bulk | None]:
        _sources[kind] = offer
        return offer

    return remember


def offered(kind: str, actor: Actor) -> Bulk | None:
    """Return what the actor may do with many objects of a kind; None where that is nothing."""
    return _sources[kind](actor) if kind in _sources else None
