"""Golden files: blocks of a title, with items after a `|`, of inputs, and behind an arrow of what is made of them.

What stands in a block `== given` stands before the inputs of all blocks that come after it; `let DAY = …` is a text that
stands there for `$DAY`.
"""

import re
from pathlib import Path

from tests.tables import cases

GOLDEN = Path(__file__).parent / "golden"
ARROW = "→"


class Block:
    """A part of a golden file."""

    def __init__(self, path, text, given=()):
        self.path, self.text = path, text
        self.title, *lines = text.rstrip().splitlines()
        self.inputs = [line.partition(f" {ARROW}")[0] for line in lines if not line.strip().startswith(ARROW)]
        self._words = [line[4:].split(" = ", 1) for line in given if line.startswith("let ")]
        self.given = [self._whole(line) for line in given if not line.startswith("let ")]

    def _whole(self, line):
        for word, text in self._words:
            line = line.replace(f"${word}", text)
        return line

    def made(self, answer, *, by_line):
        """Return the block with what is said of all its inputs, or of one line after the other."""
        lines = [self.title]
        for each in self.inputs if by_line else ["\n".join(self.inputs)]:
            lines += [each, *(f"{ARROW} {line}" for line in answer(self._whole(each)))]
        return "\n".join(lines) + "\n"

    def with_answer(self, answer):
        """Return the block with what is said of each line: the first of it behind that line, and what more there is below."""
        lines = [self.title]
        for each in self.inputs:
            first, *more = [f"{ARROW} {line}".rstrip() for line in answer(self._whole(each))] or [""]
            lines += [f"{each} {first}".rstrip(), *(f"    {line}" for line in more)]
        return "\n".join(lines) + "\n"

    def compare(self, made, config):
        """Compare the block with what is made of its inputs; `pytest --update-golden` writes it anew."""
        if config.getoption("--update-golden"):
            whole = self.path.read_text()
            self.path.write_text(whole.replace(f"== {self.text.rstrip()}\n", f"== {made}"))
        else:
            assert made.rstrip() == self.text.rstrip()


def blocks(*patterns, folder="scheduler"):
    """Run a test once for each block of some golden files."""
    rows, many = {}, any("*" in each for each in patterns)
    for path in (found for each in patterns for found in sorted((GOLDEN / folder).glob(f"{each}.txt"))):
        given = ()
        for text in re.split("^== ", path.read_text(), flags=re.MULTILINE)[1:]:
            block = Block(path, text, given)
            if block.title == "given":
                given = block.inputs
                continue
            title = f"{path.stem}: {block.title}" if many else block.title
            assert title not in rows, f"two blocks have one title: {title}"
            rows[title] = block
    assert rows, f"there is no block in {folder}: {', '.join(patterns)}"
    return cases("block", rows)
