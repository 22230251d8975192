"""Job controllers in several processes, and in another number of them than before."""

from dataclasses import replace

import pytest

from cluster import clock
from cluster.bootstrap import bootstrap
from cluster.consumers.backlog import Backlog
from cluster.consumers.consumer import Runner
from cluster.runtime import registry
from cluster.store import Create, Patch, sql, store
from jobs.consumers.job_controller import JobConsumer
from kube.resources import JOBS, POD_GROUPS
from tests.jobs.control import job, report
from tests.jobs.made import settle

pytestmark = pytest.mark.django_db
NAMES = [f"job-{number}" for number in range(8)]


@pytest.fixture
def start(monkeypatch):
    """Start so many controllers as new processes do."""
    bootstrap()

    def start(shards):
        new = replace(registry.get("jobs"), shards=shards)
        monkeypatch.setitem(registry._registrations, "jobs", new)
        return [Runner(new, shard, JobConsumer()) for shard in range(shards)]

    return start


@pytest.mark.shows("2.1/one job, one worker")
@pytest.mark.parametrize("numbers", [(1, 2), (2, 1), (1, 2, 1), (3, 2, 3)])
def test_finished_jobs_expire_whatever_the_number_of_workers_becomes(start, moved_clock, numbers):
    def timers():
        rows = sql.rows(store.using, "SELECT cursor, key FROM cluster_timer WHERE cursor LIKE 'jobs/%%'")
        return [cursor for cursor, key in rows if key]

    store.write(*(Create(JOBS, job(name, ttlSecondsAfterFinished=1800)) for name in NAMES))
    settle(*start(numbers[0]))
    for group in store.find(POD_GROUPS):
        store.write(Patch(POD_GROUPS, group.namespace, group.name, {"status": {"phase": "Inqueue"}}))
    runners = start(numbers[0])
    settle(*runners)
    assert sum(len(runner.state.entries) for runner in runners) == len(store.find(POD_GROUPS)) == len(NAMES)
    report("Succeeded")
    for number in numbers:
        settle(*start(number))
        cursors = {row[0] for row in sql.rows(store.using, "SELECT name FROM cluster_cursor")}
        assert cursors == {f"jobs/{shard}" for shard in range(number)} >= {*timers()}
        assert len(timers()) == len(NAMES)
    moved_clock.move(3600)
    settle(*start(numbers[-1]))
    assert all("deletionTimestamp" in found.object["metadata"] for found in store.find(JOBS))
    assert timers() == []


def test_a_worker_that_never_looked_is_woken_for_the_jobs_that_are_there_already(start):
    """The first worker makes the cursors of all at the end of the log, so that nothing is news for the others."""
    name = next(name for name in NAMES if registry.shard_of(f"default/{name}", 2) == 1)
    store.write(Create(JOBS, job(name)))
    first, second = start(2)
    settle(first)
    both = registry.get("jobs")
    assert Backlog().of(both.queue_of(1), clock.milliseconds()) == [(both, 1)]
    settle(second)
    assert len(store.find(POD_GROUPS)) == 1
