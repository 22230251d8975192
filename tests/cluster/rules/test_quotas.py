"""ResourceQuotas: what objects use, which quota counts them, and what is refused."""

from __future__ import annotations

import pytest

from cluster.rules import quotas
from kube.resources import BATCH_JOBS, CLAIMS, CONFIGMAPS, JOBS, PODS, SERVICES


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


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        pytest.param(
            PODS,
            pod(FULL, {"limits": {"memory": "1Gi"}}),
            {
                "count/pods": 1,
                "pods": 1,
                "cpu": 500,
                "requests.cpu": 500,
                "limits.cpu": 1000,
                "memory": 2 * 2**30,
                "requests.memory": 2 * 2**30,
                "limits.memory": 2**30,
                "requests.nvidia.com/gpu": 2,
            },
            id="pod",
        ),
        pytest.param(PODS, pod(FULL, phase="Failed"), {"count/pods": 1}, id="pod that ended"),
        pytest.param(
            PODS,
            pod({"requests": {"hugepages-2Mi": "4Mi", "ephemeral-storage": "1Ki"}}),
            {
                "count/pods": 1,
                "pods": 1,
                "hugepages-2Mi": 2**22,
                "requests.hugepages-2Mi": 2**22,
                "ephemeral-storage": 1024,
                "requests.ephemeral-storage": 1024,
            },
            id="pod with pages and scratch",
        ),
        pytest.param(
            CLAIMS,
            {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "2Gi"}}}},
            {
                "count/persistentvolumeclaims": 1,
                "persistentvolumeclaims": 1,
                "requests.storage": 2**31,
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims": 1,
                "fast.storageclass.storage.k8s.io/requests.storage": 2**31,
            },
            id="claim",
        ),
        pytest.param(
            SERVICES,
            {"spec": {"type": "LoadBalancer", "ports": [{}, {}]}},
            {"count/services": 1, "services": 1, "services.loadbalancers": 1, "services.nodeports": 2},
            id="service",
        ),
        pytest.param(CONFIGMAPS, {}, {"count/configmaps": 1, "configmaps": 1}, id="kind with a plain name"),
        pytest.param(JOBS, {}, {"count/jobs.batch.volcano.sh": 1}, id="Volcano job"),
        pytest.param(BATCH_JOBS, {}, {"count/jobs.batch": 1}, id="batch job"),
    ],
)
def test_usage(kind, obj, expected):
    assert quotas.usage(kind, obj) == expected


@pytest.mark.parametrize(
    ("counted", "obj", "expected"),
    [
        pytest.param(quota({"pods": "1"}), pod({}), True, id="no scopes"),
        pytest.param(quota({"configmaps": "1"}), pod({}), False, id="about others"),
        pytest.param(quota({"pods": "1"}, "Terminating"), pod({}, activeDeadlineSeconds=9), True, id="terminating"),
        pytest.param(quota({"pods": "1"}, "Terminating"), pod({}), False, id="not terminating"),
        pytest.param(quota({"pods": "1"}, "NotTerminating"), pod({}), True, id="not terminating wanted"),
        pytest.param(quota({"pods": "1"}, "BestEffort"), pod({}), True, id="best effort"),
        pytest.param(quota({"pods": "1"}, "BestEffort"), pod(FULL), False, id="not best effort"),
        pytest.param(quota({"pods": "1"}, "NotBestEffort", "Terminating"), pod(FULL), False, id="all must hold"),
        pytest.param(quota({"pods": "1"}, "PriorityClass"), pod({}), False, id="no class"),
        pytest.param(
            quota({"pods": "1"}, selector=[by_class("In", "high")]), pod({}, priorityClassName="high"), True, id="class"
        ),
        pytest.param(quota({"pods": "1"}, selector=[by_class("In", "high")]), pod({}), False, id="another class"),
        pytest.param(quota({"pods": "1"}, selector=[by_class("NotIn", "high")]), pod({}), True, id="class not in"),
        pytest.param(quota({"pods": "1"}, selector=[by_class("DoesNotExist")]), pod({}), True, id="class absent"),
    ],
)
def test_which_pods_count(counted, obj, expected):
    assert counted.counts_object(PODS, obj) is expected


def test_quotas_with_scopes_count_nothing_but_pods():
    assert not quota({"count/configmaps": "1"}, "Terminating").counts(CONFIGMAPS)


@pytest.mark.parametrize(
    ("counted", "used", "obj", "expected"),
    [
        pytest.param(
            quota({"pods": "5"}),
            {"pods": 5},
            pod({}),
            "exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5",
            id="full",
        ),
        pytest.param(quota({"pods": "5"}), {"pods": 4}, pod({}), "", id="room for one"),
        pytest.param(
            quota({"requests.cpu": "2", "requests.memory": "4Gi", "pods": "9"}),
            {"requests.cpu": 1750, "requests.memory": 2**31},
            pod({"requests": {"cpu": "500m", "memory": "1Gi"}}),
            "exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=1750m, limited: requests.cpu=2",
            id="only what is too much is named",
        ),
        pytest.param(
            quota({"memory": "1Gi", "cpu": "1"}),
            {"cpu": 1000, "memory": 2**30},
            pod({"requests": {"cpu": "1", "memory": "1Gi"}}),
            "exceeded quota: q, requested: cpu=1,memory=1Gi, used: cpu=1,memory=1Gi, limited: cpu=1,memory=1Gi",
            id="several",
        ),
        pytest.param(
            quota({"requests.cpu": "1", "limits.memory": "1Gi"}),
            {},
            pod({"limits": {"cpu": "1"}}, {}),
            "failed quota: q: must specify limits.memory for: c0,c1; requests.cpu for: c1",
            id="what must be said",
        ),
        pytest.param(
            quota({"requests.nvidia.com/gpu": "0"}),
            {},
            pod({"limits": {"nvidia.com/gpu": "1"}}),
            "exceeded quota: q, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=0,"
            " limited: requests.nvidia.com/gpu=0",
            id="extended resource",
        ),
        pytest.param(quota({"requests.nvidia.com/gpu": "0"}), {}, pod({}), "", id="extended resource not asked for"),
        pytest.param(quota({"pods": "1"}), {"pods": 9}, pod({}, phase="Succeeded"), "", id="uses nothing"),
    ],
)
def test_refusal(counted, used, obj, expected):
    assert quotas.refusal([counted], {"q": used}, PODS, obj, quotas.usage(PODS, obj)) == expected
