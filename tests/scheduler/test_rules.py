"""Which nodes a pod may use."""

from __future__ import annotations

import pytest

from kube.kinds.core import Taint
from scheduler.engine.cause import ExclusionKind
from scheduler.snapshot.node_selection import NodeFacts, NodeRule

from .world import World, group, node, pod, queue


def affinity(*terms):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def term(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def closed(*, selector=None, needs=None, tolerations=None, labels=None, taints=(), unschedulable=False, ready=True):
    node = NodeFacts("n1", labels or {}, [Taint(key=k, value=v, effect=e) for k, v, e in taints], unschedulable, ready)
    found = NodeRule(selector, needs, tolerations).exclusion(node)
    return found.kind if found else ExclusionKind.NONE


LABELS = {"zone": "a", "gen": "7"}


@pytest.mark.shows("scheduler 3.7/node affinity", "coscheduling 3/node affinity")
@pytest.mark.parametrize(
    ("needs", "matches"),
    [
        pytest.param(None, True, id="nothing needed"),
        pytest.param(affinity(term("zone", "In", "a", "b")), True, id="in"),
        pytest.param(affinity(term("zone", "In", "b")), False, id="not among"),
        pytest.param(affinity(term("zone", "NotIn", "b")), True, id="not in"),
        pytest.param(affinity(term("other", "NotIn", "b")), True, id="not in, label absent"),
        pytest.param(affinity(term("zone", "NotIn", "a")), False, id="not in, but is"),
        pytest.param(affinity(term("zone", "Exists")), True, id="exists"),
        pytest.param(affinity(term("other", "Exists")), False, id="exists, but absent"),
        pytest.param(affinity(term("other", "DoesNotExist")), True, id="does not exist"),
        pytest.param(affinity(term("zone", "DoesNotExist")), False, id="does not exist, but does"),
        pytest.param(affinity(term("gen", "Gt", "6")), True, id="greater"),
        pytest.param(affinity(term("gen", "Lt", "7")), False, id="less, but equal"),
        pytest.param(affinity(term("zone", "Gt", "6")), False, id="greater than what is no number"),
        pytest.param(affinity(term("gen", "Gt")), False, id="greater than nothing"),
        pytest.param(affinity(term("gen", "Near", "7")), False, id="unknown operator"),
        pytest.param(affinity(term("zone", "In", "b"), term("gen", "In", "7")), True, id="either term"),
        pytest.param(affinity({}), False, id="an empty term matches nothing"),
        pytest.param(affinity(), False, id="no terms match nothing"),
        pytest.param(
            affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}), True, id="name"
        ),
        pytest.param({"podAffinity": {"x": 1}}, True, id="affinity to pods is another matter"),
        pytest.param({"nodeAffinity": 7}, False, id="unreadable"),
    ],
)
def test_required_node_affinity(needs, matches):
    assert closed(needs=needs, labels=LABELS) == (ExclusionKind.NONE if matches else ExclusionKind.SELECTOR)


@pytest.mark.shows("scheduler 3.7/node affinity")
@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        pytest.param({"zone": "a"}, True, id="matches"),
        pytest.param({"zone": "a", "gen": "8"}, False, id="all must"),
        pytest.param({"rack": ""}, False, id="absent is not empty"),
    ],
)
def test_node_selector(selector, matches):
    assert closed(selector=selector, labels=LABELS) == (ExclusionKind.NONE if matches else ExclusionKind.SELECTOR)


@pytest.mark.shows("scheduler 3.7/taints", "scheduler 10.1/12")
@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param({"key": "k", "value": "v", "effect": "NoSchedule"}, True, id="equal by default"),
        pytest.param({"key": "k", "operator": "Equal", "value": "v"}, True, id="any effect"),
        pytest.param({"key": "k", "operator": "Equal", "value": "w"}, False, id="another value"),
        pytest.param({"key": "k", "operator": "Exists"}, True, id="any value"),
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, False, id="another effect"),
        pytest.param({"key": "j", "operator": "Exists"}, False, id="another key"),
        pytest.param({"value": "v"}, False, id="no key needs Exists"),
        pytest.param({"key": "k", "operator": "Gt", "value": "1"}, False, id="no number"),
    ],
)
def test_taints(toleration, tolerated):
    taints = [("k", "v", "NoSchedule")]
    assert closed(tolerations=[toleration], taints=taints) == (ExclusionKind.NONE if tolerated else ExclusionKind.TAINT)


@pytest.mark.parametrize(
    ("operator", "value", "tolerated"),
    [("Gt", "949", True), ("Gt", "950", False), ("Lt", "951", True), ("Lt", "950", False), ("Lt", "many", False)],
)
def test_taints_are_compared_as_numbers(operator, value, tolerated):
    toleration = {"key": "k", "operator": operator, "value": value}
    found = closed(tolerations=[toleration], taints=[("k", "950", "NoSchedule")])
    assert found == (ExclusionKind.NONE if tolerated else ExclusionKind.TAINT)


@pytest.mark.shows("scheduler 3.7/unschedulable")
@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        pytest.param({"taints": [("k", "", "PreferNoSchedule")]}, ExclusionKind.NONE, id="a wish closes nothing"),
        pytest.param({"taints": [("k", "", "NoExecute")]}, ExclusionKind.TAINT, id="NoExecute closes"),
        pytest.param({"unschedulable": True}, ExclusionKind.UNSCHEDULABLE, id="unschedulable"),
        pytest.param(
            {"unschedulable": True, "tolerations": [{"operator": "Exists"}]},
            ExclusionKind.NONE,
            id="unschedulable tolerated",
        ),
        pytest.param({"ready": False, "unschedulable": True}, ExclusionKind.NOT_READY, id="not ready comes first"),
        pytest.param(
            {"ready": False, "selector": {"a": "b"}}, ExclusionKind.SELECTOR, id="the selector comes before all"
        ),
    ],
)
def test_the_firmest_reason_is_given(facts, kind):
    assert closed(**facts) == kind


@pytest.mark.parametrize(
    ("taints", "tolerations", "count"),
    [
        pytest.param([], [], 0, id="none"),
        pytest.param([("k", "", "NoSchedule"), ("l", "", "NoExecute")], [], 0, id="taints that close"),
        pytest.param([("k", "", "PreferNoSchedule"), ("l", "", "PreferNoSchedule")], [], 2, id="two"),
        pytest.param(
            [("k", "", "PreferNoSchedule"), ("l", "", "PreferNoSchedule")],
            [{"key": "k", "operator": "Exists"}],
            1,
            id="one of them tolerated",
        ),
    ],
)
def test_nodes_are_avoided_for_taints_that_are_wishes(taints, tolerations, count):
    rule = NodeRule(None, None, tolerations)
    facts = NodeFacts("n", {}, [Taint(key=k, value=v, effect=e) for k, v, e in taints], False, True)
    assert rule.avoided(facts) == count


@pytest.mark.shows("scheduler 3.8/tainttoleration.weight")
def test_a_node_that_is_avoided_is_used_last():
    wish = [{"key": "k", "effect": "PreferNoSchedule"}]
    world = World(queue(), node("n1", "1", taints=wish), node("n2", "4"), group(minimum=5))
    world.put(*(pod(f"g-{n}") for n in range(5)))
    world.cycle()
    assert sorted(world.where().values()) == ["n1", "n2", "n2", "n2", "n2"]
    world = World(queue(), node("n1", "1", taints=wish), node("n2", "4"), group(), pod("g-0"))
    world.cycle()
    assert world.where() == {"g-0": "n2"}
    tolerant = pod("h-0", "h", tolerations=[{"operator": "Exists"}])
    world.put(group("h"), tolerant)
    world.cycle()
    assert world.where()["h-0"] == "n1", "the fullest, if it were not for the taint"
