from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.api import admission, metadata
from cluster.api.admission import admit
from cluster.api.cluster_view import ClusterView
from cluster.store import Create, Delete, store
from kube import resources
from kube.errors import BadRequest, Forbidden, Invalid, NotFound, RequestEntityTooLarge, invalid
from tests.tables import cases

from .conftest import config_map, job, namespace, queue

CONFIGMAPS = resources.CONFIGMAPS


@pytest.fixture(autouse=True)
def rules(monkeypatch):
    """Register rules for the length of a test, in place of those of the applications."""
    monkeypatch.setattr(admission, "_rules", defaultdict(list))
    return admission.register


def fields(causes):
    return [cause.field for cause in causes]


def with_metadata(**values):
    obj = config_map("x")
    obj["metadata"].update(values)
    return obj


@cases("values, field", {
    "no name": ({"name": ""}, "metadata.name"),
    "upper case": ({"name": "Upper"}, "metadata.name"),
    "a path": ({"name": "../../etc"}, "metadata.name"),
    "markup": ({"name": "<script>"}, "metadata.name"),
    "two lines": ({"name": "a\nb"}, "metadata.name"),
    "emoji": ({"name": "🌋"}, "metadata.name"),
    "long": ({"name": "x" * 254}, "metadata.name"),
    "a number as name": ({"name": 5}, "metadata.name"),
    "a bad prefix": ({"name": "", "generateName": "A-"}, "metadata.generateName"),
    "a bad namespace": ({"namespace": "A b"}, "metadata.namespace"),
    "a bad label key": ({"labels": {"a b": "x"}}, "metadata.labels"),
    "a bad label value": ({"labels": {"a": "x y"}}, "metadata.labels[a]"),
    "a number as label": ({"labels": {"a": 1}}, "metadata.labels[a]"),
    "labels as a list": ({"labels": ["a"]}, "metadata.labels"),
    "a bad annotation key": ({"annotations": {"a/b/c": ""}}, "metadata.annotations"),
    "large annotations": ({"annotations": {"a": "x" * 262_144}}, "metadata.annotations"),
    "an owner without version": ({"ownerReferences": [{"kind": "Job", "name": "x", "uid": "1"}]},
        "metadata.ownerReferences[0].apiVersion"),
    "two controllers": ({"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": n, "uid": n, "controller": True} for n in "ab"]},
        "metadata.ownerReferences"),
    "owners as a text": ({"ownerReferences": "x"}, "metadata.ownerReferences"),
    "an unqualified finalizer": ({"finalizers": ["mine"]}, "metadata.finalizers[0]"),
    "a finalizer twice": ({"finalizers": ["a.io/b", "a.io/b"]}, "metadata.finalizers[1]"),
    "finalizers as a text": ({"finalizers": "x"}, "metadata.finalizers"),
})  # fmt: skip
def test_bad_metadata_is_reported_once_at_its_field(values, field):
    shaped = admission.shape(CONFIGMAPS, with_metadata(**values))
    assert fields(shaped.causes) == [field]


@cases("values", {
    "dots": {"name": "a.b-c.1"},
    "a prefix": {"name": "", "generateName": "a-"},
    "labels": {"labels": {"a.io/b": "", "c": "x_1"}, "annotations": {"A.io/B": "any\ntext 🌋"}},
    "finalizers": {"finalizers": ["a.io/b", "orphan"]},
    "nulls": {"labels": None, "annotations": None, "ownerReferences": None, "finalizers": None},
})  # fmt: skip
def test_good_metadata_passes(values):
    assert not admission.shape(CONFIGMAPS, with_metadata(**values)).causes


def test_services_and_namespaces_are_named_by_a_label():
    assert fields(admission.shape(resources.NAMESPACES, namespace("a.b")).causes) == ["metadata.name"]


def test_an_object_of_the_whole_cluster_loses_the_namespace_that_it_was_given():
    obj = queue("q")
    obj["metadata"]["namespace"] = "default"
    shaped = admission.shape(resources.QUEUES, obj)
    assert (shaped.causes, "namespace" in shaped.object["metadata"]) == ((), False)
    assert obj["metadata"]["namespace"] == "default"


def test_what_is_left_out_is_filled_in():
    shaped = admission.shape(CONFIGMAPS, {"metadata": {"name": "x"}})
    assert shaped.object == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}


def test_types_and_bounds_of_the_kind_are_checked():
    bad = job("x", minAvailable="many")
    assert "spec.minAvailable" in fields(admission.shape(resources.JOBS, bad).causes)


def nested(depth):
    value = inner = {}
    for _ in range(depth):
        inner["x"] = {}
        inner = inner["x"]
    return value


@cases("obj, error", {
    "a list": ([], BadRequest),
    "a text": ("x", BadRequest),
    "another kind": ({**config_map("x"), "kind": "Pod"}, BadRequest),
    "another version": ({**config_map("x"), "apiVersion": "v2"}, BadRequest),
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
def test_whatever_is_sent_gets_causes_or_an_api_error(meta, spec):
    try:
        admission.shape(resources.JOBS, {"metadata": meta, "spec": spec})
    except BadRequest:
        pass


def test_names_are_read_from_any_shape():
    for obj in ({}, {"metadata": None}, {"metadata": []}, {"metadata": {"name": 3}}):
        assert isinstance(metadata.name_of(obj), str)


def test_a_missing_namespace_is_not_found(cluster):
    admitted = admit(CONFIGMAPS, config_map("x", "nowhere"), None, ClusterView())
    assert fields(admitted.causes) == ["metadata.namespace"]
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        admitted.checked()


def test_a_namespace_on_its_way_out_takes_nothing_new(cluster):
    dying = namespace("dying", phase="Terminating")
    store.write(Create(resources.NAMESPACES, dying))
    with pytest.raises(Forbidden) as caught:
        admit(CONFIGMAPS, config_map("x", "dying"), None, ClusterView()).checked()
    assert caught.value.causes[0].reason == "NamespaceTerminating"
    assert not admit(CONFIGMAPS, config_map("x", "dying"), config_map("x", "dying"), ClusterView()).causes


def test_defaults_work_on_a_copy_and_come_before_rules(cluster, rules):
    def default(obj, old, view):
        obj.setdefault("data", {})["added"] = "yes"

    def validate(obj, old, view):
        return [invalid("data.added", obj["data"]["added"], "no")]

    rules(CONFIGMAPS, default=default, validate=validate)
    sent = config_map("x")
    admitted = admit(CONFIGMAPS, sent, None, ClusterView())
    assert (sent["data"], admitted.object["data"]) == ({}, {"added": "yes"})
    with pytest.raises(Invalid, match=r'ConfigMap "x" is invalid: data.added: Invalid value: "yes": no'):
        admitted.checked()


def test_rules_of_several_applications_add_up(cluster, rules):
    for number in range(2):
        rules(CONFIGMAPS, validate=lambda obj, old, view, n=number: [invalid(f"data.{n}", n, "no")])
    assert fields(admit(CONFIGMAPS, config_map("x"), None, ClusterView()).causes) == ["data.0", "data.1"]


def test_rules_do_not_see_an_object_of_the_wrong_shape(cluster, rules):
    def never(obj, old, view):
        raise AssertionError

    rules(CONFIGMAPS, default=never, validate=never)
    assert admit(CONFIGMAPS, with_metadata(labels=1), None, ClusterView()).causes


def test_unknown_fields_and_oddities_are_warnings(cluster, rules):
    rules(CONFIGMAPS, warn=lambda obj, old, view: ["odd"])
    obj = {**config_map("x"), "dta": {}}
    admitted = admit(CONFIGMAPS, obj, None, ClusterView(), warnings=True)
    assert admitted.warnings == ('unknown field "dta"', "odd")
    assert admitted.checked()["dta"] == {}


def test_a_view_reads_each_thing_once(cluster, django_assert_num_queries):
    store.write(Create(resources.QUEUES, queue("child", parent="default")))
    view = ClusterView()
    with django_assert_num_queries(4):
        for _ in range(3):
            assert view.queue("default")["metadata"]["name"] == "default"
            assert view.queue("none") is None
            assert [q["metadata"]["name"] for q in view.queue_children("default")] == ["child"]
            assert view.queue_children("child") == []
            assert view.priority_class("none") is None
    with django_assert_num_queries(1):
        view.fetch(resources.NAMESPACES, [("", "default"), ("", "none")])
        assert view.namespace("default")
        assert view.namespace("none") is None


def test_a_rule_can_make_an_object_stay(cluster, rules):
    stored = store.get(resources.QUEUES, "", "default").object
    rules(resources.QUEUES, delete=lambda obj, view: [invalid("", "", "keep it.")])
    with pytest.raises(Forbidden, match="keep it"):
        admission.release(resources.QUEUES, stored, ClusterView())
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        admission.release(resources.NAMESPACES, namespace("default"), ClusterView())
    store.write(Delete(resources.NAMESPACES, "", "other"))
