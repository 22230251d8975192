"""The tasks that beat sends: they go on with what is stored, and put it off where the database fails."""

from __future__ import annotations

import pytest
from django.db import connection

from cluster import access
from cluster.store import store
from jobs import tasks
from jobs.models import Operation
from jobs.operations import drafts
from jobs.operations.selection import Selection
from jobs.rules import actions
from kube.resources import JOBS
from tests.jobs.pages import world


@pytest.fixture
def operation(cluster, person):
    world.make("one", "Running")
    actor = access.for_user(person("alice"))
    operation = drafts.draft(actor, actions.DELETE, Selection(store.names(JOBS), "all"))
    drafts.confirm(operation)
    return operation


@pytest.mark.parametrize("follow", [False, True])
def test_a_run_asks_and_looks_at_what_came_of_it(operation, follow):
    tasks.advance(follow)
    assert store.find(JOBS) == []
    operation.refresh_from_db()
    assert operation.over


def test_without_redis_nothing_fails_and_beat_goes_on(operation):
    tasks.hurry()
    assert len(store.find(JOBS)) == 1
    tasks.advance()
    assert store.find(JOBS) == []


@pytest.mark.django_db(transaction=True)
def test_a_database_that_fails_puts_it_off(operation):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TRIGGER broken BEFORE UPDATE ON jobs_operationitem BEGIN SELECT RAISE(ABORT, 'no'); END")
    tasks.advance()
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER broken")
    assert len(store.find(JOBS)) == 1
    tasks.advance()
    assert store.find(JOBS) == []


def test_what_is_old_is_cleaned_away(operation):
    Operation.objects.update(drafted=1)
    tasks.clean()
    assert not Operation.objects.exists()
