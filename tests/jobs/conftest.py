"""What tests of the job controller share."""

from __future__ import annotations

import pytest

from cluster.bootstrap import bootstrap
from tests.jobs.control import Controller


@pytest.fixture
def controller(db):
    bootstrap()
    return Controller()
