"""When jobs are recorded, what a record holds, and that no crash and no retention takes any of it."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster import clock
from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, records, retention, store
from jobs.history import gather, record
from jobs.history.controller import MOST, sweep_ms
from jobs.history.fold import fold
from jobs.history.gather import Ref
from jobs.history.record import History
from kube.resources import JOBS
from tests.jobs.control import job
from tests.jobs.history.lives import Life, Recorder
from tests.jobs.history.test_fold import completes, is_deleted, is_resumed, is_suspended, ordinary, restarts, told
from tests.tables import cases

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def life(db, moved_clock):
    bootstrap()
    return lambda **spec: Life(moved_clock, **spec)


@cases("lived, is_recorded", {
    "runs": (ordinary, False),
    "completes": (completes, False),
    "is suspended": (is_suspended, True),
    "restarts": (restarts, True),
    "is deleted": (is_deleted, True),
})  # fmt: skip
def test_a_job_is_recorded_when_a_run_or_the_job_ends_for_good(life, lived, is_recorded):
    assert (lived(life).record() is not None) is is_recorded


@pytest.mark.parametrize("lived", [is_suspended, is_resumed, restarts, is_deleted], ids=lambda each: each.__name__)
def test_a_record_holds_what_the_whole_log_tells(life, lived):
    one = lived(life)
    kept = one.record()
    assert record.read(kept.history) == fold(History(), told(one))
    assert (kept.name, kept.queue, kept.deleted > 0) == ("demo", "default", lived is is_deleted)


def test_a_job_that_goes_on_is_recorded_at_intervals_and_no_retention_takes_its_past(life, moved_clock):
    one = ordinary(life)
    whole = fold(History(), told(one))
    for _ in range(12):
        moved_clock.move(sweep_ms() / 1000 + 1)
        one.recorder.settle()
        one.jobs.settle()
        retention.run(clock.monotonic() + 60)
    assert store.compacted() > 0
    runs = one.history().runs
    assert [run.let_in for run in runs] == [run.let_in for run in whole.runs]
    assert runs[0].pods.keys() == whole.runs[0].pods.keys()


def test_what_finished_is_recorded_once(life, moved_clock):
    one = completes(life)
    moved_clock.move(sweep_ms() / 1000 + 1)
    kept = one.record()
    assert kept is not None
    for _ in range(3):
        moved_clock.move(sweep_ms() / 1000 + 1)
        assert one.record() == kept


def test_pods_that_end_after_their_job_are_told_as_well(life, moved_clock):
    one = ordinary(life)
    began = one.now()
    store.write(Delete(JOBS, "default", "demo"))
    assert not one.history().is_settled
    one.jobs.settle()
    moved_clock.move(5)
    one.end("demo-main-0", 143, began=began).end("demo-main-1", 143, began=began)
    moved_clock.move(30)
    codes = [span.pod.exit_code for run in one.history().runs for span in run.pods.values()]
    assert codes == [143, 143]


def test_a_recorder_that_dies_before_its_commit_leaves_all_to_the_next(life, monkeypatch):
    one = is_deleted(life)
    put = records.put

    def dies(*args, **options):
        put(*args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "put", dies)
    with pytest.raises(KeyboardInterrupt):
        one.recorder.settle()
    monkeypatch.undo()
    assert records.by_uid(JOBS, [one.job.uid]) == {}
    one.recorder = Recorder()
    assert record.read(one.record().history) == fold(History(), told(one))


def test_a_record_that_has_read_less_changes_nothing(life):
    one = is_deleted(life)
    kept = one.record()
    older = gather.replace(kept, revision=kept.revision - 1, history=b"")
    records.put([older])
    assert one.record() == kept


def test_a_job_of_a_name_that_another_had_has_its_own_record(life):
    first = is_deleted(life)
    first.record()
    second = Life(first.clock)
    second.delete()
    second.record()
    found = records.find(JOBS, limit=10)
    assert {each.uid for each in found} == {first.job.uid, second.job.uid}
    assert records.newest(JOBS, "default", "demo").uid == second.job.uid
    assert len(first.history().runs[0].pods) == 2


def test_many_that_go_at_once_are_recorded_in_bounded_steps_with_few_queries(db, moved_clock):
    bootstrap()
    recorder = Recorder()
    recorder.settle()
    names = [f"job-{number}" for number in range(MOST + 50)]
    store.write(*[Create(JOBS, job(name)) for name in names])
    store.write(*[Delete(JOBS, "default", name) for name in names])
    with CaptureQueriesContext(connection) as asked:
        assert recorder.step()
    assert records.count(JOBS) == MOST
    assert len(asked) < 25
    recorder.settle()
    assert records.count(JOBS) == len(names)


def test_records_of_deleted_jobs_go_after_their_time_and_those_of_living_ones_stay(life, moved_clock):
    one = is_deleted(life)
    one.record()
    other = Life(moved_clock, "other").admit().place().run().suspend()
    other.record()
    now = clock.milliseconds()
    days = settings.JOB_HISTORY_DAYS * DAY_MS
    assert records.expire(clock.monotonic() + 60, now=now + days - 60_000) == 0
    assert records.expire(clock.monotonic() + 60, now=now + days + 60_000) == 1
    assert one.record() is None
    assert other.record() is not None


def test_a_job_that_nobody_knows_has_no_record(life):
    with store.reading() as revision:
        assert gather.up_to(revision, [Ref("default", "demo", "no-such-uid")]) == {}
