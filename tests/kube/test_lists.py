from __future__ import annotations

import pytest

from kube import lists


@pytest.mark.parametrize(
    ("definition", "field", "is_list", "expected"),
    [
        pytest.param(
            "io.k8s.api.core.v1.PodSpec",
            "containers",
            True,
            {
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "name",
            },
            id="keyed list",
        ),
        pytest.param(
            "io.k8s.api.core.v1.Container",
            "ports",
            True,
            {
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "containerPort",
            },
            id="two keys for apply, one for a patch",
        ),
        pytest.param(
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
            "finalizers",
            True,
            {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
            id="set",
        ),
        pytest.param(
            "io.k8s.api.core.v1.Container",
            "args",
            True,
            {"x-kubernetes-list-type": "atomic"},
            id="other lists are atomic",
        ),
        pytest.param(
            "io.k8s.api.core.v1.PodSpec",
            "nodeSelector",
            False,
            {"x-kubernetes-map-type": "atomic"},
            id="atomic map",
        ),
        pytest.param("io.k8s.api.core.v1.Pod", "spec", False, {}, id="objects merge"),
    ],
)
def test_keywords_of_a_published_schema(definition, field, is_list, expected):
    assert lists.extensions(definition, field, is_list=is_list) == expected
