"""Worker processes of jobs: several of them, one that is killed, and others that are slow."""

from __future__ import annotations

import os
import signal

import pytest

from cluster.runtime.registry import shard_of
from proof.harness.waiting import until
from proof.systems.parts import stopped
from proof.systems.system import System, running
from proof.systems.work import Person, Watcher, job, shell

pytestmark = pytest.mark.system
NAMES = [f"shared-{number}" for number in range(6)]


@pytest.fixture
def two(tmp_path):
    """A system with two workers for jobs."""
    with running(tmp_path / "data", VOLCANO_UI_JOB_WORKERS="2") as system:
        yield system


def test_jobs_of_both_workers_complete_also_after_one_was_killed(two):
    workers = two.children()
    assert {"jobs", "jobs-1"} <= workers.keys()
    assert {shard_of(f"default/{name}", 2) for name in NAMES} == {0, 1}
    with Person(two) as person, two.store() as store:
        watcher = Watcher(store)
        for name in NAMES[:3]:
            person.create(job(name, shell("exit 0")))
        os.kill(workers["jobs-1"], signal.SIGKILL)
        for name in NAMES[3:]:
            person.create(job(name, shell("exit 0")))
        for name in NAMES:
            watcher.reaches(name, "Completed")
        assert all(watcher.job(name)["status"]["succeeded"] == 1 for name in NAMES)


def test_controllers_that_do_not_come_to_their_work_delay_no_job(own):
    with own, Person(own) as person, own.store() as store:
        watcher = Watcher(store)
        with stopped(own, "controllers"):
            # Its end is asked for by a timer, which only a tick finds.
            person.create(job("quick", shell("exit 0"), ttlSecondsAfterFinished=3))
            watcher.reaches("quick", "Completed")
            until(
                lambda: (found := watcher.job("quick")) is None or "deletionTimestamp" in found["metadata"],
                what="the end of the finished job",
            )


def test_number_of_workers_that_is_none_is_refused_by_its_name(tmp_path):
    system = System(tmp_path / "data", VOLCANO_UI_JOB_WORKERS="0")
    with pytest.raises(AssertionError, match="VOLCANO_UI_JOB_WORKERS is '0'; set it to a whole number from 1 to 64"):
        system.start()
