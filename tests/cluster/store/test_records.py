"""Records on each back end: what is kept, found, counted, and what lacks one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cluster import clock
from cluster.store import Create, Patch, records
from cluster.writes import Record
from kube.resources import JOBS

DAY_MS = 24 * 3600 * 1000


def record(name, uid="", **changes):
    made = Record(
        JOBS,
        "default",
        name,
        uid or f"u-{name}",
        phase="Failed",
        queue="q",
        creator="alice",
        created=1000,
        deleted=2000,
        revision=7,
        object=b"{}",
        history=b"{}",
    )
    return replace(made, **changes)


@pytest.fixture
def kept(store, database):
    def put(*each):
        records.put(each, using=database)

    return put


@pytest.mark.parametrize(
    ("newer", "is_taken"),
    [
        pytest.param({"revision": 8, "history": b"[8]"}, True, id="has read further"),
        pytest.param({"revision": 7, "history": b"[7]"}, True, id="as far"),
        pytest.param({"revision": 6, "history": b"[6]"}, False, id="less far"),
    ],
)
def test_of_two_records_the_one_that_has_read_further_stays(kept, database, newer, is_taken):
    old = record("a")
    kept(old)
    kept(new := replace(old, **newer))
    assert records.by_uid(JOBS, ["u-a"], using=database) == {"u-a": new if is_taken else old}


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        pytest.param({}, ["c", "b", "a"], id="all that are deleted"),
        pytest.param({"queue": "other"}, ["b"], id="queue"),
        pytest.param({"creator": "bob"}, ["c"], id="creator"),
        pytest.param({"namespace": ["elsewhere"]}, [], id="namespace"),
        pytest.param({"text": "B"}, ["b"], id="part of a name"),
    ],
)
def test_deleted_objects_are_found_and_counted(kept, database, filters, names):
    kept(
        record("a"),
        record("b", created=1001, queue="other"),
        record("c", created=1002, creator="bob"),
        record("living", deleted=0),
    )
    found = records.find(JOBS, limit=10, using=database, **filters)
    assert [each.name for each in found] == names
    assert {each.history for each in found} <= {b""}
    assert records.count(JOBS, using=database, **filters) == len(names)


@pytest.mark.parametrize("order", ["name", "-name", "created", "-created", "phase", "queue", "-creator"])
def test_deleted_objects_are_found_in_the_orders_of_a_list(kept, database, order):
    kept(record("a"), record("b", created=1001))
    first, second = (records.find(JOBS, order=order, limit=1, offset=n, using=database) for n in (0, 1))
    assert {first[0].name, second[0].name} == {"a", "b"}


@pytest.mark.parametrize(
    ("filters", "namespaces", "queues", "creators"),
    [
        pytest.param({}, ["default", "team"], ["q", "r"], ["alice", "bob"], id="all that are deleted"),
        pytest.param({"namespace": {"team"}}, ["team"], ["r"], ["bob"], id="of a namespace"),
        pytest.param({"namespace": frozenset()}, [], [], [], id="of no namespace"),
    ],
)
def test_filters_of_deleted_objects_have_their_values(kept, database, filters, namespaces, queues, creators):
    kept(
        record("a"),
        record("b", queue="", creator=""),
        record("c", namespace="team", queue="r", creator="bob"),
        record("d", namespace="living", queue="s", creator="carol", deleted=0),
    )
    found = records.values(JOBS, using=database, **filters)
    assert found == {"namespace": namespaces, "queue": queues, "creator": creators}


def test_the_last_of_a_name_is_found(kept, database):
    kept(record("a", "u-1"), record("a", "u-2", created=3000))
    assert records.newest(JOBS, "default", "a", using=database).uid == "u-2"
    assert records.newest(JOBS, "default", "b", using=database) is None


def test_living_objects_that_lack_something_are_walked_over(kept, store, database):
    def make(name, phase):
        made = {"metadata": {"name": name, "namespace": "default"}, "status": {"state": {"phase": phase}}}
        (stored,) = store.write(Create(JOBS, made), now=1000)
        return stored

    jobs = {name: make(name, "Running" if name == "runs" else "Completed") for name in ("new", "read", "runs")}
    head = store.revision()
    kept(*(record(name, jobs[name].uid, deleted=0, revision=head) for name in ("read", "runs")))

    def lacking(**options):
        found = records.behind(JOBS, created_before=2000, finished={"Completed"}, using=database, **options)
        return [name for _, _, name, _ in found]

    assert lacking() == ["new", "runs"]
    assert lacking(limit=1) == ["new"]
    assert lacking(after=f"{JOBS.id}/default/new") == ["runs"]
    store.write(Patch(JOBS, "default", "read", {"metadata": {"labels": {"a": "b"}}}))
    assert lacking() == ["new", "read", "runs"]
    assert records.behind(JOBS, created_before=1000, finished={"Completed"}, using=database) == []


def test_old_records_go_in_pieces(kept, database, settings, monkeypatch):
    monkeypatch.setattr(records, "BATCH", 2)
    settings.JOB_HISTORY_DAYS = 1
    kept(*(record(f"old-{n}") for n in range(5)), record("young", deleted=DAY_MS), record("there", deleted=0))
    assert records.expire(clock.monotonic() + 60, now=2 * DAY_MS, using=database) == 5
    uids = ["u-old-0", "u-young", "u-there"]
    assert records.by_uid(JOBS, uids, using=database).keys() == {"u-young", "u-there"}
