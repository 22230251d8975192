"""ResourceQuotas: what objects use, which quota counts them, and what is refused."""

from __future__ import annotations

from cluster.rules import quotas
from kube.resources import BATCH_JOBS, CLAIMS, CONFIGMAPS, JOBS, PODS, SERVICES
from tests.tables import cases


def pod(*resources, phase="Pending", **spec):
    containers = [{"name": f"c{number}", "resources": each} for number, each in enumerate(resources)]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}, "status": {"phase": phase}}


def quota(hard, *scopes, name="q", selector=()):
    spec = {"hard": hard, "scopes": list(scopes)}
    if selector:
        spec["scopeSelector"] = {"matchExpressions": list(selector)}
    return quotas.read({"metadata": {"name": name}, "spec": spec})


def by_class(operator, *values):
    return {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}


FULL = {"requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2"}, "limits": {"cpu": "1"}}


@cases("kind, obj, expected", {
    "pod": (PODS, pod(FULL, {"limits": {"memory": "1Gi"}}),
        {"count/pods": 1, "pods": 1, "cpu": 500, "requests.cpu": 500, "limits.cpu": 1000, "memory": 2 * 2**30, "requests.memory": 2 * 2**30, "limits.memory": 2**30, "requests.nvidia.com/gpu": 2}),
    "pod that ended": (PODS, pod(FULL, phase="Failed"), {"count/pods": 1}),
    "pod with pages and scratch": (PODS, pod({"requests": {"hugepages-2Mi": "4Mi", "ephemeral-storage": "1Ki"}}),
        {"count/pods": 1, "pods": 1, "hugepages-2Mi": 2**22, "requests.hugepages-2Mi": 2**22, "ephemeral-storage": 1024, "requests.ephemeral-storage": 1024}),
    "claim": (CLAIMS, {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "2Gi"}}}},
        {"count/persistentvolumeclaims": 1, "persistentvolumeclaims": 1, "requests.storage": 2**31, "fast.storageclass.storage.k8s.io/persistentvolumeclaims": 1, "fast.storageclass.storage.k8s.io/requests.storage": 2**31}),
    "service": (SERVICES, {"spec": {"type": "LoadBalancer", "ports": [{}, {}]}},
        {"count/services": 1, "services": 1, "services.loadbalancers": 1, "services.nodeports": 2}),
    "kind with a plain name": (CONFIGMAPS, {}, {"count/configmaps": 1, "configmaps": 1}),
    "Volcano job": (JOBS, {}, {"count/jobs.batch.volcano.sh": 1}),
    "batch job": (BATCH_JOBS, {}, {"count/jobs.batch": 1}),
})  # fmt: skip
def test_usage(kind, obj, expected):
    assert quotas.usage(kind, obj) == expected


@cases("counted, obj, expected", {
    "no scopes": (quota({"pods": "1"}), pod({}), True),
    "about others": (quota({"configmaps": "1"}), pod({}), False),
    "terminating": (quota({"pods": "1"}, "Terminating"), pod({}, activeDeadlineSeconds=9), True),
    "not terminating": (quota({"pods": "1"}, "Terminating"), pod({}), False),
    "not terminating wanted": (quota({"pods": "1"}, "NotTerminating"), pod({}), True),
    "best effort": (quota({"pods": "1"}, "BestEffort"), pod({}), True),
    "not best effort": (quota({"pods": "1"}, "BestEffort"), pod(FULL), False),
    "all must hold": (quota({"pods": "1"}, "NotBestEffort", "Terminating"), pod(FULL), False),
    "no class": (quota({"pods": "1"}, "PriorityClass"), pod({}), False),
    "class": (quota({"pods": "1"}, selector=[by_class("In", "high")]), pod({}, priorityClassName="high"), True),
    "another class": (quota({"pods": "1"}, selector=[by_class("In", "high")]), pod({}), False),
    "class not in": (quota({"pods": "1"}, selector=[by_class("NotIn", "high")]), pod({}), True),
    "class absent": (quota({"pods": "1"}, selector=[by_class("DoesNotExist")]), pod({}), True),
})  # fmt: skip
def test_which_pods_count(counted, obj, expected):
    assert counted.counts_object(PODS, obj) is expected


def test_quotas_with_scopes_count_nothing_but_pods():
    assert not quota({"count/configmaps": "1"}, "Terminating").counts(CONFIGMAPS)


@cases("counted, used, obj, expected", {
    "full": (quota({"pods": "5"}), {"pods": 5}, pod({}),
        "exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5"),
    "room for one": (quota({"pods": "5"}), {"pods": 4}, pod({}), ""),
    "only what is too much is named": (quota({"requests.cpu": "2", "requests.memory": "4Gi", "pods": "9"}),
        {"requests.cpu": 1750, "requests.memory": 2**31}, pod({"requests": {"cpu": "500m", "memory": "1Gi"}}),
        "exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=1750m, limited: requests.cpu=2"),
    "several": (quota({"memory": "1Gi", "cpu": "1"}), {"cpu": 1000, "memory": 2**30},
        pod({"requests": {"cpu": "1", "memory": "1Gi"}}),
        "exceeded quota: q, requested: cpu=1,memory=1Gi, used: cpu=1,memory=1Gi, limited: cpu=1,memory=1Gi"),
    "what must be said": (quota({"requests.cpu": "1", "limits.memory": "1Gi"}), {}, pod({"limits": {"cpu": "1"}}, {}),
        "failed quota: q: must specify limits.memory for: c0,c1; requests.cpu for: c1"),
    "extended resource": (quota({"requests.nvidia.com/gpu": "0"}), {}, pod({"limits": {"nvidia.com/gpu": "1"}}),
        "exceeded quota: q, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=0"),
    "extended resource not asked for": (quota({"requests.nvidia.com/gpu": "0"}), {}, pod({}), ""),
    "uses nothing": (quota({"pods": "1"}), {"pods": 9}, pod({}, phase="Succeeded"), ""),
})  # fmt: skip
def test_refusal(counted, used, obj, expected):
    assert quotas.refusal([counted], {"q": used}, PODS, obj, quotas.usage(PODS, obj)) == expected
