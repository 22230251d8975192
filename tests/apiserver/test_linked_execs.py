"""What exec and attach do on this machine, they do on another one: the same tests, by a link."""

from __future__ import annotations

import pytest

from tests.apiserver.client import linked
from tests.apiserver.test_execs import *  # noqa: F403

del test_without_an_agent_the_answer_says_so  # noqa: F821  it is the link that is looked at, see test_node_link


@pytest.fixture
def way():
    return linked
