from __future__ import annotations

import pytest

from tests.cluster.api.conftest import admin, cluster, person

__all__ = ["admin", "cluster", "person"]


@pytest.fixture
def golden(request):
    """A function that compares a block with what is said of each of its lines; `pytest --update-golden` writes it anew."""
    return lambda block, answer: block.compare(block.told(answer), request.config)
