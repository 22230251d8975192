"""What cannot be written comes back later and later, and people are told of it."""

from __future__ import annotations

import pytest
from django.db import transaction

from cluster.runtime import retries
from cluster.runtime.retries import RETRY, TOLD_AFTER, Retries
from cluster.writes import Group, Timer
from kube.errors import Conflict, Forbidden

JOB = {"apiVersion": "v1", "kind": "Job", "metadata": {"name": "j", "namespace": "d", "uid": "u"}}


def timer(tries, kind=RETRY, key="d/j", *, news=True):
    return Timer(kind, key, 0, {"error": "pods is forbidden: not here", "tries": tries, "news": news})


def retries_of_jobs():
    """What a new process knows."""
    return Retries("jobs", "jobs/0", "default")


def said(*timers):
    about = {"d/j": JOB}.get
    return [group.writes[0].object for group in retries.told(timers, about, 1000, "c")]


def test_refusal_that_lasts_is_told_with_the_servers_words():
    (event,) = said(timer(9))
    assert event["message"] == "Tried 9 times: pods is forbidden: not here"
    assert (event["type"], event["involvedObject"]["uid"]) == ("Warning", "u")


@pytest.mark.parametrize(
    "silent",
    [timer(9, news=False), timer(9, "other"), timer(9, key="d/gone"), Timer(RETRY, "d/j", 0)],
    ids=["said before", "another timer", "gone", "only wanted back"],
)
def test_nobody_is_told(silent):
    assert said(silent) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("times", "told_at"),
    [([0] * 20, [8, 16]), ([0, 2000, 4000, 5000, 6000, 7000], [3, 4]), ([0, 60_000], [2]), ([0], [])],
    ids=["quickly", "slowly", "a minute later", "once"],
)
def test_what_lasts_some_seconds_is_told_and_again_at_twice_as_many_tries(times, told_at):
    kept = retries_of_jobs()
    found = [kept.timers([Group([], "d/j")], [Forbidden("no")], at)[0].payload for at in times]
    assert [each["tries"] for each in found if each["news"]] == told_at


@pytest.mark.django_db
def test_group_that_fails_comes_back_later_and_later_until_it_is_written():
    tries, group = retries_of_jobs(), Group([], "d/j")
    found = [tries.timers([group], [Conflict("late")], 0)[0] for _ in range(14)]
    assert [each.due for each in found[:4]] == [0, 50, 100, 200]
    assert found[-1].due == retries.RETRY_MOST_MS
    assert found[3].payload == {"error": "late", "tries": 4, "news": False}
    assert tries.timers([group], [[]], 0) == []
    assert tries.timers([group], [Forbidden("no")], 0)[0].payload["tries"] == 1


@pytest.mark.django_db
def test_group_without_a_key_does_not_come_back():
    assert retries_of_jobs().timers([Group([])], [Conflict("late")], 0) == []


PLACE = {"jobs": "d/j"}


def refused(times, kept=None, start=0):
    """Have a group fail so often, a millisecond between; return who counts."""
    kept = kept or retries_of_jobs()
    for number in range(times):
        kept.timers([Group([], "d/j")], [Forbidden(f"not here, {number}")], start + number)
    return kept


@pytest.mark.django_db
def test_refusal_that_lasts_stands_until_the_group_is_written():
    kept = refused(TOLD_AFTER - 1)
    assert retries.standing(PLACE) == [], "what only met another change is over by then"
    refused(2, kept, start=50_000)
    (found,) = retries.standing({**PLACE, "scheduler": "d/j"})
    assert (found.since, found.tries, found.error) == (0, TOLD_AFTER + 1, "not here, 1")
    assert found.due > 51_000
    kept.timers([Group([], "d/j")], [[]], 60_000)
    assert retries.standing(PLACE) == []


@pytest.mark.django_db
def test_next_process_counts_on():
    refused(TOLD_AFTER)
    refused(1, start=90_000)
    (found,) = retries.standing(PLACE)
    assert (found.since, found.tries) == (0, TOLD_AFTER + 1)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("planned", "wanted", "is_over"),
    [
        ([], [], True),
        ([Group([], "d/j")], [], False),
        ([], [Timer(RETRY, "d/j", 0)], False),
        ([], [Timer("other", "d/j", 0)], True),
    ],
    ids=["nothing is owed now", "planned again", "wanted back", "wanted for something else"],
)
def test_refusal_is_over_when_what_came_back_is_not_planned_again(planned, wanted, is_over):
    kept = refused(TOLD_AFTER)
    kept.outlived([timer(TOLD_AFTER)], planned, wanted)
    assert (retries.standing(PLACE) == []) is is_over


@pytest.mark.django_db
def test_refusal_stands_when_the_transaction_that_ended_it_is_lost():
    kept = refused(TOLD_AFTER)
    with transaction.atomic():
        kept.timers([Group([], "d/j")], [[]], 60_000)
        transaction.set_rollback(True)
    kept.forget_memory()
    kept.timers([Group([], "d/j")], [[]], 61_000)
    assert retries.standing(PLACE) == []


@pytest.mark.django_db
@pytest.mark.parametrize(("key", "found"), [("d/j", ["d/j"]), ("d/*", ["d/j"]), ("dd/*", []), ("d/jj", [])])
def test_refusals_are_found_by_key_and_by_namespace(key, found):
    refused(TOLD_AFTER)
    assert [each.key for each in retries.standing({"jobs": key})] == found
    assert retries.standing({"queues": key}) == []
