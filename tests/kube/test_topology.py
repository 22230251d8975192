from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import topology
from kube.resources import HYPER_NODES
from tests.builders import of
from tests.tables import cases

PLACES = {"a0": ("a", "1"), "a1": ("a", "1"), "b0": ("b", "1"), "b1": ("b", "2")}
NODES = {name: {"rack": rack, "zone": zone} for name, (rack, zone) in PLACES.items()}


def hyper_node(name, tier, *members, **spec):
    return of(HYPER_NODES, name, tier=tier, members=list(members), **spec)


def named(*names, kind="Node"):
    return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names]


def below(*names):
    return named(*names, kind="HyperNode")


def pattern(text, kind="Node"):
    return {"type": kind, "selector": {"regexMatch": {"pattern": text}}}


def labelled(**labels):
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": labels}}}


def come_to(*objects, nodes=NODES):
    read = [topology.read(each) for each in objects]
    return {each.name: each for each in topology.domains({one.name: one for one in read}, nodes)}


@pytest.mark.shows("scheduler 3.12/HyperNodes")
@cases("members, expected", {
    "by name": (named("a0", "b1"), ("a0", "b1")),
    "a node that is not there": (named("a0", "gone"), ("a0",)),
    "by a pattern": ([pattern("^a")], ("a0", "a1")),
    "a pattern found anywhere in the name": ([pattern("1")], ("a1", "b1")),
    "no pattern at all": ([pattern("(")], ()),
    "by labels": ([labelled(rack="a", zone="1")], ("a0", "a1")),
    "several members together": ([labelled(rack="b"), *named("b0", "a0")], ("a0", "b0", "b1")),
    "a selector that cannot be read": ([{"type": "Node", "selector": {"labelMatch": {"matchExpressions": 1}}}], ()),
    "HyperNodes by a pattern": ([pattern("a", "HyperNode")], ()),
})  # fmt: skip
def test_a_hyper_node_has_the_nodes_that_its_members_name(members, expected):
    assert come_to(hyper_node("h", 1, *members))["h"].nodes == expected


def test_a_hyper_node_has_the_nodes_of_those_below_it():
    found = come_to(
        hyper_node("row", 2, *below("rack-a", "rack-b")),
        hyper_node("rack-a", 1, labelled(rack="a"), tierName="rack"),
        hyper_node("rack-b", 1, labelled(rack="b")),
        hyper_node("all", 7, *below("row")),
        hyper_node("other", 8, *named("a0")),  # nodes may be in HyperNodes of several tiers
    )
    assert list(found) == ["rack-a", "rack-b", "row", "all", "other"]
    assert found["all"].nodes == found["row"].nodes == tuple(sorted(NODES))
    assert found["row"].below == ("rack-a", "rack-b")
    assert found["rack-a"].tier_name == "rack"
    assert not any(each.problems for each in found.values())


@pytest.mark.shows("scheduler 3.12/HyperNodes")
@cases("objects, about, reason, words", {
    "node missing": ([hyper_node("h", 1, *named("gone"), *named("a0"))], "h", "MemberNotFound", "no node gone"),
    "HyperNode missing": ([hyper_node("h", 1, *below("gone"), *named("a0"))], "h", "MemberNotFound",
        "no HyperNode gone"),
    "itself": ([hyper_node("h", 1, *below("h"))], "h", "Circle", "HyperNode h has it"),
    "a circle of three": (
        [hyper_node("h", 3, *below("i")), hyper_node("i", 2, *below("j")), hyper_node("j", 1, *below("h"))], "j",
        "Circle", "HyperNode h has it"),
    "the same tier": ([hyper_node("h", 1, *below("i")), hyper_node("i", 1, *named("a0"))], "h", "TierNotLower",
        "tier 1, which is not below 1"),
    "a node in two": ([hyper_node("h", 1, *named("a0", "a1")), hyper_node("i", 1, *named("a1"))], "i", "Overlap",
        "Node a1 is in HyperNode h of the same tier"),
    "no nodes": ([hyper_node("h", 1, pattern("^z"))], "h", "NoNodes", "a node of the cluster"),
})  # fmt: skip
def test_what_is_odd_about_a_hyper_node_is_told(objects, about, reason, words):
    problems = come_to(*objects)[about].problems
    assert [each.message for each in problems if each.reason == reason and words in each.message]


@given(
    st.dictionaries(
        st.sampled_from("hijkl"),
        st.tuples(st.integers(0, 3), st.sets(st.sampled_from("hijkl")), st.sets(st.sampled_from(sorted(NODES)))),
    )
)
def test_nodes_are_those_to_which_ways_of_falling_tiers_lead(written):
    """An oracle that walks downwards from each HyperNode, where the code goes upwards tier by tier."""

    def reached(name):
        tier, members, nodes = written[name]
        lower = (one for one in members if one in written and written[one][0] < tier)
        return set(nodes).union(*(reached(one) for one in lower))

    objects = [
        hyper_node(name, tier, *below(*sorted(members)), *named(*sorted(nodes)))
        for name, (tier, members, nodes) in written.items()
    ]
    found = come_to(*objects)
    assert {name: set(each.nodes) for name, each in found.items()} == {name: reached(name) for name in written}
    order = [(each.tier, each.name) for each in found.values()]
    assert order == sorted(order)
