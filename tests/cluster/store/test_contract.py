"""What every back end of the store must do."""

from __future__ import annotations

from random import Random

import pytest
from django.db import IntegrityError, connections, transaction

from cluster.store import Create, Delete, Group, Mirror, Patch, Store, Update, sql
from kube.errors import ApiError, Conflict, Expired
from kube.resources import CONFIGMAPS, EVENTS, JOBS, PODS
from tests.blocks import blocks
from tests.builders import config_map, job, of, pod
from tests.cluster.api.test_rivals import together
from tests.cluster.store.forgetting import forget_elsewhere
from tests.cluster.store.test_filters import sets
from tests.cluster.story import Story
from tests.cluster.texts import of_values
from tests.tables import cases

NOW = 1_800_000_000_000


def make(store, *objects, resource=PODS):
    return store.write(*(Create(resource, o) for o in objects), now=NOW)


def delete(name="p", **options):
    return Delete(PODS, "default", name, **options)


def found(store):
    return [stored.name for stored in store.find(PODS)]


def test_create_fills_in_what_the_server_owns_whatever_was_sent(store):
    forged = pod(uid="mine", generation=7, deletionTimestamp="2020-01-01T00:00:00Z")
    (stored,) = make(store, forged)
    metadata = stored.object["metadata"]
    assert metadata["resourceVersion"] == stored.version == str(stored.revision) == "1"
    assert metadata["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert metadata["generation"] == 1
    assert len(metadata["uid"]) == 36
    assert "deletionTimestamp" not in metadata
    assert (stored.object["apiVersion"], stored.object["kind"]) == ("v1", "Pod")
    assert store.get(PODS, "default", "p") == stored
    assert forged["metadata"]["uid"] == "mine"


@blocks("contract", folder="cluster")
def test_what_is_written_and_what_comes_of_it(block, golden, store, moved_clock):
    moved_clock.us = NOW * 1000
    golden(block, Story(using=store).tell)


@pytest.mark.parametrize("first", ["Foreground", "Orphan"])
def test_a_second_deletion_says_anew_what_becomes_of_dependents(store, first):
    for name, finalizers in (("j", []), ("held", ["x/y"])):
        made = of(JOBS, name)
        made["metadata"]["finalizers"] = finalizers
        make(store, made, resource=JOBS)
        store.write(Delete(JOBS, "default", name, propagation=first))
    (marked,) = store.write(Delete(JOBS, "default", "held", propagation="Background"))
    assert marked.object["metadata"]["finalizers"] == ["x/y"]
    store.write(Delete(JOBS, "default", "j", propagation="Background"))
    assert [each.name for each in store.find(JOBS)] == ["held"]


class Letters(Random):
    """Gives the letters of a text, one after the other."""

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
    store.write(Create(PODS, pod()), delete())
    assert store.find(PODS) == []
    make(store, pod())
    assert [c.verb for c in store.history(PODS, "default", "p")] == ["ADDED", "DELETED", "ADDED"]
    assert [c.verb for c in store.changes(1, until=2)] == ["DELETED"]


def test_surrounding_transaction_takes_the_write_with_it(store, database):
    with transaction.atomic(using=database):
        make(store, pod())
        transaction.set_rollback(True, using=database)
    assert (store.revision(), found(store)) == (0, [])


def test_listeners_hear_of_a_commit_after_it_only(store, database):
    heard = []
    store.listeners.append(lambda touched, revision: heard.append((touched, revision)))
    with transaction.atomic(using=database):
        make(store, pod("a"))
        make(store, config_map("c"), resource=CONFIGMAPS)
        assert heard == []
    assert heard == [(frozenset({"pods"}), 1), (frozenset({"configmaps"}), 2)]


def test_reading_sees_one_state_which_outlives_retention(store, database):
    make(store, pod("a"))
    with store.reading() as revision:
        together(lambda _: make(store, pod("b")), 1)
        assert revision == store.revision() == 1
        assert found(store) == ["a"]
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


REMOTE = {
    "uid": "from-afar", "resourceVersion": "918273", "creationTimestamp": "2020-02-02T02:02:02Z", "generation": 7,
    "managedFields": [{"manager": "kubectl", "operation": "Apply"}], "ownerReferences": [reference("a"), reference("b", controller=True)],
    "deletionTimestamp": "2020-02-02T03:02:02Z", "deletionGracePeriodSeconds": 30, "finalizers": ["x/y"],
}  # fmt: skip


def remote(**metadata):
    return {"metadata": {"name": "p", "namespace": "default", **REMOTE, **metadata}, "spec": {"nodeName": "n"}}


def test_mirrored_object_stays_as_it_came_until_it_is_gone(store):
    make(store, pod("other"))
    (stored,) = store.write(Mirror(PODS, remote()))
    assert stored.object == {"apiVersion": "v1", "kind": "Pod", **remote()}
    assert (stored.revision, stored.version, stored.uid) == (2, "918273", "from-afar")
    assert stored.created == 1_580_608_922_000
    assert store.find(PODS, node="n", uid="from-afar") == store.dependents("a") == store.dependents("b") == [stored]
    (last,) = store.write(Mirror(PODS, remote(resourceVersion="918281", finalizers=[]), deleted=True))
    assert found(store) == ["other"]
    assert store.dependents("a") == []
    assert (last.revision, last.object["metadata"]["finalizers"]) == (3, [])
    log = [(c.verb, c.revision, c.uid, c.version) for c in store.changes(1)]
    assert log == [("ADDED", 2, "from-afar", "918273"), ("DELETED", 3, "from-afar", "918281")]
    (unknown,) = store.write(Mirror(PODS, remote(), deleted=True))
    assert (unknown.revision, store.revision()) == (0, 3)


@blocks("found", folder="cluster")
def test_objects_are_found(store, block, golden):
    jobs = ("a_1", "q1", None), ("b%2", "q2", None), ("c", "q1", None), ("e", "q3", CONTROLLED), ("d", "q3", CONTROLLED)
    for index, (name, queue, owners) in enumerate(jobs):
        store.write(Create(JOBS, job(name, queue=queue, ownerReferences=owners)), now=NOW + index)
    golden(block, of_values(lambda filters: " ".join(s.name for s in store.find(JOBS, **sets(filters)))))
    assert store.count(JOBS, by="queue") == {"q1": 2, "q2": 1, "q3": 2}
    assert set(store.by_keys(JOBS, ["default/c", "default/none"])) == {"default/c"}


def test_history_before_compaction_is_expired(store, database):
    make(store, pod())
    with connections[database].cursor() as cursor:
        cursor.execute("UPDATE cluster_log SET compacted = 1")
    with pytest.raises(Expired):
        store.changes(0)
    assert store.changes(1) == []
