"""The plugin nodegroup: which nodes a queue's pods use, and what they are told of the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.message import people
from tests.campaign import examples
from tests.tables import cases

from .world import World, configuration, group, node, pod, queue

LABEL = "volcano.sh/nodegroup-name"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CONF = "actions: enqueue, allocate\ntiers: [{plugins: [%s{name: nodegroup, %s}]}]"


def of(name, group="", **more):
    return node(name, labels={LABEL: group} if group else {}, **more)


def uses(*required, preferred=(), never=(), rather_not=()):
    return {
        "affinity": {
            "nodeGroupAffinity": {REQUIRED: list(required), PREFERRED: list(preferred)},
            "nodeGroupAntiAffinity": {REQUIRED: list(never), PREFERRED: list(rather_not)},
        }
    }


def conf(arguments="", flags="", before=""):
    return configuration(CONF % (before, f"arguments: {{{arguments}}}{flags}"))


NODES = [of("a", "red"), of("b", "blue"), of("c", "green"), of("d")]


@pytest.mark.shows(
    "scheduler 3.11 nodegroup/required",
    "scheduler 3.11 nodegroup/required, against",
    "scheduler 3.11 nodegroup/preferred",
    "scheduler 3.11 nodegroup/preferred, against",
    "scheduler 3.11 nodegroup/only groups to avoid",
    "scheduler 3.11 nodegroup/strict",
    "scheduler 3.11 nodegroup/strict: false",
    "scheduler 3.11 nodegroup/enablePreferredOrder",
    "queues 1.2/affinity",
)
@cases("spec, arguments, expected", {
    "required": (uses("blue"), "", "b"),
    "preferred": (uses(preferred=["green"]), "", "c"),
    "what is required is worth more": (uses("red", preferred=["blue"]), "", "a"),
    "of what is required what is preferred": (uses("red", "blue", preferred=["blue"]), "", "b"),
    "preferred alike": (uses(preferred=["green", "red"]), "", "a"),
    "preferred in order": (uses(preferred=["green", "red"]), "enablePreferredOrder: true", "c"),
    "never": (uses(never=["red"]), "", "b"),
    "never any group": (uses(never=["red", "blue", "green"]), "", "d"),
    "required and never": (uses("red", never=["red"]), "", None),
    "rather another one": (uses("red", rather_not=["blue"]), "", "a"),
    "rather not, but required": (uses("red", preferred=["red"], rather_not=["red", "blue"]), "", "a"),
    "a group that is not there": (uses("grey"), "", None),
    "nothing said: nodes of no group": ({}, "", "d"),
    "nothing said, not strict: all nodes": ({}, "strict: false", "a"),
    "what is required holds, strict or not": (uses("blue"), "strict: false", "b"),
})  # fmt: skip
def test_where_pods_of_a_queue_go(spec, arguments, expected):
    world = World(*NODES, queue(**spec), conf(arguments), group(), pod("g-0"))
    world.cycle()
    assert world.where().get("g-0") == expected


@pytest.mark.shows("scheduler 3.11 nodegroup/preferred")
@pytest.mark.parametrize("before", ["", "{name: nodeorder}, "])
def test_what_is_preferred_is_used_first_and_the_rest_when_that_is_full(before):
    wants = uses("red", "blue", preferred=["blue"])
    world = World(*NODES, queue(**wants), conf(before=before), group(minimum=6), *[pod(f"g-{n}") for n in range(6)])
    world.cycle()
    assert sorted(world.where().values()) == ["a", "a", "b", "b", "b", "b"]


def test_without_the_plugin_every_queue_uses_every_node():
    world = World(*NODES, queue(**uses("green")), group(), pod("g-0"))
    world.cycle()
    assert world.where() == {"g-0": "a"}
    world.put(conf(flags=", enablePredicate: false"), group("h"), pod("h-0", "h"))
    world.cycle()
    assert world.where()["h-0"] == "a"


@pytest.mark.shows("scheduler 3.11 nodegroup/enableHierarchy")
@cases("flags, expected", {
    "inherited": (", enableHierarchy: true", "b"),
    "not inherited": ("", "d"),
})  # fmt: skip
def test_a_queue_inherits_where_that_is_configured(flags, expected):
    queues = [queue("top", **uses("blue")), queue("middle", parent="top"), queue("low", parent="middle")]
    world = World(*NODES, *queues, conf(flags=flags), group(queue="low"), pod("g-0"))
    world.cycle()
    assert world.where() == {"g-0": expected}


@pytest.mark.shows("scheduler 3.11 nodegroup/why")
@cases("objects, words", {
    "no node of its groups": ([queue(**uses("grey"))],
        "No node is for the queue: 1 is of node group blue, 1 is of node group green, 1 is of node group red, " "1 is of no node group. Name one of their groups in spec.affinity of the queue, or choose another queue."),
    "its group is full": ([queue(**uses("red")), pod("r", "", "4", node="a", phase="Running")],
        "The pod does not fit yet: it needs 1 CPU, the most free on one node is 0 CPU (a). Other nodes are not for the " "queue: 1 is of node group blue, 1 is of node group green, 1 is of no node group."),
})  # fmt: skip
def test_why_pods_wait(objects, words):
    world = World(*NODES, *objects, conf(), group(), pod("g-0"))
    world.cycle()
    assert people(world.condition()["message"]) == words


def test_equal_pods_of_two_queues_go_to_the_nodes_of_each():
    """One class of pods, two queues: each has its own nodes, and a change of the queue takes effect."""
    queues = [queue("one", **uses("red")), queue("two", **uses("blue"))]
    world = World(*NODES, *queues, conf(), *[group(name, queue=name) for name in ("one", "two")])
    world.put(pod("one-0", "one"), pod("two-0", "two"))
    world.cycle()
    assert world.where() == {"one-0": "a", "two-0": "b"}
    world.put(queue("two", **uses("green")), group("late", queue="two"), pod("late-0", "late"))
    world.cycle()
    assert world.where()["late-0"] == "c"


GROUPS = ("red", "blue", "green")
listed = st.lists(st.sampled_from(GROUPS), max_size=2, unique=True)
affinities = st.one_of(
    st.just({}),
    st.builds(lambda a, b, c, d: uses(*a, preferred=b, never=c, rather_not=d), listed, listed, listed, listed),
)


def value(spec, group, *, strict, ordered):
    """What a group is worth to a queue that says this; None where it may not be used."""
    if not spec:
        return None if group and strict else 0
    near, apart = spec["affinity"]["nodeGroupAffinity"], spec["affinity"]["nodeGroupAntiAffinity"]
    wanted = {*near[REQUIRED], *near[PREFERRED]}
    if not group:
        return None if wanted else 0
    if group in apart[REQUIRED]:
        return None
    if group in apart[PREFERRED]:
        return -1
    if wanted and group not in wanted:
        return None
    worth = 100 * (group in near[REQUIRED])
    if group in near[PREFERRED]:
        behind = len(near[PREFERRED]) - near[PREFERRED].index(group)
        worth += 50 * behind / len(near[PREFERRED]) if ordered else 50
    return worth


@pytest.mark.shows("scheduler 3.11 nodegroup/required")
@examples(150)
@given(
    st.lists(st.sampled_from([*GROUPS, ""]), min_size=1, max_size=4),
    affinities, affinities, st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_pods_go_where_their_queue_or_the_one_above_wants_them(groups, own, above, strict, ordered, inherits):
    arguments = f"strict: {str(strict).lower()}, enablePreferredOrder: {str(ordered).lower()}"
    flags = ", enableHierarchy: true" if inherits else ""
    world = World(
        *[of(f"n{number}", each) for number, each in enumerate(groups)],
        queue("above", **above), queue("q", parent="above", **own), conf(arguments, flags), group(queue="q"), pod("g-0"),
    )  # fmt: skip
    world.cycle()
    spec = own or (above if inherits else {})
    worth = {f"n{i}": value(spec, each, strict=strict, ordered=ordered) for i, each in enumerate(groups)}
    usable = {name: each for name, each in worth.items() if each is not None}
    best = [name for name, each in usable.items() if each == max(usable.values())]
    assert world.where() == ({"g-0": best[0]} if best else {})
