"""Golden files of the scheduler: blocks of a title, an input, and after arrows what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "scheduler"


@pytest.fixture
def golden(request):
    """A function that compares a file with what a function says of its inputs; `pytest --update-golden` writes it anew."""

    def check(name, say):
        path, made = GOLDEN / f"{name}.txt", ""
        for block in path.read_text().split("== ")[1:]:
            title, *lines = block.splitlines()
            text = "\n".join(line for line in lines if line and not line.startswith("→ "))
            made += "\n".join([f"== {title}", text, *(f"→ {each}" for each in say(text))]) + "\n\n"
        made = made.rstrip() + "\n"
        if request.config.getoption("--update-golden"):
            path.write_text(made)
        assert made == path.read_text()

    return check
