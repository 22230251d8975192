from __future__ import annotations

from collections import defaultdict

import pytest
from django.db import OperationalError

from cluster import access, api
from cluster.api import admission
from cluster.api.cluster_view import ClusterView
from cluster.models import AuditEntry
from cluster.rules import pod_updates
from cluster.store import Create, Delete, store
from kube import resources
from kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServiceUnavailable,
    forbidden,
    invalid,
)
from tests.tables import cases

from .conftest import config_map, job, namespace, queue

pytestmark = pytest.mark.django_db
CONFIGMAPS, JOBS, QUEUES, PODS, COMMANDS = (
    resources.CONFIGMAPS,
    resources.JOBS,
    resources.QUEUES,
    resources.PODS,
    resources.COMMANDS,
)
CREATOR = "ui.volcano.sh/created-by"


@pytest.fixture(autouse=True)
def _cluster(cluster, monkeypatch):
    """The door's own tests are about the door: the rules of the applications are left out."""
    monkeypatch.setattr(admission, "_rules", defaultdict(list))


@pytest.fixture
def alice(person):
    return person("alice", default="submitter")


@pytest.fixture
def olga(person):
    return person("olga", default="operator")


def deeds(**filters):
    rows = AuditEntry.objects.filter(**filters).order_by("id")
    return [(row.actor, row.verb, row.resource, row.name, row.outcome) for row in rows]


def creator(stored):
    return stored.object["metadata"].get("annotations", {}).get(CREATOR)


def test_a_created_object_is_stored_marked_and_audited_in_one(alice):
    stored = api.create(alice, JOBS, job("x"))
    assert store.get(JOBS, "default", "x").revision == stored.revision
    assert creator(stored) == "alice"
    row = AuditEntry.objects.get()
    assert (row.actor, row.verb, row.name, row.uid, row.revision) == (
        "alice",
        "create",
        "x",
        stored.uid,
        stored.revision,
    )


def test_who_created_an_object_is_never_taken_from_the_sender(alice, olga):
    sent = job("x")
    sent["metadata"]["annotations"] = {CREATOR: "olga", "mine": "1"}
    api.create(alice, JOBS, sent)
    changed = api.patch(alice, JOBS, "default", "x", {"metadata": {"annotations": {CREATOR: "olga"}}})
    assert changed.object["metadata"]["annotations"] == {CREATOR: "alice", "mine": "1"}
    changed = api.patch(alice, JOBS, "default", "x", {"metadata": {"annotations": None}})
    assert creator(changed) == "alice"


def test_a_sent_status_is_not_taken(alice):
    stored = api.create(alice, JOBS, {**job("x"), "status": {"state": {"phase": "Completed"}}})
    assert "status" not in stored.object
    stored = api.patch(
        alice, JOBS, "default", "x", {"status": {"state": {"phase": "Completed"}}, "spec": {"maxRetry": 5}}
    )
    assert "status" not in stored.object


@cases("obj, error, outcome", {
    "no right": (job("x", "other"), Forbidden, "denied"),
    "a bad name": (job("Bad Name"), Invalid, "refused"),
    "no right comes before a bad name": (job("Bad Name", "other"), Forbidden, "denied"),
    "a bad type": (job("x", minAvailable="x"), Invalid, "refused"),
    "another kind": ({**job("x"), "kind": "Pod"}, BadRequest, "refused"),
    "no metadata": ({"metadata": 3}, Invalid, "refused"),
    "nothing": ({}, Invalid, "refused"),
})  # fmt: skip
def test_a_refused_creation_leaves_nothing_but_an_audit_row(alice, obj, error, outcome):
    before = store.revision()
    with pytest.raises(error):
        api.create(alice, JOBS, obj)
    assert store.revision() == before
    assert [row.outcome for row in AuditEntry.objects.all()] == [outcome]


def test_a_taken_name_is_refused(alice):
    api.create(alice, JOBS, job("x"))
    with pytest.raises(AlreadyExists):
        api.create(alice, JOBS, job("x"))


def test_a_dry_run_does_everything_but_leaves_nothing(alice):
    before = store.revision()
    api.create(alice, JOBS, job("x"))
    dry = api.create(alice, JOBS, job("y"), dry_run=True)
    assert dry.object["metadata"]["uid"]
    with pytest.raises(AlreadyExists):
        api.create(alice, JOBS, job("x"), dry_run=True)
    api.patch(alice, JOBS, "default", "x", {"spec": {"maxRetry": 9}}, dry_run=True)
    api.delete(alice, JOBS, "default", "x", dry_run=True)
    assert store.revision() == before + 1
    assert "maxRetry" not in store.get(JOBS, "default", "x").object["spec"]
    assert deeds() == [("alice", "create", JOBS.id, "x", "done")]


def test_an_update_is_audited_with_what_changed(alice):
    stored = api.create(alice, JOBS, job("x"))
    changed = {**stored.object, "spec": {**stored.object["spec"], "minAvailable": 2}}
    api.update(alice, JOBS, changed)
    assert AuditEntry.objects.last().changes == [{"path": "spec.minAvailable", "old": 1, "new": 2}]


def test_an_update_without_a_change_writes_nothing(alice):
    stored = api.create(alice, JOBS, job("x"))
    assert api.update(alice, JOBS, stored.object).revision == stored.revision
    assert len(deeds()) == 1


def test_an_update_of_what_somebody_else_changed_says_who(alice, olga):
    stale = api.create(alice, JOBS, job("x"))
    newest = api.patch(olga, JOBS, "default", "x", {"spec": {"maxRetry": 5}})
    with pytest.raises(Conflict) as caught:
        api.update(alice, JOBS, {**stale.object, "spec": job("x", maxRetry=7)["spec"]})
    assert "please apply your changes to the latest version" in caught.value.message
    assert (
        f"changed by olga after you read it (you have version {stale.version}, the newest is {newest.version})"
        in caught.value.message
    )


def test_an_update_that_names_no_revision_wins(alice, olga):
    api.create(alice, JOBS, job("x"))
    api.patch(olga, JOBS, "default", "x", {"spec": {"maxRetry": 5}})
    assert api.update(alice, JOBS, job("x", maxRetry=7)).object["spec"]["maxRetry"] == 7


@pytest.mark.parametrize("version", ["new", "-1", "٣"])
def test_a_revision_that_is_no_number_is_refused(alice, version):
    api.create(alice, JOBS, job("x"))
    sent = job("x")
    sent["metadata"]["resourceVersion"] = version
    with pytest.raises((BadRequest, Conflict)):
        api.update(alice, JOBS, sent)


@cases("patch, how, expected", {
    "merge": ({"data": {"b": None, "c": "3"}}, "merge", {"a": "1", "c": "3"}),
    "json": ([{"op": "replace", "path": "/data/a", "value": "9"}], "json", {"a": "9", "b": "2"}),
    "strategic": ({"data": {"c": "3"}}, "strategic", {"a": "1", "b": "2", "c": "3"}),
})  # fmt: skip
def test_patches(alice, patch, how, expected):
    api.create(alice, CONFIGMAPS, config_map("x", a="1", b="2"))
    assert api.patch(alice, CONFIGMAPS, "default", "x", patch, how=how).object["data"] == expected


@cases("patch, how, error", {
    "a stale revision": ({"metadata": {"resourceVersion": "1"}}, "merge", Conflict),
    "a list to merge": ([], "merge", BadRequest),
    "a mapping as operations": ({}, "json", BadRequest),
    "a path that is not there": ([{"op": "remove", "path": "/nowhere"}], "json", ApiError),
    "without metadata": ({"metadata": None}, "merge", Invalid),
    "a wrong type": ({"data": 5}, "merge", Invalid),
    "another uid": ({"metadata": {"uid": "other"}}, "merge", Conflict),
})  # fmt: skip
def test_patches_that_will_not_do(alice, patch, how, error):
    api.create(alice, CONFIGMAPS, config_map("x", a="1"))
    with pytest.raises(error):
        api.patch(alice, CONFIGMAPS, "default", "x", patch, how=how)


def test_a_patch_cannot_move_or_rename(alice):
    api.create(alice, CONFIGMAPS, config_map("x"))
    stored = api.patch(
        alice, CONFIGMAPS, "default", "x", {"metadata": {"name": "y", "namespace": "other"}, "data": {"a": "1"}}
    )
    assert (stored.namespace, stored.name) == ("default", "x")


def test_no_data_of_a_secret_is_audited(olga):
    kind = resources.SECRETS
    secret = {**config_map("x", password="aHVudGVyMg=="), "kind": "Secret"}
    api.create(olga, kind, secret)
    api.patch(olga, kind, "default", "x", {"data": {"password": "aHVudGVyMw=="}})
    test = [{"op": "test", "path": "/data/password", "value": "aHVudGVyNA=="}]
    with pytest.raises(Invalid, match='is "aHVudGVyMw==", and the test expects "aHVudGVyNA=="'):
        api.patch(olga, kind, "default", "x", test, how="json")
    assert AuditEntry.objects.last().message.endswith("is another one than the test expects.")
    assert "aHVu" not in str(list(AuditEntry.objects.values()))


def test_a_deletion_is_audited_and_gone(alice):
    api.create(alice, JOBS, job("x"))
    api.delete(alice, JOBS, "default", "x")
    with pytest.raises(NotFound):
        store.get(JOBS, "default", "x")
    assert deeds(verb="delete") == [("alice", "delete", JOBS.id, "x", "done")]


def test_only_the_object_that_was_meant_is_deleted(alice):
    stored = api.create(alice, JOBS, job("x"))
    with pytest.raises(Conflict):
        api.delete(alice, JOBS, "default", "x", uid="another")
    with pytest.raises(Conflict):
        api.delete(alice, JOBS, "default", "x", version=str(stored.revision - 1))


def test_a_rule_keeps_an_object(admin, monkeypatch):
    admission.register(QUEUES, delete=lambda obj, view: [forbidden("status.state", "Close it first.")])
    with pytest.raises(Forbidden, match=r'queues.scheduling.volcano.sh "default" is forbidden: Close it first\.'):
        api.delete(admin, QUEUES, "", "default")
    assert isinstance(api.delete_many(admin, QUEUES, [("", "default")])[0], Forbidden)


# What belongs to whom.


@pytest.mark.parametrize("verb", ["update", "patch", "delete", "delete_many"])
def test_a_submitter_changes_his_own_jobs_and_no_others(alice, person, verb):
    bob = person("bob", default="submitter")
    api.create(alice, JOBS, job("x"))
    calls = {
        "update": lambda actor: api.update(actor, JOBS, job("x", maxRetry=9)),
        "patch": lambda actor: api.patch(actor, JOBS, "default", "x", {"spec": {"maxRetry": 9}}),
        "delete": lambda actor: api.delete(actor, JOBS, "default", "x"),
        "delete_many": lambda actor: _raised(api.delete_many(actor, JOBS, [("default", "x")])),
    }
    with pytest.raises(Forbidden):
        calls[verb](bob)
    calls[verb](alice)


def _raised(outcomes):
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            raise outcome


def controlled(name, owner):
    reference = {
        "apiVersion": JOBS.api_version,
        "kind": "Job",
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
    spec = {"containers": [{"name": "main", "image": "busybox"}]}
    meta = {"name": name, "namespace": "default", "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def assert_only(owner, other):
    """Whose the pod x-work-0 is may delete it, and the other may not."""
    with pytest.raises(Forbidden):
        api.delete(other, PODS, "default", "x-work-0")
    api.delete(owner, PODS, "default", "x-work-0")


def test_the_pods_of_a_job_belong_to_who_created_the_job(alice, person):
    stored = api.create(alice, JOBS, job("x"))
    pod = controlled("x-work-0", stored)
    pod["metadata"]["annotations"] = {CREATOR: "bob"}
    store.write(Create(PODS, pod))
    assert_only(alice, person("bob", default="submitter"))


def test_what_outlives_its_controller_belongs_to_who_is_noted_on_it(alice, person):
    stored = api.create(alice, JOBS, job("x"))
    store.write(Delete(JOBS, "default", "x"))
    left = controlled("x-work-0", stored)
    left["metadata"]["annotations"] = {CREATOR: "alice"}
    store.write(Create(PODS, left))
    assert_only(alice, person("bob", default="submitter"))


def test_nobody_makes_his_object_part_of_somebody_elses(alice, person):
    stored = api.create(alice, JOBS, job("x"))
    bob = person("bob", default="submitter")
    with pytest.raises(Forbidden):
        api.create(bob, PODS, controlled("intruder", stored))
    api.create(alice, PODS, controlled("own", stored))
    mine = api.create(bob, CONFIGMAPS, config_map("c"))
    owners = {"metadata": {"ownerReferences": controlled("c", stored)["metadata"]["ownerReferences"]}}
    with pytest.raises(Forbidden):
        api.patch(bob, CONFIGMAPS, "default", mine.name, owners)


def command(action, kind, name, uid=None):
    """Return a Command as vcctl writes it; without a uid, to the object that has the name."""
    if uid is None:
        uid = store.get(kind, "default" if kind.namespaced else "", name).uid
    target = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": uid}
    owner = {**target, "controller": True, "blockOwnerDeletion": True}
    metadata = {"generateName": "c-", "namespace": "default", "ownerReferences": [owner]}
    return {"metadata": metadata, "action": action, "target": owner}


def test_a_command_needs_the_right_on_its_job_and_is_audited_there(alice, olga, person):
    api.create(alice, JOBS, job("x"))
    bob = person("bob", default="submitter")
    sent = command("AbortJob", JOBS, "x")
    assert isinstance(api.create_many(bob, COMMANDS, [sent])[0], Forbidden)
    assert not isinstance(api.create_many(alice, COMMANDS, [sent])[0], ApiError)
    api.create(olga, COMMANDS, sent)
    assert deeds(verb="AbortJob") == [
        ("bob", "AbortJob", JOBS.id, "x", "denied"),
        ("alice", "AbortJob", JOBS.id, "x", "done"),
        ("olga", "AbortJob", JOBS.id, "x", "done"),
    ]


def test_queues_are_opened_and_closed_by_operators_of_everything_and_edited_by_administrators(admin, olga, person):
    boss = person("boss", everywhere="operator")
    for actor, error in ((olga, Forbidden), (boss, None)):
        for call in (
            lambda actor=actor: api.create(actor, COMMANDS, command("CloseQueue", QUEUES, "default")),
            lambda actor=actor: api.patch(actor, QUEUES, "", "default", {"spec": {"state": "Closed"}}),
        ):
            if error:
                with pytest.raises(error):
                    call()
            else:
                call()
    for patch in (
        {"spec": {"state": "Open", "weight": 5}},
        {"spec": {"state": "Open"}, "metadata": {"labels": {"a": "b"}}},
    ):
        with pytest.raises(Forbidden):
            api.patch(boss, QUEUES, "", "default", patch)
        api.patch(admin, QUEUES, "", "default", patch)


def test_closing_a_closed_queue_takes_no_more_than_closing_it(olga, person):
    boss = person("boss", everywhere="operator")
    for _ in range(2):
        api.patch(boss, QUEUES, "", "default", {"spec": {"state": "Closed"}})
    api.update(boss, QUEUES, store.get(QUEUES, "", "default").object)
    for patch in ({"spec": {"state": 5}}, {"spec": {"state": "Closed", "weight": "x"}}):
        with pytest.raises(Forbidden):
            api.patch(boss, QUEUES, "", "default", patch)
    with pytest.raises(Forbidden):
        api.patch(olga, QUEUES, "", "default", {"spec": {"state": "Closed"}})


def test_a_command_names_nobody_but_its_target_as_owner(admin, person):
    boss = person("boss", everywhere="operator")
    api.create(admin, QUEUES, queue("other"))
    sent = command("CloseQueue", QUEUES, "default")
    sent["metadata"]["ownerReferences"] = [command("CloseQueue", QUEUES, "other")["target"]]
    with pytest.raises(Forbidden):
        api.create(boss, COMMANDS, sent)


@pytest.mark.shows("queues 2.2/target gone")
@pytest.mark.parametrize("uid", ["", "another"])
@pytest.mark.parametrize("kind", [JOBS, QUEUES], ids=lambda kind: kind.kind)
def test_a_command_to_nothing_is_not_found(alice, person, kind, uid):
    boss, stranger = person("boss", everywhere="operator"), person("stranger", other="viewer")
    if uid:
        store.write(Create(kind, job("x") if kind is JOBS else queue("x")))
    sent = command("SyncJob", kind, "x", uid or "gone")
    for actor in (alice, boss):
        with pytest.raises(NotFound, match=f'{kind.id} "x" not found'):
            api.create(actor, COMMANDS, sent)
    assert store.find(COMMANDS) == []
    if kind is JOBS:
        _learns_nothing(stranger, sent)


def _learns_nothing(stranger, sent):
    """Whether there is a job is not told to who may not look."""
    store.write(Create(JOBS, job("there")))
    told = []
    for each in (sent, command("SyncJob", JOBS, "there")):
        with pytest.raises(Forbidden) as error:
            api.create(stranger, COMMANDS, each)
        told.append(error.value.message)
    assert told[0] == told[1]


def test_who_may_not_look_does_not_learn_what_exists(alice):
    for call in (
        lambda: api.patch(alice, JOBS, "other", "x", {}),
        lambda: api.delete(alice, JOBS, "other", "x"),
        lambda: _raised(api.delete_many(alice, JOBS, [("other", "x")])),
        lambda: api.update(alice, JOBS, job("x", "other")),
    ):
        with pytest.raises(Forbidden):
            call()
    with pytest.raises(NotFound):
        api.delete(alice, JOBS, "default", "x")


def test_status_is_written_by_administrators_only(alice, admin):
    api.create(alice, JOBS, job("x"))
    sent = {**job("x"), "status": {"state": {"phase": "Running"}}}
    with pytest.raises(Forbidden):
        api.update(alice, JOBS, sent, subresource="status")
    assert api.update(admin, JOBS, sent, subresource="status").object["status"] == sent["status"]


def test_the_system_is_neither_asked_nor_marked():
    stored = api.create(access.SYSTEM, JOBS, {**job("x", "other"), "status": {"state": {"phase": "Running"}}})
    assert creator(stored) is None
    assert stored.object["status"]["state"]["phase"] == "Running"


# Many at once.


def test_many_are_created_each_for_itself_in_order(alice):
    objs = [job("a"), job("Bad Name"), job("b"), job("c", "other"), job("a")]
    outcomes = api.create_many(alice, JOBS, objs)
    assert [getattr(o, "name", type(o)) if not isinstance(o, ApiError) else type(o) for o in outcomes] == [
        "a", Invalid, "b", Forbidden, AlreadyExists,
    ]  # fmt: skip
    assert {row[3:] for row in deeds()} == {
        ("a", "done"), ("b", "done"), ("Bad Name", "refused"), ("c", "denied"), ("a", "refused"),
    }  # fmt: skip


def test_refusals_of_one_kind_share_a_row(alice):
    api.create_many(alice, JOBS, [job(f"x{n}", "other") for n in range(7)])
    assert [(row.count, row.outcome) for row in AuditEntry.objects.all()] == [(7, "denied")]


def test_many_ask_the_database_for_each_thing_once(alice, django_assert_max_num_queries):
    admission.register(JOBS, validate=lambda obj, old, view: [] if view.queue("default") else [invalid("", "", "")])
    with django_assert_max_num_queries(19):
        outcomes = api.create_many(alice, JOBS, [job(f"x{n}") for n in range(400)])
    assert not any(isinstance(o, ApiError) for o in outcomes)


def test_a_child_queue_can_come_with_its_parent(admin):
    def parent_exists(obj, old, view):
        parent = obj["spec"].get("parent")
        return [] if not parent or view.queue(parent) else [invalid("spec.parent", parent, "no such queue")]

    admission.register(QUEUES, validate=parent_exists)
    outcomes = api.create_many(admin, QUEUES, [queue("p"), queue("c", parent="p"), queue("d", parent="none")])
    assert [type(o).__name__ for o in outcomes] == ["Stored", "Stored", "Invalid"]


def test_many_are_deleted_each_for_itself(alice, olga):
    api.create_many(alice, JOBS, [job("a"), job("b")])
    api.create(olga, JOBS, job("c"))
    outcomes = api.delete_many(alice, JOBS, [("default", n) for n in "abcd"])
    assert [type(o).__name__ for o in outcomes] == ["Stored", "Stored", "Forbidden", "NotFound"]


def test_of_many_only_those_go_that_have_the_uid_that_was_meant(alice):
    made = api.create_many(alice, JOBS, [job("a"), job("b"), job("c")])
    keys, uids = [("default", n) for n in "abc"], [made[0].uid, "another", ""]
    outcomes = api.delete_many(alice, JOBS, keys, uids=uids)
    assert [type(o).__name__ for o in outcomes] == ["Stored", "Conflict", "Stored"]
    assert [left.name for left in store.find(JOBS)] == ["b"]


def test_a_database_that_fails_is_said_so_and_nothing_is_half_done(alice, monkeypatch):
    def full(*_args, **_options):
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(store, "write", full)
    monkeypatch.setattr(store, "commit", full)
    with pytest.raises(ServiceUnavailable, match="database or disk is full"):
        api.create(alice, JOBS, job("x"))
    assert [type(o) for o in api.create_many(alice, JOBS, [job("x")])] == [ServiceUnavailable]
    assert store.find(JOBS) == []


# Before submitting.


def causes(admitted):
    return [cause.field for cause in admitted.causes]


def test_a_review_tells_everything_and_changes_nothing(alice):
    api.create(alice, JOBS, job("taken"))
    count, revision = AuditEntry.objects.count(), store.revision()
    assert causes(api.review(alice, JOBS, job("free"))) == []
    assert causes(api.review(alice, JOBS, job("taken"))) == ["metadata.name"]
    assert causes(api.review(alice, JOBS, job("taken"), update=True)) == []
    assert causes(api.review(alice, JOBS, job("x", "other"))) == ["metadata.namespace"]
    assert causes(api.review(alice, JOBS, job("x", "nowhere"))) == ["metadata.namespace"]
    assert causes(api.review(alice, JOBS, [])) == [""]
    assert api.review(alice, JOBS, {**job("x"), "spce": 1}).warnings == ('unknown field "spce"',)
    assert (AuditEntry.objects.count(), store.revision()) == (count, revision)


def test_a_review_does_not_tell_a_stranger_what_exists(alice):
    store.write(Create(JOBS, job("x", "other")))
    told = [api.review(alice, JOBS, job(name, "other")) for name in ("x", "free")]
    assert [causes(admitted) for admitted in told] == [["metadata.namespace"]] * 2


def pod(**spec):
    containers = [{"name": "main", "image": "busybox"}]
    meta = {"name": "p", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


@cases("old, new, field", {
    "a node chosen from the start, which asks for a right": (None, pod(nodeName="n"), None),
    "bound by hand": (pod(), pod(nodeName="n"), "spec.nodeName"),
    "unbound by hand": (pod(nodeName="n"), pod(), "spec"),
    "larger": (pod(), pod(containers=[{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "9"}}}]),
        "spec"),
    "another image": (pod(), pod(containers=[{"name": "main", "image": "other"}]), None),
    "a deadline": (pod(nodeName="n"), pod(nodeName="n", activeDeadlineSeconds=9), None),
})  # fmt: skip
def test_where_a_pod_runs_and_what_it_asks_for_is_not_changed_by_hand(old, new, field):
    found = pod_updates.check_pod(new, old, ClusterView())
    assert [cause.field for cause in found] == ([field] if field else [])


def test_a_view_made_before_a_change_does_not_see_it(alice):
    view = ClusterView()
    assert view.namespace("new") is None
    store.write(Create(resources.NAMESPACES, namespace("new")))
    assert view.namespace("new") is None
    assert ClusterView().namespace("new")


def test_what_programs_write_by_themselves_leaves_no_audit_row(cluster):
    lease = {"metadata": {"name": "leader", "namespace": "default"}, "spec": {"holderIdentity": "a"}}
    api.create(access.SYSTEM, resources.LEASES, lease)
    api.patch(access.SYSTEM, resources.LEASES, "default", "leader", {"spec": {"holderIdentity": "b"}})
    assert not AuditEntry.objects.exists()
    with pytest.raises(Forbidden):
        api.create(access.Actor("nobody"), resources.LEASES, {**lease, "metadata": {"name": "other"}})
    assert AuditEntry.objects.get().outcome == "denied"
