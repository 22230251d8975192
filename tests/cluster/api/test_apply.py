"""Server-side apply and the managers of fields at the one door."""

from __future__ import annotations

import json
import time

import pytest

from cluster import api
from cluster.store import Create, store
from kube import apply as applying
from kube import resources
from kube.errors import BadRequest, Conflict, RequestEntityTooLarge
from kube.resources import CONFIGMAPS, JOBS
from tests import builders
from tests.blocks import blocks
from tests.tables import cases

from .conftest import config_map, job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("cluster")]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


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


@blocks("apply", folder="cluster")
def test_what_is_applied_and_what_comes_of_it(block, golden, story):
    golden(block, story.tell)


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


def test_a_conflict_is_told_as_kubernetes_does(alice):
    create(alice, "kubectl-create", x="1")
    with pytest.raises(Conflict) as caught:
        apply(alice, config_map("a", x="2"))
    status = caught.value.status()
    assert (status["code"], status["reason"]) == (409, "Conflict")
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl-create" using v1', "field": ".data.x"}
    assert status["details"]["causes"] == [cause]


@cases(
    "data, error",
    {"no JSON": ({1: "x", "y": object()}, BadRequest), "too large": ({"x": "x" * 2**20}, RequestEntityTooLarge)},
)
def test_what_is_no_object_is_refused_whether_it_is_there_or_not(alice, data, error):
    for _ in range(2):
        with pytest.raises(error):
            apply(alice, {**config_map("a"), "data": data})
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
