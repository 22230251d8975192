"""The one door: what is stored, refused and audited, and who may."""

from __future__ import annotations

from collections import defaultdict

import pytest

from cluster import access, api
from cluster.api import admission
from cluster.api.cluster_view import ClusterView
from cluster.models import AuditEntry
from cluster.rules import pod_updates
from cluster.store import Create, Delete, Stored, store
from kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RequestEntityTooLarge,
    forbidden,
)
from kube.resources import COMMANDS, CONFIGMAPS, JOBS, LEASES, PODS, QUEUES, SECRETS
from tests import builders
from tests.tables import cases

from .conftest import config_map, job, queue

pytestmark = pytest.mark.django_db
CREATOR = "ui.volcano.sh/created-by"
RUNNING = {"state": {"phase": "Running"}}


@pytest.fixture(autouse=True)
def _cluster(cluster, monkeypatch):
    """The door's own tests are about the door: the rules of the applications are left out."""
    monkeypatch.setattr(admission, "_rules", defaultdict(list))


@pytest.fixture
def bob(person):
    return person("bob", default="submitter")


@pytest.fixture
def boss(person):
    return person("boss", everywhere="operator")


def deeds(**filters):
    rows = AuditEntry.objects.filter(**filters).order_by("id")
    return [(row.actor, row.verb, row.resource, row.name, row.outcome) for row in rows]


def kinds(outcomes):
    return [one.name if isinstance(one, Stored) else type(one) for one in outcomes]


def notes(stored):
    return stored.object["metadata"].get("annotations")


def patch(actor, change, kind=JOBS, **options):
    return api.patch(actor, kind, "default", "x", change, **options)


def test_a_created_object_is_stored_marked_and_audited_in_one_and_nothing_of_that_is_taken_from_the_sender(alice):
    sent = job("x", annotations={CREATOR: "olga", "mine": "1"})
    stored = api.create(alice, JOBS, {**sent, "status": RUNNING})
    assert store.get(JOBS, "default", "x").revision == stored.revision
    assert (notes(stored), "status" in stored.object) == ({CREATOR: "alice", "mine": "1"}, False)
    row = AuditEntry.objects.get()
    found = (row.actor, row.verb, row.name, row.uid, row.revision)
    assert found == ("alice", "create", "x", stored.uid, stored.revision)
    assert "status" not in patch(alice, {"status": RUNNING, "spec": {"maxRetry": 5}}).object
    assert notes(patch(alice, {"metadata": {"annotations": {CREATOR: "olga"}}})) == {CREATOR: "alice", "mine": "1"}
    assert notes(patch(alice, {"metadata": {"annotations": None}})) == {CREATOR: "alice"}


@cases("obj, error, outcome", {
    "no right": (job("x", "other"), Forbidden, "denied"),
    "a bad name": (job("Bad Name"), Invalid, "refused"),
    "no right comes before a bad name": (job("Bad Name", "other"), Forbidden, "denied"),
    "a bad type": (job("x", minAvailable="x"), Invalid, "refused"),
    "another kind": ({**job("x"), "kind": "Pod"}, BadRequest, "refused"),
    "no metadata": ({"metadata": 3}, Invalid, "refused"),
    "nothing": ({}, Invalid, "refused"),
    "a taken name": (job("taken"), AlreadyExists, "refused"),
})  # fmt: skip
def test_a_refused_creation_leaves_nothing_but_an_audit_row(alice, obj, error, outcome):
    store.write(Create(JOBS, job("taken")))
    before = store.revision()
    with pytest.raises(error):
        api.create(alice, JOBS, obj)
    assert store.revision() == before
    assert [row.outcome for row in AuditEntry.objects.all()] == [outcome]


def test_a_dry_run_does_everything_but_leaves_nothing(alice):
    before = store.revision()
    api.create(alice, JOBS, job("x"))
    assert api.create(alice, JOBS, job("y"), dry_run=True).object["metadata"]["uid"]
    with pytest.raises(AlreadyExists):
        api.create(alice, JOBS, job("x"), dry_run=True)
    patch(alice, {"spec": {"maxRetry": 9}}, dry_run=True)
    api.delete(alice, JOBS, "default", "x", dry_run=True)
    assert store.revision() == before + 1
    assert "maxRetry" not in store.get(JOBS, "default", "x").object["spec"]
    assert deeds() == [("alice", "create", JOBS.id, "x", "done")]


def test_an_update_of_what_somebody_else_changed_says_who_and_without_a_revision_it_wins(alice, olga):
    stale = api.create(alice, JOBS, job("x"))
    assert api.update(alice, JOBS, stale.object).revision == stale.revision
    assert len(deeds()) == 1, "where nothing changes nothing is written"
    newest = patch(olga, {"spec": {"maxRetry": 5}})
    with pytest.raises(Conflict, match="please apply your changes to the latest version") as caught:
        api.update(alice, JOBS, {**stale.object, "spec": job("x", maxRetry=7)["spec"]})
    versions = f"(you have version {stale.version}, the newest is {newest.version})"
    assert f"changed by olga after you read it {versions}" in caught.value.message
    assert api.update(alice, JOBS, job("x", maxRetry=7)).object["spec"]["maxRetry"] == 7
    assert AuditEntry.objects.last().changes == [{"path": "spec.maxRetry", "old": 5, "new": 7}]
    for version in ("new", "-1", "٣"):
        with pytest.raises((BadRequest, Conflict)):
            api.update(alice, JOBS, job("x", resourceVersion=version))


@cases("change, how, expected", {
    "merge": ({"data": {"b": None, "c": "3"}}, "merge", {"a": "1", "c": "3"}),
    "json": ([{"op": "replace", "path": "/data/a", "value": "9"}], "json", {"a": "9", "b": "2"}),
    "strategic": ({"data": {"c": "3"}}, "strategic", {"a": "1", "b": "2", "c": "3"}),
    "name and place stay": ({"metadata": {"name": "y", "namespace": "other"}}, "merge", {"a": "1", "b": "2"}),
})  # fmt: skip
def test_patches(alice, change, how, expected):
    api.create(alice, CONFIGMAPS, config_map("x", a="1", b="2"))
    stored = patch(alice, change, CONFIGMAPS, how=how)
    assert (stored.namespace, stored.name, stored.object["data"]) == ("default", "x", expected)


@cases("change, how, error", {
    "a stale revision": ({"metadata": {"resourceVersion": "1"}}, "merge", Conflict),
    "a list to merge": ([], "merge", BadRequest),
    "a mapping as operations": ({}, "json", BadRequest),
    "a path that is not there": ([{"op": "remove", "path": "/nowhere"}], "json", Invalid),
    "an unknown operation": ([{"op": "jump", "path": "/data"}], "json", Invalid),
    "a test that fails": ([{"op": "test", "path": "/data/a", "value": "2"}], "json", Invalid),
    "too many": ([{"op": "test", "path": "/data/a", "value": "1"}] * 10_001, "json", RequestEntityTooLarge),
    "no merge key": ({"metadata": {"ownerReferences": [{"name": "x"}]}}, "strategic", Invalid),
    "an unknown directive": ({"$patch": "explode"}, "strategic", Invalid),
    "without metadata": ({"metadata": None}, "merge", Invalid),
    "a wrong type": ({"data": 5}, "merge", Invalid),
    "another uid": ({"metadata": {"uid": "other"}}, "merge", Conflict),
})  # fmt: skip
def test_patches_that_will_not_do(alice, change, how, error):
    api.create(alice, CONFIGMAPS, config_map("x", a="1"))
    with pytest.raises(error):
        patch(alice, change, CONFIGMAPS, how=how)


def test_no_data_of_a_secret_is_audited(olga):
    api.create(olga, SECRETS, {**config_map("x", password="aHVudGVyMg=="), "kind": "Secret"})
    patch(olga, {"data": {"password": "aHVudGVyMw=="}}, SECRETS)
    test = [{"op": "test", "path": "/data/password", "value": "aHVudGVyNA=="}]
    with pytest.raises(Invalid, match='is "aHVudGVyMw==", and the test expects "aHVudGVyNA=="'):
        patch(olga, test, SECRETS, how="json")
    assert AuditEntry.objects.last().message.endswith("is another one than the test expects.")
    assert "aHVu" not in str(list(AuditEntry.objects.values()))


def test_only_the_object_that_was_meant_is_deleted_and_that_is_audited(alice):
    stored = api.create(alice, JOBS, job("x"))
    for options in ({"uid": "another"}, {"version": str(stored.revision - 1)}):
        with pytest.raises(Conflict):
            api.delete(alice, JOBS, "default", "x", **options)
    api.delete(alice, JOBS, "default", "x", uid=stored.uid, version=str(stored.revision))
    with pytest.raises(NotFound):
        store.get(JOBS, "default", "x")
    assert deeds(verb="delete", outcome="done") == [("alice", "delete", JOBS.id, "x", "done")]


def test_a_rule_keeps_an_object(admin):
    admission.register(QUEUES, delete=lambda obj, view: [forbidden("status.state", "Close it first.")])
    with pytest.raises(Forbidden, match=r'queues.scheduling.volcano.sh "default" is forbidden: Close it first\.'):
        api.delete(admin, QUEUES, "", "default")
    assert kinds(api.delete_many(admin, QUEUES, [("", "default")])) == [Forbidden]


# What belongs to whom.


def raised(outcomes):
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            raise outcome


VERBS = {
    "update": lambda actor, place="default": api.update(actor, JOBS, job("x", place, maxRetry=9)),
    "patch": lambda actor, place="default": api.patch(actor, JOBS, place, "x", {"spec": {"maxRetry": 9}}),
    "delete": lambda actor, place="default": api.delete(actor, JOBS, place, "x"),
    "delete_many": lambda actor, place="default": raised(api.delete_many(actor, JOBS, [(place, "x")])),
}


@cases("call", VERBS)
def test_a_submitter_changes_his_own_jobs_and_learns_nothing_of_others(alice, bob, call):
    with pytest.raises(NotFound):
        call(alice)
    api.create(alice, JOBS, job("x"))
    with pytest.raises(Forbidden):
        call(bob)
    call(alice)
    with pytest.raises(Forbidden):
        call(alice, "other")


def controlled(name, stored, **fields):
    return builders.pod(name, ownerReferences=[builders.owner(stored.object)], **fields)


@cases("goes, noted", {"the creator of the job": (False, "bob"), "who is noted, when the job is gone": (True, "alice")})
def test_what_outlives_its_controller_belongs_to_who_is_noted_on_it(alice, bob, goes, noted):
    stored = api.create(alice, JOBS, job("x"))
    if goes:
        store.write(Delete(JOBS, "default", "x"))
    store.write(Create(PODS, controlled("x-work-0", stored, annotations={CREATOR: noted})))
    with pytest.raises(Forbidden):
        api.delete(bob, PODS, "default", "x-work-0")
    api.delete(alice, PODS, "default", "x-work-0")


def test_nobody_makes_his_object_part_of_somebody_elses(alice, bob):
    stored = api.create(alice, JOBS, job("x"))
    with pytest.raises(Forbidden):
        api.create(bob, PODS, controlled("intruder", stored))
    api.create(alice, PODS, controlled("own", stored))
    api.create(bob, CONFIGMAPS, config_map("x"))
    with pytest.raises(Forbidden):
        patch(bob, {"metadata": {"ownerReferences": [builders.owner(stored.object)]}}, CONFIGMAPS)


def command(action, kind, name, uid=None):
    """Return a Command as vcctl writes it; without a uid, to the object that has the name."""
    if uid is None:
        uid = store.get(kind, "default" if kind.namespaced else "", name).uid
    target = builders.owner(builders.of(kind, name), uid=uid, blockOwnerDeletion=True)
    metadata = {"generateName": "c-", "namespace": "default", "ownerReferences": [target]}
    return {"metadata": metadata, "action": action, "target": target}


def test_a_command_needs_the_right_on_its_job_is_audited_there_and_names_nobody_else_as_owner(
    alice, olga, bob, admin, boss
):
    api.create(alice, JOBS, job("x"))
    sent = command("AbortJob", JOBS, "x")
    assert kinds(api.create_many(bob, COMMANDS, [sent])) == [Forbidden]
    assert isinstance(api.create_many(alice, COMMANDS, [sent])[0], Stored)
    api.create(olga, COMMANDS, sent)
    found = [(actor, resource, name, outcome) for actor, _, resource, name, outcome in deeds(verb="AbortJob")]
    assert found == [(who, JOBS.id, "x", how) for who, how in (("bob", "denied"), ("alice", "done"), ("olga", "done"))]
    api.create(admin, QUEUES, queue("other"))
    sent = command("CloseQueue", QUEUES, "default")
    sent["metadata"]["ownerReferences"] = [command("CloseQueue", QUEUES, "other")["target"]]
    with pytest.raises(Forbidden):
        api.create(boss, COMMANDS, sent)


def test_queues_are_opened_and_closed_by_operators_of_everything_and_edited_by_administrators(admin, olga, boss):
    def change(actor, **fields):
        api.patch(actor, QUEUES, "", "default", fields)

    close = command("CloseQueue", QUEUES, "default")
    closed, opened = {"state": "Closed"}, {"state": "Open"}
    with pytest.raises(Forbidden):
        api.create(olga, COMMANDS, close)
    api.create(boss, COMMANDS, close)
    for _ in range(2):  # closing a closed queue takes no more than closing it
        with pytest.raises(Forbidden):
            change(olga, spec=closed)
        change(boss, spec=closed)
    api.update(boss, QUEUES, store.get(QUEUES, "", "default").object)
    for wrong in ({"state": 5}, {**closed, "weight": "x"}):
        with pytest.raises(Forbidden):
            change(boss, spec=wrong)
    for fields in ({"spec": {**opened, "weight": 5}}, {"spec": opened, "metadata": {"labels": {"a": "b"}}}):
        with pytest.raises(Forbidden):
            change(boss, **fields)
        change(admin, **fields)


@pytest.mark.shows("queues 2.2/target gone")
@pytest.mark.parametrize("uid", ["", "another"])
@pytest.mark.parametrize("kind", [JOBS, QUEUES], ids=lambda kind: kind.kind)
def test_a_command_to_nothing_is_not_found_by_who_may_look(alice, boss, person, kind, uid):
    if uid:
        store.write(Create(kind, job("x") if kind is JOBS else queue("x")))
    sent = command("SyncJob", kind, "x", uid or "gone")
    for actor in (alice, boss):
        with pytest.raises(NotFound, match=f'{kind.id} "x" not found'):
            api.create(actor, COMMANDS, sent)
    assert store.find(COMMANDS) == []
    stranger, told = person("stranger", other="viewer"), set()
    store.write(Create(JOBS, job("there")))
    for each in (command("SyncJob", JOBS, "x", "gone"), command("SyncJob", JOBS, "there")):
        with pytest.raises(Forbidden) as error:
            api.create(stranger, COMMANDS, each)
        told.add(error.value.message)
    assert len(told) == 1


def test_status_is_written_by_administrators_only_and_the_system_is_neither_asked_nor_marked(alice, admin):
    api.create(alice, JOBS, job("x"))
    sent = {**job("x"), "status": RUNNING}
    with pytest.raises(Forbidden):
        api.update(alice, JOBS, sent, subresource="status")
    assert api.update(admin, JOBS, sent, subresource="status").object["status"] == RUNNING
    stored = api.create(access.SYSTEM, JOBS, {**job("x", "other"), "status": RUNNING})
    assert (notes(stored), stored.object["status"]) == (None, RUNNING)


# Many at once; more of that: test_together.py.


def test_refusals_of_one_kind_share_a_row(alice):
    api.create_many(alice, JOBS, [job(f"x{n}", "other") for n in range(7)])
    assert [(row.count, row.outcome) for row in AuditEntry.objects.all()] == [(7, "denied")]


def test_of_many_only_those_go_that_have_the_uid_that_was_meant(alice, olga):
    made = [*api.create_many(alice, JOBS, [job("a"), job("b"), job("c")]), api.create(olga, JOBS, job("d"))]
    keys, uids = [("default", n) for n in "abcde"], [made[0].uid, "another", "", made[3].uid, ""]
    outcomes = api.delete_many(alice, JOBS, keys, uids=uids)
    assert kinds(outcomes) == ["a", Conflict, "c", Forbidden, NotFound]
    assert [left.name for left in store.find(JOBS)] == ["b", "d"]
    assert kinds(api.delete_many(alice, JOBS, [("default", "b")])) == ["b"]


# Before submitting.


def test_a_review_tells_everything_changes_nothing_and_tells_no_stranger_what_exists(alice):
    api.create(alice, JOBS, job("taken"))
    store.write(Create(JOBS, job("x", "other")))
    count, revision = AuditEntry.objects.count(), store.revision()

    def fields(obj, **options):
        return [cause.field for cause in api.review(alice, JOBS, obj, **options).causes]

    assert fields(job("free")) == fields(job("taken"), update=True) == []
    assert fields(job("taken")) == ["metadata.name"]
    for name, place in (("x", "other"), ("free", "other"), ("x", "nowhere")):
        assert fields(job(name, place)) == ["metadata.namespace"]
    assert fields([]) == [""]
    assert api.review(alice, JOBS, {**job("x"), "spce": 1}).warnings == ('unknown field "spce"',)
    assert (AuditEntry.objects.count(), store.revision()) == (count, revision)


PLAIN, PLACED = builders.pod(), builders.pod(nodeName="n")
LARGE = builders.pod("p", builders.container(requests={"cpu": "9"}))
OTHER = builders.pod("p", builders.container(image="other"))


@cases("old, new, fields", {
    "a node chosen from the start, which asks for a right": (None, PLACED, []),
    "bound by hand": (PLAIN, PLACED, ["spec.nodeName"]),
    "unbound by hand": (PLACED, PLAIN, ["spec"]),
    "larger": (PLAIN, LARGE, ["spec"]),
    "another image": (PLAIN, OTHER, []),
    "a deadline": (PLACED, builders.pod(nodeName="n", activeDeadlineSeconds=9), []),
})  # fmt: skip
def test_where_a_pod_runs_and_what_it_asks_for_is_not_changed_by_hand(old, new, fields):
    assert [cause.field for cause in pod_updates.check_pod(new, old, ClusterView())] == fields


def test_what_programs_write_by_themselves_leaves_no_audit_row():
    api.create(access.SYSTEM, LEASES, builders.of(LEASES, "x", holderIdentity="a"))
    patch(access.SYSTEM, {"spec": {"holderIdentity": "b"}}, LEASES)
    assert not AuditEntry.objects.exists()
    with pytest.raises(Forbidden):
        api.create(access.Actor("nobody"), LEASES, builders.of(LEASES, "other", holderIdentity="a"))
    assert AuditEntry.objects.get().outcome == "denied"
