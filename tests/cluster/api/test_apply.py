"""Server-side apply and the managers of fields at the one door."""

from __future__ import annotations

import json
import time

import pytest

from cluster import access, api
from cluster.models import AuditEntry
from cluster.store import Create, Patch, store
from kube import apply as applying
from kube import resources
from kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, RequestEntityTooLarge
from kube.resources import CONFIGMAPS, JOBS, NODES, PODS, QUEUES, SECRETS
from tests import builders
from tests.tables import cases

from .conftest import config_map, job, queue

pytestmark = pytest.mark.django_db
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture(autouse=True)
def _cluster(cluster):
    """Every test has the namespaces and a queue."""


def apply(actor, obj, manager="flux", resource=CONFIGMAPS, **options):
    metadata = obj["metadata"]
    place = metadata.get("namespace", "")
    return api.apply(actor, resource, place, metadata["name"], obj, manager=manager, **options)


def create(actor, manager="", **data):
    return api.create(actor, CONFIGMAPS, config_map("a", **data), manager=manager)


def patch(actor, change, **options):
    return api.patch(actor, CONFIGMAPS, "default", "a", change, **options)


def entries(stored):
    return stored.object["metadata"].get("managedFields", [])


def managers(stored):
    return {(entry["manager"], entry["operation"], entry.get("subresource", "")) for entry in entries(stored)}


def outcomes():
    return list(AuditEntry.objects.order_by("id").values_list("verb", "outcome"))


FLUX = ("flux", "Apply", "")


def test_an_apply_creates_what_is_missing_changes_what_is_there_and_writes_nothing_again(alice, moved_clock):
    mine = {resources.CREATOR_ANNOTATION: "alice"}
    stored, created = apply(alice, config_map("a", x="1", y="1"))
    assert (created, stored.object["data"]) == (True, {"x": "1", "y": "1"})
    assert (stored.object["metadata"]["annotations"], managers(stored)) == (mine, {FLUX})
    moved_clock.move(2)  # times of managers are whole seconds
    again, created = apply(alice, config_map("a", x="1", y="1"))
    assert (again.revision, again.body, created) == (stored.revision, stored.body, False)
    for same in (stored.object, config_map("a", x="1", y="1")):
        assert api.update(alice, CONFIGMAPS, same, manager="kubectl-replace").revision == stored.revision
    changed, created = apply(alice, config_map("a", x="2"))
    assert (created, changed.object["data"]) == (False, {"x": "2"})
    assert changed.object["metadata"]["annotations"] == mine
    assert entries(changed)[0]["fieldsV1"] == {"f:data": {"f:x": {}}}
    assert outcomes() == [("apply", "done")] * 2


def test_what_the_server_fills_in_is_managed_by_nobody_and_controllers_keep_the_managers(alice):
    applied, _ = apply(alice, job("a"), resource=JOBS)
    created = api.create(alice, JOBS, job("b"), manager="kubectl-create")
    claimed = {"f:spec": {"f:queue": {}, "f:minAvailable": {}, "f:tasks": {}}}
    (entry,) = entries(applied)
    assert entry["fieldsV1"] == claimed
    (entry,) = entries(created)
    assert entry["fieldsV1"] in ({"f:spec": {".": {}, **claimed["f:spec"]}}, claimed)
    assert created.object["spec"]["maxRetry"] == 3
    assert apply(alice, job("a"), resource=JOBS)[0].revision == applied.revision
    joined, _ = apply(alice, job("b"), resource=JOBS)
    assert managers(joined) == {("kubectl-create", "Update", ""), FLUX}
    running = {"status": {"state": {"phase": "Running"}}}
    assert managers(store.write(Patch(JOBS, "default", "b", running, "status"))[0]) == managers(joined)


@cases("obj", {"Volcano job": job("a"), "pod": builders.pod()})
def test_the_way_from_client_side_apply(alice, obj):
    resource = resources.by_kind(obj["apiVersion"], obj["kind"])
    text = json.dumps(obj)
    noted = json.loads(text)
    noted["metadata"]["annotations"] = {LAST_APPLIED: text}
    api.create(alice, resource, noted, manager="kubectl-client-side-apply")
    stored, _ = apply(alice, obj, "kubectl", resource)
    (mine,) = (entry for entry in entries(stored) if entry["operation"] == "Apply")
    assert apply(alice, obj, "kubectl", resource)[0].revision == stored.revision
    change = {"metadata": {"managedFields": [{**mine, "fieldsV1": entries(stored)[1]["fieldsV1"]}]}}
    api.patch(alice, resource, "default", obj["metadata"]["name"], change, manager="kubectl")
    again, _ = apply(alice, obj, "kubectl", resource)
    assert managers(again) == {("kubectl", "Apply", "")}
    assert again.object["spec"] == stored.object["spec"]


def test_kubectl_may_change_what_client_side_apply_applied(alice):
    noted = job("a", annotations={LAST_APPLIED: json.dumps(job("a"))})
    api.create(alice, JOBS, noted, manager="kubectl-client-side-apply")
    stored, _ = apply(alice, job("a", tasks=[builders.task("work", 3)]), "kubectl", JOBS)
    assert stored.object["spec"]["tasks"][0]["replicas"] == 3


def test_conflicts_are_refused_and_audited_and_can_be_forced(alice):
    create(alice, "kubectl-create", x="1")
    with pytest.raises(Conflict) as caught:
        apply(alice, config_map("a", x="2"))
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.x'
    status = caught.value.status()
    assert (status["code"], status["reason"]) == (409, "Conflict")
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl-create" using v1', "field": ".data.x"}
    assert status["details"]["causes"] == [cause]
    stored, _ = apply(alice, config_map("a", x="2"), force=True)
    assert stored.object["data"] == {"x": "2"}
    assert [outcome for _, outcome in outcomes()] == ["done", "refused", "done"]


def test_objects_are_tracked_from_their_first_apply_or_manager_on(alice):
    assert managers(create(alice, x="1")) == set()
    assert managers(patch(alice, {"data": {"x": "2"}}, manager="kubectl-patch")) == set()
    applied, _ = apply(alice, config_map("a", y="1"))
    assert managers(applied) == {("before-first-apply", "Update", ""), FLUX}
    by_page = patch(alice, {"data": {"z": "1"}})
    assert managers(by_page) == managers(applied) | {("volcano-ui", "Update", "")}
    with pytest.raises(Conflict, match="volcano-ui"):
        apply(alice, config_map("a", z="2"))


def test_nothing_is_taken_from_a_dry_run(alice):
    before = store.revision()
    stored, created = apply(alice, config_map("a", x="1"), dry_run=True)
    assert (created, len(entries(stored)), store.revision()) == (True, 1, before)
    assert "resourceVersion" not in stored.object["metadata"]
    real, _ = apply(alice, config_map("a", x="1"))
    stored, created = apply(alice, config_map("a", x="2"), dry_run=True)
    assert stored.object["metadata"]["resourceVersion"] == str(real.revision)
    assert (stored.object["data"], created) == ({"x": "2"}, False)
    assert store.get(CONFIGMAPS, "default", "a").object["data"] == {"x": "1"}
    assert len(outcomes()) == 1


SECRET = builders.of(SECRETS, "s", {"data": {"a": "eA=="}})


@cases("role, obj, kind, refusal", {
    "a viewer": ("viewer", config_map("a", y="1"), CONFIGMAPS, 'cannot patch resource "configmaps"'),
    "elsewhere": ("submitter", config_map("a", "other", y="1"), CONFIGMAPS, 'cannot patch resource "configmaps"'),
    "of the cluster": ("administrator", queue("q"), QUEUES, 'cannot patch resource "queues"'),
    "who may change but not create": ("everywhere", builders.node("n"), NODES, 'cannot create resource "nodes"'),
    "who may not read learns of no conflict": ("viewer", SECRET, SECRETS, 'cannot patch resource "secrets"'),
})  # fmt: skip
@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "there"])
def test_applying_takes_the_right(alice, person, role, obj, kind, refusal, is_there):
    actor = person("vera", **({"everywhere": "operator"} if role == "everywhere" else {"default": role}))
    if is_there and kind.namespaced:
        api.create(access.SYSTEM, kind, {**obj, "data": {"a": "eQ=="}}, manager="m")
    with pytest.raises(Forbidden, match=refusal):
        apply(actor, obj, resource=kind)


@cases("change, options, error", {
    "another version": ({"apiVersion": "v2"}, {}, BadRequest),
    "another kind": ({"kind": "Secret"}, {}, BadRequest),
    "a wrong type": ({"data": {"x": 1}}, {}, Invalid),
    "no JSON": ({"data": {1: "x", "y": object()}}, {}, BadRequest),
    "managers": ({"metadata": {"name": "a", "namespace": "default", "managedFields": [{}]}}, {}, BadRequest),
    "another uid": ({"metadata": {"name": "a", "namespace": "default", "uid": "other"}}, {}, Conflict),
    "too large": ({"data": {"x": "x" * 2**20}}, {}, RequestEntityTooLarge),
    "no manager": ({}, {"manager": ""}, Invalid),
})  # fmt: skip
def test_what_cannot_be_applied_is_refused(alice, change, options, error):
    for _ in range(2):
        with pytest.raises(error):
            apply(alice, {**config_map("a", x="1"), **change}, **options)
        if not store.find(CONFIGMAPS):
            apply(alice, config_map("a", x="1"))


def test_a_resource_version_is_a_precondition_of_an_apply(alice):
    stored, _ = apply(alice, config_map("a", x="1"))
    wish = config_map("a", x="2")
    wish["metadata"]["resourceVersion"] = str(stored.revision - 1)
    with pytest.raises(Conflict, match="modified"):
        apply(alice, wish)
    wish["metadata"]["resourceVersion"] = str(stored.revision)
    assert apply(alice, wish)[0].object["data"] == {"x": "2"}


def test_the_status_is_applied_through_its_subresource():
    def apply_status(wish):
        return apply(access.SYSTEM, wish, "kubelet", PODS, subresource="status")[0]

    pod = builders.pod()
    apply(access.SYSTEM, pod, resource=PODS)
    condition = {"type": "Ready", "status": "True"}
    wish = {**pod, "status": {"conditions": [condition]}, "spec": {"containers": []}}
    stored = apply_status(wish)
    assert stored.object["status"]["conditions"] == [condition]
    assert stored.object["spec"]["containers"][0]["name"] == "main"
    assert managers(stored) == {FLUX, ("kubelet", "Apply", "status")}
    assert apply_status(wish).revision == stored.revision
    condition["status"] = "False"
    obj = {**stored.object, "status": {"conditions": [condition]}}
    changed = api.update(access.SYSTEM, PODS, obj, subresource="status", manager="probe")
    assert managers(changed) == managers(stored) | {("probe", "Update", "status")}
    with pytest.raises(NotFound):
        apply_status({**wish, "metadata": {**wish["metadata"], "name": "other"}})


def test_managers_are_moved_by_a_json_patch_as_kubectl_does(alice):
    stored = create(alice, "kubectl-client-side-apply", x="1", y="1")
    moved = {**entries(stored)[0], "manager": "kubectl", "operation": "Apply"}

    def move(revision):
        replace = {"op": "replace", "path": "/metadata/managedFields", "value": [moved]}
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": str(revision)}
        return patch(alice, [replace, version], how="json", manager="kubectl")

    with pytest.raises(Conflict):
        move(stored.revision - 1)
    assert entries(move(stored.revision)) == [moved]
    applied, _ = apply(alice, config_map("a", x="2"), "kubectl")
    assert applied.object["data"] == {"x": "2"}


def test_tracking_a_new_job_takes_no_time():
    obj = store.write(Create(JOBS, job("a")))[0].object
    began = time.thread_time()
    for _ in range(200):
        applying.track(None, obj, JOBS, manager="kubectl-create", now=0)
    assert (time.thread_time() - began) / 200 < 0.001
