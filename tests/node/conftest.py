from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from cluster.runtime import nudge
from tests.node.attempts import Attempts
from tests.node.driving import Node
from tests.node.walled import beginning


@pytest.fixture
def attempts():
    root = Path(tempfile.mkdtemp(prefix="volcano-"))
    running = Attempts(root)
    yield running
    running.close()
    shutil.rmtree(root)


@pytest.fixture
def node(transactional_db, redis_url, settings, monkeypatch):
    """This machine as a node, its agent begun by the test: `node.begin()`."""
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    data = Path(tempfile.mkdtemp(prefix="volcano-"))
    machine = Node(data)
    yield machine
    machine.close()
    nudge.client.cache_clear()
    shutil.rmtree(data)


@pytest.fixture(params=["root", "user"])
def mounted(request, node):
    """A node for each way in which containers have mounts of their own."""
    return beginning(node, request.param)
