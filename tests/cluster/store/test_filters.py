"""Filters of lists: what each finds on either database, and pages that are read from the nearer end."""

from __future__ import annotations

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from cluster.store import Create, Group, query, sql
from cluster.store.query import Span
from kube.resources import JOBS, PODS
from kube.selector import parse_labels

NOW = 1_800_000_000_000


def job(name, *, labels=None, codes=(), phase="Failed", reason="TooFewSucceeded", **status):
    state = {"phase": phase, "reason": reason}
    metadata = {"name": name, "namespace": "default", "labels": labels or {}}
    return {"metadata": metadata, "status": {"state": state, "exitCodes": list(codes), **status}}


@pytest.fixture
def few(store):
    jobs = [
        job("cat", labels={"team": "vision", "team-lead": "x"}, codes=[1]),
        job("dog", labels={"team": "Vision"}, codes=[11, 137], reason="RetriesUsedUp"),
        job("eel", labels={"team": "ads", "gpu": ""}, phase="Pending", reason="Unschedulable", waitingReason="QueueClosed"),
        job("fox", phase="Running", reason="PodsRunning"),
        job("gnu", phase="Completed", reason="AllPodsEnded"),
    ]  # fmt: skip
    for number, each in enumerate(jobs):
        store.write(Create(JOBS, each), now=NOW + number)
    return store


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("team=vision", "cat", id="equal, in the case that is written"),
        pytest.param("team", "cat dog eel", id="there"),
        pytest.param("!team", "fox gnu", id="not there"),
        pytest.param("team in (ads, Vision)", "dog eel", id="one of"),
        pytest.param("team notin (ads,vision)", "dog fox gnu", id="none of, or not there"),
        pytest.param("team!=ads", "cat dog fox gnu", id="not equal, or not there"),
        pytest.param("gpu=", "eel", id="empty value"),
        pytest.param("team,gpu", "eel", id="both"),
        pytest.param("lead=x", "", id="end of another key"),
        pytest.param("team=vis", "", id="begin of another value"),
    ],
)
def test_objects_are_found_by_their_labels(few, selector, names):
    found = few.find(JOBS, labels=parse_labels(selector).requirements)
    assert " ".join(each.name for each in found) == names


def test_a_condition_that_cannot_be_searched_is_refused(few):
    with pytest.raises(ValueError, match="labels are not searched by Gt"):
        few.find(JOBS, labels=parse_labels("team>1").requirements)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        pytest.param({"exit_code": 1}, "cat", id="exit code, and none that begins like it"),
        pytest.param({"exit_code": 137}, "dog", id="one of two exit codes"),
        pytest.param({"trouble": "QueueClosed"}, "eel", id="why it waits"),
        pytest.param({"trouble": "Unschedulable"}, "", id="the reason in place of the scheduler's"),
        pytest.param({"trouble": "TooFewSucceeded"}, "cat", id="why it failed"),
        pytest.param({"trouble": ["PodsRunning", "AllPodsEnded"]}, "", id="no trouble"),
        pytest.param({"since": NOW + 3}, "fox gnu", id="made since"),
        pytest.param({"until": NOW + 1}, "cat", id="made before"),
    ],
)
def test_objects_are_found_by_cause_exit_code_and_time(few, filters, names):
    assert " ".join(each.name for each in few.find(JOBS, **filters)) == names
    assert sum(few.count(JOBS, **filters).values()) == len(names.split())


@pytest.mark.parametrize("order", sorted(query.ORDERS))
@pytest.mark.parametrize("few_rows", [0, query.FEW], ids=["walked", "sorted"])
def test_pages_from_either_end_are_those_of_the_whole_list(store, monkeypatch, order, few_rows):
    monkeypatch.setattr(query, "FEW", few_rows)
    store.commit([Group([Create(JOBS, job(f"j{n:02}", phase="AB"[n % 2]))]) for n in range(23)], now=NOW)
    whole = [each.name for each in store.find(JOBS, order=order, limit=100)]
    pages = [store.find(JOBS, order=order, limit=5, offset=offset, total=23) for offset in range(0, 25, 5)]
    assert [each.name for page in pages for each in page] == whole
    assert len(whole) == 23


@pytest.mark.parametrize(
    ("limit", "offset", "total", "expected"),
    [
        (50, 0, None, (50, 0, False, False)),
        (50, 0, 100_000, (50, 0, False, False)),
        (50, 99_950, 100_000, (50, 0, True, False)),
        (50, 99_950, 99_960, (10, 0, True, False)),
        (50, 0, 3, (3, 0, False, True)),
        (50, 50, 30, (0, 0, False, False)),
    ],
)
def test_the_span_of_a_page(limit, offset, total, expected):
    assert Span.of(limit, offset, total) == expected


FILTERS = {
    "nothing": {},
    "text": {"text": "model"},
    "namespace": {"namespace": ["a", "b"]},
    "owner and queue": {"creator": "alice", "queue": "q"},
    "time": {"since": NOW, "until": NOW + 1},
    "cause": {"trouble": "QueueClosed"},
    "labels and exit code": {"labels": parse_labels("team=vision,!x").requirements, "exit_code": 1},
}


@pytest.mark.parametrize(
    ("by", "filters"),
    [
        *(pytest.param("phase", filters, id=f"phase, {name}") for name, filters in FILTERS.items()),
        pytest.param("queue", FILTERS["namespace"], id="queue, namespace"),
        pytest.param("namespace", FILTERS["namespace"], id="namespace, namespace"),
    ],
)
def test_jobs_are_counted_by_indexes_alone(few, monkeypatch, by, filters):
    if connections[few.using].vendor != "sqlite":
        pytest.skip("PostgreSQL plans by statistics")
    asked = []
    rows = sql.rows

    def explained(using, text, params=()):
        asked.extend(step for *_, step in rows(using, f"EXPLAIN QUERY PLAN {text}", params))
        return rows(using, text, params)

    monkeypatch.setattr(sql, "rows", explained)
    few.count(JOBS, by=by, **filters)
    read = [step for step in asked if step.startswith(("SEARCH", "SCAN"))]
    assert read
    assert all("COVERING INDEX" in step for step in read), asked


@pytest.mark.parametrize("order", ["name", "made", "-made", "queue", "creator", "phase"])
def test_of_a_page_no_object_is_read_but_its_own(few, order):
    if connections[few.using].vendor != "sqlite":
        pytest.skip("PostgreSQL plans by statistics")
    with CaptureQueriesContext(connections[few.using]) as captured:
        few.find(JOBS, order=order, limit=2, offset=1)
    (told,) = [each["sql"] for each in captured if "cluster_change" in each["sql"]]
    plan = [step for *_, step in sql.rows(few.using, f"EXPLAIN QUERY PLAN {told}".replace("%", "%%"))]
    assert any("SEARCH o USING INDEX object_uid" in step for step in plan), plan


def test_the_values_of_a_column_are_told_once_each_and_in_order(few):
    for name, queue in (("ant", "b"), ("bee", "a"), ("cow", "b")):
        few.write(Create(JOBS, {"metadata": {"name": name, "namespace": "zoo"}, "spec": {"queue": queue}}))
    assert few.values(JOBS, "namespace") == ["default", "zoo"]
    assert few.values(JOBS, "queue") == ["a", "b", "default"]
    assert few.values(JOBS, "queue", limit=2) == ["a", "b"]
    assert few.values(PODS, "queue") == []
    with pytest.raises(ValueError, match="values of 'phase'"):
        few.values(JOBS, "phase")


@pytest.mark.parametrize(("order", "index"), [("queue", "object_by_queue"), ("creator", "object_by_creator")])
def test_a_deep_page_in_the_order_of_queue_or_owner_sorts_nothing(few, order, index):
    connection = connections[few.using]
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL plans by statistics")
    with connection.cursor() as cursor:
        cursor.execute(
            f"EXPLAIN QUERY PLAN SELECT o.uid FROM cluster_object o WHERE o.resource = %s ORDER BY {query.ordered(order)} LIMIT 50 OFFSET 500",
            [JOBS.id],
        )
        plan = str(cursor.fetchall())
    assert index in plan
    assert "B-TREE" not in plan
