from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import topology
from kube.resources import HYPER_NODES
from tests.builders import of
from tests.tables import parts

PLACES = {"a0": ("a", "1"), "a1": ("a", "1"), "b0": ("b", "1"), "b1": ("b", "2")}
NODES = {name: {"rack": rack, "zone": zone} for name, (rack, zone) in PLACES.items()}


def hyper_node(name, tier, *members, **spec):
    return of(HYPER_NODES, name, tier=tier, members=list(members), **spec)


def named(*names, kind="Node"):
    return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names]


def below(*names):
    return named(*names, kind="HyperNode")


def labelled(**labels):
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": labels}}}


def come_to(*objects, nodes=NODES):
    read = [topology.read(each) for each in objects]
    return {each.name: each for each in topology.domains({one.name: one for one in read}, nodes)}


@pytest.mark.shows("scheduler 3.12/HyperNodes")
@parts("kube/topology", "members")
def test_a_hyper_node_has_the_nodes_that_its_members_name(part):
    part.check(lambda text: list(come_to(hyper_node("h", 1, *yaml.safe_load(text)))["h"].nodes))


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
@parts("kube/topology", "odd")
def test_what_is_odd_about_a_hyper_node_is_told(part):
    def odd(text):
        objects = (hyper_node(each["name"], each["tier"], *each["members"]) for each in yaml.safe_load(text))
        found = come_to(*objects)
        return [f"{name} {each.reason}: {each.message}" for name in found for each in found[name].problems]

    part.check(odd)


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
