"""What every back end of the store must do, and how objects, records of those that are gone, and decisions are found."""

from random import Random

import pytest
from django.conf import settings
from django.db import IntegrityError, connections, transaction
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from cluster.store import Create, Delete, Group, Patch, Store, Update, decisions, query, records, sql
from cluster.store.decisions import Filters
from cluster.store.query import Span
from cluster.writes import Decision, Record
from kube.errors import ApiError, Conflict
from kube.resources import CONFIGMAPS, EVENTS, JOBS, PODS
from kube.selector import parse_labels
from tests.blocks import blocks
from tests.builders import config_map, job, of, pod
from tests.cluster.api.test_rivals import together
from tests.cluster.objects import of_values
from tests.cluster.store.forgetting import forget_elsewhere
from tests.cluster.story import Story
from tests.tables import cases

NOW = 1_800_000_000_000


def make(store, *objects, resource=PODS):
    return store.write(*(Create(resource, o) for o in objects), now=NOW)


def delete(name="p", **options):
    return Delete(PODS, "default", name, **options)


def names(store):
    return [stored.name for stored in store.find(PODS)]


@blocks("contract", folder="cluster")
def test_what_is_written_and_what_comes_of_it(block, golden, store, moved_clock):
    moved_clock.us = NOW * 1000
    golden(block, Story(using=store).tell)


class Letters(Random):
    def __init__(self, text):
        super().__init__()
        self.left = iter(text.replace(" ", ""))

    def choice(self, seq):
        return next(self.left)


NAMED = Create(PODS, pod("job-bbbbb"))
GENERATED, ELSEWHERE = (Create(PODS, {"metadata": {"generateName": "job-", "namespace": n}}) for n in ("default", "e"))
OF_ANOTHER_KIND = Create(CONFIGMAPS, {"metadata": {"generateName": "job-", "namespace": "default"}})


@cases("letters, transactions, names", {
    "in the store": ("bbbbb bbbbb ccccc ccccc bbbbb ddddd", [[[GENERATED]]] * 3, "job-bbbbb job-ccccc job-ddddd"),
    "by another group": ("bbbbb bbbbb ccccc", [[[GENERATED], [GENERATED]]], "job-bbbbb job-ccccc"),
    "by a name of the same group": ("bbbbb ccccc", [[[GENERATED, NAMED]]], "job-ccccc job-bbbbb"),
    "elsewhere, which does not count": ("bbbbb" * 3, [[[GENERATED]], [[ELSEWHERE]], [[OF_ANOTHER_KIND]]], "job-bbbbb job-bbbbb job-bbbbb"),
    "each one that was drawn": ("bbbbb" * 9, [[[GENERATED]], [[GENERATED], [Create(PODS, pod())]]], "job-bbbbb AlreadyExists p"),
})  # fmt: skip
def test_generated_name_that_is_taken_is_not_given_again(database, store, letters, transactions, names):
    store = Store(database, random=Letters(letters))
    outcomes = [each for groups in transactions for each in store.commit([Group(writes) for writes in groups])]
    given = [[type(each).__name__] if isinstance(each, ApiError) else [one.name for one in each] for each in outcomes]
    assert " ".join(name for each in given for name in each) == names


def test_generated_names_are_looked_up_together_and_uids_are_of_the_source_that_was_handed_in(database, store):
    uids = iter(range(10**4))
    store, queries = Store(database, random=Random(1), uids=lambda: str(next(uids))), []  # of which 1,000 names differ

    def note(execute, text, params, many, context):
        queries.append(text)
        return execute(text, params, many, context)

    with connections[database].execute_wrapper(note):
        outcomes = store.commit([Group([GENERATED]) for _ in range(2 * sql.CHUNK)])
    assert sum(text.startswith("SELECT key") for text in queries) == 2
    assert [stored.uid for (stored,) in outcomes] == [str(number) for number in range(2 * sql.CHUNK)]
    assert all(stored.name.startswith("job-") and len(stored.name) == 9 for (stored,) in outcomes)


def test_object_made_and_deleted_in_one_transaction_is_in_the_log_only(store):
    sent = pod()
    store.write(Create(PODS, sent), delete())
    assert (store.find(PODS), "uid" in sent["metadata"]) == ([], False)
    make(store, pod())
    assert [c.verb for c in store.history(PODS, "default", "p")] == ["ADDED", "DELETED", "ADDED"]
    assert [c.verb for c in store.changes(1, until=2)] == ["DELETED"]


def test_surrounding_transaction_takes_the_write_with_it(store, database):
    with transaction.atomic(using=database):
        make(store, pod())
        transaction.set_rollback(True, using=database)
    assert (store.revision(), names(store)) == (0, [])


def test_listeners_hear_of_a_commit_after_it_only(store, database):
    commits = []
    store.listeners.append(lambda touched, revision: commits.append((touched, revision)))
    with transaction.atomic(using=database):
        make(store, pod("a"))
        make(store, config_map("c"), resource=CONFIGMAPS)
        assert commits == []
    assert commits == [(frozenset({"pods"}), 1), (frozenset({"configmaps"}), 2)]


def test_reading_sees_one_state_which_outlives_retention(store, database):
    make(store, pod("a"))
    with store.reading() as revision:
        together(lambda _: make(store, pod("b")), 1)
        assert revision == store.revision() == 1
        assert names(store) == ["a"]
    assert store.revision() == 2
    store.write(delete("a"))
    with store.reading() as head:
        forget_elsewhere(store)
        assert [change.revision for change in store.changes(0)] == [1, 2, 3]
    assert (head, store.compacted()) == (3, 3)


def test_writers_in_parallel_leave_no_gap_and_lose_nothing_and_of_conflicting_ones_one_wins(store):
    together(lambda number: [make(store, pod(f"w{number}-{index}")) for index in range(25)], 4)
    assert [c.revision for c in store.changes(0)] == list(range(1, 101))
    assert store.count(PODS, by="namespace") == {"default": 100}
    (stored,) = make(store, pod())
    objects = [stored.object | {"spec": {"nodeName": f"n{number}"}} for number in range(4)]
    outcomes = together(lambda number: store.write(Update(PODS, objects[number])), 4)
    assert [type(each) for each in outcomes].count(Conflict) == 3


def test_creation_over_an_object_that_was_overlooked_is_a_defect_and_changes_nothing(store, database):
    (stored,) = make(store, pod())
    with connections[database].cursor() as cursor:
        # Without its row of the log an object is not found, though its key is taken.
        cursor.execute("UPDATE cluster_change SET revision = 9")
    with pytest.raises(IntegrityError):
        make(store, pod())
    assert store.revision() == 1
    assert store.names(PODS) == {stored.uid: "default/p"}


@cases("text, params", {
    "changed": (sql.update_object(("phase",)), ("Running", 2, "pods/default/p", 7)),
    "deleted": (sql.DELETE_OBJECT, ("pods/default/p", 7)),
    "owner gone": (sql.DELETE_OWNER, ("pods/default/p", "nobody")),
})  # fmt: skip
def test_statement_that_misses_its_row_is_a_defect(store, database, text, params):
    make(store, pod())
    with pytest.raises(IntegrityError), transaction.atomic(using=database), connections[database].cursor() as cursor:
        sql.run_many(cursor, text, [params])


def reference(uid, **fields):
    return {"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid, **fields}


CONTROLLED = [reference("x", controller=True)]


def test_events_are_found_by_what_they_are_about_but_are_dependents_of_their_owners_alone_which_come_in_batches(store):
    (about,) = make(store, pod())
    event = of(EVENTS, "e", {"involvedObject": {"kind": "Pod", "uid": about.uid}}, ownerReferences=CONTROLLED)
    make(store, event, resource=EVENTS)
    assert [s.name for s in store.find(EVENTS, owner=about.uid)] == ["e"]
    assert store.dependents(about.uid) == []
    assert [s.name for s in store.dependents("x")] == ["e"]
    store.write(Patch(EVENTS, "default", "e", {"metadata": {"ownerReferences": None}}))
    assert store.dependents("x") == []
    names = [f"p{number}" for number in range(5)]
    for name in names:
        make(store, pod(name, ownerReferences=[reference("a")]))
    first = store.dependents("a", limit=3)
    rest = store.dependents("a", after=first[-1].revision, limit=3)
    assert [s.name for s in (*first, *rest)] == names


@blocks("found", folder="cluster")
def test_objects_are_found(store, block, golden):
    jobs = ("a_1", "q1", None), ("b%2", "q2", None), ("c", "q1", None), ("e", "q3", CONTROLLED), ("d", "q3", CONTROLLED)
    for index, (name, queue, owners) in enumerate(jobs):
        store.write(Create(JOBS, job(name, queue=queue, ownerReferences=owners)), now=NOW + index)
    golden(block, of_values(lambda filters: " ".join(s.name for s in store.find(JOBS, **sets(filters)))))
    assert store.count(JOBS, by="queue") == {"q1": 2, "q2": 1, "q3": 2}
    assert set(store.by_keys(JOBS, ["default/c", "default/none"])) == {"default/c"}


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


def test_objects_are_found_by_more_names_than_a_statement_takes_parameters(store):
    make(store, pod("a"), pod("b"), pod("c"))
    many = ["c", *(f"other-{number}" for number in range(300_000)), "a"]
    assert [each.name for each in store.find(PODS, name=many)] == ["a", "c"]


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
