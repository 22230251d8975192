"""What operators do to nodes: cordon, taint, label, and let simulated ones fail."""

from __future__ import annotations

from collections.abc import Callable

from kube.meta import Object
from kube.resources import NODES
from proof.simulation.people.desk import Desk, wish
from proof.simulation.people.request import STRATEGIC, Request, name_of, patch, version_of
from proof.simulation.people.wishes.jobs import ZONES

FAIL_AT = "ui.volcano.sh/fail-at-seconds"
TAINT = "simulation.example/out"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MAX_AWAY = 0.15  # of all nodes are cordoned at a time; as many tainted, as many failing


def _notes(node: Object) -> Object:
    return node["metadata"].get("annotations") or {}


def _is_cordoned(node: Object) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _is_tainted(node: Object) -> bool:
    return any(each.get("key") == TAINT for each in _taints(node))


def _is_failing(node: Object) -> bool:
    return FAIL_AT in _notes(node)


def _is_simulated(node: Object) -> bool:
    return _notes(node).get("ui.volcano.sh/simulated") == "true"


def _taints(node: Object) -> list[Object]:
    return (node.get("spec") or {}).get("taints") or []


def _other(desk: Desk, is_so: Callable[[Object], bool]) -> Object | None:
    """Return a node that is not so, None when enough others are."""
    nodes = desk.all(NODES)
    already = sum(map(is_so, nodes))
    return desk.any(NODES, lambda each: not is_so(each)) if already < max(1, MAX_AWAY * len(nodes)) else None


def _patch(node: Object | None, change: Object, what: str) -> Request | None:
    if node is None:
        return None
    return patch("olga", NODES, node, change, f"olga {what} the node {name_of(node)}", STRATEGIC)


@wish(0.6)
def cordon_a_node(desk: Desk) -> Request | None:
    """No new pods."""
    return _patch(_other(desk, _is_cordoned), {"spec": {"unschedulable": True}}, "cordons")


@wish(0.9)
def uncordon_a_node(desk: Desk) -> Request | None:
    """New pods again."""
    return _patch(desk.any(NODES, _is_cordoned), {"spec": {"unschedulable": None}}, "uncordons")


def _with_taints(node: Object, taints: list[Object], what: str) -> Request | None:
    # The list is written whole, so only if nobody else has changed the node.
    change = {"metadata": {"resourceVersion": version_of(node)}, "spec": {"taints": taints}}
    return _patch(node, change, what)


@wish(0.5)
def taint_a_node(desk: Desk) -> Request | None:
    """For those who tolerate it only; NoExecute ends what runs there."""
    node, effect = _other(desk, _is_tainted), desk.one(EFFECTS)
    if node is None:
        return None
    taints = [*_taints(node), {"key": TAINT, "value": "true", "effect": effect}]
    return _with_taints(node, taints, f"taints ({effect})")


@wish(0.8)
def take_a_taint_away(desk: Desk) -> Request | None:
    """For all again."""
    node = desk.any(NODES, _is_tainted)
    if node is None:
        return None
    return _with_taints(node, [each for each in _taints(node) if each.get("key") != TAINT], "untaints")


@wish(0.4)
def fail_a_node(desk: Desk) -> Request | None:
    """A simulated node that will not be heard of."""
    node, delay = _other(desk, _is_failing), desk.random.randint(0, 60)
    if node is None or not _is_simulated(node):
        return None
    change = {"metadata": {"annotations": {FAIL_AT: str(delay)}}}
    return _patch(node, change, f"lets fail in {delay} s")


@wish(0.7)
def mend_a_node(desk: Desk) -> Request | None:
    """A node that failed comes back."""
    change = {"metadata": {"annotations": {FAIL_AT: None}}}
    return _patch(desk.any(NODES, _is_failing), change, "mends")


@wish(0.6)
def put_a_node_into_a_zone(desk: Desk) -> Request | None:
    """Or out of all zones."""
    zone = desk.one((*ZONES, *ZONES, None))
    return _patch(desk.any(NODES), {"metadata": {"labels": {"zone": zone}}}, f"puts into zone {zone}")
