"""The cron job controller on the real store: jobs at their times, policies, limits, and what survives a crash."""

from __future__ import annotations

import pytest

from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, store
from kube import meta
from kube.resources import CREATOR_ANNOTATION, CRON_JOBS, EVENTS, JOBS, QUEUES
from proof.harness import clocks
from proof.harness.clocks import ManualClock
from tests.builders import queue
from tests.jobs.crons.control import NIGHT, cron, name_at, status, submit
from tests.jobs.made import PLACE, end, job_names, runner, settle, spec, told
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]


@pytest.fixture
def at_night():
    """A clock that stands at half a minute past midnight until a test moves it."""
    with clocks.using(ManualClock(meta.parse_time(NIGHT) * 1000)) as manual:
        yield manual


@pytest.fixture
def controller(at_night):
    bootstrap()
    return runner("cronjobs")


@pytest.fixture
def later(at_night, controller):
    """Let minutes pass, then let the controller work."""

    def move(minutes=0, runners=(controller,)):
        at_night.move(minutes * 60)
        settle(*runners)

    return move


FORBID, REPLACE = {"concurrencyPolicy": "Forbid"}, {"concurrencyPolicy": "Replace"}


@cases("fields, story, reasons", {
    "at each time": ({}, "0: | 9: | 1: 00:10 | 10: 00:10 00:20", ""),
    "of the times that were missed the last one is made up for": ({}, "0: | 35: 00:30", ""),
    "a deadline that has passed": ({"schedule": "30 0 * * *", "startingDeadlineSeconds": 300}, "0: | 35:", ""),
    "a deadline that has not": ({"schedule": "30 0 * * *", "startingDeadlineSeconds": 331}, "0: | 35: 00:30", ""),
    "a suspended one makes none until it is resumed": ({"suspend": True}, "0: | 25: | resume: 00:20", ""),
    "Forbid waits for the earlier job and says so once": (FORBID,
        "0: | 10: 00:10 | 10: 00:10 | Running: 00:10 | Completed: 00:10 00:20", "ForbidConcurrent"),
    "Replace deletes the earlier job": (REPLACE, "0: | 10: 00:10 | 10: 00:20", "ReplaceConcurrent"),
    "a clock that is set back makes no job twice": ({},
        "0: | 10: 00:10 | -5: 00:10 | 5: 00:10 | 10: 00:10 00:20", ""),
    "a deleted job is not made again": ({}, "0: | 10: 00:10 | delete: | 1: | restart:", ""),
    "one that is being deleted makes none": ({}, "0: | going: | 10:", ""),
})  # fmt: skip
def test_jobs_are_made_as_time_passes(controller, later, fields, story, reasons):
    """A step of a story is what happens, or how many minutes pass, and the times of the jobs that there are then."""
    happens = {
        "resume": lambda: store.write(Patch(CRON_JOBS, PLACE, "c", {"spec": {"suspend": False}})),
        "Running": lambda: end(name_at("00:10"), "Running"),
        "Completed": lambda: end(name_at("00:10"), "Completed"),
        "delete": lambda: store.write(Delete(JOBS, PLACE, name_at("00:10"))),
        "going": lambda: store.write(Delete(CRON_JOBS, PLACE, "c", propagation="Foreground")),
    }
    submit(cron(**fields))
    for each in story.split(" | "):
        what, _, times = each.partition(":")
        if what in happens:
            happens[what]()
        later(int(what) if what.lstrip("-").isdigit() else 0, [runner("cronjobs") if what == "restart" else controller])
        assert job_names() == [name_at(time) for time in times.split()], each
    assert [each for each in told() if each.endswith(("Concurrent", "MissedTimes"))] == reasons.split()
    over = {name_at("00:10")} if "Completed" in story else set()
    assert {each["name"] for each in status().get("active", ())} == {*job_names()} - over


def test_a_job_says_whose_it_is_and_for_which_time(controller, later):
    metadata = {"labels": {"app": "x"}, "annotations": {"note": "y", CREATOR_ANNOTATION: "mallory"}, "name": "z"}
    obj = cron("0 2 * * *", timeZone="Europe/Berlin", jobTemplate={"metadata": metadata, "spec": spec()})
    obj["metadata"]["annotations"] = {CREATOR_ANNOTATION: "alice"}
    stored = submit(obj)
    later()
    later(60)
    job = store.get(JOBS, PLACE, name_at("01:00")).object["metadata"]
    assert job["labels"] == {"app": "x"}
    assert job["annotations"] == {
        "note": "y",
        CREATOR_ANNOTATION: "alice",
        "volcano.sh/cronjob-scheduled-timestamp": "2026-03-01T02:00:00+01:00",
    }
    assert [(one["kind"], one["uid"]) for one in job["ownerReferences"]] == [("CronJob", stored.uid)]


def test_a_job_that_somebody_else_owns_as_well_is_still_the_cron_jobs_own(controller, later):
    submit(cron())
    later(10)
    (name,) = job_names()
    ours = store.get(JOBS, PLACE, name).object["metadata"]["ownerReferences"]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "of-another"}
    store.write(Patch(JOBS, PLACE, name, {"metadata": {"ownerReferences": [other, *ours]}}))
    later()
    assert [each["name"] for each in store.find(CRON_JOBS)[0].object["status"]["active"]] == [name]


def test_many_missed_times_are_told(controller, later):
    submit(cron("* * * * *"))
    later()
    later(101)
    assert "TooManyMissedTimes" not in told()
    later(102)
    assert "TooManyMissedTimes" in told()
    assert len(job_names()) == 2


@cases("phase, limits, kept", {
    "completed, by default": ("Completed", {}, 3),
    "failed, by default": ("Failed", {}, 1),
    "no completed": ("Completed", {"successfulJobsHistoryLimit": 0}, 0),
    "two failed": ("Failed", {"failedJobsHistoryLimit": 2}, 2),
    "terminated count as failed": ("Terminated", {}, 1),
    "aborted have not ended": ("Aborted", {}, 5),
})  # fmt: skip
def test_the_oldest_jobs_go_beyond_the_limits(controller, later, phase, limits, kept):
    submit(cron(**limits))
    later()
    names = []
    for _ in range(5):
        later(10)
        (new,) = set(job_names()) - set(names)
        names.append(new)
        end(new, phase)
        later()
    assert job_names() == sorted(names)[5 - kept :]


def test_what_completed_is_noted_also_when_it_is_gone(controller, later):
    submit(cron())
    later()
    later(10)
    end(name_at("00:10"), "Completed")
    store.write(Delete(JOBS, PLACE, name_at("00:10")))
    later(0, [runner("cronjobs")])
    assert status() == {"lastScheduleTime": "2026-03-01T00:10:00Z", "lastSuccessfulTime": "1970-01-01T00:00:00Z"}
    assert told()[-1] == "SawCompletedJob"


def test_a_name_that_somebody_else_has_is_passed_over(controller, later):
    store.write(Create(JOBS, {"metadata": {"name": name_at("00:10"), "namespace": PLACE}, "spec": {}}))
    submit(cron())
    later()
    later(10)
    assert (told(), status()["lastScheduleTime"]) == (["ForeignJob"], "2026-03-01T00:10:00Z")
    later(10)
    assert job_names() == [name_at("00:10"), name_at("00:20")]


def test_a_closed_queue_holds_a_job_back_until_it_is_open(controller, later):
    store.write(Create(QUEUES, queue("night", "Closed")))
    submit(cron(jobTemplate={"spec": spec(queue="night")}))
    later()
    later(10)
    later(1)
    assert (job_names(), told()) == ([], ["FailedCreate"])
    assert "queue `night` status is `Closed`" in store.find(EVENTS)[0].object["message"]
    store.write(Patch(QUEUES, "", "night", {"status": {"state": "Open"}}, "status"))
    later(1)
    assert job_names() == [name_at("00:10")]


def test_one_that_cannot_be_read_does_not_stop_the_others(controller, later):
    store.write(Create(CRON_JOBS, {"metadata": {"name": "bad", "namespace": PLACE}, "spec": {"schedule": 1}}))
    store.write(Create(CRON_JOBS, {"metadata": {"name": "odd", "namespace": PLACE}, "spec": {"schedule": "?"}}))
    submit(cron(name="late"))
    store.write(Patch(CRON_JOBS, PLACE, "late", {"status": {"lastScheduleTime": "soon"}}, "status"))
    submit(cron())
    later()
    later(10)
    assert job_names() == [name_at("00:10")]


class Killed(BaseException):
    """Ends a process where it stands."""


@pytest.mark.parametrize("point", ["_move_cursor", "_set_timers", "_wake_for"])
def test_a_controller_that_is_killed_loses_no_job_and_makes_none_twice(controller, later, at_night, monkeypatch, point):
    submit(cron(concurrencyPolicy="Replace"))
    later()
    later(10)
    at_night.move(600)

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(controller, point, killed)
        with pytest.raises(Killed):
            controller.step()
    later(0, [runner("cronjobs")])
    assert job_names() == [name_at("00:20")]
    created = [event.object["message"] for event in store.find(EVENTS) if event.object["reason"] == "SuccessfulCreate"]
    assert sorted(created) == [f"Created job {name_at('00:10')}", f"Created job {name_at('00:20')}"]
