import pytest

from dashboard import cluster_usage
from scheduler import rehearsal, waiting_lines


@pytest.fixture(autouse=True)
def _nothing_known():
    """What a process has read of the store is forgotten, which becomes empty behind its back."""
    for each in (cluster_usage, waiting_lines, rehearsal):
        each.forget()
    yield
    for each in (cluster_usage, waiting_lines, rehearsal):
        each.forget()
