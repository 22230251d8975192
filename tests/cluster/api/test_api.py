"""The one door: what is stored, refused and audited, and who may (the stories of tests/golden/cluster/door.txt)."""

import contextlib
import json
import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from cluster import api
from cluster.api import admission, metadata
from cluster.api.admission import admit, register
from cluster.api.cluster_view import ClusterView
from cluster.models import AuditEntry
from cluster.store import Create, store
from kube import apply as applying
from kube import resources
from kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, RequestEntityTooLarge, forbidden, invalid
from kube.resources import CONFIGMAPS, JOBS, LEASES, NAMESPACES, NODES, QUEUES, SECRETS
from tests import builders
from tests.blocks import blocks
from tests.tables import cases

from .conftest import config_map, job, kinds, namespace, queue

pytestmark = pytest.mark.django_db
DOOR = pytest.mark.usefixtures("cluster", "no_rules")


def patch(actor, change, kind=JOBS, **options):
    return api.patch(actor, kind, "default", "x", change, **options)


@DOOR
def test_what_is_done_is_audited_with_its_uid_revision_and_changes(alice):
    stored, row = api.create(alice, JOBS, job("x")), AuditEntry.objects.get()
    found = (row.actor, row.verb, row.name, row.uid, row.revision)
    assert found == ("alice", "create", "x", stored.uid, store.get(JOBS, "default", "x").revision)
    patch(alice, {"spec": {"maxRetry": 7}})
    assert AuditEntry.objects.last().changes == [{"path": "spec.maxRetry", "old": None, "new": 7}]
    with pytest.raises(RequestEntityTooLarge):
        patch(alice, [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001, how="json")


@DOOR
@blocks("door", folder="cluster")
def test_what_people_do_and_what_comes_of_it(block, golden, story):
    golden(block, story.tell)


@DOOR
def test_no_data_of_a_secret_is_audited(olga):
    api.create(olga, SECRETS, {**config_map("x", password="aHVudGVyMg=="), "kind": "Secret"})
    patch(olga, {"data": {"password": "aHVudGVyMw=="}}, SECRETS)
    test = [{"op": "test", "path": "/data/password", "value": "aHVudGVyNA=="}]
    with pytest.raises(Invalid, match='is "aHVudGVyMw==", and the test expects "aHVudGVyNA=="'):
        patch(olga, test, SECRETS, how="json")
    assert AuditEntry.objects.last().message.endswith("is another one than the test expects.")
    assert "aHVu" not in str(list(AuditEntry.objects.values()))


@DOOR
def test_a_rule_keeps_an_object(admin):
    admission.register(QUEUES, delete=lambda obj, view: [forbidden("status.state", "Close it first.")])
    with pytest.raises(Forbidden, match=r'queues.scheduling.volcano.sh "default" is forbidden: Close it first\.'):
        api.delete(admin, QUEUES, "", "default")
    assert kinds(api.delete_many(admin, QUEUES, [("", "default")])) == [Forbidden]


@DOOR
def test_of_many_only_those_go_that_have_the_uid_that_was_meant(alice, olga):
    made = [*api.create_many(alice, JOBS, [job("a"), job("b"), job("c")]), api.create(olga, JOBS, job("d"))]
    keys, uids = [("default", n) for n in "abcde"], [made[0].uid, "another", "", made[3].uid, ""]
    outcomes = api.delete_many(alice, JOBS, keys, uids=uids)
    assert kinds(outcomes) == ["a", Conflict, "c", Forbidden, NotFound]
    assert [left.name for left in store.find(JOBS)] == ["b", "d"]
    assert kinds(api.delete_many(alice, JOBS, [("default", "b")])) == ["b"]


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def apply(actor, obj, manager="flux", resource=CONFIGMAPS, **options):
    metadata = obj["metadata"]
    in_namespace = metadata.get("namespace", "")
    return api.apply(actor, resource, in_namespace, metadata["name"], obj, manager=manager, **options)


def entries(stored):
    return stored.object["metadata"].get("managedFields", [])


@blocks("apply", folder="cluster")
def test_what_is_applied_and_what_comes_of_it(block, golden, story):
    golden(block, story.tell)


@cases("obj", {"Volcano job": job("a"), "pod": builders.pod()})
def test_the_way_from_client_side_apply(cluster, alice, obj):
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
    assert [(each["manager"], each["operation"]) for each in entries(again)] == [("kubectl", "Apply")]
    assert again.object["spec"] == stored.object["spec"]


def test_managers_are_moved_by_a_json_patch_as_kubectl_does(cluster, alice):
    given = config_map("x", x="1", y="1")
    stored = api.create(alice, CONFIGMAPS, given, manager="kubectl-client-side-apply")
    moved = {**entries(stored)[0], "manager": "kubectl", "operation": "Apply"}

    def move(revision):
        replace = {"op": "replace", "path": "/metadata/managedFields", "value": [moved]}
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": str(revision)}
        return patch(alice, [replace, version], CONFIGMAPS, how="json", manager="kubectl")

    with pytest.raises(Conflict):
        move(stored.revision - 1)
    assert entries(move(stored.revision)) == [moved]
    applied, _ = apply(alice, config_map("x", x="2"), "kubectl")
    assert applied.object["data"] == {"x": "2"}


def test_tracking_a_new_job_takes_no_time():
    obj = store.write(Create(JOBS, job("a")))[0].object
    began = time.thread_time()
    for _ in range(200):
        applying.track(None, obj, JOBS, manager="kubectl-create", now=0)
    assert (time.thread_time() - began) / 200 < 0.001


def fields(found):
    return [cause.field for cause in found.causes]


def with_metadata(**values):
    obj = config_map("x")
    obj["metadata"].update(values)
    return obj


def test_shapes_of_kinds():
    large = with_metadata(annotations={"a": "x" * 262_144})
    assert fields(admission.shape(CONFIGMAPS, large)) == ["metadata.annotations"]
    assert fields(admission.shape(NAMESPACES, namespace("a.b"))) == ["metadata.name"], "it is named by a label"
    assert "spec.minAvailable" in fields(admission.shape(JOBS, job("x", minAvailable="many")))
    sent = queue("q", namespace="default")
    shaped = admission.shape(QUEUES, sent)
    assert (shaped.causes, "namespace" in shaped.object["metadata"]) == ((), False)
    assert sent["metadata"]["namespace"] == "default"
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
    assert admission.shape(CONFIGMAPS, {"metadata": {"name": "x"}}).object == whole


def nested(depth):
    value = inner = {}
    for _ in range(depth):
        inner["x"] = {}
        inner = inner["x"]
    return value


@cases("obj, error", {
    "a list": ([], BadRequest),
    "a text": ("x", BadRequest),
    "no JSON": ({**config_map("x"), "data": {"a": object()}}, BadRequest),
    "half a character": ({**config_map("x"), "data": {"a": "\udc80"}}, BadRequest),
    "deep": ({**config_map("x"), "data": nested(100_000)}, BadRequest),
    "large": (config_map("x", a="x" * 1_100_000), RequestEntityTooLarge),
})  # fmt: skip
def test_what_cannot_be_an_object_is_refused(obj, error):
    with pytest.raises(error):
        admission.shape(CONFIGMAPS, obj)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
parts = ["name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers", "uid"]


@given(st.dictionaries(st.sampled_from(parts), anything) | anything, anything)
def test_whatever_is_sent_has_a_name_and_gets_causes_or_an_api_error(meta, spec):
    assert isinstance(metadata.name_of({"metadata": meta}), str)
    with contextlib.suppress(BadRequest):
        admission.shape(JOBS, {"metadata": meta, "spec": spec})


def admitted(obj, old=None, **options):
    return admit(CONFIGMAPS, obj, old, ClusterView(), **options)


def test_defaults_work_on_a_copy_and_come_before_rules(cluster, no_rules):
    def default(obj, old, view):
        obj.setdefault("data", {})["added"] = "yes"

    def validate(obj, old, view):
        return [invalid("data.added", obj["data"]["added"], "no")]

    register(CONFIGMAPS, default=default, validate=validate)
    sent = config_map("x")
    found = admitted(sent)
    assert (sent["data"], found.object["data"]) == ({}, {"added": "yes"})
    with pytest.raises(Invalid, match=r'ConfigMap "x" is invalid: data.added: Invalid value: "yes": no'):
        found.checked()
    assert admitted(with_metadata(labels=1)).causes, "rules do not see an object of the wrong shape"


def test_rules_and_oddities_of_several_applications_add_up(cluster, no_rules):
    for number in range(2):
        register(CONFIGMAPS, validate=lambda obj, old, view, n=number: [invalid(f"data.{n}", n, "no")])
    register(CONFIGMAPS, warn=lambda obj, old, view: ["odd"])
    found = admitted({**config_map("x"), "dta": {}}, warnings=True)
    assert fields(found) == ["data.0", "data.1"]
    assert (found.warnings, found.object["dta"]) == (('unknown field "dta"', "odd"), {})


def test_a_view_reads_each_thing_once_and_sees_no_later_change(cluster, django_assert_num_queries):
    store.write(Create(QUEUES, queue("child", parent="default")))
    view = ClusterView()
    with django_assert_num_queries(5):
        for _ in range(3):
            assert view.queue("default")["metadata"]["name"] == "default"
            assert view.queue("none") is None
            assert [q["metadata"]["name"] for q in view.queue_children("default")] == ["child"]
            assert view.queue_children("child") == []
            assert view.priority_class("none") is None
    with django_assert_num_queries(1):
        view.fetch(NAMESPACES, [("", "default"), ("", "new")])
        assert view.namespace("default")
        assert view.namespace("new") is None
    store.write(Create(NAMESPACES, namespace("new")))
    assert view.namespace("new") is None
    assert ClusterView().namespace("new")


@pytest.mark.parametrize("count", [0, 1, 50])
def test_machines_are_the_nodes_with_a_lease_of_their_own_read_once(db, count):
    store.write(Create(NAMESPACES, namespace("kube-node-lease")))
    names = [f"n{number:02}" for number in range(count)]
    for name in (*names, "sim-1", "sim-2"):
        store.write(Create(NODES, {"metadata": {"name": name}}))
    for name in (*names, "simulated-nodes"):
        store.write(Create(LEASES, {"metadata": {"name": name, "namespace": "kube-node-lease"}}))
    view = ClusterView()
    with CaptureQueriesContext(connection) as queries:
        for _ in range(3):
            assert [each["metadata"]["name"] for each in view.machines()] == names
    assert len(queries) == 2
