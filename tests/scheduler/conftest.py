import pytest


@pytest.fixture
def golden(request):
    """A function that compares a block with what is said of its inputs; `pytest --update-golden` writes it anew."""

    def check(block, answer, *, by_line=False):
        block.compare(block.made(answer, by_line=by_line), request.config)

    return check
