"""LimitRanges and ResourceQuotas: what is filled in, what objects use, which quota counts them, and what is refused."""

from __future__ import annotations

from cluster.rules import quotas, ranges
from kube.errors import Forbidden
from kube.resources import BATCH_JOBS, CLAIMS, CONFIGMAPS, JOBS, LIMIT_RANGES, PODS, SERVICES
from tests import builders
from tests.tables import cases

from .known import admit, admitted

GIVEN = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
FULL = {"requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2"}, "limits": {"cpu": "1"}}
GI = 2**30


def pod(*resources, phase="Pending", **spec):
    containers = [builders.container(f"c{number}", resources=each) for number, each in enumerate(resources)]
    return builders.pod("p", *containers, status={"phase": phase}, **spec)


def claim(storage="1Gi", **spec):
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return builders.of(CLAIMS, "data", **wanted, **spec)


def limits(*items):
    return builders.of(LIMIT_RANGES, "bounds", limits=list(items))


def item(kind="Container", **fields):
    return {"type": kind, **fields}


def ratio(cpu, kind="Container"):
    return item(kind, maxLimitRequestRatio={"cpu": cpu})


DEFAULTS = item(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})


@cases("given, expected, note", {
    "everything": ({}, {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        "cpu request for container c0; cpu, memory limit for container c0"),
    "a limit stands in for a request before the default does": ({"limits": {"cpu": "4"}},
        {"requests": {"cpu": "4"}, "limits": {"cpu": "4", "memory": "1Gi"}}, "memory limit for container c0"),
    "nothing where all is said": ({"requests": {"cpu": "1"}, "limits": {"cpu": "3", "memory": "2Gi"}},
        {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "3", "memory": "2Gi"}}, None),
    "who asks for more than the default limit may use that": ({"requests": {"cpu": "3", "memory": "64Mi"}},
        {"requests": {"cpu": "3", "memory": "64Mi"}, "limits": {"cpu": "3", "memory": "1Gi"}},
        "cpu, memory limit for container c0"),
})  # fmt: skip
def test_what_is_left_open_is_filled_in(given, expected, note):
    stored = admitted(PODS, pod(given), limits(DEFAULTS))
    assert stored["spec"]["containers"][0]["resources"] == expected
    assert stored["status"]["qosClass"] == "Burstable", "filled in amounts decide it"
    annotations = stored["metadata"].get("annotations") or {}
    assert annotations.get(ranges.ANNOTATION) == (f"LimitRanger plugin set: {note}" if note else None)


def test_init_containers_are_filled_in_too():
    given = pod(GIVEN, initContainers=[builders.container("first")])
    stored = admitted(PODS, given, limits(item(default={"cpu": "2"})))
    assert stored["spec"]["initContainers"][0]["resources"] == {"limits": {"cpu": "2"}}
    note = "LimitRanger plugin set: cpu limit for init container first"
    assert stored["metadata"]["annotations"] == {ranges.ANNOTATION: note}


BOTH_ABOVE = (
    "maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi"
)


@cases("bounds, resources, expected", {
    "limit above the maximum": (item(max={"cpu": "1"}), [{"limits": {"cpu": "2"}}],
        "maximum cpu usage per Container is 1, but limit is 2"),
    "no limit": (item(max={"cpu": "1"}), [{"requests": {"cpu": "500m"}}],
        "maximum cpu usage per Container is 1.  No limit is specified"),
    "request below the minimum": (item(min={"memory": "64Mi"}),
        [{"requests": {"memory": "65536Ki"}}, {"requests": {"memory": "32Mi"}}],
        "minimum memory usage per Container is 64Mi, but request is 32Mi"),
    "no request": (item(min={"cpu": "1"}), [{}], "minimum cpu usage per Container is 1.  No request is specified"),
    "ratio": (ratio("2"), [{"requests": {"cpu": "100m"}, "limits": {"cpu": "250m"}}],
        "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000"),
    "ratio without a limit": (ratio("2"), [{"requests": {"cpu": "1"}}],
        "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"),
    "the pod as a whole": (item("Pod", max={"cpu": "3"}), [{"limits": {"cpu": "2"}}, {"limits": {"cpu": "2"}}],
        "maximum cpu usage per Pod is 3, but limit is 4"),
    "all that is wrong": (item(max={"cpu": "1", "memory": "1Gi"}), [{"limits": {"cpu": "2", "memory": "2Gi"}}], f"[{BOTH_ABOVE}]"),
    "on the bounds": (item(min={"cpu": "100m"}, max={"cpu": "200m"}), [GIVEN, GIVEN], None),
    "at the ratio": (ratio("2"), [GIVEN, GIVEN], None),
    "sums on the bounds": (item("Pod", min={"cpu": "200m"}, max={"cpu": "400m"}), [GIVEN, GIVEN], None),
    "bounds of others": (item("PersistentVolumeClaim", max={"storage": "1"}), [GIVEN, GIVEN], None),
})  # fmt: skip
def test_pods_out_of_bounds_are_refused(bounds, resources, expected):
    error = admit(PODS, pod(*resources), None, limits(bounds)).error
    assert (str(error) if error else None) == (f'pods "p" is forbidden: {expected}' if expected else None)


def test_what_is_wrong_in_itself_is_said_first_and_stored_pods_are_left_alone():
    bounds = limits(item(min={"cpu": "1"}))
    assert not isinstance(admit(PODS, pod({}, restartPolicy="No"), None, bounds).error, Forbidden)
    stored = admitted(PODS, pod({}))
    assert not admit(PODS, stored, stored, bounds).causes


@cases("bounds, expected", {
    "small": ({"min": {"storage": "2Gi"}}, "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"),
    "large": ({"max": {"storage": "500Mi"}}, "maximum storage usage per PersistentVolumeClaim is 500Mi, but request is 1Gi"),
})  # fmt: skip
def test_claims_out_of_bounds_are_refused(bounds, expected):
    found = admit(CLAIMS, claim(), None, limits(item("PersistentVolumeClaim", **bounds)))
    assert str(found.error) == f'persistentvolumeclaims "data" is forbidden: {expected}'


@cases("items, expected", {
    "defaults refuse nobody": ([DEFAULTS], False),
    "maximum": ([DEFAULTS, item(max={"cpu": "1"})], True),
    "minimum": ([item(min={"cpu": "1"})], True),
    "ratio": ([ratio("2", "Pod")], True),
    "nothing": ([], False),
})  # fmt: skip
def test_which_ranges_may_refuse(items, expected):
    assert ranges.bounds(limits(*items)) == expected


# Quotas.


def quota(hard, *scopes, selector=()):
    expressions = {"scopeSelector": {"matchExpressions": list(selector)}} if selector else {}
    return quotas.read({"metadata": {"name": "q"}, "spec": {"hard": hard, "scopes": list(scopes), **expressions}})


def of_pods(*scopes, selector=()):
    return quota({"pods": "1"}, *scopes, selector=selector)


def by_class(operator, *values):
    return [{"scopeName": "PriorityClass", "operator": operator, "values": list(values)}]


ONE = {"count/pods": 1, "pods": 1}
SCRATCH = {"requests": {"hugepages-2Mi": "4Mi", "ephemeral-storage": "1Ki"}}
FAST = "fast.storageclass.storage.k8s.io"


@cases("kind, obj, expected", {
    "pod": (PODS, pod(FULL, {"limits": {"memory": "1Gi"}}),
        {**ONE, "cpu": 500, "requests.cpu": 500, "limits.cpu": 1000, "memory": 2 * GI, "requests.memory": 2 * GI,
         "limits.memory": GI, "requests.nvidia.com/gpu": 2}),
    "pod that ended": (PODS, pod(FULL, phase="Failed"), {"count/pods": 1}),
    "pod with pages and scratch": (PODS, pod(SCRATCH),
        {**ONE, "hugepages-2Mi": 2**22, "requests.hugepages-2Mi": 2**22, "ephemeral-storage": 1024,
         "requests.ephemeral-storage": 1024}),
    "claim": (CLAIMS, claim("2Gi", storageClassName="fast"),
        {"count/persistentvolumeclaims": 1, "persistentvolumeclaims": 1, "requests.storage": 2 * GI,
         f"{FAST}/persistentvolumeclaims": 1, f"{FAST}/requests.storage": 2 * GI}),
    "service": (SERVICES, {"spec": {"type": "LoadBalancer", "ports": [{}, {}]}},
        {"count/services": 1, "services": 1, "services.loadbalancers": 1, "services.nodeports": 2}),
    "kind with a plain name": (CONFIGMAPS, {}, {"count/configmaps": 1, "configmaps": 1}),
    "Volcano job": (JOBS, {}, {"count/jobs.batch.volcano.sh": 1}),
    "batch job": (BATCH_JOBS, {}, {"count/jobs.batch": 1}),
})  # fmt: skip
def test_usage(kind, obj, expected):
    assert quotas.usage(kind, obj) == expected


@cases("counted, obj, expected", {
    "no scopes": (of_pods(), pod({}), True),
    "about others": (quota({"configmaps": "1"}), pod({}), False),
    "terminating": (of_pods("Terminating"), pod({}, activeDeadlineSeconds=9), True),
    "not terminating": (of_pods("Terminating"), pod({}), False),
    "not terminating wanted": (of_pods("NotTerminating"), pod({}), True),
    "best effort": (of_pods("BestEffort"), pod({}), True),
    "not best effort": (of_pods("BestEffort"), pod(FULL), False),
    "all must hold": (of_pods("NotBestEffort", "Terminating"), pod(FULL), False),
    "no class": (of_pods("PriorityClass"), pod({}), False),
    "class": (of_pods(selector=by_class("In", "high")), pod({}, priorityClassName="high"), True),
    "another class": (of_pods(selector=by_class("In", "high")), pod({}), False),
    "class not in": (of_pods(selector=by_class("NotIn", "high")), pod({}), True),
    "class absent": (of_pods(selector=by_class("DoesNotExist")), pod({}), True),
})  # fmt: skip
def test_which_pods_count(counted, obj, expected):
    assert counted.counts_object(PODS, obj) is expected


def test_quotas_with_scopes_count_nothing_but_pods():
    assert not quota({"count/configmaps": "1"}, "Terminating").counts(CONFIGMAPS)


GPU, FIVE = quota({"requests.nvidia.com/gpu": "0"}), quota({"pods": "5"})


@cases("counted, used, obj, expected", {
    "full": (FIVE, {"pods": 5}, pod({}), "exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5"),
    "room for one": (FIVE, {"pods": 4}, pod({}), ""),
    "only what is too much is named": (quota({"requests.cpu": "2", "requests.memory": "4Gi", "pods": "9"}),
        {"requests.cpu": 1750, "requests.memory": 2 * GI}, pod({"requests": {"cpu": "500m", "memory": "1Gi"}}),
        "exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=1750m, limited: requests.cpu=2"),
    "several": (quota({"memory": "1Gi", "cpu": "1"}), {"cpu": 1000, "memory": GI},
        pod({"requests": {"cpu": "1", "memory": "1Gi"}}),
        "exceeded quota: q, requested: cpu=1,memory=1Gi, used: cpu=1,memory=1Gi, limited: cpu=1,memory=1Gi"),
    "what must be said": (quota({"requests.cpu": "1", "limits.memory": "1Gi"}), {}, pod({"limits": {"cpu": "1"}}, {}),
        "failed quota: q: must specify limits.memory for: c0,c1; requests.cpu for: c1"),
    "extended resource": (GPU, {}, pod({"limits": {"nvidia.com/gpu": "1"}}), "exceeded quota: q, requested: "
        "requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=0"),
    "extended resource not asked for": (GPU, {}, pod({}), ""),
    "uses nothing": (of_pods(), {"pods": 9}, pod({}, phase="Succeeded"), ""),
})  # fmt: skip
def test_refusal(counted, used, obj, expected):
    assert quotas.refusal([counted], {"q": used}, PODS, obj, quotas.usage(PODS, obj)) == expected
