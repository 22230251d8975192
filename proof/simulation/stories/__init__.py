"""Stories that are kept for ever, one file each: what once was found to be wrong, in as few moves as it needs.

    python -m proof.simulation.stories [NAMES]

plays each twice: with its defect put back (`Story.plant`, of
`proof.simulation.planted`) the same must be found, and without it nothing.
`make simulate STORY=proof/simulation/stories/NAME.json` tells one move by move.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The names of all stories."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def path(name: str) -> Path:
    """Return the file of a story."""
    return FOLDER / f"{name}.json"
