"""LimitRanger: what is filled in, and what is refused."""

from __future__ import annotations

import pytest

from cluster.rules import ranges
from kube.errors import Forbidden
from kube.resources import CLAIMS, PODS
from tests.tables import cases

from .known import admit, admitted

GIVEN = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}


def limits(*items, name="bounds"):
    metadata = {"namespace": "default", "name": name}
    return {"kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(items)}}


def item(kind="Container", **fields):
    return {"type": kind, **fields}


def pod(*resources, **fields):
    containers = [{"name": f"c{n}", "image": "i", "command": ["true"], "resources": r} for n, r in enumerate(resources)]
    spec = {"containers": containers, **fields}
    return {"metadata": {"namespace": "default", "name": "p"}, "spec": spec}


def claim(storage):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"namespace": "default", "name": "data"}, "spec": spec}


DEFAULTS = item(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})


@cases("given, expected, note", {
    "everything": ({}, {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        "LimitRanger plugin set: cpu request for container c0; cpu, memory limit for container c0"),
    "a limit stands in for a request before the default does": ({"limits": {"cpu": "4"}},
        {"requests": {"cpu": "4"}, "limits": {"cpu": "4", "memory": "1Gi"}},
        "LimitRanger plugin set: memory limit for container c0"),
    "nothing where all is said": ({"requests": {"cpu": "1"}, "limits": {"cpu": "3", "memory": "2Gi"}},
        {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "3", "memory": "2Gi"}}, None),
    "who asks for more than the default limit may use that": ({"requests": {"cpu": "3", "memory": "64Mi"}},
        {"requests": {"cpu": "3", "memory": "64Mi"}, "limits": {"cpu": "3", "memory": "1Gi"}},
        "LimitRanger plugin set: cpu, memory limit for container c0"),
})  # fmt: skip
def test_what_is_left_open_is_filled_in(given, expected, note):
    stored = admitted(PODS, pod(given), limits(DEFAULTS))
    assert stored["spec"]["containers"][0]["resources"] == expected
    assert (stored["metadata"].get("annotations") or {}).get(ranges.ANNOTATION) == note


def test_filled_in_amounts_decide_the_quality_of_service():
    assert admitted(PODS, pod({}), limits(DEFAULTS))["status"]["qosClass"] == "Burstable"


def test_init_containers_are_filled_in_too():
    initial = [{"name": "first", "image": "i", "command": ["true"]}]
    stored = admitted(PODS, pod(GIVEN, initContainers=initial), limits(item(default={"cpu": "2"})))
    assert stored["spec"]["initContainers"][0]["resources"] == {"limits": {"cpu": "2"}}
    note = "LimitRanger plugin set: cpu limit for init container first"
    assert stored["metadata"]["annotations"] == {ranges.ANNOTATION: note}


@cases("bounds, resources, expected", {
    "limit above the maximum": (item(max={"cpu": "1"}), [{"limits": {"cpu": "2"}}],
        "maximum cpu usage per Container is 1, but limit is 2"),
    "no limit": (item(max={"cpu": "1"}), [{"requests": {"cpu": "500m"}}],
        "maximum cpu usage per Container is 1.  No limit is specified"),
    "request below the minimum": (item(min={"memory": "64Mi"}),
        [{"requests": {"memory": "65536Ki"}}, {"requests": {"memory": "32Mi"}}],
        "minimum memory usage per Container is 64Mi, but request is 32Mi"),
    "no request": (item(min={"cpu": "1"}), [{}], "minimum cpu usage per Container is 1.  No request is specified"),
    "ratio": (item(maxLimitRequestRatio={"cpu": "2"}), [{"requests": {"cpu": "100m"}, "limits": {"cpu": "250m"}}],
        "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000"),
    "ratio without a limit": (item(maxLimitRequestRatio={"cpu": "2"}), [{"requests": {"cpu": "1"}}],
        "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"),
    "the pod as a whole": (item("Pod", max={"cpu": "3"}), [{"limits": {"cpu": "2"}}, {"limits": {"cpu": "2"}}],
        "maximum cpu usage per Pod is 3, but limit is 4"),
    "all that is wrong": (item(max={"cpu": "1", "memory": "1Gi"}), [{"limits": {"cpu": "2", "memory": "2Gi"}}],
        "[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi]"),
})  # fmt: skip
def test_pods_out_of_bounds_are_refused(bounds, resources, expected):
    with pytest.raises(Forbidden) as refused:
        admit(PODS, pod(*resources), None, limits(bounds)).checked()
    assert refused.value.message == f'pods "p" is forbidden: {expected}'


@cases("bounds", {
    "on the bounds": item(min={"cpu": "100m"}, max={"cpu": "200m"}),
    "at the ratio": item(maxLimitRequestRatio={"cpu": "2"}),
    "sums on the bounds": item("Pod", min={"cpu": "200m"}, max={"cpu": "400m"}),
    "bounds of others": item("PersistentVolumeClaim", max={"storage": "1"}),
})  # fmt: skip
def test_pods_within_bounds_pass(bounds):
    assert not admit(PODS, pod(GIVEN, GIVEN), None, limits(bounds)).causes


def test_what_is_wrong_in_itself_is_said_first():
    assert not isinstance(
        admit(PODS, pod({}, restartPolicy="No"), None, limits(item(min={"cpu": "1"}))).error, Forbidden
    )


def test_stored_pods_are_left_alone():
    stored = admitted(PODS, pod({}))
    assert not admit(PODS, stored, stored, limits(item(min={"cpu": "1"}))).causes


@cases("bounds, expected", {
    "small": ({"min": {"storage": "2Gi"}},
        "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"),
    "large": ({"max": {"storage": "500Mi"}},
        "maximum storage usage per PersistentVolumeClaim is 500Mi, but request is 1Gi"),
})  # fmt: skip
def test_claims_out_of_bounds_are_refused(bounds, expected):
    found = admit(CLAIMS, claim("1Gi"), None, limits(item("PersistentVolumeClaim", **bounds)))
    assert str(found.error) == f'persistentvolumeclaims "data" is forbidden: {expected}'


@cases("items, expected", {
    "defaults refuse nobody": ([DEFAULTS], False),
    "maximum": ([DEFAULTS, item(max={"cpu": "1"})], True),
    "minimum": ([item(min={"cpu": "1"})], True),
    "ratio": ([item("Pod", maxLimitRequestRatio={"cpu": "2"})], True),
    "nothing": ([], False),
})  # fmt: skip
def test_which_ranges_may_refuse(items, expected):
    assert ranges.bounds(limits(*items)) == expected
