"""How much CPU pods use of a namespace's quota is the same to everybody who asks: its status, and who refuses more."""

import re
from contextlib import suppress

import pytest

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.controllers.quotas import QuotaController
from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, store
from kube.errors import Forbidden
from kube.resources import NAMESPACES, PODS, RESOURCE_QUOTAS
from proof.modes.mode import Runner
from tests import builders
from tests.same import differing
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)
FAILS = Patch(PODS, "ns", "p", {"status": {"phase": "Failed"}}, "status")
GETS_NODE = Patch(PODS, "ns", "p", {"spec": {"nodeName": "n"}})


def asking(name, cpu, phase="Pending", **spec):
    container = builders.container(requests={"cpu": cpu})
    return builders.pod(name, container, namespace="ns", status={"phase": phase}, **spec)


def settle(controller):
    while controller.step():
        pass


def of_status():
    return int(store.get(RESOURCE_QUOTAS, "ns", "q").object["status"]["used"]["requests.cpu"])


def of_a_status_counted_anew():
    store.write(Patch(RESOURCE_QUOTAS, "ns", "q", {"status": {"used": None}}, "status"))
    settle(Runner(registry.get("quotas"), 0, QuotaController()))
    return of_status()


def of_a_refusal():
    with pytest.raises(Forbidden) as refused:
        api.create(access.SYSTEM, PODS, asking("large", "9"))
    return int(re.search(r"used: requests\.cpu=(\d+)", str(refused.value))[1])


def by_what_is_let_in():
    """One CPU after the other, until no more is."""
    with suppress(Forbidden):
        for number in range(20):
            api.create(access.SYSTEM, PODS, asking(f"more-{number}", "1"))
    return 8 - number


PLACES = {
    "status": of_status,
    "status, counted anew": of_a_status_counted_anew,
    "refusal of a pod": of_a_refusal,
    "pods that are let in": by_what_is_let_in,
}


@cases("phase, node, then, used", {
    "it runs": ("Running", "n", None, 3),
    "it starts": ("Pending", "n", None, 3),
    "it has no node yet": ("Pending", "", None, 3),
    "it gets its node": ("Pending", "", GETS_NODE, 3),
    "it has succeeded": ("Succeeded", "n", None, 0),
    "it fails": ("Running", "n", FAILS, 0),
    "it is to end, and has not yet": ("Running", "n", Delete(PODS, "ns", "p"), 3),
    "it is removed": ("Running", "n", Delete(PODS, "ns", "p", grace=0), 0),
    "nobody hears of it": ("Unknown", "n", None, 3),
})  # fmt: skip
def test_everybody_counts_the_same_as_used_of_a_quota(moved_clock, phase, node, then, used):
    bootstrap()
    store.write(Create(NAMESPACES, {"metadata": {"name": "ns"}}))
    store.write(Create(RESOURCE_QUOTAS, builders.of(RESOURCE_QUOTAS, "q", namespace="ns", hard={"requests.cpu": "8"})))
    store.write(Create(PODS, asking("p", "3", phase, nodeName=node)))
    controller = Runner(registry.get("quotas"), 0, QuotaController())
    settle(controller)
    if then:
        store.write(then)
        moved_clock.move(5)  # a namespace is counted now and then only
        settle(controller)
    assert differing(PLACES, used) == {}
