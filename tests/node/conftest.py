import contextlib

import pytest

from cluster.runtime import nudge
from proof.escapes.attempts import Attempts
from tests.node.driving import Node, beginning, short_folder


@pytest.fixture
def attempts():
    with short_folder() as root, contextlib.closing(Attempts(root)) as running:
        yield running


RUNTIMES = ("process", "podman")


def pytest_generate_tests(metafunc):
    """Run a test of a node with each runtime of containers where it is about what both promise."""
    if metafunc.definition.get_closest_marker("each_runtime"):
        metafunc.parametrize("machine", RUNTIMES, indirect=True)


@pytest.fixture
def machine(request, transactional_db, redis_url, settings):
    """This machine as a node, its agent begun by the test: `machine.begin()`."""
    settings.REDIS_URL = redis_url
    settings.ENGINE, settings.HOST_PATHS = "none", []
    nudge.client.cache_clear()
    with short_folder() as data, contextlib.closing(Node(data)) as node:
        if getattr(request, "param", "process") == "podman":
            node.with_engine(request.getfixturevalue("podman"))
        yield node
    nudge.client.cache_clear()


@pytest.fixture
def node(machine):
    """A node whose agent has begun, without mounts."""
    return machine.begin()


@pytest.fixture
def begun(request, machine):
    """A node whose containers get what they mount in a way of those named by `in_ways`; what is not allowed here is skipped."""
    if request.param in ("podman", "docker"):
        return machine.with_engine(request.getfixturevalue(request.param)).begin()
    return beginning(machine, request.param)
