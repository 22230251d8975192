"""Names of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # Kubernetes' own: no vowels, nothing that looks alike


def suffix(random: Random) -> str:
    """Return the five characters that `generateName` appends."""
    return "".join(random.choices(ALPHABET, k=5))
