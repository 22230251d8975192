"""The calendar of a cron job: weeks of days with past and coming runs."""

from __future__ import annotations

from datetime import date

import msgspec
import pytest

from jobs.crons import calendar, schedule
from jobs.made.jobs import MadeJob
from kube import meta

NOW = meta.parse_time("2026-03-11T12:00:00Z")  # a Wednesday


def job(name, scheduled="", created="2026-03-10T08:00:00Z", phase="Completed"):
    annotations = {"volcano.sh/cronjob-scheduled-timestamp": scheduled} if scheduled else {}
    metadata = {"name": name, "annotations": annotations, "creationTimestamp": created}
    return msgspec.convert({"metadata": metadata, "status": {"state": {"phase": phase}}}, MadeJob)


def days(text="0 9 * * *", jobs=(), zone="", now=NOW):
    times = schedule.parse(text, schedule.zone(zone), 0) if text else None
    weeks = calendar.weeks(times, jobs, schedule.zone(zone), now)
    return weeks, {day.date: day for week in weeks for day in week}


def test_four_weeks_from_the_monday_of_the_last_one():
    weeks, found = days()
    assert [len(week) for week in weeks] == [7, 7, 7, 7]
    assert [week[0].date for week in weeks][:2] == [date(2026, 3, 2), date(2026, 3, 9)]
    assert [day.date for day in found.values() if day.is_today] == [date(2026, 3, 11)]


def test_coming_runs_begin_now_and_past_ones_are_jobs():
    done = job("c-1", "2026-03-11T09:00:00Z", phase="Failed")
    _, found = days(jobs=[done])
    assert [(run.time, run.job) for run in found[date(2026, 3, 11)].runs] == [("09:00", done)]
    assert [(run.time, run.job) for run in found[date(2026, 3, 12)].runs] == [("09:00", None)]
    assert found[date(2026, 3, 10)].runs == []


@pytest.mark.parametrize(
    ("zone", "day", "time"), [("", 10, "23:30"), ("Europe/Berlin", 11, "00:30"), ("America/New_York", 10, "19:30")]
)
def test_days_and_times_are_those_of_the_zone(zone, day, time):
    _, found = days(jobs=[job("c-1", "2026-03-10T23:30:00Z")], zone=zone)
    assert [run.time for run in found[date(2026, 3, day)].runs if run.job] == [time]


def test_of_many_runs_the_nearest_to_now_are_shown():
    many = [job(f"c-{hour}", f"2026-03-11T{hour:02}:00:00Z") for hour in range(5)]
    today = days("0 * * * *", many)[1][date(2026, 3, 11)]
    assert [run.time for run in today.runs] == ["02:00", "03:00", "04:00", "13:00", "14:00", "15:00"]
    assert today.more == 5 + 11 - 6


def test_a_job_that_somebody_asked_for_stands_where_it_was_made():
    _, found = days(jobs=[job("c-now-x")])
    assert [run.time for run in found[date(2026, 3, 10)].runs] == ["08:00"]


def test_nothing_comes_of_a_suspended_cron_job():
    assert not any(day.runs for day in days("")[1].values())
