"""What exec and attach do on this machine, they do on another one: the same tests, by a link."""

from __future__ import annotations

import contextlib

import pytest

from tests.apiserver.linking import linked
from tests.apiserver.test_execs import *  # noqa: F403
from tests.apiserver.test_execs import SLEEPER, Door

del test_without_an_agent_the_answer_says_so  # noqa: F821  it is the link that is looked at, see test_node_link


@pytest.fixture
def running(node, server, settings):
    settings.DATA = node.data
    with contextlib.ExitStack() as open_ones:

        def begin(mounts="none", **pod):
            node.begin(mounts)
            node.uid = node.shell(SLEEPER, **pod) if "containers" not in pod else node.submit(**pod)
            node.until(lambda: "running" in node.state() if node.status().get("containerStatuses") else False)
            open_ones.enter_context(linked(server, node.data))
            door = Door(server, node)
            open_ones.callback(door.close)
            return door

        yield begin
