"""Job controllers in several processes, and in another number of them than before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest
from django.db import connection

from cluster import clock
from cluster.bootstrap import bootstrap
from cluster.runtime import registry
from cluster.runtime.backlog import Backlog
from cluster.runtime.consumer import RETRY, Runner
from cluster.store import Create, Patch, sql, store
from jobs.controller.job_controller import JobConsumer
from kube.resources import EVENTS, JOBS, POD_GROUPS
from tests.jobs.control import job, report

pytestmark = pytest.mark.django_db
NAMES = [f"job-{number}" for number in range(8)]
HOUR_MS = 3_600_000
fired: list[tuple[str, str]] = []


class Late(Runner):
    """A job controller an hour later, which notes what its timers were for."""

    def _due(self, now):
        timers = super()._due(now + HOUR_MS)
        fired.extend((timer.kind, timer.key) for timer in timers if timer.key)
        return timers


@pytest.fixture
def start(monkeypatch):
    """Start controllers as new processes do: so many shards, run until nothing is to be done."""
    bootstrap()
    fired.clear()

    def start(shards, kind=Runner):
        new = replace(registry.get("jobs"), shards=shards)
        monkeypatch.setitem(registry._registrations, "jobs", new)
        runners = [kind(new, shard, JobConsumer()) for shard in range(shards)]
        for runner in chain(runners, runners):
            while runner.step():
                pass
        return runners

    return start


def run_jobs(start, shards, **spec):
    """Submit jobs and have their pods made."""
    store.write(*(Create(JOBS, job(name, **spec)) for name in NAMES))
    start(shards)
    for group in store.find(POD_GROUPS):
        store.write(Patch(POD_GROUPS, group.namespace, group.name, {"status": {"phase": "Inqueue"}}))
    return start(shards)


def timers():
    rows = sql.rows(store.using, "SELECT cursor, kind, key FROM cluster_timer WHERE cursor LIKE 'jobs/%%'")
    return {(kind, key): cursor for cursor, kind, key in rows if key}


def set_timer(cursor, kind, key, due, payload):
    with connection.cursor() as db:
        statement = "INSERT INTO cluster_timer (cursor, kind, key, due, payload) VALUES (%s, %s, %s, %s, %s)"
        db.execute(statement, [cursor, kind, key, due, payload])


def cursors():
    return sorted(row[0] for row in sql.rows(store.using, "SELECT name FROM cluster_cursor"))


@pytest.mark.shows("2.1/one job, one worker")
@pytest.mark.parametrize("numbers", [(1, 2), (2, 1), (1, 2, 1), (3, 2, 3)])
def test_finished_jobs_expire_once_whatever_the_number_of_workers_becomes(start, numbers):
    runners = run_jobs(start, numbers[0], ttlSecondsAfterFinished=1800)
    assert sum(len(runner.state.entries) for runner in runners) == len(store.find(POD_GROUPS)) == len(NAMES)
    report("Succeeded")
    for number in numbers:
        start(number)
        assert len(timers()) == len(NAMES)
        assert {*timers().values()} <= {*cursors()}
        assert cursors() == [f"jobs/{shard}" for shard in range(number)]
    start(numbers[-1], Late)
    uids = {name: store.get(JOBS, "default", name).uid for name in NAMES}
    assert Counter(fired) == Counter(("ttl", f"default/{name}/{uid}") for name, uid in uids.items())
    assert all("deletionTimestamp" in found.object["metadata"] for found in store.find(JOBS))
    assert timers() == {}


@pytest.mark.parametrize("numbers", [(1, 2, 1), (2, 1, 2), (3, 2, 3)])
@pytest.mark.parametrize("heard", [False, True], ids=["that nobody heard of", "that one worker heard of"])
def test_failures_of_pods_are_told_once_whatever_the_number_of_workers_becomes(start, numbers, heard):
    workers = run_jobs(start, numbers[0], replicas=1)
    report("Failed")
    while heard and workers[-1].step():
        pass
    for number in numbers[1:]:
        start(number)
    failures = [event.object for event in store.find(EVENTS) if event.object["reason"] == "PodFailed"]
    assert sorted(each["involvedObject"]["name"] for each in failures) == NAMES


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (3, 2)])
def test_jobs_whose_writes_failed_are_tried_again_by_another_number_of_workers(start, before, after):
    run_jobs(start, before)
    stuck = {f"default/{name}" for name in NAMES}
    for key in stuck:
        cursor, due = f"jobs/{registry.shard_of(key, before)}", clock.milliseconds() + 60_000
        set_timer(cursor, RETRY, key, due, '{"error": "it was written meanwhile", "tries": 9}')
    start(after)
    assert {key for _, key in timers()} == stuck
    start(after, Late)
    assert Counter(fired) == Counter((RETRY, key) for key in stuck)


def test_a_timer_of_a_worker_that_is_no_more_wakes_those_that_are(start):
    start(1)
    set_timer("jobs/1", "ttl", "default/gone", clock.milliseconds() - 1, '{"uid": "1"}')
    assert Backlog().of("jobs", clock.milliseconds()) == [(registry.get("jobs"), 0)]
    start(1)
    assert timers() == {}
    assert Backlog().of("jobs", clock.milliseconds()) == []


def test_a_worker_that_never_looked_is_woken_for_the_jobs_that_are_there_already(monkeypatch):
    """The first worker makes the cursors of all at the end of the log, so that nothing is news for the others."""
    bootstrap()
    name = next(name for name in NAMES if registry.shard_of(f"default/{name}", 2) == 1)
    store.write(Create(JOBS, job(name)))
    both = replace(registry.get("jobs"), shards=2)
    monkeypatch.setitem(registry._registrations, "jobs", both)
    first, second = (Runner(both, shard, JobConsumer()) for shard in range(2))
    while first.step():
        pass
    assert Backlog().of(both.queue_of(1), clock.milliseconds()) == [(both, 1)]
    while second.step():
        pass
    assert len(store.find(POD_GROUPS)) == 1
