"""Job controllers in several processes, and in another number of them than before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest

from cluster import clock
from cluster.bootstrap import bootstrap
from cluster.runtime import registry
from cluster.runtime.backlog import Backlog
from cluster.runtime.consumer import Runner
from cluster.store import Create, Patch, sql, store
from jobs.controller.job_controller import JobConsumer
from kube.resources import JOBS, POD_GROUPS
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
    store.write(*(Create(JOBS, job(name, **spec)) for name in NAMES))
    start(shards)
    for group in store.find(POD_GROUPS):
        store.write(Patch(POD_GROUPS, group.namespace, group.name, {"status": {"phase": "Inqueue"}}))
    return start(shards)


def timers():
    rows = sql.rows(store.using, "SELECT cursor, kind, key FROM cluster_timer WHERE cursor LIKE 'jobs/%%'")
    return {(kind, key): cursor for cursor, kind, key in rows if key}


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
