from __future__ import annotations

import pytest

from apiserver import watch
from cluster.runtime import nudge
from tests.apiserver.watch import world


@pytest.fixture
def redis(redis_url, settings):
    """The follower and the nudges of this process use the test's Redis."""
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    yield redis_url
    nudge.client.cache_clear()


@pytest.fixture
async def port(transactional_db, redis):
    async with world.serving() as number:
        yield number


keeper = pytest.fixture(name="keeper")(lambda: watch.keeper)
board = pytest.fixture(name="board")(lambda: watch.board)
follower = pytest.fixture(name="follower")(lambda: watch.follower)
