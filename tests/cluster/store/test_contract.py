"""What every back end of the store must do."""

from __future__ import annotations

import importlib
import threading
from random import Random
from types import SimpleNamespace

import pytest
from django.db import IntegrityError, connections, transaction

from cluster.store import Create, Delete, Group, Mirror, Patch, Store, Update, sql
from kube.errors import AlreadyExists, ApiError, BadRequest, Conflict, Expired, Forbidden, Invalid, NotFound
from kube.resources import CONFIGMAPS, DISRUPTION_BUDGETS, EVENTS, JOBS, NODES, POD_GROUPS, PODS, SERVICES
from proof.harness.waiting import HANG_S

NOW = 1_800_000_000_000


def pod(name="p", namespace="default", **spec):
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": [], **spec}}


def make(store, *objects, resource=PODS):
    return store.write(*(Create(resource, o) for o in objects), now=NOW)


def test_create_fills_in_what_the_server_owns(store):
    (stored,) = make(store, pod())
    metadata = stored.object["metadata"]
    assert metadata["resourceVersion"] == stored.version == str(stored.revision) == "1"
    assert metadata["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert metadata["generation"] == 1
    assert len(metadata["uid"]) == 36
    assert (stored.object["apiVersion"], stored.object["kind"]) == ("v1", "Pod")
    assert store.get(PODS, "default", "p") == stored


def test_create_ignores_forged_server_fields(store):
    forged = pod()
    forged["metadata"] |= {"uid": "mine", "generation": 7, "deletionTimestamp": "2020-01-01T00:00:00Z"}
    (stored,) = make(store, forged)
    assert stored.uid != "mine"
    assert stored.object["metadata"]["generation"] == 1
    assert "deletionTimestamp" not in stored.object["metadata"]
    assert forged["metadata"]["uid"] == "mine"


@pytest.mark.parametrize(
    ("obj", "resource", "error"),
    [
        pytest.param(pod("taken"), PODS, AlreadyExists, id="name taken"),
        pytest.param({"metadata": {"namespace": "default"}}, PODS, BadRequest, id="no name"),
        pytest.param({"metadata": {"name": "x"}}, PODS, BadRequest, id="no namespace"),
        pytest.param({"metadata": {"name": "x", "namespace": "a"}}, NODES, Forbidden, id="namespace of a node"),
        pytest.param(
            {"metadata": {"name": "x", "namespace": "a", "resourceVersion": "1"}}, PODS, BadRequest, id="version given"
        ),
    ],
)
def test_create_refuses(store, obj, resource, error):
    make(store, pod("taken"))
    with pytest.raises(error):
        store.write(Create(resource, obj))
    assert store.revision() == 1


def test_generate_name_makes_different_names(store):
    made = make(store, *({"metadata": {"generateName": "job-", "namespace": "d"}} for _ in range(50)))
    assert len({stored.name for stored in made}) == 50
    assert all(stored.name.startswith("job-") and len(stored.name) == 9 for stored in made)


class Letters(Random):
    """Gives the letters of a text, one after the other."""

    def __init__(self, text):
        super().__init__()
        self.left = iter(text.replace(" ", ""))

    def choice(self, seq):
        return next(self.left)


def generated(base="job-"):
    return {"metadata": {"generateName": base, "namespace": "d"}}


def test_generated_name_that_is_taken_is_not_given_again(database, store):
    store = Store(database, random=Letters("bbbbb bbbbb ccccc ccccc bbbbb ddddd"))
    made = [make(store, generated())[0] for _ in range(3)]
    assert [stored.name for stored in made] == ["job-bbbbb", "job-ccccc", "job-ddddd"]
    assert [store.get(PODS, "d", stored.name) for stored in made] == made


def test_generated_name_is_given_once_in_a_transaction(database, store):
    store = Store(database, random=Letters("bbbbb bbbbb ccccc"))
    outcomes = store.commit([Group([Create(PODS, generated())]) for _ in range(2)])
    assert [stored.name for (stored,) in outcomes] == ["job-bbbbb", "job-ccccc"]


def test_generated_name_avoids_names_of_the_same_transaction(database, store):
    store = Store(database, random=Letters("bbbbb ccccc"))
    named = {"metadata": {"name": "job-bbbbb", "namespace": "d"}}
    first, second = make(store, generated(), named)
    assert (first.name, second.name) == ("job-ccccc", "job-bbbbb")


def test_generated_name_is_of_a_kind_and_a_namespace(database, store):
    store = Store(database, random=Letters("bbbbb bbbbb bbbbb"))
    elsewhere = {"metadata": {"generateName": "job-", "namespace": "e"}}
    for obj, resource in ((generated(), PODS), (elsewhere, PODS), (generated(), CONFIGMAPS)):
        assert make(store, obj, resource=resource)[0].name == "job-bbbbb"


def test_object_that_finds_no_free_name_is_refused_and_others_are_made(database, store):
    store = Store(database, random=Letters("bbbbb" * 9))
    make(store, generated())
    outcomes = store.commit([Group([Create(PODS, generated())]), Group([Create(PODS, pod())])])
    assert isinstance(outcomes[0], AlreadyExists)
    assert [stored.name for stored in outcomes[1]] == ["p"]


def test_generated_names_are_looked_up_together(database, store):
    store, asked = Store(database, random=Random(1)), []  # whose first thousand names are all different

    def note(execute, text, params, many, context):
        asked.append(text)
        return execute(text, params, many, context)

    with connections[database].execute_wrapper(note):
        store.commit([Group([Create(PODS, generated())]) for _ in range(2 * sql.CHUNK)])
    assert sum(text.startswith("SELECT key") for text in asked) == 2


def test_uids_are_of_the_source_that_was_handed_in(database, store):
    store = Store(database, uids=iter(["one", "two"]).__next__)
    assert [stored.uid for stored in make(store, pod("a"), pod("b"))] == ["one", "two"]


def test_creation_over_an_object_that_was_overlooked_is_a_defect_and_changes_nothing(store, database):
    (stored,) = make(store, pod())
    with connections[database].cursor() as cursor:
        # Without its row of the log an object is not found, though its key is taken.
        cursor.execute("UPDATE cluster_change SET revision = 9")
    with pytest.raises(IntegrityError):
        make(store, pod())
    assert store.revision() == 1
    assert store.names(PODS) == {stored.uid: "default/p"}


@pytest.mark.parametrize(
    ("text", "params"),
    [
        pytest.param(sql.update_object(("phase",)), ("Running", 2, "pods/default/p", 7), id="changed"),
        pytest.param(sql.DELETE_OBJECT, ("pods/default/p", 7), id="deleted"),
        pytest.param(sql.DELETE_OWNER, ("pods/default/p", "nobody"), id="owner gone"),
    ],
)
def test_statement_that_misses_its_row_is_a_defect(store, database, text, params):
    make(store, pod())
    with pytest.raises(IntegrityError), transaction.atomic(using=database), connections[database].cursor() as cursor:
        sql.run_many(cursor, text, [params])


def test_of_two_changes_from_one_version_in_one_transaction_the_second_is_a_conflict(store):
    (stored,) = make(store, pod())
    patches = [Patch(PODS, "default", "p", {"spec": {"value": value}}, version=stored.version) for value in (1, 2)]
    outcomes = store.commit([Group([each]) for each in patches])
    assert isinstance(outcomes[1], Conflict)
    assert store.get(PODS, "default", "p").object["spec"]["value"] == 1


def test_update_keeps_status_and_counts_generations(store):
    make(store, pod())
    store.write(Patch(PODS, "default", "p", {"status": {"phase": "Running"}}, "status"))
    changed = pod(nodeName="n")
    changed["status"] = {"phase": "Forged"}
    (stored,) = store.write(Update(PODS, changed))
    assert stored.object["status"] == {"phase": "Running"}
    assert stored.object["metadata"]["generation"] == 2
    (labelled,) = store.write(Patch(PODS, "default", "p", {"metadata": {"labels": {"a": "b"}}}))
    assert labelled.object["metadata"]["generation"] == 2


def test_status_update_touches_nothing_else(store):
    make(store, pod())
    sent = pod("p", nodeName="forged") | {"status": {"phase": "Pending"}}
    sent["metadata"]["labels"] = {"forged": "yes"}
    (stored,) = store.write(Update(PODS, sent, "status"))
    assert stored.object["status"] == {"phase": "Pending"}
    assert "nodeName" not in stored.object["spec"]
    assert "labels" not in stored.object["metadata"]
    assert stored.object["metadata"]["generation"] == 1


def test_kind_without_status_subresource_takes_status_with_the_object(store):
    (group,) = make(store, {"metadata": {"name": "g", "namespace": "d"}, "spec": {}}, resource=POD_GROUPS)
    (stored,) = store.write(Update(POD_GROUPS, group.object | {"status": {"phase": "Inqueue"}}))
    assert stored.object["status"] == {"phase": "Inqueue"}
    assert store.find(POD_GROUPS, phase="Inqueue") == [stored]


def test_write_that_changes_nothing_is_not_a_revision(store):
    (stored,) = make(store, pod())
    assert store.write(Update(PODS, stored.object)) == [stored]
    assert store.write(Patch(PODS, "default", "p", {"spec": {"containers": []}})) == [stored]
    assert store.revision() == 1


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(
            lambda s: Update(PODS, pod() | {"metadata": s.object["metadata"] | {"resourceVersion": "99"}}), id="update"
        ),
        pytest.param(lambda s: Patch(PODS, "default", "p", {}, version="99"), id="patch version"),
        pytest.param(lambda s: Patch(PODS, "default", "p", {}, uid="other"), id="patch uid"),
        pytest.param(lambda s: Delete(PODS, "default", "p", uid="other"), id="delete uid"),
        pytest.param(lambda s: Delete(PODS, "default", "p", version="99"), id="delete version"),
    ],
)
def test_stale_precondition_is_a_conflict(store, write):
    (stored,) = make(store, pod())
    with pytest.raises(Conflict):
        store.write(write(stored))
    assert store.get(PODS, "default", "p") == stored


@pytest.mark.parametrize("write", [Update(PODS, pod()), Patch(PODS, "default", "p", {}), Delete(PODS, "default", "p")])
def test_absent_object_is_not_found(store, write):
    with pytest.raises(NotFound):
        store.write(write)


def test_binding_places_a_pod_once(store):
    make(store, pod())
    bind = Patch(PODS, "default", "p", {"spec": {"nodeName": "n1"}}, "binding")
    (stored,) = store.write(bind)
    assert stored.object["spec"] == {"containers": [], "nodeName": "n1"}
    with pytest.raises(Conflict, match="already assigned"):
        store.write(bind)
    assert [s.name for s in store.find(PODS, node="n1")] == ["p"]


def test_binding_a_pod_that_is_being_deleted_is_a_conflict(store):
    held = pod()
    held["metadata"]["finalizers"] = ["x/y"]
    make(store, held)
    store.write(Delete(PODS, "default", "p"))
    with pytest.raises(Conflict, match="being deleted"):
        store.write(Patch(PODS, "default", "p", {"spec": {"nodeName": "n"}}, "binding"))


def test_group_is_all_or_nothing_and_others_stay(store):
    make(store, pod("a"), pod("b"))
    outcomes = store.commit(
        [
            Group([Patch(PODS, "default", "a", {"spec": {"nodeName": "n"}}, "binding")], "good"),
            Group(
                [Patch(PODS, "default", "b", {"spec": {"nodeName": "n"}}, "binding"), Delete(PODS, "default", "zz")],
                "bad",
            ),
            Group(
                [Create(PODS, pod("c")), Patch(PODS, "default", "c", {"status": {"phase": "Pending"}}, "status")],
                "both",
            ),
        ]
    )
    assert isinstance(outcomes[1], ApiError)
    assert [len(o) for o in (outcomes[0], outcomes[2])] == [1, 2]
    assert "nodeName" not in store.get(PODS, "default", "b").object["spec"]
    assert store.get(PODS, "default", "c").object["status"] == {"phase": "Pending"}
    assert [c.revision for c in store.changes(0)] == [1, 2, 3, 4, 5]


def test_delete_of_an_unbound_pod_is_immediate(store):
    make(store, pod())
    store.write(Delete(PODS, "default", "p"))
    with pytest.raises(NotFound):
        store.get(PODS, "default", "p")
    last = store.changes(1)[0]
    assert (last.verb, last.name) == ("DELETED", "p")
    assert last.object["metadata"]["resourceVersion"] == "2"


def test_delete_of_a_bound_pod_waits_for_its_node(store):
    make(store, pod(nodeName="n", terminationGracePeriodSeconds=5))
    (marked,) = store.write(Delete(PODS, "default", "p"), now=NOW)
    assert marked.object["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:05Z"
    assert marked.object["metadata"]["deletionGracePeriodSeconds"] == 5
    (later,) = store.write(Delete(PODS, "default", "p", grace=60), now=NOW)
    assert later == marked
    (sooner,) = store.write(Delete(PODS, "default", "p", grace=1), now=NOW)
    assert sooner.object["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:01Z"
    store.write(Delete(PODS, "default", "p", grace=0))
    assert store.find(PODS) == []


@pytest.mark.parametrize(
    ("resource", "field", "expected"),
    [
        pytest.param(POD_GROUPS, "spec", [1, 2, 3], id="custom kind"),
        pytest.param(DISRUPTION_BUDGETS, "spec", [1, 2, 3], id="budget"),
        pytest.param(CONFIGMAPS, "data", [None, None, None], id="config map"),
        pytest.param(SERVICES, "spec", [None, None, None], id="service"),
    ],
)
def test_generation_counts_changes_and_deletion_where_the_kind_has_one(store, resource, field, expected):
    held = {"metadata": {"name": "x", "namespace": "d", "finalizers": ["x/y"]}, field: {"a": "1"}}
    (made,) = make(store, held, resource=resource)
    (changed,) = store.write(Patch(resource, "d", "x", {field: {"a": "2"}}))
    (marked,) = store.write(Delete(resource, "d", "x"))
    found = [each.object["metadata"].get("generation") for each in (made, changed, marked)]
    assert found == expected


def test_delete_of_a_finished_pod_is_immediate(store):
    make(store, pod(nodeName="n"))
    store.write(Patch(PODS, "default", "p", {"status": {"phase": "Succeeded"}}, "status"))
    store.write(Delete(PODS, "default", "p"))
    assert store.find(PODS) == []


def test_finalizers_hold_a_deleted_object(store):
    held = pod()
    held["metadata"]["finalizers"] = ["x/y"]
    make(store, held)
    (marked,) = store.write(Delete(PODS, "default", "p"))
    assert marked.object["metadata"]["generation"] == 2
    with pytest.raises(Invalid, match="no new finalizers"):
        store.write(Patch(PODS, "default", "p", {"metadata": {"finalizers": ["x/y", "z/z"]}}))
    store.write(Patch(PODS, "default", "p", {"metadata": {"finalizers": None}}))
    assert store.find(PODS) == []
    assert store.changes(0)[-1].verb == "DELETED"


@pytest.mark.parametrize(("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_propagation_leaves_its_finalizer(store, propagation, finalizer):
    make(store, {"metadata": {"name": "j", "namespace": "d"}, "spec": {}}, resource=JOBS)
    (marked,) = store.write(Delete(JOBS, "d", "j", propagation=propagation))
    assert marked.object["metadata"]["finalizers"] == [finalizer]


def test_object_deleted_and_made_again_in_one_transaction_is_the_new_one(store):
    (old,) = make(store, pod())
    _, new = store.write(Delete(PODS, "default", "p"), Create(PODS, pod(nodeName="n")))
    assert store.get(PODS, "default", "p") == new
    assert new.uid != old.uid
    assert [s.name for s in store.find(PODS, node="n")] == ["p"]
    assert [(c.verb, c.uid) for c in store.changes(1)] == [("DELETED", old.uid), ("ADDED", new.uid)]


def test_object_made_and_deleted_in_one_transaction_is_in_the_log_only(store):
    store.write(Create(PODS, pod()), Delete(PODS, "default", "p"))
    assert store.find(PODS) == []
    assert [c.verb for c in store.changes(0)] == ["ADDED", "DELETED"]


def test_name_is_free_again_after_deletion(store):
    (first,) = make(store, pod())
    store.write(Delete(PODS, "default", "p"))
    (second,) = make(store, pod())
    assert first.uid != second.uid
    assert [c.verb for c in store.history(PODS, "default", "p")] == ["ADDED", "DELETED", "ADDED"]


def test_changes_are_filtered_and_limited(store):
    make(store, pod("a"))
    make(store, {"metadata": {"name": "n"}}, resource=NODES)
    make(store, pod("b"))
    assert [c.name for c in store.changes(0, [PODS])] == ["a", "b"]
    assert [c.name for c in store.changes(0, limit=2)] == ["a", "n"]
    assert [c.name for c in store.changes(1, until=2)] == ["n"]
    assert store.changes(3) == []


def test_dependents_are_found_by_any_owner(store):
    owners = [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": u, "controller": u == "c"} for u in ("c", "o")]
    owned = pod()
    owned["metadata"]["ownerReferences"] = owners
    make(store, owned, pod("free"))
    assert [s.name for s in store.dependents("c")] == ["p"]
    assert [s.name for s in store.dependents("o")] == ["p"]
    store.write(Delete(PODS, "default", "p"))
    assert store.dependents("o") == []


def reference(uid, **fields):
    return {"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid, **fields}


OWNERS = {
    "none": [],
    "a controller": [reference("a", controller=True)],
    "no controller": [reference("a")],
    "another": [reference("b")],
    "several": [reference("a", controller=True), reference("b"), reference("c", controller=False)],
    "exchanged": [reference("b", controller=True), reference("a")],
    "one twice": [reference("a"), reference("a")],
    "two controllers": [reference("a", controller=True), reference("b", controller=True)],
}


def owned(owners, name="p"):
    return {"metadata": {"name": name, "namespace": "default", "ownerReferences": OWNERS[owners]}}


def check_dependents(store, owners):
    named = {each["uid"] for each in OWNERS[owners]}
    for uid in "abc":
        assert [s.name for s in store.dependents(uid)] == (["p"] if uid in named else [])


@pytest.mark.parametrize("resource", [PODS, EVENTS], ids=["pods", "events"])
@pytest.mark.parametrize("before", OWNERS)
def test_dependents_are_those_that_name_the_owner_now(store, resource, before):
    for after in OWNERS:
        make(store, owned(before), resource=resource)
        check_dependents(store, before)
        patch = {"metadata": {"ownerReferences": OWNERS[after] or None}}
        store.write(Patch(resource, "default", "p", patch))
        check_dependents(store, after)
        store.write(Delete(resource, "default", "p"), Create(resource, owned(before)))
        check_dependents(store, before)
        store.write(Delete(resource, "default", "p"))
        check_dependents(store, "none")


def test_upgrade_writes_the_table_of_owners_anew(store, database):
    """The table said things that objects no longer say, and lacked some that they do."""
    for number, owners in enumerate(OWNERS):
        make(store, owned(owners, f"p{number}"))
    make(store, owned("a controller", "e"), resource=EVENTS)
    rows = "SELECT key, owner FROM cluster_ownership ORDER BY key, owner"
    right = sql.rows(database, rows)
    with connections[database].cursor() as cursor:
        cursor.execute("DELETE FROM cluster_ownership WHERE owner = 'a'")
        cursor.execute("INSERT INTO cluster_ownership (key, owner) VALUES ('pods/default/p0', 'gone')")
    upgrade = importlib.import_module("cluster.migrations.0006_ownership")
    upgrade.rebuild(None, SimpleNamespace(connection=connections[database]))
    assert sql.rows(database, rows) == right


def test_dependents_come_in_batches(store):
    for number in range(5):
        make(store, owned("no controller", f"p{number}"))
    first = store.dependents("a", limit=3)
    rest = store.dependents("a", after=first[-1].revision, limit=3)
    assert [s.name for s in (*first, *rest)] == [f"p{number}" for number in range(5)]


REMOTE = {
    "uid": "from-afar",
    "resourceVersion": "918273",
    "creationTimestamp": "2020-02-02T02:02:02Z",
    "generation": 7,
    "managedFields": [{"manager": "kubectl", "operation": "Apply"}],
    "deletionTimestamp": "2020-02-02T03:02:02Z",
    "deletionGracePeriodSeconds": 30,
    "finalizers": ["x/y"],
    "ownerReferences": [reference("a"), reference("b", controller=True)],
}


def remote(**metadata):
    return {"metadata": {"name": "p", "namespace": "default", **REMOTE, **metadata}, "spec": {"nodeName": "n"}}


def verbs(store):
    return [(c.verb, c.uid, c.version) for c in store.changes(0)]


def test_mirrored_object_stays_as_it_came(store):
    make(store, pod("other"))
    (stored,) = store.write(Mirror(PODS, remote()))
    assert stored.object == {"apiVersion": "v1", "kind": "Pod", **remote()}
    assert (stored.revision, stored.version, stored.uid) == (2, "918273", "from-afar")
    assert stored.created == 1_580_608_922_000
    assert store.find(PODS, node="n", uid="from-afar") == store.dependents("a") == store.dependents("b") == [stored]
    change = store.changes(1)[0]
    assert (change.verb, change.revision, change.version) == ("ADDED", 2, "918273")


def test_mirrored_object_changes_with_its_version_only(store):
    store.write(Mirror(PODS, remote()))
    (same,) = store.write(Mirror(PODS, remote(labels={"a": "b"})))
    assert (same.revision, store.revision()) == (1, 1)
    (newer,) = store.write(Mirror(PODS, remote(resourceVersion="918299", ownerReferences=[])))
    assert (newer.revision, newer.version) == (2, "918299")
    assert store.dependents("a") == store.dependents("b") == []
    assert verbs(store) == [("ADDED", "from-afar", "918273"), ("MODIFIED", "from-afar", "918299")]


@pytest.mark.parametrize(
    ("how", "uid", "is_taken"),
    [
        pytest.param({}, "from-afar", False, id="older"),
        pytest.param({}, "before", False, id="older, of an object that has gone since"),
        pytest.param({"at": "918272"}, "from-afar", False, id="in a list older than what is stored"),
        pytest.param({"at": "918274"}, "from-afar", True, id="older in a list that is newer, as after a restore"),
        pytest.param({"anew": True}, "from-afar", True, id="older where versions began anew"),
    ],
)
def test_mirrored_object_never_goes_back_unless_its_cluster_did(store, how, uid, is_taken):
    store.write(Mirror(PODS, remote()))
    (stored,) = store.write(Mirror(PODS, remote(uid=uid, resourceVersion="918200"), **how))
    assert stored.version == ("918200" if is_taken else "918273")
    assert store.revision() == 1 + is_taken


def test_same_version_of_versions_that_began_anew_may_say_something_else(store):
    store.write(Mirror(PODS, remote()))
    store.write(Mirror(PODS, remote(labels={"a": "b"}), anew=True))
    store.write(Mirror(PODS, remote(labels={"a": "b"}), anew=True))
    assert [verb for verb, _, _ in verbs(store)] == ["ADDED", "MODIFIED"]


def test_another_mirrored_object_of_the_name_comes_after_the_first_has_gone(store):
    store.write(Mirror(PODS, remote()))
    store.write(Mirror(PODS, remote(uid="next", resourceVersion="918280")))
    assert verbs(store) == [
        ("ADDED", "from-afar", "918273"),
        ("DELETED", "from-afar", "918273"),
        ("ADDED", "next", "918280"),
    ]
    assert [s.uid for s in store.find(PODS)] == ["next"]


def test_mirrored_deletion_keeps_the_last_state_in_the_log(store):
    store.write(Mirror(PODS, remote()))
    (last,) = store.write(Mirror(PODS, remote(resourceVersion="918281", finalizers=[]), deleted=True))
    assert store.find(PODS) == store.dependents("a") == []
    assert (last.revision, last.object["metadata"]["finalizers"]) == (2, [])
    assert verbs(store)[1] == ("DELETED", "from-afar", "918281")


def test_mirrored_deletion_of_what_is_not_here_does_nothing(store):
    (unknown,) = store.write(Mirror(PODS, remote(), deleted=True))
    assert (unknown.revision, store.revision()) == (0, 0)
    store.write(Mirror(PODS, remote(uid="next")))
    store.write(Mirror(PODS, remote(), deleted=True))
    assert [s.uid for s in store.find(PODS)] == ["next"]


def test_precondition_of_a_mirrored_object_is_its_version(store):
    store.write(Mirror(PODS, remote()))
    with pytest.raises(Conflict):
        store.write(Patch(PODS, "default", "p", {"spec": {"x": 1}}, version="1"))
    store.write(Patch(PODS, "default", "p", {"spec": {"x": 1}}, version="918273"))


@pytest.mark.parametrize("field", ["name", "uid", "resourceVersion", "namespace"])
def test_mirrored_object_has_all_that_names_it(store, field):
    with pytest.raises(BadRequest):
        store.write(Mirror(PODS, remote(**{field: ""})))
    assert store.revision() == 0


def test_events_are_found_by_what_they_are_about_but_are_no_dependents(store):
    (about,) = make(store, pod())
    event = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": {"kind": "Pod", "uid": about.uid}}
    make(store, event, resource=EVENTS)
    assert [s.name for s in store.find(EVENTS, owner=about.uid)] == ["e"]
    assert store.dependents(about.uid) == []


def test_find_filters_sorts_and_pages(store):
    for index, (name, queue) in enumerate([("a_1", "q1"), ("b%2", "q2"), ("c", "q1")]):
        obj = {"metadata": {"name": name, "namespace": "d"}, "spec": {"queue": queue}}
        store.write(Create(JOBS, obj), now=NOW + index)

    def names(**filters):
        return [s.name for s in store.find(JOBS, **filters)]

    assert names(queue="q1") == ["a_1", "c"]
    assert names(text="_") == ["a_1"]
    assert names(text="%") == ["b%2"]
    assert names(text="\\\\") == []
    assert names(text="C") == ["c"]
    assert names(order="-created", limit=1, offset=1) == ["b%2"]
    assert names(namespace=frozenset()) == []
    for index in (3, 0, 4, 1, 2):
        metadata = {"name": f"p-{index}", "namespace": "d", "ownerReferences": [{"uid": "x", "controller": True}]}
        store.write(Create(PODS, {"metadata": metadata}), now=NOW)
    found = store.find(PODS, owner="x", order="-revision", limit=2, offset=1)
    assert [stored.name for stored in found] == ["p-1", "p-4"]
    assert names(namespace={"d", "e"}, name=["c"]) == ["c"]
    assert store.count(JOBS, by="queue") == {"q1": 2, "q2": 1}
    assert set(store.by_keys(JOBS, ["d/c", "d/none"])) == {"d/c"}


def test_reading_sees_one_state(store, database):
    make(store, pod("a"))
    if connections[database].vendor == "sqlite" and ":memory:" in str(connections[database].settings_dict["NAME"]):
        pytest.skip("one connection only")
    with store.reading() as revision:
        thread = threading.Thread(target=lambda: (make(store, pod("b")), connections[database].close()))
        thread.start()
        thread.join(HANG_S)
        assert revision == store.revision() == 1
        assert len(store.find(PODS)) == 1
    assert store.revision() == 2


def test_writers_in_parallel_leave_no_gap_and_lose_nothing(store, database):
    def work(number):
        try:
            for index in range(25):
                make(store, pod(f"w{number}-{index}"))
        finally:
            connections[database].close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert [c.revision for c in store.changes(0)] == list(range(1, 101))
    assert store.count(PODS, by="namespace") == {"default": 100}


def test_one_of_two_conflicting_writers_wins(store, database):
    (stored,) = make(store, pod())
    outcomes = []

    def work(value):
        try:
            sent = stored.object | {"spec": {"containers": [], "nodeName": value}}
            store.write(Update(PODS, sent))
            outcomes.append("won")
        except Conflict:
            outcomes.append("lost")
        finally:
            connections[database].close()

    threads = [threading.Thread(target=work, args=(f"n{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert sorted(outcomes) == ["lost", "lost", "lost", "won"]


def test_surrounding_transaction_takes_the_write_with_it(store, database):
    with transaction.atomic(using=database):
        make(store, pod())
        transaction.set_rollback(True, using=database)
    assert store.revision() == 0
    assert store.find(PODS) == []


def test_history_before_compaction_is_expired(store, database):
    make(store, pod())
    with connections[database].cursor() as cursor:
        cursor.execute("UPDATE cluster_log SET compacted = 1")
    with pytest.raises(Expired):
        store.changes(0)
    assert store.changes(1) == []


def test_listeners_hear_of_a_commit_after_it_only(store, database):
    heard = []
    store.listeners.append(lambda touched, revision: heard.append((touched, revision)))
    with transaction.atomic(using=database):
        make(store, pod("a"))
        make(store, {"metadata": {"name": "c", "namespace": "d"}}, resource=CONFIGMAPS)
        assert heard == []
    assert heard == [(frozenset({"pods"}), 1), (frozenset({"configmaps"}), 2)]
