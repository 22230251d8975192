"""Which consumers run, and on which queues, is asked in one place."""

from __future__ import annotations

import pytest

from cluster import clock, tasks
from cluster.models import Cursor
from cluster.runtime import registry
from cluster.runtime.backlog import Backlog
from cluster.runtime.registry import Registration
from cluster.store import Create, store
from kube.resources import JOBS, PODS
from tests.builders import pod
from tests.tables import cases
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


def test_queues_news_and_ticks_are_for_those_who_run(elsewhere):
    assert not {each.name for each in registry.running()} & {*VOLCANO}
    assert registry.queues() == list(Messages(app).queues) == ["controllers"]
    assert not {each.name for each in registry.interested(frozenset([JOBS.id]))} & {*VOLCANO}
    ticks = {name: entry.options["queue"] for name, entry in Clock(app=app).schedule.items() if "tick" in name}
    assert ticks == {"tick controllers": "controllers"}


@pytest.mark.django_db
def test_a_message_to_one_who_runs_no_more_is_dropped(elsewhere):
    store.write(Create(PODS, pod()))
    tasks.consume("scheduler", 0)
    assert Backlog().of("scheduler", clock.milliseconds()) == []
    assert Cursor.objects.count() == 0


def test_each_shard_has_a_queue_and_a_cursor_of_its_own():
    two = Registration("jobs", "", (JOBS,), queue="jobs", shards=2)
    assert (two.queues, two.cursors) == (["jobs", "jobs-1"], ["jobs/0", "jobs/1"])


@cases("cursor, expected", {
    "of a shard that is": ("jobs/0", True),
    "of a shard that is no more": ("jobs/7", True),
    "of a consumer that is no more": ("someone/0", False),
    "of a name that only begins so": ("jobsite/0", False),
})  # fmt: skip
def test_a_cursor_has_a_reader_as_long_as_its_consumer_is_registered(cursor, expected):
    assert registry.has_reader(cursor) is expected


@pytest.mark.django_db
def test_a_shard_that_is_no_more_wakes_those_that_are(monkeypatch):
    two, one = (Registration("reader", "", (PODS,), hears="edges", shards=shards) for shards in (2, 1))
    for name in two.cursors:
        Cursor.objects.create(name=name, position=0, generation=1, holder="somebody")
    for each, woken in ((two, []), (one, [(one, 0)])):
        monkeypatch.setattr(registry, "_registrations", {"reader": each})
        assert Backlog().of("controllers", clock.milliseconds()) == woken
