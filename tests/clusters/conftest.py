from pathlib import Path

import pytest

from tests.system.conftest import _database, go

__all__ = ["_database", "go"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what is in this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("clusters")
