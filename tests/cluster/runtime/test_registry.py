"""Which consumers run, and on which queues, is asked in one place."""

from __future__ import annotations

import pytest
from django.db import connection

from cluster import clock, tasks
from cluster.runtime import registry
from cluster.runtime.backlog import Backlog
from cluster.runtime.registry import Registration
from cluster.store import Create, store
from kube.resources import JOBS, PODS
from volcano_ui.beat import Clock
from volcano_ui.celery import Messages, app

VOLCANO = ("jobs", "queues", "scheduler")


@pytest.fixture
def elsewhere(monkeypatch):
    """A cluster that has the controllers of Volcano already."""
    monkeypatch.setattr(registry, "_runs", registry._runs)
    registry.use(lambda registration: registration.name not in VOLCANO)


def test_all_run_unless_somebody_says_otherwise():
    assert registry.running() == registry.every()
    assert registry.queues() == ["controllers", "scheduler", "jobs"]


def test_queues_and_news_are_for_those_who_run(elsewhere):
    assert not {each.name for each in registry.running()} & {*VOLCANO}
    assert registry.queues() == ["controllers"]
    assert list(Messages(app).queues) == ["controllers"]
    assert not {each.name for each in registry.interested(frozenset([JOBS.id]))} & {*VOLCANO}


def test_ticks_are_for_those_who_run(elsewhere):
    clock_ = Clock(app=app)
    ticks = {name: entry.options["queue"] for name, entry in clock_.schedule.items() if "tick" in name}
    assert ticks == {"tick controllers": "controllers"}


@pytest.mark.django_db
def test_a_message_to_one_who_runs_no_more_is_dropped(elsewhere):
    store.write(Create(PODS, {"metadata": {"name": "a", "namespace": "d"}, "spec": {}}))
    tasks.consume("scheduler", 0)
    assert Backlog().of("scheduler", clock.milliseconds()) == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM cluster_cursor")
        assert cursor.fetchone() == (0,)


def test_each_shard_has_a_queue_and_a_cursor_of_its_own():
    two = Registration("jobs", "", (JOBS,), queue="jobs", shards=2)
    assert (two.queues, two.cursors) == (["jobs", "jobs-1"], ["jobs/0", "jobs/1"])


@pytest.mark.parametrize(
    ("cursor", "expected"),
    [
        pytest.param("jobs/0", True, id="of a shard that is"),
        pytest.param("jobs/7", True, id="of a shard that is no more"),
        pytest.param("someone/0", False, id="of a consumer that is no more"),
        pytest.param("jobsite/0", False, id="of a name that only begins so"),
    ],
)
def test_a_cursor_has_a_reader_as_long_as_its_consumer_is_registered(cursor, expected):
    assert registry.has_reader(cursor) is expected


@pytest.mark.django_db
def test_a_shard_that_is_no_more_wakes_those_that_are(monkeypatch):
    for shards in (2, 1):
        each = Registration("reader", "", (PODS,), hears="edges", shards=shards)
        monkeypatch.setattr(registry, "_registrations", {"reader": each})
        if shards == 2:
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO cluster_cursor (name, position, generation, holder, held_until)"
                    " VALUES (%s, 0, 1, 'somebody', 0)",
                    [(name,) for name in each.cursors],
                )
            assert Backlog().of("controllers", clock.milliseconds()) == []
    assert Backlog().of("controllers", clock.milliseconds()) == [(each, 0)]
