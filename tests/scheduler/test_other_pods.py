"""Host ports, affinity between pods and topology spread: Kubernetes' rules on Kubernetes' objects."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.relations import Relations
from scheduler.engine.wishes import DEFAULT
from tests.campaign import examples

from . import demanding
from .definitions import Judge, terms
from .demanding import ZONE
from .world import World, group, queue


def with_nodes(draw, most=4):
    return [draw(demanding.nodes(f"n{number}")) for number in range(draw(st.integers(1, most)))]


def placed_pods(draw, nodes, most=5):
    made = []
    for number in range(draw(st.integers(0, most))):
        on = draw(st.sampled_from([obj["metadata"]["name"] for _, obj in nodes]))
        more = draw(st.sampled_from([{}, {}, {}, {"deleted": "2026-01-01T00:00:00Z"}]))
        phase = draw(st.sampled_from(["Running", "Running", "Pending", "Succeeded"]))
        made.append(draw(demanding.pods(f"r-{number}", node=on, phase=phase, **more)))
    return made


@st.composite
def one_waits(draw):
    nodes = with_nodes(draw)
    more = draw(st.sampled_from([{}, {}, {"nodeSelector": {ZONE: "a"}}, {"tolerations": [{"operator": "Exists"}]}]))
    waiting = draw(demanding.pods("g-0", "g", **more))
    objects = [*nodes, *draw(st.lists(demanding.namespaces, max_size=2)), *placed_pods(draw, nodes), waiting]
    return draw(st.permutations(objects))


@pytest.mark.shows("scheduler 3.7/ports", "scheduler 3.7/pod affinity", "scheduler 10.1/12")
@examples(600)
@given(one_waits())
def test_nodes_are_open_to_a_pod_as_kubernetes_defines_it(objects):
    world = World(queue(), group(), *objects)
    snapshot, judge = world.snapshot, Judge(world)
    waiting = next(obj for _, obj in objects if obj["metadata"]["name"] == "g-0")
    ties = snapshot.nodes.pod_class(snapshot.pods["ns/g-0"].shape, DEFAULT).ties
    names = snapshot.nodes.names()
    open_nodes = [True] * len(names)
    if ties is not None and ties.rules:
        open_nodes = Relations(snapshot.nodes.ground()).open_nodes(ties).tolist()
    selector = waiting["spec"].get("nodeSelector") or {}
    for name, is_open in zip(names, open_nodes, strict=True):
        labels = world.objects["nodes", "", name]["metadata"]["labels"]
        taints = world.objects["nodes", "", name]["spec"]["taints"]
        if selector.items() <= labels.items() and (not taints or waiting["spec"].get("tolerations")):
            assert is_open == (not judge.broken(waiting, name)), (name, judge.broken(waiting, name))


@st.composite
def gangs_wait(draw):
    nodes = with_nodes(draw, 5)
    objects = [*nodes, *placed_pods(draw, nodes, 3), *draw(st.lists(demanding.namespaces, max_size=2))]
    for number in range(draw(st.integers(1, 3))):
        name = f"g{number}"
        templates = [draw(demanding.pods(name, name)) for _ in range(draw(st.integers(1, 2)))]
        count = draw(st.integers(1, 4))
        objects.append(group(name, draw(st.integers(0, count))))
        for index in range(count):
            kind, made = copy.deepcopy(templates[index % len(templates)])
            made["metadata"]["name"] = f"{name}-{index}"
            objects.append((kind, made))
    return objects


@pytest.mark.shows("scheduler 3.7/pod affinity")
@examples(400)
@given(gangs_wait())
def test_no_placement_breaks_a_rule_of_anybody(objects):
    """On what stands after the cycle; only a spread depends on the order, and is judged elsewhere."""
    world = World(queue(), *objects)
    before = Judge(world).pods
    world.cycle()
    judge = Judge(world)
    new = {key: each for key, each in judge.pods.items() if key not in before}
    alone = []
    for key, each in new.items():
        others = [other for name, other in judge.pods.items() if name != key]
        broken = judge.broken(each, each["spec"]["nodeName"], others=others) - {"spread"}
        if broken == {"affinity"}:  # it may have been the first of its kind
            needed = terms(each, "podAffinity")
            assert judge.is_near_enough(each, each["spec"]["nodeName"], [each])
            wanted = [p for p in before.values() if all(judge.means(term, each, p) for term in needed)]
            assert all(judge.place(p["spec"]["nodeName"], t["topologyKey"]) is None for p in wanted for t in needed)
            alone.append(each)
            broken = set()
        assert not broken
    assert len(alone) <= len({str(terms(each, "podAffinity")) for each in alone})


@pytest.mark.shows("scheduler 3.7/spreading")
@examples(150)
@given(st.data())
def test_pods_with_one_spread_stay_within_its_skew(data):
    nodes = with_nodes(data.draw, 5)
    topology, skew = data.draw(st.sampled_from(["host", "zone"])), data.draw(st.integers(1, 2))
    asking = f"group g 1/{data.draw(st.integers(1, 8))}x1 +app=x spread={topology}/app=x/maxSkew={skew}"
    world = World("queue default", asking)
    for _, obj in nodes:
        obj["spec"]["taints"] = []
    world.put(*nodes)
    world.cycle()
    judge = Judge(world)
    for each in judge.pods.values():
        (constraint,) = judge.spreads(each)
        counts = judge.domains(constraint, each).values()
        assert max(counts) - min(counts) <= constraint["maxSkew"]
