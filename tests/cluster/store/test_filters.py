"""What is found on either database, and how: objects, records of those that are gone, and decisions of the scheduler."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.db import connections
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from cluster.store import Create, Group, Patch, decisions, query, records, sql
from cluster.store.decisions import Filters
from cluster.store.query import Span
from cluster.writes import Decision, Record
from kube.resources import JOBS, PODS
from kube.selector import parse_labels
from tests.blocks import blocks
from tests.builders import job
from tests.cluster.texts import of_values
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


@blocks("filters", folder="cluster")
def test_objects_are_found_by_label_cause_exit_code_and_time(few, block, golden):
    def names(filters):
        given = {**filters, **(labels(filters["labels"]) if "labels" in filters else {})}
        given |= {key: NOW + given[key] for key in {"since", "until"} & given.keys()}
        found = few.find(JOBS, **given)
        assert sum(few.count(JOBS, **given).values()) == len(found)
        return " ".join(each.name for each in found)

    golden(block, of_values(names))


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


@blocks("spans", folder="cluster")
def test_the_span_of_a_page(block, golden):
    golden(block, of_values(lambda *place: str(Span.of(50, *place))))


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
def test_of_a_page_no_object_is_read_but_its_own_and_a_deep_one_sorts_nothing(sqlite, order):
    with CaptureQueriesContext(connections[sqlite.using]) as captured:
        sqlite.find(JOBS, order=order, limit=2, offset=1)
    (read,) = [each["sql"] for each in captured if "cluster_change" in each["sql"]]
    plan = [step for *_, step in sql.rows(sqlite.using, f"EXPLAIN QUERY PLAN {read}".replace("%", "%%"))]
    assert any("SEARCH o USING INDEX object_uid" in step for step in plan), plan
    if order in ("queue", "creator"):
        text = f"SELECT o.uid FROM cluster_object o WHERE o.resource = %s ORDER BY {query.ordered(order)} LIMIT 50 OFFSET 500"
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


DAY_MS = 24 * 3600 * 1000
NEVER = 1e12  # on the monotonic clock
RECORD = Record(
    JOBS, "default", "a", "", "Failed", "q", "alice", created=1000, deleted=2000, revision=7, object=b"{}", history=b"{}"
)  # fmt: skip


def record(name, uid="", **changes):
    return replace(RECORD, name=name, uid=uid or f"u-{name}", **changes)


@pytest.fixture
def keep(store, database):
    return lambda *each: records.put(each, using=database)


@cases("revision, is_taken", {"has read further": (8, True), "as far": (7, True), "less far": (6, False)})
def test_of_two_records_the_one_that_has_read_further_stays(keep, database, revision, is_taken):
    old = record("a")
    new = replace(old, revision=revision, history=b"[]")
    keep(old)
    keep(new)
    assert records.by_uid(JOBS, ["u-a"], using=database) == {"u-a": new if is_taken else old}


FAR = {"namespace": "far", "queue": "r", "creator": "bob"}
LIVING = record("living", namespace="zoo", queue="s", creator="carol", deleted=0)


def sets(filters):
    """Return filters with a set of namespaces in place of a list."""
    return {key: frozenset(value) if isinstance(value, list) else value for key, value in filters.items()}


@blocks("records", folder="cluster")
def test_records_of_deleted_objects_are_found_and_counted(keep, database, block, golden):
    unnamed = record("b", created=1001, queue="", creator="")
    keep(record("a"), unnamed, record("c", created=1002, queue="r"), record("d", created=1003, **FAR), LIVING)

    def found(filters):
        records_found = records.find(JOBS, limit=10, using=database, **sets(filters))
        assert {each.history for each in records_found} <= {b""}
        assert records.count(JOBS, using=database, **sets(filters)) == len(records_found)
        return [*(each.name for each in records_found), records.values(JOBS, using=database, **sets(filters))]

    golden(block, of_values(found))


@pytest.mark.parametrize("order", ["name", "-name", "created", "-created", "phase", "queue", "-creator"])
def test_records_are_found_in_the_orders_of_a_list(keep, database, order):
    keep(record("a"), record("b", created=1001))
    first, second = (records.find(JOBS, order=order, limit=1, offset=n, using=database) for n in (0, 1))
    assert {first[0].name, second[0].name} == {"a", "b"}


def test_the_last_of_a_name_is_found(keep, database):
    keep(record("a", "u-1"), record("a", "u-2", created=3000))
    assert records.newest(JOBS, "default", "a", using=database).uid == "u-2"
    assert records.newest(JOBS, "default", "b", using=database) is None


def test_living_objects_that_lack_something_are_walked_over(keep, store, database):
    phases = {"new": "Completed", "read": "Completed", "runs": "Running"}
    jobs = [job(name, status={"state": {"phase": phase}}) for name, phase in phases.items()]
    made = store.write(*(Create(JOBS, each) for each in jobs), now=1000)
    keep(*(record(each.name, each.uid, deleted=0, revision=store.revision()) for each in made[1:]))

    def lacking(created_before=2000, **options):
        about = {"created_before": created_before, "finished": {"Completed"}, "using": database, **options}
        return [name for _, _, name, _ in records.behind(JOBS, **about)]

    assert lacking() == ["new", "runs"]
    assert lacking(limit=1) == ["new"]
    assert lacking(after=f"{JOBS.id}/default/new") == ["runs"]
    store.write(Patch(JOBS, "default", "read", {"metadata": {"labels": {"a": "b"}}}))
    assert lacking() == ["new", "read", "runs"]
    assert lacking(created_before=1000) == []


def test_old_records_go_in_pieces(keep, database, settings, monkeypatch):
    monkeypatch.setattr(records, "BATCH", 2)
    settings.JOB_HISTORY_DAYS = 1
    keep(*(record(f"old-{n}") for n in range(5)), record("young", deleted=DAY_MS), record("there", deleted=0))
    assert records.expire(NEVER, now=2 * DAY_MS, using=database) == 5
    uids = ["u-old-0", "u-young", "u-there"]
    assert records.by_uid(JOBS, uids, using=database).keys() == {"u-young", "u-there"}


def decision(at, name="g", **more):
    fields = {"kind": "bind", "reason": "MinimumFits", "namespace": "ns", "queue": "q", "pods": 2, "message": "…"}
    return Decision(**{"at": NOW + at, "name": name, **fields, **more})


BOUND = decision(0, "train-1", nodes=(("n-1", 1), ("n-10", 1)))
REFUSED = decision(1, "train-1", kind="refuse", reason="QueueLimit", queue="other")
EVICTED = decision(
    2, "low_a", kind="evict", reason="preempt", namespace="team", other="ns/train-1", nodes=(("n-10", 2),)
)


@pytest.fixture
def decided(store, database):
    decisions.put([BOUND, REFUSED, EVICTED], using=database)


def found(database, limit=10, offset=0, **filters):
    return [each.decision for each in decisions.find(Filters(**filters), limit=limit, offset=offset, using=database)]


@blocks("decisions", folder="cluster")
def test_decisions_are_found_and_counted(decided, database, block, golden):
    def kinds(filters):
        filters = sets(filters)
        filters |= {key: NOW + filters[key] for key in {"since", "until"} & filters.keys()}
        inside = found(database, namespaces=filters.get("namespaces"))
        for column in ("namespace", "queue"):
            values = decisions.values(column, Filters(namespaces=filters.get("namespaces")), using=database)
            assert values == sorted({getattr(each, column) for each in inside})
        whole = found(database, **filters)
        assert found(database, 2, **filters) + found(database, 2, 2, **filters) == whole
        assert sum(decisions.count(Filters(**filters), using=database).values()) == len(whole)
        return " ".join(each.kind for each in whole)

    golden(block, of_values(kinds))


@cases("most, at", {"old": (9, NOW + 1 + settings.DECISION_DAYS * DAY_MS), "too many, however young": (2, NOW)})
def test_decisions_go(decided, database, monkeypatch, most, at):
    monkeypatch.setattr(decisions, "MOST", most)
    assert decisions.expire(NEVER, now=at, using=database) == 1
    assert found(database) == [EVICTED, REFUSED]


def test_a_queue_may_have_any_name(store, database):
    decisions.put([decision(0, queue="q" * 300)], using=database)
    assert len(found(database)[0].queue) == 253
