"""Nudges of commits, and what is away: it is told of twice in the log, when that begins and when it is over."""

from __future__ import annotations

import asyncio
import logging

import pytest
import redis
from celery.beat import ScheduleEntry
from django.db import InterfaceError, OperationalError

from cluster import tasks
from cluster.runtime import nudge, registry
from cluster.runtime.nudge import Announcer
from cluster.runtime.outage import Outage
from cluster.store import store
from proof.harness.services import redis_server
from proof.harness.waiting import HANG_S
from volcano_ui import celery_app
from volcano_ui.beat import Clock


@pytest.fixture
def told(caplog):
    """What was logged of outages so far."""

    def read():
        lines = [record.getMessage() for record in caplog.records]
        return [line for line in lines if " is put off: " in line or " goes on after " in line]

    return read


def test_only_the_first_failure_and_the_first_success_are_told(told):
    outage = Outage("the work", logging.getLogger("test"))
    outage.over()
    for reason in ("gone\n\tIs it running?", "still gone"):
        outage.lasts(OperationalError(reason))
    outage.over()
    outage.over()
    first, last = told()
    assert (first, last[:25]) == ("the work is put off: gone", "the work goes on after 0.")
    outage.lasts(InterfaceError())
    assert told()[2:] == ["the work is put off: InterfaceError"]


@pytest.mark.django_db
def test_ticks_without_a_database_are_told_of_once(told, caplog, monkeypatch):
    monkeypatch.setattr(tasks, "_outages", {})
    with monkeypatch.context() as outage:
        outage.setattr(store, "revision", _away)
        for _ in range(3):
            tasks.tick("controllers")
    monkeypatch.setattr(tasks.registry, "every", list)
    for _ in range(3):
        tasks.tick("controllers")
    first, last = told()
    assert first == "the tick is put off: the server is gone"
    assert last.startswith("the tick goes on")
    assert not any(record.exc_info for record in caplog.records)


def _away(*_, **__):
    raise OperationalError("the server is gone")


@pytest.fixture
def redis_away(settings, tmp_path, monkeypatch):
    """As in a process that has not met an outage; in this one tests may have written without a Redis."""
    monkeypatch.setattr(nudge, "outage", Outage("news of commits through Redis", nudge.log))
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"
    nudge.client.cache_clear()
    yield
    nudge.client.cache_clear()


def test_one_redis_outage_is_told_of_once_by_who_announces_and_hears(redis_away, settings, told):
    for revision in (1, 2):
        nudge.send(frozenset(), revision)
        asyncio.run(nudge.hear(lambda _: None))
    assert [line.partition(":")[0].endswith("is put off") for line in told()] == [True]
    with redis_server() as url:
        settings.REDIS_URL = url
        nudge.client.cache_clear()
        for revision in (3, 4):
            nudge.send(frozenset(), revision)
    assert len(told()) == 2
    assert "goes on after" in told()[1]


def test_beat_tells_once_that_redis_is_away(tmp_path, told, caplog):
    broker = celery_app.conf.broker_url
    entry = ScheduleEntry("tick", "cluster.tasks.tick", schedule=1.0, app=celery_app)
    caplog.set_level(logging.WARNING, "amqp")
    try:
        celery_app.conf.broker_url = f"redis+socket://{tmp_path}/none.sock"
        clock = Clock(celery_app, lazy=True, schedule_filename=str(tmp_path / "schedule"))
        for _ in range(3):
            clock.apply_entry(entry, clock.producer)
    finally:
        celery_app.conf.broker_url = broker
    (line,) = told()
    assert line.startswith("waking the workers is put off: Couldn't apply scheduled task tick")


def test_a_nudge_from_a_thread_is_of_the_newest_revision(settings, redis_url):
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    with redis.Redis.from_url(redis_url) as listener:
        channel = listener.pubsub(ignore_subscribe_messages=True)
        channel.subscribe(nudge.channel())
        channel.get_message(timeout=HANG_S)  # that the subscription holds
        announcer = Announcer()
        for revision in range(1, 51):
            announcer.note(frozenset({"nobody.reads.this"}), revision)
        heard = []
        while not heard or heard[-1] < 50:
            message = channel.get_message(timeout=HANG_S)
            assert message is not None, f"heard only {heard}"
            heard.append(int(message["data"]))
        assert heard == sorted(heard)
        assert len(heard) < 50
    nudge.client().close()
    nudge.client.cache_clear()


def test_asking_for_a_run_while_redis_is_away_raises_nothing():
    """A tick will find the work: whoever asks has committed already."""

    class Away:
        def queue(self, registration, shard, delay_s):
            raise ConnectionRefusedError

    before = nudge.use(Away())
    try:
        nudge.wake(registry.get("jobs"), 0)
    finally:
        nudge.use(before)
