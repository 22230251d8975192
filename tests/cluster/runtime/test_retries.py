"""What cannot be written comes back later and later, and people are told of it."""

from __future__ import annotations

import pytest
from django.db import transaction

from cluster.runtime import retries
from cluster.runtime.retries import RETRY, TOLD_AFTER, Retries
from cluster.writes import Group, Timer
from kube.errors import Conflict, Forbidden
from tests.builders import job
from tests.tables import cases

pytestmark = pytest.mark.django_db
JOB = job("j", namespace="d", uid="u")
GROUP, PLACE = Group([], "d/j"), {"jobs": "d/j"}


def timer(tries=9, kind=RETRY, key="d/j", *, news=True):
    return Timer(kind, key, 0, {"error": "pods is forbidden: not here", "tries": tries, "news": news})


def retries_of_jobs():
    """What a new process knows."""
    return Retries("jobs", "jobs/0", "default")


def said(*timers):
    return [group.writes[0].object for group in retries.told(timers, {"d/j": JOB}.get, 1000, "c")]


def test_refusal_that_lasts_is_told_with_the_servers_words():
    (event,) = said(timer())
    assert event["message"] == "Tried 9 times: pods is forbidden: not here"
    assert (event["type"], event["involvedObject"]["uid"]) == ("Warning", "u")


@cases("silent", {
    "said before": timer(news=False),
    "another timer": timer(kind="other"),
    "gone": timer(key="d/gone"),
    "only wanted back": Timer(RETRY, "d/j", 0),
})  # fmt: skip
def test_nobody_is_told(silent):
    assert said(silent) == []


@cases("times, told_at", {
    "quickly": ([0] * 20, [8, 16]),
    "slowly": ([0, 2000, 4000, 5000, 6000, 7000], [3, 4]),
    "a minute later": ([0, 60_000], [2]),
    "once": ([0], []),
})  # fmt: skip
def test_what_lasts_some_seconds_is_told_and_again_at_twice_as_many_tries(times, told_at):
    kept = retries_of_jobs()
    found = [kept.timers([GROUP], [Forbidden("no")], at)[0].payload for at in times]
    assert [each["tries"] for each in found if each["news"]] == told_at


def test_group_that_fails_comes_back_later_and_later_until_it_is_written():
    tries = retries_of_jobs()
    found = [tries.timers([GROUP], [Conflict("late")], 0)[0] for _ in range(14)]
    assert [each.due for each in found[:4]] == [0, 50, 100, 200]
    assert found[-1].due == retries.RETRY_MOST_MS
    assert found[3].payload == {"error": "late", "tries": 4, "news": False}
    assert tries.timers([GROUP], [[]], 0) == []
    assert tries.timers([GROUP], [Forbidden("no")], 0)[0].payload["tries"] == 1
    assert tries.timers([Group([])], [Conflict("late")], 0) == [], "a group without a key does not come back"


def refused(times, kept=None, start=0):
    """Have a group fail so often, a millisecond between; return who counts."""
    kept = kept or retries_of_jobs()
    for number in range(times):
        kept.timers([GROUP], [Forbidden(f"not here, {number}")], start + number)
    return kept


def test_refusal_that_lasts_stands_until_the_group_is_written():
    kept = refused(TOLD_AFTER - 1)
    assert retries.standing(PLACE) == [], "what only met another change is over by then"
    refused(2, kept, start=50_000)
    (found,) = retries.standing({**PLACE, "scheduler": "d/j"})
    assert (found.since, found.tries, found.error) == (0, TOLD_AFTER + 1, "not here, 1")
    assert found.due > 51_000
    kept.timers([GROUP], [[]], 60_000)
    assert retries.standing(PLACE) == []


def test_next_process_counts_on():
    refused(TOLD_AFTER)
    refused(1, start=90_000)
    (found,) = retries.standing(PLACE)
    assert (found.since, found.tries) == (0, TOLD_AFTER + 1)


@cases("planned, wanted, is_over", {
    "nothing is owed now": ([], [], True),
    "planned again": ([GROUP], [], False),
    "wanted back": ([], [Timer(RETRY, "d/j", 0)], False),
    "wanted for something else": ([], [Timer("other", "d/j", 0)], True),
})  # fmt: skip
def test_refusal_is_over_when_what_came_back_is_not_planned_again(planned, wanted, is_over):
    refused(TOLD_AFTER).outlived([timer(TOLD_AFTER)], planned, wanted)
    assert (retries.standing(PLACE) == []) is is_over


def test_refusal_stands_when_the_transaction_that_ended_it_is_lost():
    kept = refused(TOLD_AFTER)
    with transaction.atomic():
        kept.timers([GROUP], [[]], 60_000)
        transaction.set_rollback(True)
    kept.forget_memory()
    kept.timers([GROUP], [[]], 61_000)
    assert retries.standing(PLACE) == []


@pytest.mark.parametrize(("key", "found"), [("d/j", ["d/j"]), ("d/*", ["d/j"]), ("dd/*", []), ("d/jj", [])])
def test_refusals_are_found_by_key_and_by_namespace(key, found):
    refused(TOLD_AFTER)
    assert [each.key for each in retries.standing({"jobs": key})] == found
    assert retries.standing({"queues": key}) == []
