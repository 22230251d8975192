from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser

from cluster.runtime import nudge
from tests.dashboard.live import world


@pytest.fixture
def redis(redis_url, settings):
    """The hub and the nudges of this process use the test's Redis."""
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    yield redis_url
    nudge.client.cache_clear()


@pytest.fixture
def alice(transactional_db):
    return world.person("alice")


@pytest.fixture
def nobody():
    return AnonymousUser()
