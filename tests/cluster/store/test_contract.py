"""What every back end of the store must do."""

from __future__ import annotations

import threading
from random import Random

import pytest
from django.db import IntegrityError, connections, transaction

from cluster.store import Create, Delete, Group, Mirror, Patch, Store, Update, sql
from kube.errors import AlreadyExists, ApiError, BadRequest, Conflict, Expired, Forbidden, Invalid, NotFound
from kube.resources import CONFIGMAPS, DISRUPTION_BUDGETS, EVENTS, JOBS, NODES, POD_GROUPS, PODS, SERVICES
from proof.harness.waiting import HANG_S
from tests.builders import config_map, job, of, pod
from tests.cluster.store.forgetting import forget_elsewhere
from tests.tables import cases

NOW = 1_800_000_000_000


def make(store, *objects, resource=PODS):
    return store.write(*(Create(resource, o) for o in objects), now=NOW)


def patch(change, subresource="", name="p", **options):
    return Patch(PODS, "default", name, change, subresource, **options)


def delete(name="p", **options):
    return Delete(PODS, "default", name, **options)


def found(store):
    return [stored.name for stored in store.find(PODS)]


BIND = patch({"spec": {"nodeName": "n"}}, "binding")
FINISH = patch({"status": {"phase": "Succeeded"}}, "status")


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


@cases("obj, resource, error", {
    "name taken": (pod(), PODS, AlreadyExists),
    "no name": ({"metadata": {"namespace": "default"}}, PODS, BadRequest),
    "no namespace": ({"metadata": {"name": "x"}}, PODS, BadRequest),
    "namespace of a node": ({"metadata": {"name": "x", "namespace": "a"}}, NODES, Forbidden),
    "version given": (pod("x", resourceVersion="1"), PODS, BadRequest),
})  # fmt: skip
def test_create_refuses(store, obj, resource, error):
    make(store, pod())
    with pytest.raises(error):
        store.write(Create(resource, obj))
    assert store.revision() == 1


@cases("write, error", {
    "update of an old version": (Update(PODS, pod(resourceVersion="99")), Conflict),
    "patch of an old version": (patch({}, version="99"), Conflict),
    "patch of another uid": (patch({}, uid="other"), Conflict),
    "delete of another uid": (delete(uid="other"), Conflict),
    "delete of an old version": (delete(version="99"), Conflict),
    "update of what is not there": (Update(PODS, pod("none")), NotFound),
    "patch of what is not there": (patch({}, name="none"), NotFound),
    "delete of what is not there": (delete("none"), NotFound),
    "binding of what is bound": (BIND, Conflict),
    "binding of what is being deleted": (patch({"spec": {"nodeName": "n"}}, "binding", "ends"), Conflict),
    "another finalizer while it is being deleted": (patch({"metadata": {"finalizers": ["z/z"]}}, name="ends"), Invalid),
})  # fmt: skip
def test_change_is_refused_and_leaves_the_object(store, write, error):
    made = make(store, pod(nodeName="n"), pod("ends", finalizers=["x/y"]))
    store.write(delete("ends"))
    with pytest.raises(error):
        store.write(write)
    assert store.get(PODS, "default", "p") == made[0]


def test_status_and_the_rest_of_an_object_are_written_apart(store):
    (made,) = make(store, pod())
    forged = pod(nodeName="forged", labels={"forged": "yes"}, status={"phase": "Pending"})
    (stored,) = store.write(Update(PODS, forged, "status"))
    assert stored.object["status"] == {"phase": "Pending"}
    assert stored.object["spec"] == made.object["spec"]
    assert "labels" not in stored.object["metadata"]
    (stored,) = store.write(Update(PODS, pod(nodeName="n", status={"phase": "Forged"})))
    assert stored.object["status"] == {"phase": "Pending"}
    assert stored.object["spec"]["nodeName"] == "n"
    assert store.write(Update(PODS, stored.object), patch({"spec": {"nodeName": "n"}})) == [stored] * 2
    assert store.revision() == 3, "a write that changes nothing is none"


def test_binding_gives_a_pod_its_node_and_changes_nothing_that_is_wanted_of_it(store):
    (made,) = make(store, pod())
    (bound,) = store.write(BIND)
    assert bound.object["spec"] == {**made.object["spec"], "nodeName": "n"}
    assert bound.object["metadata"]["generation"] == 1
    assert store.find(PODS, node="n") == [bound]


def test_kind_without_status_subresource_takes_status_with_the_object(store):
    (group,) = make(store, of(POD_GROUPS, "g"), resource=POD_GROUPS)
    (stored,) = store.write(Update(POD_GROUPS, group.object | {"status": {"phase": "Inqueue"}}))
    assert stored.object["status"] == {"phase": "Inqueue"}
    assert store.find(POD_GROUPS, phase="Inqueue") == [stored]


@cases("resource, field, generations", {
    "custom kind": (POD_GROUPS, "spec", [1, 2, 2, 3]),
    "pod": (PODS, "spec", [1, 2, 2, 3]),
    "budget": (DISRUPTION_BUDGETS, "spec", [1, 2, 2, 3]),
    "config map": (CONFIGMAPS, "data", [None] * 4),
    "service": (SERVICES, "spec", [None] * 4),
})  # fmt: skip
def test_generation_counts_changes_and_deletion_where_the_kind_has_one(store, resource, field, generations):
    states = make(store, of(resource, "x", {field: {"a": "1"}}, finalizers=["x/y"]), resource=resource)
    for change in ({field: {"a": "2"}}, {"metadata": {"labels": {"a": "b"}}}):
        states += store.write(Patch(resource, "default", "x", change))
    states += store.write(Delete(resource, "default", "x"))
    assert [each.object["metadata"].get("generation") for each in states] == generations


@cases("obj, writes, left", {
    "not bound": (pod(), [delete()], []),
    "bound": (pod(nodeName="n"), [delete()], ["p"]),
    "bound and over": (pod(nodeName="n"), [FINISH, delete()], []),
    "bound and without grace": (pod(nodeName="n"), [delete(), delete(grace=0)], []),
    "held by a finalizer": (pod(finalizers=["x/y"]), [delete(grace=0)], ["p"]),
    "held no longer": (pod(finalizers=["x/y"]), [delete(), patch({"metadata": {"finalizers": None}})], []),
})  # fmt: skip
def test_deleted_pod_goes_when_nothing_holds_it(store, obj, writes, left):
    make(store, obj)
    for each in writes:
        store.write(each)
    assert found(store) == left
    last = store.changes(0)[-1]
    assert (last.verb == "DELETED") is not bool(left)
    assert last.object["metadata"]["resourceVersion"] == str(store.revision())


def test_deletion_of_a_bound_pod_may_only_come_sooner(store):
    make(store, pod(nodeName="n", terminationGracePeriodSeconds=5))
    (marked,) = store.write(delete(), now=NOW)
    assert marked.object["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:05Z"
    assert marked.object["metadata"]["deletionGracePeriodSeconds"] == 5
    assert store.write(delete(grace=60), now=NOW) == [marked]
    (sooner,) = store.write(delete(grace=1), now=NOW)
    assert sooner.object["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:01Z"


@pytest.mark.parametrize(("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_propagation_leaves_its_finalizer(store, propagation, finalizer):
    make(store, of(JOBS, "j"), resource=JOBS)
    (marked,) = store.write(Delete(JOBS, "default", "j", propagation=propagation))
    assert marked.object["metadata"]["finalizers"] == [finalizer]


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


def in_threads(database, work, count=4):
    """Do work(number) in so many threads at once, each with a connection of its own."""

    def run(number):
        try:
            work(number)
        finally:
            connections[database].close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)


def test_reading_sees_one_state(store, database):
    make(store, pod("a"))
    with store.reading() as revision:
        in_threads(database, lambda _: make(store, pod("b")), 1)
        assert revision == store.revision() == 1
        assert found(store) == ["a"]
    assert store.revision() == 2


def test_a_state_that_is_being_read_outlives_retention(store):
    make(store, pod("a"), pod("b"))
    store.write(delete("a"))
    with store.reading() as head:
        forget_elsewhere(store)
        assert [change.revision for change in store.changes(0)] == [1, 2, 3]
    assert (head, store.compacted()) == (3, 3)


def test_writers_in_parallel_leave_no_gap_and_lose_nothing(store, database):
    in_threads(database, lambda number: [make(store, pod(f"w{number}-{index}")) for index in range(25)])
    assert [c.revision for c in store.changes(0)] == list(range(1, 101))
    assert store.count(PODS, by="namespace") == {"default": 100}


def test_one_of_four_conflicting_writers_wins(store, database):
    (stored,) = make(store, pod())
    outcomes = []

    def work(number):
        try:
            store.write(Update(PODS, stored.object | {"spec": {"nodeName": f"n{number}"}}))
            outcomes.append("won")
        except Conflict:
            outcomes.append("lost")

    in_threads(database, work)
    assert sorted(outcomes) == ["lost", "lost", "lost", "won"]


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


def test_events_are_found_by_what_they_are_about_but_are_dependents_of_their_owners_alone(store):
    (about,) = make(store, pod())
    event = of(EVENTS, "e", {"involvedObject": {"kind": "Pod", "uid": about.uid}}, ownerReferences=CONTROLLED)
    make(store, event, resource=EVENTS)
    assert [s.name for s in store.find(EVENTS, owner=about.uid)] == ["e"]
    assert store.dependents(about.uid) == []
    assert [s.name for s in store.dependents("x")] == ["e"]
    store.write(Patch(EVENTS, "default", "e", {"metadata": {"ownerReferences": None}}))
    assert store.dependents("x") == []


def test_dependents_come_in_batches(store):
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


@cases("how, uid, version, is_taken", {
    "the same version": ({}, "from-afar", "918273", False),
    "newer": ({}, "from-afar", "918299", True),
    "older": ({}, "from-afar", "918200", False),
    "older, of an object that has gone since": ({}, "before", "918200", False),
    "older, in a list older than what is stored": ({"at": "918272"}, "from-afar", "918200", False),
    "older, in a list that is newer, as after a restore": ({"at": "918274"}, "from-afar", "918200", True),
    "older, where versions began anew": ({"anew": True}, "from-afar", "918200", True),
    "the same version, where versions began anew": ({"anew": True}, "from-afar", "918273", True),
})  # fmt: skip
def test_mirrored_object_never_goes_back_unless_its_cluster_did(store, how, uid, version, is_taken):
    store.write(Mirror(PODS, remote()))
    for _ in range(2):  # which the second time says nothing else
        write = Mirror(PODS, remote(uid=uid, resourceVersion=version, labels={"a": "b"}), **how)
        (stored,) = store.write(write)
        assert stored.version == (version if is_taken else "918273")
        assert ("labels" in stored.object["metadata"]) is is_taken
        assert store.revision() == 1 + is_taken


@pytest.mark.parametrize("field", ["name", "uid", "resourceVersion", "namespace"])
def test_mirrored_object_has_all_that_names_it(store, field):
    with pytest.raises(BadRequest):
        store.write(Mirror(PODS, remote(**{field: ""})))
    assert store.revision() == 0


@cases("filters, names", {
    "queue": ({"queue": "q1"}, "a_1 c"),
    "text that is no pattern": ({"text": "_"}, "a_1"),
    "text that is none of the other kind": ({"text": "%"}, "b%2"),
    "text that nothing has": ({"text": "\\\\"}, ""),
    "text in capitals": ({"text": "C"}, "c"),
    "page": ({"order": "-created", "limit": 2, "offset": 2}, "c b%2"),
    "no namespace": ({"namespace": frozenset()}, ""),
    "namespaces and names": ({"namespace": {"default", "e"}, "name": ["c"]}, "c"),
    "oldest first": ({"owner": "x", "order": "revision"}, "e d"),
    "newest first, without the first": ({"owner": "x", "order": "-revision", "limit": 2, "offset": 1}, "e"),
})  # fmt: skip
def test_objects_are_found(store, filters, names):
    jobs = [
        ("a_1", "q1", None),
        ("b%2", "q2", None),
        ("c", "q1", None),
        ("e", "q3", CONTROLLED),
        ("d", "q3", CONTROLLED),
    ]
    for index, (name, queue, owners) in enumerate(jobs):
        store.write(Create(JOBS, job(name, queue=queue, ownerReferences=owners)), now=NOW + index)
    assert " ".join(s.name for s in store.find(JOBS, **filters)) == names
    assert store.count(JOBS, by="queue") == {"q1": 2, "q2": 1, "q3": 2}
    assert set(store.by_keys(JOBS, ["default/c", "default/none"])) == {"default/c"}


def test_history_before_compaction_is_expired(store, database):
    make(store, pod())
    with connections[database].cursor() as cursor:
        cursor.execute("UPDATE cluster_log SET compacted = 1")
    with pytest.raises(Expired):
        store.changes(0)
    assert store.changes(1) == []
