"""Filters of lists: what each finds on either database, and pages that are read from the nearer end."""

from __future__ import annotations

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from cluster.store import Create, Group, query, sql
from cluster.store.query import Span
from kube.resources import JOBS, PODS
from kube.selector import parse_labels
from tests.builders import job
from tests.tables import cases

NOW = 1_800_000_000_000


def ended(name, labels=None, codes=(), phase="Failed", reason="TooFewSucceeded", **status):
    state = {"phase": phase, "reason": reason}
    return job(name, labels=labels or {}, status={"state": state, "exitCodes": list(codes), **status})


@pytest.fixture
def few(store):
    jobs = [
        ended("cat", {"team": "vision", "team-lead": "x"}, [1]),
        ended("dog", {"team": "Vision"}, [11, 137], reason="RetriesUsedUp"),
        ended("eel", {"team": "ads", "gpu": ""}, phase="Pending", reason="Unschedulable", waitingReason="QueueClosed"),
        ended("fox", phase="Running", reason="PodsRunning"),
        ended("gnu", phase="Completed", reason="AllPodsEnded"),
    ]
    for number, each in enumerate(jobs):
        store.write(Create(JOBS, each), now=NOW + number)
    return store


def labels(selector):
    return {"labels": parse_labels(selector).requirements}


@cases("filters, names", {
    "label equal, in the case that is written": (labels("team=vision"), "cat"),
    "label there": (labels("team"), "cat dog eel"),
    "label not there": (labels("!team"), "fox gnu"),
    "label one of": (labels("team in (ads, Vision)"), "dog eel"),
    "label none of, or not there": (labels("team notin (ads,vision)"), "dog fox gnu"),
    "label not equal, or not there": (labels("team!=ads"), "cat dog fox gnu"),
    "empty value of a label": (labels("gpu="), "eel"),
    "both labels": (labels("team,gpu"), "eel"),
    "end of another key": (labels("lead=x"), ""),
    "begin of another value": (labels("team=vis"), ""),
    "exit code, and none that begins like it": ({"exit_code": 1}, "cat"),
    "one of two exit codes": ({"exit_code": 137}, "dog"),
    "why it waits": ({"trouble": "QueueClosed"}, "eel"),
    "the reason in place of the scheduler's": ({"trouble": "Unschedulable"}, ""),
    "why it failed": ({"trouble": "TooFewSucceeded"}, "cat"),
    "no trouble": ({"trouble": ["PodsRunning", "AllPodsEnded"]}, ""),
    "made since": ({"since": NOW + 3}, "fox gnu"),
    "made before": ({"until": NOW + 1}, "cat"),
})  # fmt: skip
def test_objects_are_found_by_label_cause_exit_code_and_time(few, filters, names):
    assert " ".join(each.name for each in few.find(JOBS, **filters)) == names
    assert sum(few.count(JOBS, **filters).values()) == len(names.split())


def test_a_condition_that_cannot_be_searched_is_refused(few):
    with pytest.raises(ValueError, match="labels are not searched by Gt"):
        few.find(JOBS, **labels("team>1"))


@pytest.mark.parametrize("order", sorted(query.ORDERS))
@pytest.mark.parametrize("few_rows", [0, query.FEW], ids=["walked", "sorted"])
def test_pages_from_either_end_are_those_of_the_whole_list(store, monkeypatch, order, few_rows):
    monkeypatch.setattr(query, "FEW", few_rows)
    jobs = [ended(f"j{n:02}", phase="AB"[n % 2]) for n in range(23)]
    store.commit([Group([Create(JOBS, each)]) for each in jobs], now=NOW)
    whole = [each.name for each in store.find(JOBS, order=order, limit=100)]
    pages = [store.find(JOBS, order=order, limit=5, offset=offset, total=23) for offset in range(0, 25, 5)]
    assert [each.name for page in pages for each in page] == whole
    assert len(whole) == 23


@cases("offset, total, span", {
    "nobody has counted": (0, None, (50, 0, False)),
    "begin of many": (0, 100_000, (50, 0, False)),
    "end of many": (99_950, 100_000, (50, 0, True)),
    "rest of many": (99_950, 99_960, (10, 0, True)),
    "few": (0, 3, (3, 0, False)),
    "behind the end": (50, 30, (0, 0, False)),
})  # fmt: skip
def test_the_span_of_a_page(offset, total, span):
    assert Span.of(50, offset, total) == span


@pytest.fixture
def sqlite(few):
    if connections[few.using].vendor != "sqlite":
        pytest.skip("PostgreSQL plans by statistics")
    return few


@cases("by, filters", {
    "nothing": ("phase", {}),
    "text": ("phase", {"text": "model"}),
    "namespace": ("phase", {"namespace": ["a", "b"]}),
    "owner and queue": ("phase", {"creator": "alice", "queue": "q"}),
    "time": ("phase", {"since": NOW, "until": NOW + 1}),
    "cause": ("phase", {"trouble": "QueueClosed"}),
    "labels and exit code": ("phase", {**labels("team=vision,!x"), "exit_code": 1}),
    "by queue": ("queue", {"namespace": ["a", "b"]}),
    "by namespace": ("namespace", {"namespace": ["a", "b"]}),
})  # fmt: skip
def test_jobs_are_counted_by_indexes_alone(sqlite, monkeypatch, by, filters):
    steps = []
    rows = sql.rows

    def explained(using, text, params=()):
        steps.extend(step for *_, step in rows(using, f"EXPLAIN QUERY PLAN {text}", params))
        return rows(using, text, params)

    monkeypatch.setattr(sql, "rows", explained)
    sqlite.count(JOBS, by=by, **filters)
    read = [step for step in steps if step.startswith(("SEARCH", "SCAN"))]
    assert read
    assert all("COVERING INDEX" in step for step in read), steps


@pytest.mark.parametrize("order", ["name", "made", "-made", "queue", "creator", "phase"])
def test_of_a_page_no_object_is_read_but_its_own(sqlite, order):
    with CaptureQueriesContext(connections[sqlite.using]) as captured:
        sqlite.find(JOBS, order=order, limit=2, offset=1)
    (read,) = [each["sql"] for each in captured if "cluster_change" in each["sql"]]
    plan = [step for *_, step in sql.rows(sqlite.using, f"EXPLAIN QUERY PLAN {read}".replace("%", "%%"))]
    assert any("SEARCH o USING INDEX object_uid" in step for step in plan), plan


@pytest.mark.parametrize("order", ["queue", "creator"])
def test_a_deep_page_in_the_order_of_queue_or_owner_sorts_nothing(sqlite, order):
    text = (
        f"SELECT o.uid FROM cluster_object o WHERE o.resource = %s ORDER BY {query.ordered(order)} LIMIT 50 OFFSET 500"
    )
    plan = str(sql.rows(sqlite.using, f"EXPLAIN QUERY PLAN {text}", [JOBS.id]))
    assert f"object_by_{order}" in plan
    assert "B-TREE" not in plan


def test_the_values_of_a_column_come_once_each_and_in_order(few):
    for name, queue in (("ant", "b"), ("bee", "a"), ("cow", "b")):
        few.write(Create(JOBS, job(name, namespace="zoo", queue=queue)))
    assert few.values(JOBS, "namespace") == ["default", "zoo"]
    assert few.values(JOBS, "queue") == ["a", "b", "default"]
    assert few.values(JOBS, "queue", limit=2) == ["a", "b"]
    assert few.values(PODS, "queue") == []
    with pytest.raises(ValueError, match="values of 'phase'"):
        few.values(JOBS, "phase")
