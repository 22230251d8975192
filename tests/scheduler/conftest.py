from __future__ import annotations

import pytest


@pytest.fixture
def golden(request):
    """A function that compares a block with what is said of its inputs; `pytest --update-golden` writes it anew."""

    def check(block, answer, *, by_line=False):
        made = block.made(answer, by_line=by_line)
        if request.config.getoption("--update-golden"):
            whole = block.path.read_text()
            block.path.write_text(whole.replace(f"== {block.text.rstrip()}\n", f"== {made}"))
        else:
            assert made.rstrip() == block.text.rstrip()

    return check
