"""Records of objects and decisions of the scheduler, on each back end: what is kept, found and counted, and when it goes."""

from __future__ import annotations

import pytest
from django.conf import settings
from msgspec.structs import replace

from cluster.store import Create, Patch, decisions, records
from cluster.store.decisions import Filters
from cluster.writes import Decision, Record
from kube.resources import JOBS
from tests.builders import job
from tests.tables import cases

DAY_MS = 24 * 3600 * 1000
NOW = 1_800_000_000_000
NEVER = 1e12  # on the monotonic clock
RECORD = Record(
    JOBS, "default", "a", "", phase="Failed", queue="q", creator="alice", created=1000, deleted=2000, revision=7, object=b"{}", history=b"{}"
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


@cases("filters, names, namespaces, queues, creators", {
    "all that are deleted": ({}, "d c b a", ["default", "far"], ["q", "r"], ["alice", "bob"]),
    "queue": ({"queue": "r"}, "d c", ["default", "far"], ["r"], ["alice", "bob"]),
    "creator": ({"creator": "bob"}, "d", ["far"], ["r"], ["bob"]),
    "namespaces": ({"namespace": {"far"}}, "d", ["far"], ["r"], ["bob"]),
    "no namespace": ({"namespace": frozenset()}, "", [], [], []),
    "part of a name": ({"text": "B"}, "b", ["default"], [], []),
})  # fmt: skip
def test_records_of_deleted_objects_are_found_and_counted(keep, database, filters, names, namespaces, queues, creators):
    unnamed = record("b", created=1001, queue="", creator="")
    keep(record("a"), unnamed, record("c", created=1002, queue="r"), record("d", created=1003, **FAR), LIVING)
    found = records.find(JOBS, limit=10, using=database, **filters)
    assert " ".join(each.name for each in found) == names
    assert {each.history for each in found} <= {b""}
    assert records.count(JOBS, using=database, **filters) == len(found)
    values = {"namespace": namespaces, "queue": queues, "creator": creators}
    assert records.values(JOBS, using=database, **filters) == values


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
ALL = [EVICTED, REFUSED, BOUND]


@pytest.fixture
def decided(store, database):
    decisions.put([BOUND, REFUSED, EVICTED], using=database)


def found(database, limit=10, offset=0, **filters):
    return [each.decision for each in decisions.find(Filters(**filters), limit=limit, offset=offset, using=database)]


@cases("filters, expected", {
    "all, newest first": ({}, ALL),
    "namespaces": ({"namespaces": {"ns"}}, [REFUSED, BOUND]),
    "namespace": ({"namespaces": "team"}, [EVICTED]),
    "no namespace is nobody's": ({"namespaces": frozenset()}, []),
    "group and kind": ({"namespaces": "ns", "name": "train-1", "kind": "bind"}, [BOUND]),
    "a part is no name": ({"name": "train"}, []),
    "queue": ({"queue": "other"}, [REFUSED]),
    "node, not one that begins alike": ({"node": "n-1"}, [BOUND]),
    "node": ({"node": "n-10"}, [EVICTED, BOUND]),
    "a part is no node": ({"node": "1"}, []),
    "part of the name": ({"text": "RAIN"}, [REFUSED, BOUND]),
    "what is no pattern": ({"text": "w_"}, [EVICTED]),
    "nor this": ({"text": "%"}, []),
    "time": ({"since": NOW + 1, "until": NOW + 2}, [REFUSED]),
})  # fmt: skip
def test_decisions_are_found_and_counted(decided, database, filters, expected):
    assert found(database, **filters) == expected
    assert found(database, 2, **filters) + found(database, 2, 2, **filters) == expected
    assert sum(decisions.count(Filters(**filters), using=database).values()) == len(expected)
    about = Filters(namespaces=filters.get("namespaces"))
    values = {column: decisions.values(column, about, using=database) for column in ("namespace", "queue")}
    inside = found(database, namespaces=filters.get("namespaces"))
    assert values == {column: sorted({getattr(each, column) for each in inside}) for column in values}


@cases("most, at", {"old": (9, NOW + 1 + settings.DECISION_DAYS * DAY_MS), "too many, however young": (2, NOW)})
def test_decisions_go(decided, database, monkeypatch, most, at):
    monkeypatch.setattr(decisions, "MOST", most)
    assert decisions.expire(NEVER, now=at, using=database) == 1
    assert found(database) == [EVICTED, REFUSED]


def test_a_queue_may_have_any_name(store, database):
    decisions.put([decision(0, queue="q" * 300)], using=database)
    assert len(found(database)[0].queue) == 253
