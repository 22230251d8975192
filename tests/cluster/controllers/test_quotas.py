"""The status of quotas and disruption budgets follows what happens in their namespace."""

from __future__ import annotations

import pytest

from cluster import api
from cluster.access import SYSTEM
from cluster.controllers.budgets import BudgetController
from cluster.controllers.quotas import QuotaController
from cluster.store import Create, Delete, Patch, store
from kube.resources import CONFIGMAPS, DISRUPTION_BUDGETS, NAMESPACES, PODS, RESOURCE_QUOTAS
from tests import builders

from . import running

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def quotas():
    store.write(Create(NAMESPACES, builders.namespace()))
    return running.started("quotas", QuotaController())


@pytest.fixture
def budgets():
    return running.started("budgets", BudgetController())


def settle(runner):
    """Run a consumer until it has nothing to do, as if the pauses between its counts were over."""
    running.settle(runner)
    runner.state.earliest.clear()
    while running.make_timers_due():
        running.settle(runner)
        runner.state.earliest.clear()


def quota(**hard):
    hard = {key.replace("_", "."): str(value) for key, value in hard.items()}
    store.write(Create(RESOURCE_QUOTAS, builders.of(RESOURCE_QUOTAS, "q", hard=hard)))


def pod(name):
    main = builders.container(requests={"cpu": "500m"})
    store.write(Create(PODS, builders.pod(name, main, labels={"app": "web"}, status={"phase": "Pending"})))


def status():
    return store.get(RESOURCE_QUOTAS, "default", "q").object["status"]


def used():
    return status()["used"]["pods"]


def test_status_of_a_new_quota_says_what_is_there_and_follows_the_spec(quotas):
    pod("a")
    settle(quotas)
    assert (quotas.state.stale, quotas.state.names) == ({}, {}), "a namespace without quotas costs nothing"
    store.write(Create(CONFIGMAPS, builders.config_map("m")))
    quota(pods=5, requests_cpu="2", configmaps=3, secrets=1)
    settle(quotas)
    assert status() == {
        "hard": {"pods": "5", "requests.cpu": "2", "configmaps": "3", "secrets": "1"},
        "used": {"pods": "1", "requests.cpu": "500m", "configmaps": "1", "secrets": "0"},
    }
    only_secrets = {"pods": None, "requests.cpu": None, "configmaps": None}
    store.write(Patch(RESOURCE_QUOTAS, "default", "q", {"spec": {"hard": only_secrets}}))
    settle(quotas)
    assert status() == {"hard": {"secrets": "1"}, "used": {"secrets": "0"}}
    store.write(Delete(RESOURCE_QUOTAS, "default", "q"))
    settle(quotas)
    assert quotas.state.names == {}


def test_status_follows_pods_that_come_end_and_go(quotas):
    quota(pods=5)
    settle(quotas)
    seen = [used()]
    for change in (
        lambda: (pod("a"), pod("b")),
        lambda: store.write(Patch(PODS, "default", "a", {"status": {"phase": "Succeeded"}}, "status")),
        lambda: store.write(Delete(PODS, "default", "b", grace=0)),
    ):
        change()
        settle(quotas)
        seen.append(used())
    assert seen == ["0", "2", "1", "0"]


def test_new_process_finds_what_changed_meanwhile(quotas):
    quota(pods=5)
    settle(quotas)
    pod("a")
    settle(running.started("quotas", QuotaController()))
    assert used() == "1"


def test_much_that_happens_is_counted_now_and_then(quotas):
    quota(pods=5)
    settle(quotas)
    pod("a")
    running.settle(quotas)
    pod("b")
    running.settle(quotas)
    counted = used()
    settle(quotas)
    assert (counted, used()) == ("1", "2")


def test_what_the_status_says_late_refuses_nothing(quotas):
    quota(pods=1)
    pod("a")
    settle(quotas)
    store.write(Delete(PODS, "default", "a", grace=0))
    assert used() == "1"
    api.create(SYSTEM, PODS, builders.pod("b"))


def budget(**bound):
    spec = {"selector": {"matchLabels": {"app": "web"}}, **bound}
    store.write(Create(DISRUPTION_BUDGETS, builders.of(DISRUPTION_BUDGETS, "web", **spec)))


def ready(name, value="True"):
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": value}]}
    store.write(Patch(PODS, "default", name, {"status": status}, "status"))


def room():
    """Return disruptions allowed, pods that are healthy, that must be and that are, and the reason of the condition."""
    stored = store.get(DISRUPTION_BUDGETS, "default", "web").object
    status = stored["status"]
    (found,) = status["conditions"]
    assert status["observedGeneration"] == stored["metadata"]["generation"]
    assert (found["type"], found["status"]) == ("DisruptionAllowed", str(found["reason"] == "SufficientPods"))
    names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return [*(status[name] for name in names), found["reason"]]


def test_budget_counts_the_pods_that_are_ready(budgets):
    budget(minAvailable=1)
    settle(budgets)
    before = store.get(DISRUPTION_BUDGETS, "default", "web").object["status"]["conditions"]
    for name in ("a", "b"):
        pod(name)
    settle(budgets)
    assert room() == [0, 0, 1, 2, "InsufficientPods"]
    assert store.get(DISRUPTION_BUDGETS, "default", "web").object["status"]["conditions"] == before
    for name in ("a", "b"):
        ready(name)
    settle(budgets)
    assert room() == [1, 2, 1, 2, "SufficientPods"]
    ready("a", "False")
    settle(budgets)
    assert room() == [0, 1, 1, 2, "InsufficientPods"]


def test_budget_follows_its_spec(budgets):
    for name in ("a", "b"):
        pod(name)
        ready(name)
    budget(maxUnavailable="50%")
    settle(budgets)
    assert room() == [1, 2, 1, 2, "SufficientPods"]
    store.write(Patch(DISRUPTION_BUDGETS, "default", "web", {"spec": {"maxUnavailable": 2}}))
    settle(budgets)
    assert room() == [2, 2, 0, 2, "SufficientPods"]
