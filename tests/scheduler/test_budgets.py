"""Who is not evicted for others: by budgets for disruptions, and what was evicted before and has started again."""

from __future__ import annotations

import copy
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.rules import disruption
from kube import resources
from kube.errors import ApiError
from kube.evictions import FIRST_EVICTED
from kube.meta import now_text
from kube.resources import POD_GROUPS
from tests.campaign import examples

from .world import START, World, situation

READY = {"type": "Ready", "status": "True"}


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


def test_it_is_noted_once_on_whose_pods_are_evicted():
    here = World("node n1 8 pods:99; queue a; queue b; group r 1/8x1 queue=a @n1; group x 4x1 queue=b")
    here.cycle(seconds=7)

    def noted(name):
        return (here.get(POD_GROUPS, name)["metadata"].get("annotations") or {}).get(FIRST_EVICTED)

    assert (noted("r"), noted("x")) == (now_text(START + 7000), None)
    here.gone()
    here.cycle(seconds=1)
    here.put("queue b deserved=8; queue a deserved=0; group more 2x1 queue=b")
    here.cycle(seconds=1)
    assert len(here.going()) == 2, "those that stayed were not evicted, so nothing protects them"
    assert noted("r") == now_text(START + 7000)


@pytest.mark.shows("scheduler 2.5/again")
@pytest.mark.parametrize(("arguments", "seconds"), [("{}", 300), ("{minRuntime: 40s}", 40), ("{minRuntime: 0}", 0)])
def test_two_queues_that_are_owed_in_turn_do_not_take_a_node_from_each_other_all_the_time(arguments, seconds):
    """The one node is deserved by one queue, then by the other, each 10 s."""
    here = World("node n1 1; queue a; queue b; group x 1x1 queue=a; group y 1x1 queue=b")
    section = f"configurations: [{{name: reclaim, arguments: {arguments}}}]"
    here.put(f"conf actions: 'enqueue, allocate, reclaim, preempt', {section}")
    gone = []
    for turn in range(120):
        parts = {"a": "01"[turn % 2], "b": "10"[turn % 2]}
        here.put(*(f"queue {name} deserved={cpu}" for name, cpu in parts.items()))
        for _ in range(2):
            decisions = here.cycle(seconds=5)
            for each in decisions.evictions:
                gone.append((here.now, each.pod.name))
                here.gone(each.pod.name)
                here.put(f"pod {each.pod.name} group={each.pod.name[0]}")
    times = [at for at, _ in gone]
    assert all(later - at >= seconds * 1000 for at, later in pairwise(times[1:]))
    least = 1200 // (seconds + 20) if seconds else 100
    assert least <= len(gone) <= (2 + 1200 // seconds if seconds else 120), "nor does one keep it for good"
