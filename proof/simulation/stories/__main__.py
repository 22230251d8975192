"""`python -m proof.simulation.stories`: play the stories that are kept, each with its defect and without."""

# ruff: noqa: E402, T201  Python and Django are set up before anything is imported; a program talks

from __future__ import annotations

from proof.simulation import process

process.prepare("proof.simulation.stories")

import argparse
import sys
import time

from proof.simulation import play, stories, story
from proof.simulation.planted import planted


def main() -> int:
    """Play stories and print a line for each; 1 when one does not end as it should."""
    parser = argparse.ArgumentParser(prog="python -m proof.simulation.stories", description=stories.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(stories.names())}")
    options = parser.parse_args()
    return max([_tell(name) for name in options.names or stories.names()], default=0)


def _tell(name: str) -> int:
    begun = time.process_time()
    loaded = story.decode(stories.path(name).read_bytes())
    with planted(loaded.plant):
        wrong = play.again(loaded).found
    right = play.again(loaded).found
    took = f"{len(loaded.moves)} moves, {time.process_time() - begun:.1f} CPU s"
    if right is not None:
        print(f"{name}: WRONG without its defect: {right.kind}: {right.text}\n{right.trace}")
    elif wrong is None or wrong.kind != loaded.broken:
        found = f"{wrong.kind}: {wrong.text}\n{wrong.trace}" if wrong else "nothing"
        print(f"{name}: NOT FOUND: {loaded.broken!r} is to be found with its defect, and what is found is {found}")
    else:
        print(f"{name}: found by {loaded.broken!r}, and right without its defect; {took}")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
