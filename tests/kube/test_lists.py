from __future__ import annotations

import pytest

from kube import definitions, lists
from kube.lists import ListRule


@pytest.mark.parametrize(
    ("definition", "field", "keywords", "rule"),
    [
        pytest.param(
            "io.k8s.api.core.v1.PodSpec",
            "containers",
            {
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "name",
            },
            ListRule("map", ("name",), "merge", "name"),
            id="keyed list",
        ),
        pytest.param(
            "io.k8s.api.core.v1.Container",
            "ports",
            {
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "containerPort",
            },
            ListRule("map", ("containerPort", "protocol"), "merge", "containerPort"),
            id="two keys for apply, one for a patch",
        ),
        pytest.param(
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
            "finalizers",
            {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
            ListRule("set", (), "merge"),
            id="set",
        ),
        pytest.param(
            "io.k8s.api.core.v1.Container",
            "args",
            {"x-kubernetes-list-type": "atomic"},
            None,
            id="other lists are atomic",
        ),
        pytest.param(
            "io.k8s.api.core.v1.PodSpec",
            "nodeSelector",
            {"x-kubernetes-map-type": "atomic"},
            ListRule("atomic"),
            id="atomic map",
        ),
        pytest.param("io.k8s.api.core.v1.Pod", "spec", {}, None, id="objects merge"),
    ],
)
def test_how_a_field_merges_is_what_its_published_schema_says(definition, field, keywords, rule):
    published = definitions.properties(definition)[field]
    assert {key: value for key, value in published.items() if key.startswith("x-kubernetes-")} == keywords
    assert lists.rule(definition, field) == rule


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        pytest.param("io.k8s.api.core.v1.LocalObjectReference", True, id="reference"),
        pytest.param("io.k8s.api.core.v1.PodSpec", False, id="spec"),
        pytest.param("", False, id="none"),
    ],
)
def test_some_objects_are_replaced_whole(definition, expected):
    assert lists.is_atomic(definition) is expected
