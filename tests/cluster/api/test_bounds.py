"""What limit ranges and quotas of a namespace refuse at the door."""

from __future__ import annotations

import pytest

from cluster import api
from cluster.access import SYSTEM
from cluster.store import Create, Delete, store
from kube.errors import AlreadyExists, ApiError, Forbidden
from kube.resources import (
    CLAIMS,
    CONFIGMAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    JOBS,
    LIMIT_RANGES,
    PODS,
    RESOURCE_QUOTAS,
    by_id,
)
from tests import builders

from .conftest import config_map, job

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _cluster(cluster):
    """Namespaces and a queue."""


def quota(**hard):
    hard = {key.replace("__", "/").replace("_", "."): str(value) for key, value in hard.items()}
    api.create(SYSTEM, RESOURCE_QUOTAS, builders.of(RESOURCE_QUOTAS, "q", hard=hard))


def pod(name, **requests):
    return builders.pod(name, builders.container(requests=requests))


def make(name, **requests):
    return api.create(SYSTEM, PODS, pod(name, **requests))


def refused(kind, obj):
    with pytest.raises(Forbidden) as error:
        api.create(SYSTEM, kind, obj)
    return error.value.message


def test_pod_is_refused_when_the_quota_of_its_namespace_is_used_up_until_there_is_room():
    quota(pods=1)
    for _ in range(2):
        api.create(SYSTEM, PODS, pod("a"), dry_run=True)
    make("a")
    with pytest.raises(AlreadyExists):
        make("a")
    used_up = 'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    assert refused(PODS, pod("b")) == used_up
    with pytest.raises(Forbidden):
        api.create(SYSTEM, PODS, pod("b"), dry_run=True)
    api.create(SYSTEM, PODS, builders.pod("b", namespace="other"))
    store.write(Delete(PODS, "default", "a", grace=0))
    make("b")


def test_limit_range_fills_in_what_the_quota_wants_to_know():
    quota(requests_cpu=2)
    assert refused(PODS, pod("a")).endswith("failed quota: q: must specify requests.cpu for: main")
    bounds = builders.of(LIMIT_RANGES, "d", limits=[{"type": "Container", "defaultRequest": {"cpu": "1"}}])
    api.create(SYSTEM, LIMIT_RANGES, bounds)
    assert make("a").object["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_batch_takes_what_there_is_room_for():
    quota(count__jobs_batch_volcano_sh=2)
    outcomes = api.create_many(SYSTEM, JOBS, [job(name) for name in "aabc"])
    assert [type(o) if isinstance(o, ApiError) else o.name for o in outcomes] == ["a", AlreadyExists, "b", Forbidden]


def test_every_kind_can_be_counted():
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
    spec = {"group": "quota.test", "scope": "Namespaced", "names": names, "versions": versions}
    api.create(SYSTEM, CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": "gadgets.quota.test"}, "spec": spec})
    quota(configmaps=1, count__configmaps=5, count__gadgets_quota_test=0)
    api.create(SYSTEM, CONFIGMAPS, config_map("a"))
    assert "requested: configmaps=1, used: configmaps=1" in refused(CONFIGMAPS, config_map("b"))
    gadget = {"metadata": {"name": "x", "namespace": "default"}}
    assert "count/gadgets.quota.test=1" in refused(by_id("gadgets.quota.test"), gadget)


def test_claim_may_not_grow_beyond_the_quota():
    quota(requests_storage="2Gi")
    wanted = {"requests": {"storage": "1Gi"}}
    claim = builders.of(CLAIMS, "data", accessModes=["ReadWriteOnce"], resources=wanted)
    stored = api.create(SYSTEM, CLAIMS, claim).object
    stored["spec"]["resources"]["requests"]["storage"] = "3Gi"
    with pytest.raises(Forbidden, match=r"requested: requests.storage=2Gi, used: requests.storage=1Gi"):
        api.update(SYSTEM, CLAIMS, stored)
    stored["spec"]["resources"]["requests"]["storage"] = "2Gi"
    api.update(SYSTEM, CLAIMS, stored)


def test_labels_change_while_the_quota_is_overdrawn():
    changed = make("a").object
    quota(pods=0)
    changed["metadata"]["labels"] = {"a": "b"}
    api.update(SYSTEM, PODS, changed)


def test_creation_without_a_quota_asks_once_for_them(django_assert_max_num_queries):
    store.write(Create(CONFIGMAPS, config_map("warm")))
    with django_assert_max_num_queries(30) as queries:
        api.create_many(SYSTEM, CONFIGMAPS, [config_map(f"m{n}") for n in range(50)])
    assert len([q for q in queries.captured_queries if "'resourcequotas'" in q["sql"]]) == 1
