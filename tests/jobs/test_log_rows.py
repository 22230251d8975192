"""Who writes what in the log for a job of one pod, and how often a sync asks the database, however much it is about."""

import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster.store import Create, Group, Patch, store
from jobs.controller import status_throttle
from kube.resources import CONFIGMAPS, EVENTS, JOBS, POD_GROUPS, PODS
from proof.benches import shapes
from proof.modes.mode import EmbeddedMode
from proof.modes.small_cluster import SmallCluster
from tests.builders import config_map
from tests.jobs.control import job as job_of
from tests.tables import cases

HOLD = "release"
COUNT = status_throttle.LARGE_BATCH + 1
KINDS = {JOBS.id: "Job", POD_GROUPS.id: "PodGroup", PODS.id: "Pod", EVENTS.id: "Event"}
WAITS, HAS_PODS = "jobs Job Pending: WaitingForQueue", "jobs Job Pending: WaitingForPods"
BOUND = 25  # 19 for the smallest; large batches go in several statements


class Scribe:
    """Lets everybody who runs work in turn, and notes who wrote which rows about jobs and what belongs to them."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.position = store.revision()
        self.rows = []

    def note(self, who):
        for change in store.changes(self.position):
            self.position = change.revision
            if change.resource in KINDS:
                self.rows.append(f"{who} {KINDS[change.resource]} {_phase_text(change)}".strip())

    def work_off(self):
        """Note what is written until nobody has anything left to do at this moment."""
        before = -1
        while self.position != before:
            before = self.position
            for runner in self.cluster.runners:
                while runner.step():
                    self.note(runner.registration.name)
            self.cluster._simulate()
            self.note("simulator")


def _phase_text(change):
    status = change.object.get("status") or {}
    if change.verb == "DELETED":
        return "is gone"
    if change.resource == EVENTS.id:
        return change.object["reason"]
    if change.resource == PODS.id:
        return status["phase"] + " on its node" * ("nodeName" in change.object["spec"])
    if change.resource == POD_GROUPS.id:
        running = status.get("running")
        return status.get("phase", "") + (f", of its pods {running}" if running else "")
    state = status.get("state") or {}
    return ": ".join(filter(None, (state.get("phase"), state.get("reason"))))


@pytest.fixture
def scribe(transactional_db, redis, monkeypatch, moved_clock):
    cluster = SmallCluster(random.Random(1), monkeypatch, EmbeddedMode())
    scribe = Scribe(cluster)
    scribe.work_off()
    scribe.rows.clear()
    yield scribe
    cluster.close()


def _held_job(scribe, name="demo"):
    job = shapes.job(name, 1, HOLD)
    job["spec"]["tasks"][0]["template"]["metadata"]["annotations"]["ui.volcano.sh/duration-seconds"] = "0"
    scribe.cluster.make(JOBS, job)
    scribe.note("people")


@cases("seconds", {"runs for half a second": 0.5, "runs for longer": 5})
def test_each_row_of_a_job_of_one_pod(golden, scribe, moved_clock, seconds):
    """By whom, of which kind, and what it says: tests/golden/jobs/rows/log.yaml."""
    _held_job(scribe)
    scribe.work_off()
    moved_clock.move(seconds)
    scribe.work_off()
    store.write(Create(CONFIGMAPS, config_map(HOLD)))
    scribe.note("people")
    scribe.work_off()
    golden("log", scribe.rows)


def test_jobs_that_come_in_a_crowd_are_not_told_first_that_they_wait_for_their_queue(scribe):
    for number in range(COUNT):
        _held_job(scribe, f"demo-{number}")
    scribe.rows.clear()
    scribe.work_off()
    assert WAITS not in scribe.rows
    with_pods = scribe.rows.count("jobs Pod Pending")
    assert scribe.rows.count(HAS_PODS) == with_pods > 0
    # The others were told why they wait as soon as the scheduler said so.
    assert scribe.rows.count("jobs Job Pending: Unschedulable") >= COUNT - with_pods > 0


SILENCE = {
    "before": (1.9, True, 0), "by then": (2, True, COUNT), "unread": (9.9, False, 0), "unread for long": (10, False, COUNT)
}  # fmt: skip


@cases("seconds, is_read, reported", SILENCE)
def test_jobs_of_a_crowd_that_go_on_waiting_are_told_so_once_the_scheduler_has_read_of_them(
    scribe, moved_clock, seconds, is_read, reported
):
    for number in range(COUNT):
        _held_job(scribe, f"demo-{number}")
    jobs = next(each for each in scribe.cluster.runners if each.registration.name == "jobs")
    scribe.cluster.runners = [jobs]
    scribe.work_off()
    if is_read:
        connection.cursor().execute(
            "UPDATE cluster_cursor SET position = %s WHERE name = 'scheduler/0'", [store.revision()]
        )
    scribe.rows.clear()
    for step in (seconds / 2, seconds / 2):
        moved_clock.move(step)
        scribe.work_off()
    assert scribe.rows == [WAITS] * reported
    moved_clock.move(10)
    scribe.work_off()
    assert len(scribe.rows) == COUNT


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("jobs", "replicas"), [(1, 1), (300, 1), (1, 300), (20, 15)])
def test_a_sync_asks_a_bounded_number_of_times(controller, jobs, replicas):
    def step(writes):
        outcomes = store.commit([Group([write]) for write in writes])
        assert all(isinstance(outcome, list) for outcome in outcomes), outcomes[0]
        with CaptureQueriesContext(connection) as captured:
            controller.step()
        assert len(captured) <= BOUND

    controller.settle()
    step([Create(JOBS, job_of(f"job-{number}", replicas=replicas)) for number in range(jobs)])
    groups = store.find(POD_GROUPS)
    assert len(groups) == jobs
    let_in, runs = ({"status": {"phase": phase}} for phase in ("Inqueue", "Running"))
    step([Patch(POD_GROUPS, group.namespace, group.name, let_in) for group in groups])
    assert store.count(PODS) == {"Pending": jobs * replicas}
    step([Patch(PODS, pod.namespace, pod.name, runs, "status") for pod in store.find(PODS)])
    assert store.count(JOBS) == {"Running": jobs}
