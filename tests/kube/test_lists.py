from __future__ import annotations

from kube import definitions, lists
from kube.lists import ListRule
from tests.tables import cases


@cases("definition, field, keywords, rule", {
    "keyed list": ("io.k8s.api.core.v1.PodSpec", "containers",
        {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"},
        ListRule("map", ("name",), "merge", "name")),
    "two keys for apply, one for a patch": ("io.k8s.api.core.v1.Container", "ports",
        {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["containerPort", "protocol"], "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "containerPort"},
        ListRule("map", ("containerPort", "protocol"), "merge", "containerPort")),
    "set": ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers",
        {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"}, ListRule("set", (), "merge")),
    "other lists are atomic": ("io.k8s.api.core.v1.Container", "args", {"x-kubernetes-list-type": "atomic"}, None),
    "atomic map": ("io.k8s.api.core.v1.PodSpec", "nodeSelector", {"x-kubernetes-map-type": "atomic"},
        ListRule("atomic")),
    "objects merge": ("io.k8s.api.core.v1.Pod", "spec", {}, None),
})  # fmt: skip
def test_how_a_field_merges_is_what_its_published_schema_says(definition, field, keywords, rule):
    published = definitions.properties(definition)[field]
    assert {key: value for key, value in published.items() if key.startswith("x-kubernetes-")} == keywords
    assert lists.rule(definition, field) == rule


@cases("definition, expected", {
    "reference": ("io.k8s.api.core.v1.LocalObjectReference", True),
    "spec": ("io.k8s.api.core.v1.PodSpec", False),
    "none": ("", False),
})  # fmt: skip
def test_some_objects_are_replaced_whole(definition, expected):
    assert lists.is_atomic(definition) is expected
