"""Failed searches of earlier cycles that are not repeated at once: for victims (`evictions`) and for reservations (`reservations`).

They are remembered by what makes gangs alike (`Memory.fruitless`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

Likeness = tuple[Any, ...]
"""Equal for gangs for which a search has the same outcome."""
Protected = tuple[tuple[str, int], ...]
"""What protects pods, in words, and how many pods each."""

REST_MS = 5000
"""For how long a failed search is not repeated."""


class Fruitless(NamedTuple):
    """A search that found nothing: until when it is not repeated (ms), and which pods it found protected.

    changes is `Snapshot.changes` if the outcome depends on the snapshot alone, not on the time, and then holds until that differs; else -1.
    """

    due: int
    protected: Protected
    changes: int = -1


def note(
    searches: dict[Likeness, Fruitless], likeness: Likeness, now: int, protected: Protected = (), changes: int = -1
) -> None:
    """Note a failed search, which rests for REST_MS from now (ms), and forget those whose time is over."""
    for each in [each for each, search in searches.items() if search.due <= now]:
        del searches[each]
    searches[likeness] = Fruitless(now + REST_MS, protected, changes)


def resting(searches: dict[Likeness, Fruitless], likeness: Likeness, now: int) -> Fruitless | None:
    """Return the search that rests now (ms); None where none does, or where the clock was set back since."""
    search = searches.get(likeness)
    return search if search is not None and now < search.due <= now + REST_MS else None
