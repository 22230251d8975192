"""Golden files of the scheduler: blocks of a title, an input, and after arrows what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "scheduler"


@pytest.fixture
def golden(request):
    """A function that compares a file with what is said of its inputs; `pytest --update-golden` writes it anew."""

    def check(name, said, *, by_line=False):
        """said: makes for each block a function of its input, or of one line of it after the other."""
        path, made = GOLDEN / f"{name}.txt", ""
        for block in path.read_text().split("== ")[1:]:
            title, *lines = block.splitlines()
            inputs, answer = [line for line in lines if line and not line.startswith("→ ")], said()
            made += f"== {title}\n"
            for each in inputs if by_line else ["\n".join(inputs)]:
                made += "\n".join([each, *(f"→ {line}" for line in answer(each))]) + "\n"
            made += "\n"
        if request.config.getoption("--update-golden"):
            path.write_text(made.rstrip() + "\n")
        assert made.rstrip() + "\n" == path.read_text()

    return check
