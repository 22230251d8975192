"""The cron job controller on the real store: jobs at their times, policies, limits, and what survives a crash."""

from __future__ import annotations

import pytest

from cluster.bootstrap import bootstrap
from cluster.store import Create, Patch, store
from kube import meta
from kube.resources import CREATOR_ANNOTATION, CRON_JOBS, JOBS
from proof.harness import clocks
from proof.harness.clocks import ManualClock
from tests.jobs.control import messages
from tests.jobs.crons.control import NIGHT, Story, cron, name_at, status, submit
from tests.jobs.made import PLACE, Killed, dying, job_names, runner, settle, spec
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
FORBID, REPLACE = {"concurrencyPolicy": "Forbid"}, {"concurrencyPolicy": "Replace"}
CLOSED = {"jobTemplate": {"spec": spec(queue="night")}}
HALF_PAST, TIMES = {"schedule": "30 0 * * *"}, ("00:10", "00:20", "00:30", "00:40", "00:50")


@pytest.fixture
def at_night():
    """A clock that stands at half a minute past midnight until a test moves it."""
    with clocks.using(ManualClock(meta.parse_time(NIGHT) * 1000)) as manual:
        bootstrap()
        yield manual


@pytest.fixture
def tell(at_night):
    return lambda text: Story(runner("cronjobs"), at_night).goes(text)


@cases("fields, story", {
    "at each time": ({}, "9 → jobs\n1 → jobs 00:10\n10 → jobs 00:10 00:20"),
    "of the times that were missed the last one is made up for": ({}, "35 → jobs 00:30"),
    "a deadline that has passed": (HALF_PAST | {"startingDeadlineSeconds": 300}, "35 → jobs"),
    "a deadline that has not": (HALF_PAST | {"startingDeadlineSeconds": 331}, "35 → jobs 00:30"),
    "a suspended one makes none until it is resumed": ({"suspend": True}, "25 → jobs\nresume → jobs 00:20"),
    "Forbid waits for the earlier job and says so once": (FORBID, """
        10 → jobs 00:10; active 00:10; reasons SuccessfulCreate
        10 → jobs 00:10; reasons ForbidConcurrent
        00:10 Running → jobs 00:10; reasons
        00:10 Completed → jobs 00:10 00:20; active 00:20"""),
    "Replace deletes the earlier job": (REPLACE, """
        10 → jobs 00:10
        10 → jobs 00:20; active 00:20; reasons ReplaceConcurrent SuccessfulDelete SuccessfulCreate"""),
    "a clock that is set back makes no job twice": ({}, """
        10 → jobs 00:10
        -5, 5 → jobs 00:10
        10 → jobs 00:10 00:20"""),
    "a deleted job is not made again": ({}, """
        10 → jobs 00:10
        delete 00:10 → jobs
        1, restart → jobs; active"""),
    "one that is being deleted makes none": ({}, "going, 10 → jobs"),
    "many missed times are told": ({"schedule": "* * * * *"}, """
        101 → reasons SuccessfulCreate
        102 → reasons SuccessfulCreate TooManyMissedTimes"""),
    **{
        f"of {phase} jobs {number} stay, with {limits}": (limits, f"""
        {", ".join(f"10, {time} {phase}" for time in TIMES)} → jobs {" ".join(TIMES[5 - number:])}""")
        for phase, limits, number in (
            ("Completed", {}, 3), ("Failed", {}, 1), ("Completed", {"successfulJobsHistoryLimit": 0}, 0),
            ("Failed", {"failedJobsHistoryLimit": 2}, 2), ("Terminated", {}, 1), ("Aborted", {}, 5),
        )
    },
    "what completed is noted also when it is gone": ({}, """
        10 →
        00:10 Completed, delete 00:10, restart → last 00:10; completed 1970-01-01T00:00:00Z; active; reasons SawCompletedJob"""),
    "a name that somebody else has is passed over": ({}, """
        foreign 00:10, 10 → reasons ForeignJob; last 00:10
        10 → jobs 00:10 00:20"""),
    "a closed queue holds a job back until it is open": (CLOSED, """
        queue Closed, 10, 1 → jobs; reasons FailedCreate; tells queue `night` status is `Closed`
        queue Open, 1 → jobs 00:10"""),
})  # fmt: skip
def test_jobs_are_made_as_time_passes(tell, fields, story):
    submit(cron(**fields))
    tell(f"→\n{story}")


def test_a_job_says_whose_it_is_and_for_which_time(tell):
    metadata = {"labels": {"app": "x"}, "annotations": {"note": "y", CREATOR_ANNOTATION: "mallory"}, "name": "z"}
    obj = cron("0 2 * * *", timeZone="Europe/Berlin", jobTemplate={"metadata": metadata, "spec": spec()})
    obj["metadata"]["annotations"] = {CREATOR_ANNOTATION: "alice"}
    stored = submit(obj)
    tell("0\n60")
    job = store.get(JOBS, PLACE, name_at("01:00")).object["metadata"]
    assert job["labels"] == {"app": "x"}
    written = {"volcano.sh/cronjob-scheduled-timestamp": "2026-03-01T02:00:00+01:00"}
    assert job["annotations"] == {"note": "y", CREATOR_ANNOTATION: "alice", **written}
    assert [(one["kind"], one["uid"]) for one in job["ownerReferences"]] == [("CronJob", stored.uid)]


def test_a_job_that_somebody_else_owns_as_well_is_still_the_cron_jobs_own(tell):
    submit(cron())
    tell("10")
    (name,) = job_names()
    ours = store.get(JOBS, PLACE, name).object["metadata"]["ownerReferences"]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "of-another"}
    store.write(Patch(JOBS, PLACE, name, {"metadata": {"ownerReferences": [other, *ours]}}))
    tell("0")
    assert [each["name"] for each in status()["active"]] == [name]


def test_one_that_cannot_be_read_does_not_stop_the_others(tell):
    for name, schedule in (("bad", 1), ("odd", "?")):
        obj = {"metadata": {"name": name, "namespace": PLACE}, "spec": {"schedule": schedule}}
        store.write(Create(CRON_JOBS, obj))
    submit(cron(name="late"))
    store.write(Patch(CRON_JOBS, PLACE, "late", {"status": {"lastScheduleTime": "soon"}}, "status"))
    submit(cron())
    tell("0\n10 → jobs 00:10")


@pytest.mark.parametrize("point", ["_move_cursor", "_set_timers", "_wake_for"])
def test_a_controller_that_is_killed_loses_no_job_and_makes_none_twice(at_night, monkeypatch, point):
    controller = runner("cronjobs")
    submit(cron(concurrencyPolicy="Replace"))
    for _ in range(2):
        settle(controller)
        at_night.move(600)
    with pytest.raises(Killed), dying(controller, monkeypatch, point):
        controller.step()
    settle(runner("cronjobs"))
    assert job_names() == [name_at("00:20")]
    assert sorted(messages("SuccessfulCreate")) == [f"Created job {name_at(time)}" for time in ("00:10", "00:20")]
