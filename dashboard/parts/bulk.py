"""Actions on many objects of a table at once, registered by the application of their kind.

A form with the id `bulk` takes the ticked rows (`uid`), or all that match the
table's filters, and sends them to the page that prepares a bulk operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cluster.access import Actor


class Choice(NamedTuple):
    """One action: the value that the form sends, and the label for people."""

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Bulk:
    """The form's address, its actions, and the address of the list of earlier bulk operations."""

    url: str
    choices: Sequence[Choice]
    earlier: str


_sources: dict[str, Callable[[Actor], Bulk | None]] = {}


def source(kind: str) -> Callable[[Callable[[Actor], Bulk | None]], Callable[[Actor], Bulk | None]]:
    """Register a function that returns the actions which an actor may take on many objects of a kind (a resource id)."""

    def register(offer: Callable[[Actor], Bulk | None]) -> Callable[[Actor], Bulk | None]:
        _sources[kind] = offer
        return offer

    return register


def offered(kind: str, actor: Actor) -> Bulk | None:
    """Return the actions which the actor may take on many objects of a kind; None if there are none."""
    return _sources[kind](actor) if kind in _sources else None
