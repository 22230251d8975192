"""Cron jobs: their schedules and rules, their controller on the real store, and their pages."""

from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster import clock
from cluster.access import SYSTEM
from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, store
from jobs.crons import admission, calendar, schedule
from jobs.crons.schedule import ScheduleError
from jobs.made.jobs import OwnedJob
from kube import meta
from kube.resources import CREATOR_ANNOTATION, CRON_JOBS, JOBS
from proof.harness import clocks
from proof.harness.clocks import ManualClock
from tests.builders import of, queue
from tests.dashboard.pages.conftest import page, reader
from tests.jobs import builders, made
from tests.jobs.builders import CLUSTER, Cluster, defaulted, listed, task
from tests.jobs.made import NAMESPACE, end, job_names, runner, settle, spec
from tests.tables import cases
from tests.verify import render

refusals = partial(builders.refusals, rules=admission)
NIGHT = "2026-03-01T00:00:30Z"  # when the clock of tests begins
NOW = meta.parse_time("2026-03-11T12:00:00Z")  # a Wednesday
BERLIN, YORK, HOWE, NEPAL = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"
FORBID, REPLACE = {"concurrencyPolicy": "Forbid"}, {"concurrencyPolicy": "Replace"}
CLOSED = {"jobTemplate": {"spec": spec(queue="night")}}
HALF_PAST, TIMES = {"schedule": "30 0 * * *"}, ("00:10", "00:20", "00:30", "00:40", "00:50")
LIST, DETAIL, TOPIC = "/cronjobs/", "/cronjobs/default/c/", "cronjobs:detail?name=c&namespace=default"


def cron(schedule="*/10 * * * *", name="c", **fields):
    template = fields.pop("jobTemplate", {"spec": spec()})
    return defaulted(of(CRON_JOBS, name, schedule=schedule, jobTemplate=template, **fields), rules=admission)


def make(schedule="*/10 * * * *", *, by="sam", **fields):
    obj = cron(schedule, **fields)
    obj["metadata"] |= {"annotations": {CREATOR_ANNOTATION: by}}
    return store.write(Create(CRON_JOBS, obj))[0]


def status(name="c"):
    return store.get(CRON_JOBS, NAMESPACE, name).object.get("status") or {}


def name_at(moment):
    """How the job of a time of the first night is called, such as `00:10`."""
    return f"c-{meta.parse_time(f'2026-03-01T{moment}:00Z') // 60_000}"


class Story(made.Story):
    """A cron job and its jobs, each by its time; a number is how many minutes pass, `00:10 Running` a job that comes to a phase."""

    consumer, kind, name = "cronjobs", CRON_JOBS, "c"

    def called(self, job):
        return name_at(job)

    def does(self, step):
        verb, *words = step.split()
        if verb.lstrip("-").isdigit():
            self.clock.move(int(verb) * 60)
            settle(self.controller)
        elif verb[0].isdigit():
            end(name_at(verb), *words)
        else:
            super().does(step)

    def seen(self):
        times = [f"{hour:02}:{minute:02}" for hour in range(6) for minute in range(60)]
        names = dict(zip(map(name_at, times), times, strict=True))
        return {
            "jobs": " ".join(names[name] for name in job_names()),
            "active": " ".join(names[each["name"]] for each in status().get("active", ())),
            "last": status().get("lastScheduleTime", "")[11:16],
            "completed": status().get("lastSuccessfulTime", ""),
            **self.reasons(),
        }

    def resume(self):
        store.write(Patch(CRON_JOBS, NAMESPACE, "c", {"spec": {"suspend": False}}))


def moments(text, start, count, zone=""):
    times = schedule.parse(text, schedule.zone(zone), meta.parse_time(start))
    return [meta.timestamp(each)[:16] for each in islice(times.after(meta.parse_time(start)), count)]


@cases("text, expected", {
    "a step from a value on": ("5/25 0 * * *", ["2026-03-01T00:05", "2026-03-01T00:30", "2026-03-01T00:55"]),
    "a list, and ? for *": ("15,45 6 * * ?", ["2026-03-01T06:15", "2026-03-01T06:45", "2026-03-02T06:15"]),
    "days by name": ("0 0 * * mon,Wed", ["2026-03-02T00:00", "2026-03-04T00:00", "2026-03-09T00:00"]),
    "months by name": ("0 0 1 JAN-mar/2 *", ["2026-03-01T00:00", "2027-01-01T00:00", "2027-03-01T00:00"]),
    "day of month or of week": ("0 0 13 * FRI", ["2026-03-06T00:00", "2026-03-13T00:00", "2026-03-20T00:00"]),
    "all days of month are no choice": ("0 0 * * */2", ["2026-03-01T00:00", "2026-03-03T00:00", "2026-03-05T00:00"]),
    "short months are left out": ("0 0 31 * *", ["2026-03-31T00:00", "2026-05-31T00:00", "2026-07-31T00:00"]),
    "leap years": ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]),
    "hourly": ("@hourly", ["2026-03-01T00:00", "2026-03-01T01:00", "2026-03-01T02:00"]),
    "weekly": ("@weekly", ["2026-03-01T00:00", "2026-03-08T00:00", "2026-03-15T00:00"]),
    "monthly": ("@monthly", ["2026-03-01T00:00", "2026-04-01T00:00", "2026-05-01T00:00"]),
    **{text: (text, ["2026-03-01T00:00", "2026-03-02T00:00", "2026-03-03T00:00"]) for text in ("@daily", "@midnight")},
    **{text: (text, ["2027-01-01T00:00", "2028-01-01T00:00", "2029-01-01T00:00"]) for text in ("@yearly", "@annually")},
    "every so often": ("@every 1h30m", ["2026-03-01T00:40", "2026-03-01T02:10", "2026-03-01T03:40"]),
})  # fmt: skip
def test_moments(text, expected):
    assert moments(text, "2026-02-28T23:10:00Z", 3) == expected


@cases("text, zone, start, expected", {
    "a skipped time comes later by the jump": ("30 2 * * *", BERLIN, "2026-03-28T12:00", "2026-03-29T01:30 2026-03-30T00:30"),
    "a time that is there twice counts once": ("30 2 * * *", BERLIN, "2026-10-24T12:00", "2026-10-25T00:30 2026-10-26T01:30"),
    "each hour, when one is skipped": ("30 * * * *", BERLIN, "2026-03-29T00:00", "2026-03-29T00:30 2026-03-29T01:30"),
    "each hour, when one is there twice": ("30 * * * *", BERLIN, "2026-10-25T00:00", "2026-10-25T00:30 2026-10-25T01:30"),
    "each second hour": ("30 */2 * * *", BERLIN, "2026-03-28T23:00", "2026-03-28T23:30 2026-03-29T01:30"),
    "half an hour is skipped": ("15 2 * * *", HOWE, "2026-10-03T12:00", "2026-10-03T15:45 2026-10-04T15:15"),
    "midnight moves": ("0 0 * * *", YORK, "2026-03-07T12:00", "2026-03-08T05:00 2026-03-09T04:00"),
    "a zone of no whole hours": ("0 12 * * *", NEPAL, "2026-03-07T12:00", "2026-03-08T06:15 2026-03-09T06:15"),
})  # fmt: skip
def test_moments_where_clocks_are_changed(text, zone, start, expected):
    assert moments(text, f"{start}:00Z", 2, zone) == expected.split()


WRONG = {
    "* * * *": "expected 5 fields and found 4", "0 * * * * *": "expected 5 fields and found 6",
    "60 * * * *": "minute: '60' is not between 0 and 59", "* 24 * * *": "hour: '24' is not between 0 and 23",
    "* * 0 * *": "day of the month: '0' is not between 1 and 31", "* * * 13 *": "month: '13' is not between 1 and 12",
    "* * * * 7": "day of the week: '7' is not between 0 and 6; Sunday is 0",
    "* * * * SONTAG": "cannot be read; write numbers, or SUN to SAT",
    "5-1 * * * *": "ends before it begins", "*/0 * * * *": "has the step 0", "0 0 31 4,6 *": "there is no such day",
    **dict.fromkeys(("1,,2 * * * *", "-1 * * * *", "٣ * * * *", "0 0 L * *"), "cannot be read"),
    "@reboot": "unknown descriptor", "@every": "takes a duration", "@every 1": "takes a duration",
    "@every 59s": "takes at least a minute", "@every -5m": "takes at least a minute",
    "TZ=Europe/Berlin 0 2 * * *": "write it to timeZone", "CRON_TZ=UTC 0 2 * * *": "write it to timeZone",
}  # fmt: skip
NO_ZONES = (
    "Local", "local", "America", "Mars/Olympus", "../UTC", "/etc/passwd", "-x", "a b", "x" * 15, "Europe/", "Европа",
)  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_read_is_told_with_a_remedy(text):
    with pytest.raises(ScheduleError) as refusal:
        schedule.parse(text, UTC, 0)
    assert WRONG[text] in str(refusal.value)


@pytest.mark.parametrize("name", NO_ZONES)
def test_a_time_zone_that_there_is_not(name):
    with pytest.raises(ScheduleError, match="such as Europe/Berlin"):
        schedule.zone(name)


def field(low, high):
    value = st.integers(low, high)
    pair = st.tuples(value, value).map(lambda both: f"{min(both)}-{max(both)}")
    step = st.tuples(st.just("*") | pair | value.map(str), st.integers(1, 9)).map(lambda both: f"{both[0]}/{both[1]}")
    item = value.map(str) | pair | step
    return st.just("*") | st.lists(item, min_size=1, max_size=3).map(",".join)


crons = st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6)).map(" ".join)
starts = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(lambda each: each.replace(tzinfo=UTC))


def named(text):
    """The values that one field names, read by another hand than the one that is tested."""
    low, high = {0: (0, 59), 1: (0, 23), 2: (1, 31), 3: (1, 12), 4: (0, 6)}[text[0]]
    found = set()
    for item in text[1].split(","):
        bounds, _, step = item.partition("/")
        first, _, last = bounds.partition("-")
        begin = low if first == "*" else int(first)
        end = high if first == "*" or (step and not last) else int(last or first)
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def naming(text):
    """Whether a schedule names a minute, by its fields one by one: a function of the minute."""
    parts = text.split()
    minutes, hours, days, months, weekdays = (named(each) for each in enumerate(parts))
    items = [item for number in (2, 4) for item in parts[number].split(",")]
    is_either = not {"*", "*/1"} & set(items)

    def names(moment):
        in_month, in_week = moment.day in days, moment.isoweekday() % 7 in weekdays
        on_day = (in_month or in_week) if is_either else (in_month and in_week)
        return moment.minute in minutes and moment.hour in hours and moment.month in months and on_day

    return names


@given(crons, starts)
def test_no_minute_is_left_out_and_none_is_added(text, start):
    times, is_named = schedule.parse(text, UTC, 0), naming(text)
    end = meta.milliseconds(start + timedelta(days=2))
    found = list(takewhile(lambda each: each <= end, times.after(meta.milliseconds(start))))
    first = start.replace(second=0, microsecond=0)
    minutes = (first + timedelta(minutes=number) for number in range(2 * 1440 + 1))
    expected = [meta.milliseconds(each) for each in minutes if each > start and is_named(each)]
    assert found == [each for each in expected if each <= end]


@settings(max_examples=60)
@given(crons, starts, st.sampled_from(["UTC", BERLIN, YORK, HOWE, NEPAL]))
def test_the_latest_moment_is_the_one_before_the_next(text, start, zone):
    times = schedule.parse(text, ZoneInfo(zone), 0)
    upcoming = list(islice(times.after(meta.milliseconds(start)), 4))
    assert upcoming == sorted(set(upcoming))
    for earlier, later in pairwise(upcoming):
        assert times.latest(later - 1) == earlier
        assert times.latest(later) == later


@given(starts, st.integers(1, 10_000), st.integers(0, 10**9))
def test_every_counts_from_its_first_moment(start, minutes, passed):
    created = meta.milliseconds(start)
    times = schedule.parse(f"@every {minutes}m", UTC, created)
    latest, following = times.latest(created + passed), next(times.after(created + passed))
    assert following - minutes * 60_000 == (latest or created)
    assert (following - created) % (minutes * 60_000) == 0


def job(name, scheduled="", created="2026-03-10T08:00:00Z", phase="Completed"):
    annotations = {"volcano.sh/cronjob-scheduled-timestamp": scheduled} if scheduled else {}
    metadata = {"name": name, "annotations": annotations, "creationTimestamp": created}
    return msgspec.convert({"metadata": metadata, "status": {"state": {"phase": phase}}}, OwnedJob)


def days(text="0 9 * * *", jobs=(), zone="", now=NOW):
    times = schedule.parse(text, schedule.zone(zone), 0) if text else None
    weeks = calendar.weeks(times, jobs, schedule.zone(zone), now)
    return weeks, {day.date: day for week in weeks for day in week}


def test_a_calendar_has_four_weeks_of_past_jobs_and_coming_runs():
    done, requested = job("c-1", "2026-03-11T09:00:00Z", phase="Failed"), job("c-now-x")
    weeks, found = days(jobs=[done, requested])
    assert [len(week) for week in weeks] == [7, 7, 7, 7]
    assert [week[0].date for week in weeks][:2] == [date(2026, 3, 2), date(2026, 3, 9)]
    assert [day.date for day in found.values() if day.is_today] == [date(2026, 3, 11)]
    runs = {day: [(run.time, run.job) for run in found[date(2026, 3, day)].runs] for day in (9, 10, 11, 12)}
    # What somebody asked for stands where it was made.
    assert runs == {9: [], 10: [("08:00", requested)], 11: [("09:00", done)], 12: [("09:00", None)]}
    assert not any(day.runs for day in days("")[1].values()), "suspended"


def test_days_and_times_are_those_of_the_zone():
    for zone, day, time in (("", 10, "23:30"), (BERLIN, 11, "00:30"), (YORK, 10, "19:30")):
        _, found = days(jobs=[job("c-1", "2026-03-10T23:30:00Z")], zone=zone)
        assert [run.time for run in found[date(2026, 3, day)].runs if run.job] == [time]


def test_of_many_runs_the_nearest_to_now_are_shown():
    many = [job(f"c-{hour}", f"2026-03-11T{hour:02}:00:00Z") for hour in range(5)]
    today = days("0 * * * *", many)[1][date(2026, 3, 11)]
    assert [run.time for run in today.runs] == ["02:00", "03:00", "04:00", "13:00", "14:00", "15:00"]
    assert today.more == 5 + 11 - 6


# ---- admission
def with_tasks(*tasks, **fields):
    return cron(jobTemplate={"spec": spec(*tasks, **fields)})


@cases("obj", {
    "no schedule": cron(""),
    "a wrong schedule": cron("61 * * * *"),
    "a zone in the schedule": cron("TZ=UTC 0 * * * *"),
    "an unknown zone": cron(timeZone="Mars/Olympus"),
    "the machine's zone": cron(timeZone="Local"),
    "an empty zone": cron(timeZone=""),
    "a long name": cron(name="c" * 53),
    "no jobs": cron(jobTemplate={}),
    "a job's own rules": with_tasks(task(minAvailable=2)),
    "long names of pods": with_tasks(task(name="t" * 63)),
    "a queue that comes later": with_tasks(queue="nowhere"),
    "a wrong label": cron(jobTemplate={"metadata": {"labels": {"a": "b c"}}, "spec": spec()}),
})  # fmt: skip
def test_refusals(golden, obj):
    golden("crons", listed(refusals(obj)))


def test_what_is_accepted_and_filled_in():
    for text in ("@hourly", "@every 5m", "0 2 * * MON-FRI"):
        assert refusals(cron(text, name="c" * 47, timeZone=BERLIN, startingDeadlineSeconds=0)) == {}
    stored = cron()["spec"]
    assert (stored["concurrencyPolicy"], stored["suspend"]) == ("Allow", False)
    assert (stored["successfulJobsHistoryLimit"], stored["failedJobsHistoryLimit"]) == (3, 1)
    assert stored["jobTemplate"]["spec"] == spec()
    assert cron(successfulJobsHistoryLimit=0)["spec"]["successfulJobsHistoryLimit"] == 0


def test_what_does_not_change_may_stay_as_it_is():
    old = cron(timeZone="Mars/Olympus")
    assert refusals(old | {"spec": old["spec"] | {"suspend": True}}, old=old) == {}
    changed = old | {"spec": old["spec"] | {"schedule": "1 * * * *"}}
    assert list(refusals(changed, old=old)) == ["spec.timeZone"]


def test_a_closed_queue_is_told_and_not_refused():
    cluster = Cluster(queue("night", "Closed"))
    warnings = admission.warn(with_tasks(queue="night"), None, cluster)
    assert [text.partition(":")[0] for text in warnings] == ["spec.jobTemplate.spec.queue"]
    assert admission.warn(with_tasks(), None, CLUSTER) == []


def test_any_input_is_judged():
    for written in (None, {"schedule": 5, "jobTemplate": "x"}, {"jobTemplate": {"spec": []}}):
        assert "spec.schedule" in refusals({"spec": written})
    assert "spec.schedule" in refusals({})


@pytest.fixture
def at_night(transactional_db, runner_mode):
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
    make(**fields)
    tell(f"→\n{story}")


def test_a_job_says_whose_it_is_and_for_which_time(tell):
    metadata = {"labels": {"app": "x"}, "annotations": {"note": "y", CREATOR_ANNOTATION: "mallory"}, "name": "z"}
    stored = make("0 2 * * *", timeZone=BERLIN, jobTemplate={"metadata": metadata, "spec": spec()}, by="alice")
    tell("0\n60")
    job = store.get(JOBS, NAMESPACE, name_at("01:00")).object["metadata"]
    assert job["labels"] == {"app": "x"}
    written = {"volcano.sh/cronjob-scheduled-timestamp": "2026-03-01T02:00:00+01:00"}
    assert job["annotations"] == {"note": "y", CREATOR_ANNOTATION: "alice", **written}
    assert [(one["kind"], one["uid"]) for one in job["ownerReferences"]] == [("CronJob", stored.uid)]


def test_a_job_that_somebody_else_owns_as_well_is_still_the_cron_jobs_own(tell):
    make()
    tell("10")
    (name,) = job_names()
    ours = store.get(JOBS, NAMESPACE, name).object["metadata"]["ownerReferences"]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "of-another"}
    store.write(Patch(JOBS, NAMESPACE, name, {"metadata": {"ownerReferences": [other, *ours]}}))
    tell("0")
    assert [each["name"] for each in status()["active"]] == [name]


def test_one_that_cannot_be_read_does_not_stop_the_others(tell):
    store.write(*(Create(CRON_JOBS, of(CRON_JOBS, name, schedule=text)) for name, text in (("bad", 1), ("odd", "?"))))
    make(name="late")
    store.write(Patch(CRON_JOBS, NAMESPACE, "late", {"status": {"lastScheduleTime": "soon"}}, "status"))
    make()
    tell("0\n10 → jobs 00:10")


def test_a_list_shows_schedule_state_and_next_run_and_when_empty_what_to_do_next(sam):
    assert "Write one and give it to kubectl apply" in page(sam, LIST).text(id="table-empty")
    stored, suspended = make("0 * * * *", timeZone=BERLIN), make("0 * * * *", name="d", suspend=True)
    make("@yearly", name="later")
    row = page(sam, LIST).text(id=f"cron-{stored.uid}")
    following = clock.milliseconds() // 3_600_000 * 3_600_000 + 3_600_000
    moment = meta.timestamp(following)[:16].replace("T", " ")
    assert all(word in row for word in ("Scheduled", "0 * * * *", BERLIN, "sam", moment))
    assert page(sam, f"{LIST}?phase=Suspended").rows() == [f"cron-{suspended.uid}"]
    assert "No jobs are made until it is resumed" in page(sam, "/cronjobs/default/d/").text(id="cron-head")
    # From the next run on the topics are other ones.
    assert (render(SYSTEM, "cronjobs:list").again, render(SYSTEM, TOPIC).again <= following) == (following, True)
    store.write(*(Delete(CRON_JOBS, NAMESPACE, name) for name in ("c", "later")))
    assert render(SYSTEM, "cronjobs:list").again is None


def test_the_page_shows_facts_calendar_and_jobs_and_its_buttons_to_who_made_it(sam):
    make(**FORBID, startingDeadlineSeconds=60)
    assert "It has made no job yet" in page(sam, DETAIL).text(id="table-empty")
    sam.post(f"{DETAIL}run/")
    (name,) = job_names()
    end(name, "Failed")
    document = page(sam, DETAIL)
    assert all(words in document.text(id="cron-head") for words in ("the next one waits (Forbid)", "60 s"))
    (run,) = document.all(tag="a", **{"class": "calendar-run"})
    assert (run.get("data-phase"), run.get("href")) == ("Failed", f"/jobs/default/{name}/")
    assert (name in document.text(id="table-rows"), name in document.text(id="cron-head")) == (True, False), (
        "it has ended"
    )
    assert f"{DETAIL}suspend/" in document.actions()
    other = page(reader("tom", "submitter", NAMESPACE), DETAIL)
    assert not [action for action in other.actions() if action.startswith(DETAIL)]
    assert sam.post(f"{DETAIL}delete/")["Location"] == LIST
    assert "was deleted" in render(SYSTEM, TOPIC).parts["cron-head"]


def test_a_job_that_is_run_now_is_the_cron_jobs_own_and_one_that_is_refused_is_told(sam):
    stored = make(name="c" * 47)
    answer = sam.post(f"/cronjobs/default/{stored.name}/run/")
    (name,) = job_names()
    assert (answer["Location"], name.startswith(f"{stored.name}-")) == (f"/jobs/default/{name}/", True)
    metadata = store.get(JOBS, NAMESPACE, name).object["metadata"]
    assert metadata["ownerReferences"][0]["uid"] == stored.uid
    assert metadata["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual", CREATOR_ANNOTATION: "sam"}
    settle(runner("cronjobs"))
    assert [each["name"] for each in status(stored.name)["active"]] == [name]
    make(jobTemplate={"spec": spec(queue="nowhere")})
    sam.post(f"{DETAIL}run/")
    assert "queue nowhere not found" in page(sam, DETAIL).text(id="toasts")
    assert job_names() == [name]
