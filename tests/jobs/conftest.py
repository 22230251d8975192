"""What tests of the job controller share."""

from __future__ import annotations

import pytest

from cluster.bootstrap import bootstrap
from scheduler import rehearsal, waiting_lines
from tests.jobs.control import Controller


@pytest.fixture
def controller(db):
    bootstrap()
    return Controller()


@pytest.fixture(autouse=True)
def _nothing_known():
    """What a process has read of the store is forgotten, which becomes empty behind its back."""
    for each in (waiting_lines, rehearsal):
        each.forget()
    yield
    for each in (waiting_lines, rehearsal):
        each.forget()
