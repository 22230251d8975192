import pytest
from django.contrib.auth.models import AnonymousUser

from tests.dashboard.live import world


@pytest.fixture
def alice(transactional_db):
    return world.person("alice")


@pytest.fixture
def nobody():
    return AnonymousUser()
