"""Server-side apply and the managers of fields at the one door."""

from __future__ import annotations

import copy
import json
import time

import pytest

from cluster import access, api
from cluster.models import AuditEntry
from cluster.store import Create, Patch, store
from kube import apply as applying
from kube import resources
from kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, RequestEntityTooLarge
from tests.tables import cases

from .conftest import config_map, job, queue

pytestmark = pytest.mark.django_db
CONFIGMAPS, JOBS, PODS = resources.CONFIGMAPS, resources.JOBS, resources.PODS


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}]},
}


@pytest.fixture(autouse=True)
def _cluster(cluster):
    """Every test has the namespaces and a queue."""


@pytest.fixture
def alice(person):
    return person("alice", default="submitter")


@pytest.fixture
def olga(person):
    return person("olga", default="operator")


@pytest.fixture
def vera(person):
    return person("vera", default="viewer")


def apply(actor, obj, manager="flux", resource=CONFIGMAPS, **options):
    metadata = obj["metadata"]
    place = metadata.get("namespace", "")
    return api.apply(actor, resource, place, metadata["name"], obj, manager=manager, **options)


def managers(stored):
    entries = stored.object["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"], entry.get("subresource", "")) for entry in entries}


def deeds():
    return [(row.actor, row.verb, row.name, row.outcome) for row in AuditEntry.objects.order_by("id")]


def test_an_apply_creates_what_is_missing_and_changes_what_is_there(alice):
    stored, created = apply(alice, config_map("a", x="1", y="1"))
    assert created
    assert stored.object["data"] == {"x": "1", "y": "1"}
    assert stored.object["metadata"]["annotations"] == {resources.CREATOR_ANNOTATION: "alice"}
    assert managers(stored) == {("flux", "Apply", "")}
    changed, created = apply(alice, config_map("a", x="2"))
    assert not created
    assert changed.object["data"] == {"x": "2"}
    assert changed.object["metadata"]["annotations"] == {resources.CREATOR_ANNOTATION: "alice"}
    assert changed.object["metadata"]["managedFields"][0]["fieldsV1"] == {"f:data": {"f:x": {}}}
    assert deeds() == [("alice", "apply", "a", "done"), ("alice", "apply", "a", "done")]


@pytest.fixture
def later(moved_clock):
    """Let two seconds pass: times of managers are whole ones."""
    return lambda: moved_clock.move(2)


def test_applying_again_writes_nothing(alice, later):
    first, _ = apply(alice, config_map("a", x="1"))
    later()
    again, created = apply(alice, config_map("a", x="1"))
    assert (again.revision, created) == (first.revision, False)
    assert again.body == first.body
    assert len(deeds()) == 1


def test_what_the_server_fills_in_is_managed_by_nobody(alice):
    applied, _ = apply(alice, job("a"), resource=JOBS)
    created = api.create(alice, JOBS, job("b"), manager="kubectl-create")
    claimed = {"f:spec": {"f:queue": {}, "f:minAvailable": {}, "f:tasks": {}}}
    (entry,) = applied.object["metadata"]["managedFields"]
    assert entry["fieldsV1"] == claimed
    (entry,) = created.object["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {".": {}, **claimed["f:spec"]}} or entry["fieldsV1"] == claimed
    assert created.object["spec"]["maxRetry"] == 3
    again, _ = apply(alice, job("a"), resource=JOBS)
    assert again.revision == applied.revision
    joined, _ = apply(alice, job("b"), resource=JOBS)
    assert managers(joined) == {("kubectl-create", "Update", ""), ("flux", "Apply", "")}


@cases("obj", {
    "Volcano job": job("a"),
    "pod": POD,
})  # fmt: skip
def test_the_way_from_client_side_apply(alice, obj):
    resource = resources.by_kind(obj["apiVersion"], obj["kind"])
    text = json.dumps(obj)
    noted = json.loads(text)
    noted["metadata"]["annotations"] = {LAST_APPLIED: text}
    api.create(alice, resource, noted, manager="kubectl-client-side-apply")
    stored, _ = apply(alice, obj, "kubectl", resource)
    (mine,) = (e for e in stored.object["metadata"]["managedFields"] if e["operation"] == "Apply")
    moved, _ = apply(alice, obj, "kubectl", resource)
    assert moved.revision == stored.revision
    entry = {**mine, "fieldsV1": stored.object["metadata"]["managedFields"][1]["fieldsV1"]}
    change = {"metadata": {"managedFields": [entry]}}
    api.patch(alice, resource, "default", obj["metadata"]["name"], change, manager="kubectl")
    again, _ = apply(alice, obj, "kubectl", resource)
    assert managers(again) == {("kubectl", "Apply", "")}
    assert again.object["spec"] == stored.object["spec"]


def test_kubectl_may_change_what_client_side_apply_applied(alice):
    text = json.dumps(job("a"))
    noted = json.loads(text)
    noted["metadata"]["annotations"] = {LAST_APPLIED: text}
    api.create(alice, JOBS, noted, manager="kubectl-client-side-apply")
    more = job("a")
    more["spec"]["tasks"][0]["replicas"] = 3
    stored, _ = apply(alice, more, "kubectl", JOBS)
    assert stored.object["spec"]["tasks"][0]["replicas"] == 3


def test_conflicts_are_refused_and_audited_and_can_be_forced(alice):
    api.create(alice, CONFIGMAPS, config_map("a", x="1"), manager="kubectl-create")
    with pytest.raises(Conflict) as caught:
        apply(alice, config_map("a", x="2"))
    assert caught.value.message == ('Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.x')
    status = caught.value.status()
    assert (status["code"], status["reason"]) == (409, "Conflict")
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl-create" using v1', "field": ".data.x"}
    ]
    stored, _ = apply(alice, config_map("a", x="2"), force=True)
    assert stored.object["data"] == {"x": "2"}
    assert [deed[3] for deed in deeds()] == ["done", "refused", "done"]


def test_without_a_manager_new_objects_are_not_tracked(alice):
    stored = api.create(alice, CONFIGMAPS, config_map("a", x="1"))
    assert managers(stored) == set()
    changed = api.patch(alice, CONFIGMAPS, "default", "a", {"data": {"x": "2"}}, manager="kubectl-patch")
    assert managers(changed) == set()
    applied, _ = apply(alice, config_map("a", y="1"))
    assert managers(applied) == {("before-first-apply", "Update", ""), ("flux", "Apply", "")}


def test_what_the_pages_change_in_a_tracked_object_is_tracked(alice):
    apply(alice, config_map("a", x="1"))
    changed = api.patch(alice, CONFIGMAPS, "default", "a", {"data": {"y": "1"}})
    assert managers(changed) == {("flux", "Apply", ""), ("volcano-ui", "Update", "")}
    with pytest.raises(Conflict, match="volcano-ui"):
        apply(alice, config_map("a", y="2"))


def test_nothing_is_taken_from_a_dry_run(alice):
    before = store.revision()
    stored, created = apply(alice, config_map("a", x="1"), dry_run=True)
    assert created
    assert stored.object["metadata"]["managedFields"]
    assert store.revision() == before
    assert "resourceVersion" not in stored.object["metadata"]
    real, _ = apply(alice, config_map("a", x="1"))
    stored, created = apply(alice, config_map("a", x="2"), dry_run=True)
    assert stored.object["metadata"]["resourceVersion"] == str(real.revision)
    assert (stored.object["data"], created) == ({"x": "2"}, False)
    assert store.get(CONFIGMAPS, "default", "a").object["data"] == {"x": "1"}
    assert len(deeds()) == 1


@cases("there", {
    "missing": False,
    "there": True,
})  # fmt: skip
def test_applying_takes_the_right(alice, vera, there):
    if there:
        api.create(alice, CONFIGMAPS, config_map("a", x="1"), manager="m")
    with pytest.raises(Forbidden, match='cannot patch resource "configmaps"'):
        apply(vera, config_map("a", y="1"))
    with pytest.raises(Forbidden):
        apply(alice, config_map("a", "other", y="1"))


def test_creating_by_apply_takes_the_right_to_create_too(person):
    admin = person("adam", default="administrator")
    with pytest.raises(Forbidden, match='cannot patch resource "queues"'):
        apply(admin, queue("q"), resource=resources.QUEUES)
    agent = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    with pytest.raises(Forbidden, match='cannot create resource "nodes"'):
        apply(person("olaf", **{"*": "operator"}), agent, resource=resources.NODES)


def test_who_may_not_read_learns_nothing_from_a_conflict(alice, person):
    kind = resources.SECRETS
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    api.create(alice, kind, {**secret, "data": {"a": "eA=="}}, manager="hidden")
    with pytest.raises(Forbidden):
        apply(person("bob", default="viewer"), {**secret, "data": {"a": "eQ=="}}, resource=kind)


@cases("change, error", {
    "another version": ({"apiVersion": "v2"}, BadRequest),
    "another kind": ({"kind": "Secret"}, BadRequest),
    "a wrong type": ({"data": {"x": 1}}, Invalid),
    "no JSON": ({"data": {1: "x", "y": object()}}, BadRequest),
    "managers": ({"metadata": {"name": "a", "namespace": "default", "managedFields": [{}]}}, BadRequest),
    "another uid": ({"metadata": {"name": "a", "namespace": "default", "uid": "other"}}, Conflict),
    "too large": ({"data": {"x": "x" * 2**20}}, RequestEntityTooLarge),
})  # fmt: skip
def test_what_cannot_be_applied_is_refused(alice, change, error):
    for _ in range(2):
        with pytest.raises(error):
            apply(alice, {**config_map("a", x="1"), **change})
        if not store.find(CONFIGMAPS):
            apply(alice, config_map("a", x="1"))


def test_an_apply_names_its_manager(alice):
    with pytest.raises(Invalid, match="fieldManager: Required value"):
        apply(alice, config_map("a"), manager="")


def test_a_resource_version_is_a_precondition_of_an_apply(alice):
    stored, _ = apply(alice, config_map("a", x="1"))
    wish = config_map("a", x="2")
    wish["metadata"]["resourceVersion"] = str(stored.revision - 1)
    with pytest.raises(Conflict, match="modified"):
        apply(alice, wish)
    wish["metadata"]["resourceVersion"] = str(stored.revision)
    assert apply(alice, wish)[0].object["data"] == {"x": "2"}


def test_the_status_is_applied_through_its_subresource():
    pod = copy.deepcopy(POD)
    apply(access.SYSTEM, pod, resource=PODS)
    condition = {"type": "Ready", "status": "True"}
    wish = {**pod, "status": {"conditions": [condition]}, "spec": {"containers": []}}
    stored, _ = apply(access.SYSTEM, wish, "kubelet", PODS, subresource="status")
    assert stored.object["status"]["conditions"] == [condition]
    assert stored.object["spec"]["containers"][0]["name"] == "main"
    assert managers(stored) == {("flux", "Apply", ""), ("kubelet", "Apply", "status")}
    again, _ = apply(access.SYSTEM, wish, "kubelet", PODS, subresource="status")
    assert again.revision == stored.revision
    condition["status"] = "False"
    obj = {**stored.object, "status": {"conditions": [condition]}}
    changed = api.update(access.SYSTEM, PODS, obj, subresource="status", manager="probe")
    assert managers(changed) == managers(stored) | {("probe", "Update", "status")}
    wish["metadata"] = {**wish["metadata"], "name": "other"}
    with pytest.raises(NotFound):
        apply(access.SYSTEM, wish, "kubelet", PODS, subresource="status")


def test_controllers_keep_the_managers():
    stored = api.create(access.SYSTEM, JOBS, job("a"), manager="kubectl-create")
    change = {"status": {"state": {"phase": "Running"}}}
    patched = store.write(Patch(JOBS, "default", "a", change, "status"))[0]
    assert managers(patched) == managers(stored)


def test_reading_and_replacing_an_object_changes_nothing(alice, later):
    stored, _ = apply(alice, config_map("a", x="1"))
    later()
    assert api.update(alice, CONFIGMAPS, stored.object, manager="kubectl-replace").revision == stored.revision
    bare = config_map("a", x="1")
    assert api.update(alice, CONFIGMAPS, bare, manager="kubectl-replace").revision == stored.revision


@cases("reset", {
    "an empty list": [],
    "an empty entry": [{}],
})  # fmt: skip
def test_managers_can_be_forgotten(alice, reset):
    apply(alice, config_map("a", x="1"))
    obj = config_map("a", x="1")
    obj["metadata"]["managedFields"] = reset
    assert managers(api.update(alice, CONFIGMAPS, obj, manager="kubectl-replace")) == set()


def test_managers_are_moved_by_a_json_patch_as_kubectl_does(alice):
    stored = api.create(alice, CONFIGMAPS, config_map("a", x="1", y="1"), manager="kubectl-client-side-apply")
    (entry,) = stored.object["metadata"]["managedFields"]
    moved = {**entry, "manager": "kubectl", "operation": "Apply"}
    version = {"op": "replace", "path": "/metadata/resourceVersion"}
    replace = {"op": "replace", "path": "/metadata/managedFields", "value": [moved]}
    with pytest.raises(Conflict):
        api.patch(
            alice,
            CONFIGMAPS,
            "default",
            "a",
            [replace, {**version, "value": str(stored.revision - 1)}],
            how="json",
            manager="kubectl",
        )
    patched = api.patch(
        alice,
        CONFIGMAPS,
        "default",
        "a",
        [replace, {**version, "value": str(stored.revision)}],
        how="json",
        manager="kubectl",
    )
    assert patched.object["metadata"]["managedFields"] == [moved]
    applied, _ = apply(alice, config_map("a", x="2"), "kubectl")
    assert applied.object["data"] == {"x": "2"}


@cases("change, how, error", {
    "test": ([{"op": "test", "path": "/data/x", "value": "2"}], "json", Invalid),
    "path": ([{"op": "remove", "path": "/data/none"}], "json", Invalid),
    "operation": ([{"op": "jump", "path": "/data"}], "json", Invalid),
    "too many": ([{"op": "test", "path": "/data/x", "value": "1"}] * 10_001, "json", RequestEntityTooLarge),
    "no merge key": ({"metadata": {"ownerReferences": [{"name": "x"}]}}, "strategic", Invalid),
    "directive": ({"$patch": "explode"}, "strategic", Invalid),
})  # fmt: skip
def test_a_patch_that_cannot_be_done_is_invalid(alice, change, how, error):
    api.create(alice, CONFIGMAPS, config_map("a", x="1"))
    with pytest.raises(error) as caught:
        api.patch(alice, CONFIGMAPS, "default", "a", change, how=how)
    assert caught.value.code in (413, 422)


def test_tracking_a_new_job_takes_no_time():
    obj = store.write(Create(JOBS, job("a")))[0].object
    began = time.thread_time()
    for _ in range(200):
        applying.track(None, obj, JOBS, manager="kubectl-create", now=0)
    assert (time.thread_time() - began) / 200 < 0.001
