"""The plugin nodegroup: which nodes a queue's pods use, and what they are told of the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.campaign import examples
from tests.tables import cases

from .world import World, configuration, node, queue

LABEL = "volcano.sh/nodegroup-name"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CONF = "actions: enqueue, allocate\ntiers: [{plugins: [%s{name: nodegroup, %s}]}]"


def of(name, group):
    return node(name, labels={LABEL: group} if group else {})


def uses(*required, preferred=(), never=(), rather_not=()):
    near = {REQUIRED: list(required), PREFERRED: list(preferred)}
    apart = {REQUIRED: list(never), PREFERRED: list(rather_not)}
    return {"affinity": {"nodeGroupAffinity": near, "nodeGroupAntiAffinity": apart}}


def conf(arguments="", flags="", before=""):
    return configuration(CONF % (before, f"arguments: {{{arguments}}}{flags}"))


NODES = [of("a", "red"), of("b", "blue"), of("c", "green"), of("d", "")]
BELOW = [queue("top", **uses("blue")), queue("middle", parent="top"), queue(parent="middle")]
BOTH = queue(**uses("red", "blue", preferred=["blue"]))


@pytest.mark.shows("scheduler 3.11 nodegroup/preferred", "scheduler 3.11 nodegroup/enableHierarchy")
@cases("objects, placed", {
    "what is preferred first": ([BOTH, conf(), "group g 6x1"], "g a a b b b b"),
    "what is preferred first beside nodeorder":
        ([BOTH, conf(before="{name: nodeorder}, "), "group g 6x1"], "g a a b b b b"),
    "as the queue above the one above": ([*BELOW, conf(flags=", enableHierarchy: true"), "group g 1x1"], "g b"),
    "not as one above where that is not configured": ([*BELOW, conf(), "group g 1x1"], "g d"),
    "every node without the plugin": ([queue(**uses("green")), "group g 1x1"], "g a"),
    "every node where it is switched off":
        ([queue(**uses("green")), conf(flags=", enablePredicate: false"), "group g 1x1"], "g a"),
})  # fmt: skip
def test_where_pods_go(objects, placed):
    world = World(*NODES, *objects)
    world.cycle()
    assert world.placed() == placed


@pytest.mark.shows("scheduler 3.11 nodegroup/why")
@cases("objects, words", {
    "no node of its groups": ([queue(**uses("grey"))],
        "No node is for the queue: 1 is of node group blue, 1 is of node group green, 1 is of node group red, "
        "1 is of no node group. Name one of their groups in spec.affinity of the queue, or choose another queue."),
    "its group is full": ([queue(**uses("red")), "pod r 4 @a"],
        "The pod does not fit yet: it needs 1 CPU, the most free on one node is 0 CPU (a). Other nodes are not for the "
        "queue: 1 is of node group blue, 1 is of node group green, 1 is of no node group."),
})  # fmt: skip
def test_why_pods_wait(objects, words):
    world = World(*NODES, *objects, conf(), "group g 1x1")
    world.cycle()
    assert world.told() == words


def test_equal_pods_of_two_queues_go_to_the_nodes_of_each():
    """One class of pods, two queues: each has its own nodes, and a change of the queue takes effect."""
    queues = [queue("one", **uses("red")), queue("two", **uses("blue"))]
    world = World(*NODES, *queues, conf(), "group one 1x1 queue=one; group two 1x1 queue=two")
    world.cycle()
    assert world.placed() == "one a, two b"
    world.put(queue("two", **uses("green")), "group late 1x1 queue=two")
    world.cycle()
    assert world.placed() == "late c, one a, two b"


GROUPS = ("red", "blue", "green")
some_groups = st.lists(st.sampled_from([*GROUPS, ""]), min_size=2, max_size=5)
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


@pytest.mark.shows("scheduler 3.11 nodegroup/required", "scheduler 3.11 nodegroup/required, against")
@pytest.mark.shows("scheduler 3.11 nodegroup/preferred", "scheduler 3.11 nodegroup/preferred, against")
@pytest.mark.shows("scheduler 3.11 nodegroup/only groups to avoid", "scheduler 3.11 nodegroup/enablePreferredOrder")
@pytest.mark.shows("scheduler 3.11 nodegroup/strict", "scheduler 3.11 nodegroup/strict: false", "queues 1.2/affinity")
@examples(150)
@given(some_groups, affinities, affinities, st.booleans(), st.booleans(), st.booleans())
def test_pods_go_where_their_queue_or_the_one_above_wants_them(groups, own, above, strict, ordered, inherits):
    arguments = f"strict: {str(strict).lower()}, enablePreferredOrder: {str(ordered).lower()}"
    configured = conf(arguments, ", enableHierarchy: true" if inherits else "")
    nodes = [of(f"n{number}", each) for number, each in enumerate(groups)]
    queues = queue("above", **above), queue("q", parent="above", **own)
    world = World(*nodes, *queues, configured, "group g 1x1 queue=q")
    world.cycle()
    spec = own or (above if inherits else {})
    worth = {f"n{i}": value(spec, each, strict=strict, ordered=ordered) for i, each in enumerate(groups)}
    usable = {name: each for name, each in worth.items() if each is not None}
    best = [name for name, each in usable.items() if each == max(usable.values())]
    assert world.placed() == (f"g {best[0]}" if best else "")
