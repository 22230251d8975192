from __future__ import annotations

import pytest

from cluster import nudge
from cluster.apiserver import watching
from tests.apiserver.watching import world


@pytest.fixture
def redis(redis_url, settings):
    """The follower and the nudges of this process use the test's Redis."""
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    yield redis_url
    nudge.client.cache_clear()


@pytest.fixture
async def port(transactional_db, redis):
    """The port of a running API server that serves watches."""
    async with world.serving() as number:
        yield number


@pytest.fixture
def keeper():
    return watching.keeper


@pytest.fixture
def board():
    return watching.board


@pytest.fixture
def follower():
    return watching.follower
