"""Which nodes a pod may use, or which come first: by selectors and taints, node groups of queues, load, and revocable zones."""

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.kinds.core import Taint
from scheduler.engine.cause import ExclusionKind
from scheduler.policy.zones import DAY_MS, MINUTE_MS, Window
from scheduler.records.node_selection import NodeFacts, NodeRule
from tests.campaign import examples
from tests.tables import cases

from .definitions import PREFERRED, REQUIRED
from .world import START, World, queue


def uses(*required, preferred=(), never=(), rather_not=()):
    near = {REQUIRED: list(required), PREFERRED: list(preferred)}
    apart = {REQUIRED: list(never), PREFERRED: list(rather_not)}
    return {"affinity": {"nodeGroupAffinity": near, "nodeGroupAntiAffinity": apart}}


GROUPS = ("red", "blue", "green")
some_groups = st.lists(st.sampled_from([*GROUPS, ""]), min_size=2, max_size=5)
listed = st.lists(st.sampled_from(GROUPS), max_size=2, unique=True)
affinities = st.one_of(
    st.just({}),
    st.builds(lambda a, b, c, d: uses(*a, preferred=b, never=c, rather_not=d), listed, listed, listed, listed),
)


def worth_of_group(spec, group, *, strict, ordered):
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
    plugin = f"{{name: nodegroup, arguments: {{{arguments}}}, enableHierarchy: {str(inherits).lower()}}}"
    nodes = [f"node n{i} volcano.sh/nodegroup-name={each}" if each else f"node n{i}" for i, each in enumerate(groups)]
    queues = queue("above", **above), queue("q", parent="above", **own)
    world = World(*nodes, *queues, f"conf enqueue, allocate: {plugin}; group g 1x1 queue=q")
    world.cycle()
    spec = own or (above if inherits else {})
    worth = {f"n{i}": worth_of_group(spec, each, strict=strict, ordered=ordered) for i, each in enumerate(groups)}
    usable = {name: each for name, each in worth.items() if each is not None}
    best = [name for name, each in usable.items() if each == max(usable.values())]
    assert world.placed() == (f"g {best[0]}" if best else "")


figures = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(0, 80), st.integers(0, 400)), max_size=6
)


@examples(150)
@given(figures, st.integers(1, 100), st.integers(0, 2), st.integers(0, 2))
def test_the_node_is_one_that_is_not_busy_and_worth_most(listed, limit, cpu, memory):
    listed.sort(key=lambda each: -each[3])
    arguments = f"thresholds: {{cpu: {limit}, mem: {limit}}}, cpu.weight: {cpu}, memory.weight: {memory}"
    one = World(f"node a; node b; group g 1x1; conf enqueue, allocate: {{name: usage, arguments: {{{arguments}}}}}")
    one.put(*(f"load {name} cpu:{cores / 10} gi:{gigabytes / 10} ago={old}" for name, cores, gigabytes, old in listed))
    worth = {name: worth_by_load(name, listed, limit, cpu, memory) for name in "ab"}
    usable = [name for name in "ab" if worth[name] is not None]
    one.cycle()
    if not usable:
        assert one.where() == {}
    else:
        chosen = one.where()["g-0"]
        assert worth[chosen] is not None
        assert float(worth[chosen]) == pytest.approx(float(max(worth[name] for name in usable)))


def worth_by_load(name, listed, limit, cpu, memory):
    """What a node is worth by figures in tenths of cores and gigabytes; None where it is busy."""
    own = {}  # the last figure of each time; one that is as old as another is no news
    for node_name, cores, gigabytes, old in listed:
        if node_name == name and old < 300:
            own.setdefault(old, (cores, gigabytes))
    if not own:
        return 0
    used = Fraction(sum(c for c, _ in own.values()), len(own) * 40) * 100
    held = Fraction(sum(m for _, m in own.values()), len(own) * 80) * 100
    if used > limit or held > limit:
        return None
    weights = cpu + memory
    return 5 * Fraction(cpu * (100 - used) + memory * (100 - held), weights) if weights else 0


minutes = st.integers(0, 24 * 60 - 1)


@pytest.mark.shows("scheduler 3.11 tdm/over midnight")
@examples(300)
@given(minutes, minutes, st.integers(0, 3 * DAY_MS))
def test_a_window_is_what_a_clock_on_the_wall_says(start, end, passed):
    window, now = Window(start * MINUTE_MS, end * MINUTE_MS), START + passed
    clock = datetime.datetime.fromtimestamp(now / 1000, tz=datetime.UTC)
    minute = clock.hour * 60 + clock.minute
    expected = start <= minute < end if start < end else minute >= start or minute < end
    assert window.is_open(now) == expected
    change = window.changes(now)
    assert now < change <= now + DAY_MS
    if start != end:
        assert window.is_open(change) != expected
        assert window.is_open(change - 1) == expected


def affinity(*terms):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


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
