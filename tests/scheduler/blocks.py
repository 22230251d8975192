"""Golden files of the scheduler: blocks of a title, with items after a `|`, of inputs, and of what is made of them."""

from __future__ import annotations

from pathlib import Path

from tests.tables import cases

GOLDEN = Path(__file__).parents[1] / "golden" / "scheduler"
ARROW = "→ "


class Block:
    """A part of a golden file."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.title, *lines = text.rstrip().splitlines()
        self.inputs = [line for line in lines if not line.startswith(ARROW)]

    def made(self, answer, *, by_line):
        """Return the block with what is said of all its inputs, or of one line after the other."""
        lines = [self.title]
        for each in self.inputs if by_line else ["\n".join(self.inputs)]:
            lines += [each, *(ARROW + line for line in answer(each))]
        return "\n".join(lines) + "\n"


def blocks(name):
    """Run a test once for each block of a golden file."""
    path = GOLDEN / f"{name}.txt"
    found = [Block(path, text) for text in path.read_text().split("== ")[1:]]
    rows = {each.title: each for each in found}
    assert len(rows) == len(found), "two blocks have one title"
    return cases("block", rows)
