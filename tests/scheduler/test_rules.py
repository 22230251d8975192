"""Which nodes a pod may use."""

from __future__ import annotations

import pytest

from kube.kinds.core import Taint
from scheduler.engine.cause import ExclusionKind
from scheduler.snapshot.node_selection import NodeFacts, NodeRule
from tests.tables import cases


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
@cases("needs, matches", {
    "nothing needed": (None, True),
    "in": (affinity(term("zone", "In", "a", "b")), True),
    "not among": (affinity(term("zone", "In", "b")), False),
    "not in": (affinity(term("zone", "NotIn", "b")), True),
    "not in, label absent": (affinity(term("other", "NotIn", "b")), True),
    "not in, but is": (affinity(term("zone", "NotIn", "a")), False),
    "exists": (affinity(term("zone", "Exists")), True),
    "exists, but absent": (affinity(term("other", "Exists")), False),
    "does not exist": (affinity(term("other", "DoesNotExist")), True),
    "does not exist, but does": (affinity(term("zone", "DoesNotExist")), False),
    "greater": (affinity(term("gen", "Gt", "6")), True),
    "less, but equal": (affinity(term("gen", "Lt", "7")), False),
    "greater than what is no number": (affinity(term("zone", "Gt", "6")), False),
    "greater than nothing": (affinity(term("gen", "Gt")), False),
    "unknown operator": (affinity(term("gen", "Near", "7")), False),
    "either term": (affinity(term("zone", "In", "b"), term("gen", "In", "7")), True),
    "an empty term matches nothing": (affinity({}), False),
    "no terms match nothing": (affinity(), False),
    "name": (affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}), True),
    "affinity to pods is another matter": ({"podAffinity": {"x": 1}}, True),
    "unreadable": ({"nodeAffinity": 7}, False),
})  # fmt: skip
def test_required_node_affinity(needs, matches):
    assert closed(needs=needs, labels=LABELS) == (ExclusionKind.NONE if matches else ExclusionKind.SELECTOR)


@pytest.mark.shows("scheduler 3.7/node affinity")
@cases("selector, matches", {
    "matches": ({"zone": "a"}, True),
    "all must": ({"zone": "a", "gen": "8"}, False),
    "absent is not empty": ({"rack": ""}, False),
})  # fmt: skip
def test_node_selector(selector, matches):
    assert closed(selector=selector, labels=LABELS) == (ExclusionKind.NONE if matches else ExclusionKind.SELECTOR)


@pytest.mark.shows("scheduler 3.7/taints", "scheduler 10.1/12")
@cases("toleration, tolerated", {
    "equal by default": ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
    "any effect": ({"key": "k", "operator": "Equal", "value": "v"}, True),
    "another value": ({"key": "k", "operator": "Equal", "value": "w"}, False),
    "any value": ({"key": "k", "operator": "Exists"}, True),
    "everything": ({"operator": "Exists"}, True),
    "another effect": ({"operator": "Exists", "effect": "NoExecute"}, False),
    "another key": ({"key": "j", "operator": "Exists"}, False),
    "no key needs Exists": ({"value": "v"}, False),
    "no number": ({"key": "k", "operator": "Gt", "value": "1"}, False),
})  # fmt: skip
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
@cases("facts, kind", {
    "a wish closes nothing": ({"taints": [("k", "", "PreferNoSchedule")]}, ExclusionKind.NONE),
    "NoExecute closes": ({"taints": [("k", "", "NoExecute")]}, ExclusionKind.TAINT),
    "unschedulable": ({"unschedulable": True}, ExclusionKind.UNSCHEDULABLE),
    "unschedulable tolerated": ({"unschedulable": True, "tolerations": [{"operator": "Exists"}]}, ExclusionKind.NONE),
    "not ready comes first": ({"ready": False, "unschedulable": True}, ExclusionKind.NOT_READY),
    "the selector comes before all": ({"ready": False, "selector": {"a": "b"}}, ExclusionKind.SELECTOR),
})  # fmt: skip
def test_the_firmest_reason_is_given(facts, kind):
    assert closed(**facts) == kind


@cases("taints, tolerations, count", {
    "none": ([], [], 0),
    "taints that close": ([("k", "", "NoSchedule"), ("l", "", "NoExecute")], [], 0),
    "two": ([("k", "", "PreferNoSchedule"), ("l", "", "PreferNoSchedule")], [], 2),
    "one of them tolerated":
        ([("k", "", "PreferNoSchedule"), ("l", "", "PreferNoSchedule")], [{"key": "k", "operator": "Exists"}], 1),
})  # fmt: skip
def test_nodes_are_avoided_for_taints_that_are_wishes(taints, tolerations, count):
    rule = NodeRule(None, None, tolerations)
    facts = NodeFacts("n", {}, [Taint(key=k, value=v, effect=e) for k, v, e in taints], False, True)
    assert rule.avoided(facts) == count
