"""Every rule for cron jobs has a row here."""

from __future__ import annotations

import pytest

from jobs.crons import admission
from tests.jobs.builders import CLUSTER, Cluster, task
from tests.jobs.crons.control import cron, refusals
from tests.jobs.made import spec
from tests.tables import cases

TEMPLATE = "spec.jobTemplate.spec"


def with_tasks(*tasks, **fields):
    return cron(jobTemplate={"spec": spec(*tasks, **fields)})


@cases("obj, field, told", {
    "no schedule": (cron(""), "spec.schedule", "say when jobs are made"),
    "a wrong schedule": (cron("61 * * * *"), "spec.schedule", "'61' is not between 0 and 59"),
    "a zone in the schedule": (cron("TZ=UTC 0 * * * *"), "spec.schedule", "write it to timeZone"),
    "an unknown zone": (cron(timeZone="Mars/Olympus"), "spec.timeZone", "unknown time zone Mars/Olympus"),
    "the machine's zone": (cron(timeZone="Local"), "spec.timeZone", "not the same everywhere"),
    "an empty zone": (cron(timeZone=""), "spec.timeZone", "leave it out for UTC"),
    "a long name": (cron(name="c" * 53), "metadata.name", "no more than 52 characters"),
    "no jobs": (cron(jobTemplate={}), TEMPLATE, "add tasks"),
    "a job's own rules": (with_tasks(task(minAvailable=2)), f"{TEMPLATE}.tasks[0].minAvailable",
        "greater than 'replicas'"),
    "long names of pods": (with_tasks(task(name="t" * 63)), f"{TEMPLATE}.tasks[0].name", "shorten the name"),
    "a queue that comes later": (with_tasks(queue="nowhere"), None, ""),
    "a wrong label": (cron(jobTemplate={"metadata": {"labels": {"a": "b c"}}, "spec": spec()}),
        "spec.jobTemplate.metadata.labels[a]", "a valid label"),
})  # fmt: skip
def test_refusals(obj, field, told):
    found = refusals(obj)
    assert (field in found) if field else not found
    assert told in found.get(field, "")


@pytest.mark.parametrize("schedule", ["@hourly", "@every 5m", "0 2 * * MON-FRI"])
def test_what_is_accepted(schedule):
    assert refusals(cron(schedule, name="c" * 47, timeZone="Europe/Berlin", startingDeadlineSeconds=0)) == {}


def test_what_is_left_open_is_filled_in():
    stored = cron()["spec"]
    assert (stored["concurrencyPolicy"], stored["suspend"]) == ("Allow", False)
    assert (stored["successfulJobsHistoryLimit"], stored["failedJobsHistoryLimit"]) == (3, 1)
    assert stored["jobTemplate"]["spec"] == spec()


def test_zero_is_a_limit():
    assert cron(successfulJobsHistoryLimit=0)["spec"]["successfulJobsHistoryLimit"] == 0


def test_what_does_not_change_may_stay_as_it_is():
    old = cron(timeZone="Mars/Olympus")
    assert refusals(old | {"spec": old["spec"] | {"suspend": True}}, old) == {}
    changed = old | {"spec": old["spec"] | {"schedule": "1 * * * *"}}
    assert list(refusals(changed, old)) == ["spec.timeZone"]


def test_a_closed_queue_is_told_and_not_refused():
    cluster = Cluster(night={"status": {"state": "Closed"}})
    told = admission.warn(with_tasks(queue="night"), None, cluster)
    assert [text.partition(":")[0] for text in told] == [f"{TEMPLATE}.queue"]
    assert admission.warn(with_tasks(), None, CLUSTER) == []


@pytest.mark.parametrize(
    "obj", [{}, {"spec": None}, {"spec": {"schedule": 5, "jobTemplate": "x"}}, {"spec": {"jobTemplate": {"spec": []}}}]
)
def test_any_input_is_judged(obj):
    assert "spec.schedule" in refusals(obj)
