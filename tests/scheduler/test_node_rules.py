"""Which nodes are closed to some pods, or come first: node groups of queues, the load of nodes, and revocable zones."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.zones import DAY_MS, MINUTE_MS, Window
from tests.campaign import examples

from .world import START, World, queue

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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
    shown = clock.hour * 60 + clock.minute
    expected = start <= shown < end if start < end else shown >= start or shown < end
    assert window.is_open(now) == expected
    change = window.changes(now)
    assert now < change <= now + DAY_MS
    if start != end:
        assert window.is_open(change) != expected
        assert window.is_open(change - 1) == expected
