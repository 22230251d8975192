from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.cluster.node.attempts import Attempts


@pytest.fixture
def attempts():
    root = Path(tempfile.mkdtemp(prefix="volcano-"))
    running = Attempts(root)
    yield running
    running.close()
    shutil.rmtree(root)
