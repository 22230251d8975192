"""What the log of a job is folded into, in how many pieces ever, and when it is recorded, whatever crashes."""

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from cluster import clock
from cluster.bootstrap import bootstrap
from cluster.runtime import retention
from cluster.store import Create, Delete, records, store
from jobs.consumers import gather
from jobs.consumers.history_controller import MOST, sweep_ms
from jobs.history import record
from jobs.history.fold import MAX_EVENTS, MAX_STRETCHES, fold, stretches_after
from jobs.history.record import History
from jobs.lifecycle.reading import ContainerState, ContainerStatus, Pod, PodStatus, Terminated
from kube.meta import now_text
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS
from tests.jobs.control import job
from tests.jobs.made import runner, settle
from tests.tables import cases

KINDS = (JOBS, POD_GROUPS, PODS, EVENTS)
DAY_MS = 24 * 3600 * 1000
RUNS = "wait 2, admit, wait 3, place, wait 1, run"
COMPLETES, FAILS = (f"{RUNS}, wait 10, fail main-1 {code}, fail main-0 0" for code in (0, 3))
IS_SUSPENDED = f"{RUNS}, wait 60, suspend"
IS_RESUMED = f"{IS_SUSPENDED}, wait 600, resume, wait 2, admit, place, run"
RESTARTS = f"{RUNS}, wait 5, restart, wait 1, bury, wait 2, admit, place, run"
A_POD_RESTARTS = f"{RUNS}, wait 5, fail main-1 7, bury, wait 1, admit, place, run"
IS_DELETED = f"{COMPLETES}, wait 5, delete"
LIVES = pytest.mark.parametrize("steps", [COMPLETES, IS_RESUMED, RESTARTS, A_POD_RESTARTS, IS_DELETED])


@pytest.fixture
def lives(life):
    """Have a job of two pods live, of which one that ends with 7 is restarted alone."""
    policies = [{"exitCode": 7, "action": "RestartPod"}]
    return lambda steps="", name="demo": life(name, replicas=2, policies=policies).does(steps)


def whole(life):
    return fold(History(), log(life))


def log(life):
    return [change for change in store.changes(0, KINDS, limit=10_000) if life.job.name in change.name]


@cases("steps, expected, is_recorded", {
    "runs": (RUNS, [("", 2)], False), "completes": (COMPLETES, [("Completed", 2)], False),
    "fails": (FAILS, [("Failed", 2)], False), "is suspended": (IS_SUSPENDED, [("Aborted", 2)], True),
    "is suspended and resumed": (IS_RESUMED, [("Aborted", 2), ("", 2)], True),
    "restarts": (RESTARTS, [("Restarting", 2), ("", 2)], True),
    "restarts a pod": (A_POD_RESTARTS, [("", 3)], True), "is deleted": (IS_DELETED, [("Completed", 2)], True),
})  # fmt: skip
def test_a_life_is_told_in_runs_and_recorded_when_a_run_or_the_job_ends_for_good(lives, steps, expected, is_recorded):
    one = lives(steps)
    found = whole(one)
    assert [(run.phase, len(run.pods)) for run in found.runs] == expected
    assert all(before.ended is not None for before in found.runs[:-1])
    assert (found.runs[-1].ended is None) == (not found.runs[-1].phase)
    stored = one.recorded()
    assert (stored is not None) is is_recorded
    if is_recorded:
        assert record.read(stored.history) == found
        assert (stored.name, stored.queue, stored.deleted > 0) == ("demo", "default", steps == IS_DELETED)


def test_a_run_has_its_own_times(lives):
    first, second = whole(lives(IS_RESUMED)).runs
    times = (first.let_in - first.begun, first.running - first.let_in, first.ended - first.running)
    assert times == (2000, 4000, 60_000)
    assert (second.begun - first.ended, second.let_in - second.begun) == (600_000, 2000)
    assert {span.removed - first.begun for span in first.pods.values()} == {66_000}
    assert first.pods.keys().isdisjoint(second.pods)


def test_what_ended_a_run_is_said(lives):
    found = whole(lives(FAILS))
    assert "main" in found.runs[0].message
    spans = {span.pod.metadata.name: span for span in found.runs[0].pods.values()}
    assert [(each.exit_code, each.finished - each.started) for each in spans["demo-main-1"].stretches] == [(3, 10_000)]
    assert [entry.phase for entry in found.phases] == ["Pending", "Running", "Failed"]


@cases("happens, is_requested", {
    "removed before it had ended": ("suspend", True), "ended by the signal": ("abort, bury 143", True),
    "ended well when asked": ("abort, bury 0", True), "failed and stays": ("fail main-0 1", False),
    "failed by itself, then tidied away": ("fail main-0 143, restart, bury", False),
})  # fmt: skip
def test_who_was_asked_to_end_is_told_from_who_ended(lives, happens, is_requested):
    spans = whole(lives(f"{RUNS}, wait 5, {happens}")).runs[0].pods.values()
    (span,) = (each for each in spans if each.pod.metadata.name == "demo-main-0")
    assert (span.deletion_requested is not None) == is_requested


@LIVES
def test_a_log_in_pieces_and_pods_that_are_told_after_their_job_are_folded_into_the_same(lives, steps):
    changes = log(lives(steps))
    expected = fold(History(), changes)

    @hypothesis_settings(max_examples=60, database=None)
    @given(st.lists(st.integers(0, len(changes)), max_size=6))
    def in_pieces(cuts):
        found = History()
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(changes)], strict=True):
            found = record.read(record.write(fold(found, changes[start:end])))
        assert found == expected

    in_pieces()
    own = fold(History(), [each for each in changes if each.resource != PODS.id])
    assert fold(own, [each for each in changes if each.resource == PODS.id]) == expected


def test_of_many_starts_the_first_and_the_newest_are_kept_and_of_many_events_the_newest(lives):
    found = []
    for start in range(0, (MAX_STRETCHES + 20) * 10_000, 10_000):
        ran = Terminated(exit_code=1, started_at=now_text(start), finished_at=now_text(start + 1000))
        container = ContainerStatus(name="main", state=ContainerState(terminated=ran))
        found = stretches_after(found, Pod(status=PodStatus(container_statuses=[container])))
    assert (len(found), found[0].started, found[-1].started) == (MAX_STRETCHES, 0, start)
    one = lives(", ".join(f"wait 1, event Told number {number}" for number in range(MAX_EVENTS + 5)))
    messages = {each.message for each in whole(one).events.values()}
    assert len(messages) == MAX_EVENTS
    assert (f"number {MAX_EVENTS + 4}" in messages, "number 0" in messages) == (True, False)


def test_a_job_that_goes_on_is_recorded_at_intervals_and_no_retention_takes_its_past(lives):
    one = lives(RUNS)
    before = whole(one).runs
    for _ in range(12):
        one.does(f"wait {sweep_ms() / 1000 + 1}, record, wait 0")
        retention.run(clock.monotonic() + 60)
    assert store.compacted() > 0
    found = one.history().runs
    assert [run.let_in for run in found] == [run.let_in for run in before]
    assert found[0].pods.keys() == before[0].pods.keys()


def test_what_finished_is_recorded_once(lives):
    one = lives(COMPLETES)
    stored = [one.does(f"wait {sweep_ms() / 1000 + 1}").recorded() for _ in range(4)]
    assert stored == [stored[0]] * 4 != [None] * 4


def test_pods_that_end_after_their_job_are_told_as_well(lives):
    one = lives(RUNS)
    store.write(Delete(JOBS, "default", "demo"))
    assert not one.history().is_settled
    one.does("wait 5, fail main-0 143, fail main-1 143, wait 30")
    assert [span.pod.exit_code for run in one.history().runs for span in run.pods.values()] == [143, 143]


def test_a_recorder_that_dies_before_its_commit_leaves_all_to_the_next(lives, monkeypatch):
    one = lives(IS_DELETED)
    put = records.put

    def dies(*args, **options):
        put(*args, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(records, "put", dies)
        with pytest.raises(KeyboardInterrupt):
            settle(one.recorder)
    assert records.by_uid(JOBS, [one.job.uid]) == {}
    one.recorder = runner("history")
    stored = one.recorded()
    assert record.read(stored.history) == whole(one)
    records.put([gather.replace(stored, revision=stored.revision - 1, history=b"")])
    assert one.recorded() == stored, "a record that has read less changes nothing"


def test_a_job_of_a_name_that_another_had_has_its_own_record(lives):
    first, second = lives(f"{IS_DELETED}, record"), lives("delete, record")
    assert {each.uid for each in records.find(JOBS, limit=10)} == {first.job.uid, second.job.uid}
    assert records.newest(JOBS, "default", "demo").uid == second.job.uid
    assert len(first.history().runs[0].pods) == 2


def test_many_that_go_at_once_are_recorded_in_bounded_steps_with_few_queries(db, moved_clock):
    bootstrap()
    recorder = runner("history")
    settle(recorder)
    names = [f"job-{number}" for number in range(MOST + 50)]
    store.write(*(Create(JOBS, job(name)) for name in names))
    store.write(*(Delete(JOBS, "default", name) for name in names))
    with CaptureQueriesContext(connection) as queries:
        assert recorder.step()
    assert records.count(JOBS) == MOST
    assert len(queries) < 25
    settle(recorder)
    assert records.count(JOBS) == len(names)


def test_records_of_deleted_jobs_go_after_their_time_and_those_of_living_ones_stay(lives):
    one, other = lives(f"{IS_DELETED}, record"), lives("admit, place, run, suspend, record", "other")
    end = clock.milliseconds() + settings.JOB_HISTORY_DAYS * DAY_MS
    assert records.expire(clock.monotonic() + 60, now=end - 60_000) == 0
    assert records.expire(clock.monotonic() + 60, now=end + 60_000) == 1
    assert (one.recorded() is None, other.recorded() is None) == (True, False)
