"""Which HyperNodes are stored (reference: volcano-queue-podgroup-cli §7.4)."""

from __future__ import annotations

from kube.resources import HYPER_NODES
from tests.tables import cases

from .known import admit, messages


def hyper_node(*members, **spec):
    about = {"apiVersion": HYPER_NODES.api_version, "kind": HYPER_NODES.kind, "metadata": {"name": "rack"}}
    return {**about, "spec": {"tier": 1, "members": list(members), **spec}}


def member(type="Node", **selector):  # noqa: A002  the field's name
    return {"type": type, "selector": selector}


NAME = {"exactMatch": {"name": "a"}}


@cases("good", {
    "a node by its name": hyper_node(member(**NAME)),
    "a HyperNode by its name": hyper_node(member("HyperNode", **NAME), tier=0, tierName="row"),
    "nodes by a pattern": hyper_node(member(regexMatch={"pattern": "^a[0-9]+$"})),
    "nodes by labels": hyper_node(member(labelMatch={"matchLabels": {"rack": "a"}})),
})  # fmt: skip
def test_what_is_right_is_stored(good):
    assert messages(HYPER_NODES, good) == []


@cases("wrong, field, words", {
    "no members": (hyper_node(), "spec.members", "at least one member"),
    "no tier": (hyper_node(member(**NAME), tier=None), "spec.tier", "Required"),
    "a tier below 0": (hyper_node(member(**NAME), tier=-1), "spec.tier", "greater than or equal to 0"),
    "another type": (hyper_node(member("Rack", **NAME)), "spec.members[0].type", "supported values"),
    "no selector": (hyper_node(member(**NAME), member()), "spec.members[1].selector", "exactly one of"),
    "two selectors": (hyper_node(member(**NAME, labelMatch={})), "spec.members[0].selector", "remove the others"),
    "no name": (hyper_node(member(exactMatch={"name": "A b"})), "spec.members[0].selector.exactMatch.name", ""),
    "no pattern": (hyper_node(member(regexMatch={"pattern": "("})), "spec.members[0].selector.regexMatch.pattern",
        "member regexMatch pattern is invalid: missing"),
    "no labels": (hyper_node(member(labelMatch={"matchLabels": {"a b": "c"}})), "spec.members[0].selector.labelMatch",
        ""),
    "itself": (hyper_node(member("HyperNode", exactMatch={"name": "rack"})), "spec.members[0].selector.exactMatch.name",
        "member of itself"),
})  # fmt: skip
def test_what_is_wrong_is_refused_at_its_field(wrong, field, words):
    if wrong["spec"]["tier"] is None:
        del wrong["spec"]["tier"]
    told = [message for message in messages(HYPER_NODES, wrong) if message.startswith(f"{field}: ")]
    assert any(words in message for message in told)


def test_hyper_nodes_that_are_not_named_are_warned_about():
    odd = hyper_node(member("HyperNode", regexMatch={"pattern": "^rack-"}))
    (warning,) = admit(HYPER_NODES, odd, warnings=True).warnings
    assert warning.startswith("spec.members[0].selector: HyperNodes are members by exactMatch only")
