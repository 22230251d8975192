"""What the door makes of an object before it is stored: its shape, the rules of the applications, and what those look at."""

from __future__ import annotations

import contextlib

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from cluster.api import admission, metadata
from cluster.api.admission import admit, register
from cluster.api.cluster_view import ClusterView
from cluster.store import Create, store
from kube.errors import BadRequest, Invalid, RequestEntityTooLarge, invalid
from kube.resources import CONFIGMAPS, JOBS, LEASES, NAMESPACES, NODES, QUEUES
from tests.tables import cases

from .conftest import config_map, job, namespace, queue

pytestmark = pytest.mark.usefixtures("no_rules")


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


def test_defaults_work_on_a_copy_and_come_before_rules(cluster):
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


def test_rules_and_oddities_of_several_applications_add_up(cluster):
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
    with CaptureQueriesContext(connection) as asked:
        for _ in range(3):
            assert [each["metadata"]["name"] for each in view.machines()] == names
    assert len(asked) == 2
