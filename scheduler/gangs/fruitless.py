"""Searches of earlier cycles that are not made again at once: for victims (`evictions`) and for places to keep (`reservations`).

They are remembered by what makes gangs alike (`Snapshot.fruitless`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

Likeness = tuple[Any, ...]
"""What is the same of gangs for which a search comes to the same."""
Protected = tuple[tuple[str, int], ...]
"""What protects pods, in words, and how many."""

REST_MS = 5000
"""For how long a search is not made again."""


class Fruitless(NamedTuple):
    """A search that found nobody: until when it is not made again, in ms, and whom it found protected.

    changes is `Snapshot.changes` where the outcome depends on the world alone, and not on the time: then it stands until that is another.
    """

    due: int
    protected: Protected
    changes: int = -1


def note(
    searches: dict[Likeness, Fruitless], likeness: Likeness, now: int, protected: Protected = (), changes: int = -1
) -> None:
    """Note a search that is to rest from now on (ms), and forget those whose time is over."""
    for each in [each for each, search in searches.items() if search.due <= now]:
        del searches[each]
    searches[likeness] = Fruitless(now + REST_MS, protected, changes)


def resting(searches: dict[Likeness, Fruitless], likeness: Likeness, now: int) -> Fruitless | None:
    """Return the search that rests at a time (ms); None where none does, as after the clock was set back."""
    search = searches.get(likeness)
    return search if search is not None and now < search.due <= now + REST_MS else None
