"""Budgets for disruptions, and pods that have just started: who is not evicted for others."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.rules import disruption
from kube import resources
from kube.errors import ApiError
from tests.campaign import examples

from .blocks import blocks
from .world import Story, World, situation

READY = {"type": "Ready", "status": "True"}


@pytest.mark.shows("scheduler 3.11 pdb/budgets", "scheduler 3.11 pdb/no labels", "scheduler 3.11 cdp/cooldown-time")
@blocks("budgets")
def test_who_goes_and_who_is_protected(block, golden):
    golden(block, Story().tell, by_line=True)


def test_a_budget_that_is_gone_is_forgotten():
    here = World("node n1; budget web minAvailable=4 +app=web")
    here.remove(resources.DISRUPTION_BUDGETS, "web")
    assert here.snapshot.budgets == {}


@st.composite
def protected_worlds(draw):
    """Gangs of low priority with labels and readiness, budgets about them, and one that waits."""
    objects = []
    for number in range(draw(st.integers(1, 3))):
        name, count = f"r{number}", draw(st.integers(1, 3))
        minimum, place = draw(st.integers(0, count)), draw(st.sampled_from(["n1", "n2"]))
        gang = [*situation(f"group {name} {minimum}/{count}x1 low @{place}")]
        for _, obj in gang[-count:]:
            obj["metadata"]["labels"] = {"app": draw(st.sampled_from(["web", "db"])), "of": name}
            obj["status"]["conditions"] = [READY] if draw(st.booleans()) else []
        objects += gang
    budgets = []
    for number in range(draw(st.integers(0, 3))):
        field = draw(st.sampled_from(["minAvailable", "maxUnavailable"]))
        value = draw(st.sampled_from([0, 1, 2, 3, "50%", "34%"]))
        selector = draw(st.sampled_from([{"app": "web"}, {"app": "db"}, {"of": "r0"}]))
        always = draw(st.sampled_from([{}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}]))
        spec = {"selector": {"matchLabels": selector}, field: value, **always}
        metadata = {"name": f"b{number}", "namespace": "ns"}
        budgets.append((resources.DISRUPTION_BUDGETS, {"metadata": metadata, "spec": spec}))
    return objects, budgets, f"group g {draw(st.integers(1, 3))}x{draw(st.integers(1, 2))} high"


def full(objects, *others):
    """Nodes with as many CPUs as those need who run on one of them: no more, so that others have to go."""
    use = Counter(obj["spec"]["nodeName"] for kind, obj in objects if kind is resources.PODS)
    nodes = f"node n1..2 {max(use.values())} pods:99; queue default reclaimable=false"
    return World(nodes, *copy.deepcopy(objects), *others)


def permits(pods, budgets, victims):
    """Ask the rule of `pods/eviction` about one victim after the other, for each budget, as if each was gone."""
    pods = copy.deepcopy(pods)
    by_name = {each["metadata"]["name"]: each for each in pods}
    # Who is not ready is asked first: while others are going there may no longer be enough of them.
    for name in sorted(victims, key=lambda each: disruption.is_ready(by_name[each])):
        for each in budgets:
            try:
                disruption.check(by_name[name], [each], pods)
            except ApiError:
                return False
        by_name[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return True


@pytest.mark.shows("scheduler 3.11 pdb/budgets")
@examples(200)
@given(protected_worlds())
def test_evictions_are_those_that_the_eviction_api_would_allow(scene):
    objects, budgets, wanted = scene
    here = full(objects, *budgets, wanted)
    pods = [obj for key, obj in here.objects.items() if key[0] == "pods" and obj["spec"].get("nodeName")]
    before = copy.deepcopy(pods)
    here.cycle()
    assert permits(before, [obj for _, obj in budgets], here.going())


@examples(100)
@given(protected_worlds())
def test_budgets_that_allow_everything_change_nothing(scene):
    objects, _, wanted = scene
    one, other = (full(objects, wanted) for _ in range(2))
    other.put("budget loose minAvailable=9 +app=none")
    one.cycle()
    other.cycle()
    assert one.going() == other.going()
