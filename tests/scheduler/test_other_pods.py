"""Host ports, affinity between pods and topology spread: Kubernetes' rules on Kubernetes' objects."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.relations import Relations
from scheduler.engine.wishes import DEFAULT
from tests.campaign import examples
from tests.tables import cases

from . import demanding
from .definitions import REQUIRED, Judge, terms
from .demanding import HOST, ZONE
from .world import World, group, namespace, node, pod, queue


def at(name, zone, **more):
    return node(name, labels={HOST: name, ZONE: zone}, **more)


def term(key, **labels):
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def near(*needed):
    return {"affinity": {"podAffinity": {REQUIRED: list(needed)}}}


def apart(*avoided):
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(avoided)}}}


def spread(key=ZONE, skew=1, **more):
    rule = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [rule | {"labelSelector": {"matchLabels": {"app": "x"}}} | more]}


def port(number=80, **more):
    return {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": number, **more}]}]}


X = {"labels": {"app": "x"}}


def gang(count, of="g", minimum=None, **spec):
    return [
        group(of, count if minimum is None else minimum),
        *[pod(f"{of}-{n}", of, **copy.deepcopy(spec)) for n in range(count)],
    ]


def running(name, on, **spec):
    return pod(name, "", "1", node=on, phase="Running", **spec)


NODES = [at("a1", "a"), at("a2", "a"), at("b1", "b")]
TAINTED = at("c1", "c", taints=[{"key": "k", "effect": "NoSchedule"}])
APART, BESIDE = apart(term(ZONE, app="x")), near(term(ZONE, app="x"))
IN_RED = near({**term(ZONE, app="x"), "namespaceSelector": {"matchLabels": {"team": "red"}}})
BOTH = [running("r", "a1", labels={"app": "x", "tier": "y"})]
ONE_EACH = [running("s", "b1", **X), running("t", "b1", labels={"tier": "y"})]
GOING = {"deleted": "2026-01-01T00:00:00Z"}


@pytest.mark.shows("scheduler 3.7/ports", "scheduler 3.7/pod affinity", "scheduler 3.7/spreading")
@cases("objects, expected", {
    "a port once on each node": (gang(3, **port()), "a1 a2 b1"),
    "a port that somebody uses": ([*gang(1, **port()), running("r", "a1", **port(80))], "a2"),
    "another port": ([*gang(1, **port()), running("r", "a1", **port(81))], "a1"),
    "another protocol": ([*gang(1, **port()), running("r", "a1", **port(80, protocol="UDP"))], "a1"),
    "another address": ([*gang(1, **port(hostIP="10.0.0.1")), running("r", "a1", **port(80, hostIP="10.0.0.2"))], "a1"),
    "one of all addresses": ([*gang(1, **port(hostIP="10.0.0.1")), running("r", "a1", **port(80))], "a2"),
    "all addresses, one of which is used":
        ([*gang(1, **port()), running("r", "a1", **port(80, hostIP="10.0.0.2"))], "a2"),
    "the port of a pod that has ended":
        ([*gang(1, **port()), pod("r", "", node="a1", phase="Succeeded", **port())], "a1"),
    "gangs of one cycle": ([*gang(2, "g", **port()), *gang(1, "h", **port())], "a1 a2 b1"),
    "apart by node": (gang(3, **X, **apart(term(HOST, app="x"))), "a1 a2 b1"),
    "apart by zone": (gang(2, **X, **APART), "a1 b1"),
    "more than zones: nobody starts": (gang(3, **X, **APART), ""),
    "kept away by who runs": ([*gang(1, **X), running("r", "a1", **APART)], "b1"),
    "who is going counts until it is gone": ([*gang(1, **X), running("r", "a1", **GOING, **APART)], "b1"),
    "kept away by who came in the same cycle": ([*gang(1, "g", **APART), *gang(1, "h", **X)], "a1 b1"),
    "near who runs": ([*gang(2, **BESIDE), running("r", "b1", **X)], "b1 b1"),
    "near nobody": (gang(1, **BESIDE), ""),
    "near each other, where there is room for all": (gang(6, **X, **BESIDE), "a1 a1 a1 a1 a2 a2"),
    "no zone has room for all": (gang(9, **X, **BESIDE), ""),
    "near each other, but one runs elsewhere": ([*gang(5, **X, **BESIDE), running("r", "b1", **X)], ""),
    "a label that no node has": (gang(2, **X, **near(term(ZONE, app="x"), term("rack", app="x"))), ""),
    "all terms are about the same pods":
        ([*gang(1, **near(term(ZONE, app="x"), term(ZONE, tier="y"))), *BOTH, *ONE_EACH], "a1"),
    "in namespaces with a label": ([*gang(1, **IN_RED), running("r", "b1", **X), namespace("ns", team="red")], "b1"),
    "spread over zones": (gang(3, **X, **spread()), "a1 a1 b1"),
    "where fewer run": ([*gang(1, **X, **spread()), running("r", "a1", **X)], "b1"),
    "who is going is not counted": ([*gang(1, **X, **spread()), running("r", "a1", **GOING, **X)], "a1"),
    "other zones are out of reach": (gang(3, **X, **spread(), nodeSelector={ZONE: "a"}), "a1 a1 a1"),
    "other zones are out of reach, and count":
        (gang(3, **X, **spread(nodeAffinityPolicy="Ignore"), nodeSelector={ZONE: "a"}), ""),
    "a zone that is tainted counts": ([*gang(3, **X, **spread()), TAINTED], ""),
    "a zone that is tainted does not count where taints are honoured":
        ([*gang(3, **X, **spread(nodeTaintsPolicy="Honor")), TAINTED], "a1 a1 b1"),
    "fewer zones than wanted": (gang(3, **X, **spread(minDomains=3)), ""),
    "spread of no labels": (gang(9, **X, **spread(labelSelector={})), "a1 a1 a1 a1 a2 a2 a2 a2 b1"),
    "a spread of others": (gang(3, **spread()), "a1 a1 a1"),
})  # fmt: skip
def test_where_pods_start(objects, expected):
    world = World(queue(), *NODES, *objects)
    world.cycle()
    assert sorted(world.bound.values()) == expected.split()


@pytest.mark.shows("scheduler 5.2/reasons", "scheduler 5.3/causes")
@cases("objects, reason, words, counted", {
    "port": (gang(4, **port(8080)), "HostPortTaken",
        "3 of 4 pods fit; each needs port 8080 of its node, and all 3 nodes with room have it taken.",
        "3 node(s) didn't have free ports for the requested pod ports"),
    "anti-affinity": (gang(4, **X, **apart(term(HOST, app="x"))), "PodAntiAffinity",
        "3 of 4 pods fit; each must be apart from pods with app=x, and all 3 nodes with room have one.",
        "3 node(s) didn't match pod anti-affinity rules"),
    "the anti-affinity of others": ([*gang(5, **X), running("r", "a1", **APART)], "Repelled",
        "4 of 5 pods fit; each is kept away: all 2 nodes with room have a pod in the same zone that repels it by "
        "app=x.",
        "1 Insufficient cpu, 2 node(s) didn't satisfy existing pods anti-affinity rules"),
    "affinity": ([*gang(5, **X, **BESIDE), running("r", "b1", **X)], "PodAffinity",
        "3 of 5 pods fit; each needs a pod with app=x in the same zone; all 2 nodes with room are elsewhere.",
        "1 Insufficient cpu, 2 node(s) didn't match pod affinity rules"),
    "spread": ([*gang(4, **X, **spread()), running("r", "b1", requests={"cpu": "4"})], "TopologySpread",
        "1 of 4 pods fit; each is spread over zone: a would have 2 more than b, 1 allowed.",
        "1 Insufficient cpu, 2 node(s) didn't match pod topology spread constraints"),
    "spread over more parts than there are": (gang(3, **X, **spread(minDomains=3)), "TopologySpread",
        "2 of 3 pods fit; each is spread over zone: a would have 2 more than none, 1 allowed while there are 2 of the "
        "3 parts that it wants.",
        "3 node(s) didn't match pod topology spread constraints"),
    "spread over what no node has": (gang(1, **X, **spread("rack")), "TopologySpread",
        "The pod does not fit yet: it is spread over rack, and all 3 nodes with room are in no part of it that counts.",
        "3 node(s) didn't match pod topology spread constraints"),
})  # fmt: skip
def test_why_pods_wait(objects, reason, words, counted):
    world = World(queue(), *NODES, *objects)
    world.cycle()
    assert (world.condition()["reason"], world.told()) == (reason, words)
    assert counted in world.condition()["message"]


@cases("before, after, placed", {
    "what was in its way is gone": ([*gang(1, **X), running("s", "b1", **APART), running("t", "a2", **APART)],
        pod("s", "", node="b1", phase="Succeeded", **APART), "g b1"),
    "the labels of a namespace": ([*gang(1, **IN_RED), namespace("ns", team="blue"), running("r", "b1", **X)],
        namespace("ns", team="red"), "g b1"),
    "the labels of a node":
        ([*gang(1, **APART), running("r", "b1", **X), at("a1", "b"), at("a2", "b")], at("a2", "a"), "g a2"),
})  # fmt: skip
def test_a_gang_starts_when_what_it_waits_for_changes(before, after, placed):
    world = World(queue(), *NODES, *before)
    world.cycle()
    assert world.placed() == ""
    world.put(after)
    world.cycle()
    assert world.placed() == placed


def test_labels_of_pods_are_looked_at_when_somebody_asks_about_them():
    """Pods that ran before the first demand about them are counted, and so is what becomes of their labels."""
    world = World(queue(), *NODES, running("r", "a1", **X), running("s", "b1", labels={"app": "y"}))
    assert {each.shape.profile for each in world.snapshot.pods.values()} == {None}
    world.put(*gang(1, **near(term(HOST, app="x"))))
    world.put(running("r", "a1", labels={"app": "z"}), running("s", "b1", **X))
    world.cycle()
    assert world.where()["g-0"] == "b1"
    assert {each.shape.profile for each in world.snapshot.pods.values()} == {None}


def with_nodes(draw, most=4):
    return [draw(demanding.nodes(f"n{number}")) for number in range(draw(st.integers(1, most)))]


def standing(draw, nodes, most=5):
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
    objects = [*nodes, *draw(st.lists(demanding.namespaces, max_size=2)), *standing(draw, nodes), waiting]
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
    objects = [*nodes, *standing(draw, nodes, 3), *draw(st.lists(demanding.namespaces, max_size=2))]
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
    rule = data.draw(st.builds(spread, st.sampled_from([HOST, ZONE]), st.integers(1, 2)))
    world = World(queue(), *nodes, *gang(data.draw(st.integers(1, 8)), minimum=1, **X, **rule))
    for _, obj in nodes:
        obj["spec"]["taints"] = []
    world.put(*nodes)
    world.cycle()
    judge = Judge(world)
    for each in judge.pods.values():
        (constraint,) = judge.spreads(each)
        counts = judge.domains(constraint, each).values()
        assert max(counts) - min(counts) <= constraint["maxSkew"]
