"""What limit ranges and quotas of a namespace refuse at the door."""

from __future__ import annotations

import pytest

from cluster import access, api
from cluster.store import Create, Delete, Patch, store
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
from tests.cluster.api.conftest import config_map, job
from tests.cluster.rules.known import pod_spec

pytestmark = pytest.mark.django_db
SYSTEM = access.SYSTEM


@pytest.fixture(autouse=True)
def _cluster(cluster):
    """Namespaces and a queue."""


def quota(name="q", **hard):
    spec = {"hard": {key.replace("__", "/").replace("_", "."): str(value) for key, value in hard.items()}}
    return api.create(SYSTEM, RESOURCE_QUOTAS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def pod(name, **requests):
    spec = pod_spec()
    spec["containers"][0]["resources"] = {"requests": requests}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def make(name, **requests):
    return api.create(SYSTEM, PODS, pod(name, **requests))


def refused(kind, obj):
    with pytest.raises(Forbidden) as error:
        api.create(SYSTEM, kind, obj)
    return error.value.message


def test_pod_is_refused_when_the_quota_is_used_up():
    quota(pods=1)
    make("a")
    assert refused(PODS, pod("b")) == (
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    )


def test_namespace_without_a_quota_is_not_bound():
    quota(pods=0)
    api.create(SYSTEM, PODS, {**pod("b"), "metadata": {"name": "b", "namespace": "other"}})


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_pods_that_ended_leave_room_but_still_count_as_objects(end):
    quota(pods=1, count__pods=2)
    for name in ("a", "b"):
        make(name)
        store.write(Patch(PODS, "default", name, {"status": {"phase": end}}, "status"))
    assert "requested: count/pods=1, used: count/pods=2" in refused(PODS, pod("c"))


def test_room_comes_back_with_deletion():
    quota(pods=1)
    make("a")
    store.write(Delete(PODS, "default", "a", grace=0))
    make("b")


def test_amounts_are_added_up():
    quota(requests_cpu=2)
    make("a", cpu="1500m")
    assert "used: requests.cpu=1500m, limited: requests.cpu=2" in refused(PODS, pod("b", cpu="501m"))
    make("b", cpu="500m")


def test_limit_range_fills_in_what_the_quota_wants_to_know():
    quota(requests_cpu=2)
    assert refused(PODS, pod("a")).endswith("failed quota: q: must specify requests.cpu for: main")
    limits = [{"type": "Container", "defaultRequest": {"cpu": "1"}}]
    bounds = {"metadata": {"name": "d", "namespace": "default"}, "spec": {"limits": limits}}
    api.create(SYSTEM, LIMIT_RANGES, bounds)
    assert make("a").object["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_pod_that_exists_is_said_to_exist_also_when_the_quota_is_full():
    quota(pods=1)
    make("a")
    with pytest.raises(AlreadyExists):
        make("a")


def test_batch_takes_what_there_is_room_for():
    quota(count__jobs_batch_volcano_sh=2)
    names = ("a", "a", "b", "c")
    outcomes = api.create_many(SYSTEM, JOBS, [job(name) for name in names])
    assert [type(o) if isinstance(o, ApiError) else o.name for o in outcomes] == ["a", AlreadyExists, "b", Forbidden]


def test_dry_run_is_refused_alike_and_uses_nothing():
    quota(pods=1)
    for _ in range(2):
        api.create(SYSTEM, PODS, pod("a"), dry_run=True)
    make("a")
    with pytest.raises(Forbidden):
        api.create(SYSTEM, PODS, pod("b"), dry_run=True)


def test_every_kind_can_be_counted():
    quota(configmaps=1, count__configmaps=5)
    api.create(SYSTEM, CONFIGMAPS, config_map("a"))
    assert "requested: configmaps=1, used: configmaps=1" in refused(CONFIGMAPS, config_map("b"))


def test_custom_kinds_can_be_counted():
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "quota.test", "scope": "Namespaced", "names": names, "versions": versions}
    api.create(SYSTEM, CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": "gadgets.quota.test"}, "spec": spec})
    quota(count__gadgets_quota_test=0)
    gadget = {"metadata": {"name": "x", "namespace": "default"}}
    assert "count/gadgets.quota.test=1" in refused(by_id("gadgets.quota.test"), gadget)


def claim(storage):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": "data", "namespace": "default"}, "spec": spec}


def test_claim_may_not_grow_beyond_the_quota():
    quota(requests_storage="2Gi")
    stored = api.create(SYSTEM, CLAIMS, claim("1Gi")).object
    stored["spec"]["resources"]["requests"]["storage"] = "3Gi"
    with pytest.raises(Forbidden) as error:
        api.update(SYSTEM, CLAIMS, stored)
    assert "requested: requests.storage=2Gi, used: requests.storage=1Gi" in error.value.message
    stored["spec"]["resources"]["requests"]["storage"] = "2Gi"
    api.update(SYSTEM, CLAIMS, stored)


def test_labels_change_while_the_quota_is_overdrawn():
    stored = make("a")
    quota(pods=0)
    changed = stored.object
    changed["metadata"]["labels"] = {"a": "b"}
    api.update(SYSTEM, PODS, changed)


def test_creation_without_a_quota_asks_once_for_them(django_assert_max_num_queries):
    store.write(Create(CONFIGMAPS, config_map("warm")))
    with django_assert_max_num_queries(30) as queries:
        api.create_many(SYSTEM, CONFIGMAPS, [config_map(f"m{n}") for n in range(50)])
    about = [q for q in queries.captured_queries if "'resourcequotas'" in q["sql"]]
    assert len(about) == 1
