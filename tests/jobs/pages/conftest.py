from __future__ import annotations

import lxml.html
import pytest
from django.contrib.auth.models import User

from cluster.bootstrap import bootstrap
from cluster.models import RoleBinding
from proof.harness import clocks
from proof.harness.clocks import ManualClock
from tests.jobs.history.lives import Life
from tests.jobs.pages import world
from tests.jobs.pages.story import PageStory
from tests.reading import reads
from tests.scheduler.conftest import golden

__all__ = ["golden", "reads"]


@pytest.fixture
def cluster(db):
    world.base()


@pytest.fixture
def person(db):
    """Make a user with a role in a namespace."""

    def make(name, role="submitter", namespace="default"):
        user = User.objects.create_user(name, password="x")
        if role:
            RoleBinding.objects.create(user=user, namespace=namespace, role=role)
        return user

    return make


@pytest.fixture
def alice(cluster, person, client):
    """A submitter of the namespace default, logged in with `client`."""
    user = person("alice")
    client.force_login(user)
    return user


@pytest.fixture
def parse():
    return lambda response: lxml.html.document_fromstring(response.content.decode())


@pytest.fixture
def story(db, person, client):
    """Begin the life of a job whose pages alice reads, on a clock that begins at `world.START`."""
    client.force_login(person("alice"))
    with clocks.using(ManualClock(world.START * 1000)) as clock:
        yield lambda name="demo", **spec: PageStory(clock, client, name, **spec)


@pytest.fixture
def life(db, moved_clock):
    bootstrap()
    return lambda name="demo", **spec: Life(moved_clock, name, **spec)
