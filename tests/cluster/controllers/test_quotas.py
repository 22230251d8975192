"""The status of quotas and disruption budgets follows what happens in their namespace."""

from __future__ import annotations

import pytest
from django.db import connection

from cluster import api, clock
from cluster.access import SYSTEM
from cluster.controllers.budgets import BudgetController
from cluster.controllers.quotas import QuotaController
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Patch, store
from kube.resources import CONFIGMAPS, DISRUPTION_BUDGETS, NAMESPACES, PODS, RESOURCE_QUOTAS
from tests.cluster.api.conftest import config_map, namespace
from tests.cluster.rules.known import pod_spec

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def quotas():
    store.write(Create(NAMESPACES, namespace("default")))
    return started("quotas", QuotaController)


@pytest.fixture
def budgets():
    return started("budgets", BudgetController)


def started(name, consumer):
    runner = Runner(registry.get(name), 0, consumer())
    settle(runner)
    return runner


def settle(runner):
    """Run a consumer until it has nothing to do, as if the pauses between its counts were over."""
    while True:
        while runner.step():
            pass
        runner.state.earliest.clear()
        with connection.cursor() as cursor:
            cursor.execute("UPDATE cluster_timer SET due = %s", [clock.milliseconds() - 1])
            if cursor.rowcount == 0:
                return


def quota(**hard):
    metadata = {"name": "q", "namespace": "default"}
    written = {key.replace("_", "."): str(value) for key, value in hard.items()}
    store.write(Create(RESOURCE_QUOTAS, {"metadata": metadata, "spec": {"hard": written}}))


def pod(name, **fields):
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    spec = pod_spec()
    spec["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}
    store.write(Create(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}, **fields}))


def status():
    return store.get(RESOURCE_QUOTAS, "default", "q").object.get("status")


def test_status_of_a_new_quota_says_what_is_there(quotas):
    pod("a")
    store.write(Create(CONFIGMAPS, config_map("m")))
    quota(pods=5, requests_cpu="2", configmaps=3, secrets=1)
    settle(quotas)
    assert status() == {
        "hard": {"pods": "5", "requests.cpu": "2", "configmaps": "3", "secrets": "1"},
        "used": {"pods": "1", "requests.cpu": "500m", "configmaps": "1", "secrets": "0"},
    }


def test_status_follows_pods_that_come_end_and_go(quotas):
    quota(pods=5)
    settle(quotas)
    seen = [status()["used"]["pods"]]
    for name in ("a", "b"):
        pod(name)
    settle(quotas)
    seen.append(status()["used"]["pods"])
    store.write(Patch(PODS, "default", "a", {"status": {"phase": "Succeeded"}}, "status"))
    settle(quotas)
    seen.append(status()["used"]["pods"])
    store.write(Delete(PODS, "default", "b", grace=0))
    settle(quotas)
    assert [*seen, status()["used"]["pods"]] == ["0", "2", "1", "0"]


def test_status_follows_the_spec(quotas):
    quota(pods=5)
    settle(quotas)
    store.write(Patch(RESOURCE_QUOTAS, "default", "q", {"spec": {"hard": {"secrets": "1", "pods": None}}}))
    settle(quotas)
    assert status() == {"hard": {"secrets": "1"}, "used": {"secrets": "0"}}


def test_new_process_finds_what_changed_meanwhile(quotas):
    quota(pods=5)
    settle(quotas)
    pod("a")
    settle(started("quotas", QuotaController))
    assert status()["used"] == {"pods": "1"}


def test_namespaces_without_quotas_cost_nothing(quotas):
    pod("a")
    settle(quotas)
    assert quotas.state.stale == {}
    assert quotas.state.names == {}


def test_much_that_happens_is_counted_now_and_then(quotas):
    quota(pods=5)
    settle(quotas)
    pod("a")
    while quotas.step():
        pass
    pod("b")
    while quotas.step():
        pass
    counted = status()["used"]["pods"]
    settle(quotas)
    assert (counted, status()["used"]["pods"]) == ("1", "2")


def test_quota_that_went_is_forgotten(quotas):
    quota(pods=5)
    settle(quotas)
    store.write(Delete(RESOURCE_QUOTAS, "default", "q"))
    settle(quotas)
    assert quotas.state.names == {}


def test_what_the_status_says_late_refuses_nothing(quotas):
    quota(pods=1)
    pod("a")
    settle(quotas)
    store.write(Delete(PODS, "default", "a", grace=0))
    assert status()["used"] == {"pods": "1"}
    api.create(SYSTEM, PODS, {"metadata": {"name": "b", "namespace": "default"}, "spec": pod_spec()})


def budget(**spec):
    metadata = {"name": "web", "namespace": "default"}
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    store.write(Create(DISRUPTION_BUDGETS, {"metadata": metadata, "spec": spec}))


def ready(name, value="True"):
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": value}]}
    store.write(Patch(PODS, "default", name, {"status": status}, "status"))


def room():
    status = store.get(DISRUPTION_BUDGETS, "default", "web").object["status"]
    names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return [status[name] for name in names]


def condition():
    stored = store.get(DISRUPTION_BUDGETS, "default", "web").object
    (found,) = stored["status"]["conditions"]
    assert stored["status"]["observedGeneration"] == stored["metadata"]["generation"]
    return found["type"], found["status"], found["reason"]


def test_budget_counts_the_pods_that_are_ready(budgets):
    budget(minAvailable=1)
    for name in ("a", "b"):
        pod(name)
    settle(budgets)
    assert room() == [0, 0, 1, 2]
    assert condition() == ("DisruptionAllowed", "False", "InsufficientPods")
    for name in ("a", "b"):
        ready(name)
    settle(budgets)
    assert room() == [1, 2, 1, 2]
    assert condition() == ("DisruptionAllowed", "True", "SufficientPods")
    ready("a", "False")
    settle(budgets)
    assert room() == [0, 1, 1, 2]


def test_budget_follows_its_spec(budgets):
    for name in ("a", "b"):
        pod(name)
        ready(name)
    budget(maxUnavailable="50%")
    settle(budgets)
    assert room() == [1, 2, 1, 2]
    store.write(Patch(DISRUPTION_BUDGETS, "default", "web", {"spec": {"maxUnavailable": 2}}))
    settle(budgets)
    assert room() == [2, 2, 0, 2]


def test_moment_of_the_condition_stays_while_it_does(budgets):
    budget(minAvailable=1)
    settle(budgets)
    before = store.get(DISRUPTION_BUDGETS, "default", "web")
    pod("a")
    settle(budgets)
    after = store.get(DISRUPTION_BUDGETS, "default", "web")
    assert before.object["status"]["conditions"] == after.object["status"]["conditions"]
