"""What fails: an outage is told of twice, when it begins and when it is over; what cannot be written comes back later and later, and people hear of it."""

from __future__ import annotations

import asyncio
import logging

import pytest
import redis
from celery.beat import ScheduleEntry
from django.db import InterfaceError, OperationalError, transaction

from cluster import tasks
from cluster.runtime import nudge, registry, retries
from cluster.runtime.nudge import Announcer
from cluster.runtime.outage import Outage
from cluster.runtime.retries import RETRY, TOLD_AFTER, Retries
from cluster.store import store
from cluster.writes import Group, Timer
from kube.errors import Conflict, Forbidden
from proof.harness.services import redis_server
from proof.harness.waiting import HANG_S
from tests.builders import job
from tests.tables import cases
from volcano_ui import celery_app
from volcano_ui.beat import Clock

pytestmark = pytest.mark.django_db


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


JOB = job("j", namespace="d", uid="u")
GROUP, PLACE = Group([], "d/j"), {"jobs": "d/j"}


def timer(tries=9, kind=RETRY, key="d/j", *, news=True):
    return Timer(kind, key, 0, {"error": "pods is forbidden: not here", "tries": tries, "news": news})


def retries_of_jobs():
    """What a new process knows."""
    return Retries("jobs", "jobs/0", "default")


def said(*timers):
    return [group.writes[0].object for group in retries.told(timers, {"d/j": JOB}.get, 1000, "c")]


def test_refusal_that_lasts_is_told_with_the_servers_words():
    (event,) = said(timer())
    assert event["message"] == "Tried 9 times: pods is forbidden: not here"
    assert (event["type"], event["involvedObject"]["uid"]) == ("Warning", "u")
    assert said(timer(news=False), timer(kind="other"), timer(key="d/gone"), Timer(RETRY, "d/j", 0)) == []


@cases("times, told_at", {
    "quickly": ([0] * 20, [8, 16]),
    "slowly": ([0, 2000, 4000, 5000, 6000, 7000], [3, 4]),
    "a minute later": ([0, 60_000], [2]),
    "once": ([0], []),
})  # fmt: skip
def test_what_lasts_some_seconds_is_told_and_again_at_twice_as_many_tries(times, told_at):
    kept = retries_of_jobs()
    found = [kept.timers([GROUP], [Forbidden("no")], at)[0].payload for at in times]
    assert [each["tries"] for each in found if each["news"]] == told_at


def test_group_that_fails_comes_back_later_and_later_until_it_is_written():
    tries = retries_of_jobs()
    found = [tries.timers([GROUP], [Conflict("late")], 0)[0] for _ in range(14)]
    assert [each.due for each in found[:4]] == [0, 50, 100, 200]
    assert found[-1].due == retries.RETRY_MOST_MS
    assert found[3].payload == {"error": "late", "tries": 4, "news": False}
    assert tries.timers([GROUP], [[]], 0) == []
    assert tries.timers([GROUP], [Forbidden("no")], 0)[0].payload["tries"] == 1
    assert tries.timers([Group([])], [Conflict("late")], 0) == [], "a group without a key does not come back"


def refused(times, kept=None, start=0):
    """Have a group fail so often, a millisecond between; return who counts."""
    kept = kept or retries_of_jobs()
    for number in range(times):
        kept.timers([GROUP], [Forbidden(f"not here, {number}")], start + number)
    return kept


def test_refusal_that_lasts_stands_until_the_group_is_written_and_the_next_process_counts_on():
    kept = refused(TOLD_AFTER - 1)
    assert retries.standing(PLACE) == [], "what only met another change is over by then"
    refused(2, kept, start=50_000)
    (found,) = retries.standing({**PLACE, "scheduler": "d/j"})
    assert (found.since, found.tries, found.error) == (0, TOLD_AFTER + 1, "not here, 1")
    assert found.due > 51_000
    refused(1, start=59_000)
    assert retries.standing(PLACE)[0].tries == TOLD_AFTER + 2
    kept = retries_of_jobs()
    kept.timers([GROUP], [[]], 60_000)
    assert retries.standing(PLACE) == []


@cases("planned, wanted, is_over", {
    "nothing is owed now": ([], [], True),
    "planned again": ([GROUP], [], False),
    "wanted back": ([], [Timer(RETRY, "d/j", 0)], False),
    "wanted for something else": ([], [Timer("other", "d/j", 0)], True),
})  # fmt: skip
def test_refusal_is_over_when_what_came_back_is_not_planned_again(planned, wanted, is_over):
    refused(TOLD_AFTER).outlived([timer(TOLD_AFTER)], planned, wanted)
    assert (retries.standing(PLACE) == []) is is_over


def test_refusal_stands_when_the_transaction_that_ended_it_is_lost():
    kept = refused(TOLD_AFTER)
    with transaction.atomic():
        kept.timers([GROUP], [[]], 60_000)
        transaction.set_rollback(True)
    kept.forget_memory()
    kept.timers([GROUP], [[]], 61_000)
    assert retries.standing(PLACE) == []


def test_refusals_are_found_by_key_and_by_namespace():
    refused(TOLD_AFTER)
    for key, found in (("d/j", ["d/j"]), ("d/*", ["d/j"]), ("dd/*", []), ("d/jj", [])):
        assert [each.key for each in retries.standing({"jobs": key})] == found
        assert retries.standing({"queues": key}) == []
