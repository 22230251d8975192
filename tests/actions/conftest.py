import pytest
from django.db import transaction

from proof.harness.clocks import ManualClock
from tests.actions.world import Cluster, World


@pytest.fixture(scope="package")
def world(django_db_setup, django_db_blocker):
    """What all tests begin with, made once and taken away at the end."""
    with django_db_blocker.unblock(), transaction.atomic():
        made = World()
        made.make()
        yield made
        transaction.set_rollback(True)


@pytest.fixture
def cluster(world, db):
    """A cluster of the test's own, which stands still at first."""
    own = Cluster(ManualClock(world.us), world)
    with own.here():
        yield own
