"""The plugin usage: busy nodes take no pods, idle ones come first, by what was measured."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.campaign import examples
from tests.tables import cases

from .world import START, World, configuration

CONF = "actions: enqueue, allocate\ntiers: [{plugins: [{name: usage, arguments: {%s}%s}]}]"
GI = 1 << 30


def measured(name, cores, gigabytes, *, before=0):
    """The figures of an agent, so many seconds before the cycle."""
    machine = [int(cores * 1e9), int(gigabytes * GI), 15_000]
    return {"node": name, "at": START - int(before * 1000), "machine": machine, "containers": []}


def world(*figures, arguments="", flags=""):
    """Two nodes of 4 CPU and 8 GiB each."""
    made = World("node a; node b; group g 1x1", configuration(CONF % (arguments, flags)))
    for each in figures:
        made.snapshot.loads.note(each)
    return made


@pytest.mark.shows("scheduler 3.11 usage/thresholds", "scheduler 3.11 usage/old figures")
@pytest.mark.shows("scheduler 3.11 usage/usage.weight, cpu.weight, memory.weight", "scheduler 3.11 usage/estimator")
@cases("figures, options, placed", {
    "nobody measured anything": ([], {}, "g a"),
    "above 80 % of its CPU": ([measured("a", 3.3, 1), measured("b", 1, 1)], {}, "g b"),
    "above 80 % of its memory": ([measured("a", 0, 6.5), measured("b", 3, 1)], {}, "g b"),
    "at the limit": ([measured("a", 3.2, 6.4)], {}, "g a"),
    "both": ([measured("a", 4, 8), measured("b", 4, 8)], {}, ""),
    "the idler one": ([measured("a", 2, 2), measured("b", 1, 1)], {}, "g b"),
    "one that was measured before one that was not": ([measured("b", 3, 6)], {}, "g b"),
    "of no weight": ([measured("a", 2, 2), measured("b", 1, 1)], {"arguments": "usage.weight: 0"}, "g a"),
    "no limit": ([measured("a", 4, 8), measured("b", 3.9, 7)], {"flags": ", enablePredicate: false"}, "g b"),
    "limits alone": ([measured("a", 2, 2), measured("b", 1, 1)], {"flags": ", enableNodeOrder: false"}, "g a"),
    "what is five minutes old says nothing": ([measured("a", 4, 8, before=300)], {}, "g a"),
    "figures that come late are no news":
        ([measured("a", 2, 1, before=20), measured("a", 4, 1, before=40), measured("b", 2.5, 1)], {}, "g a"),
})  # fmt: skip
def test_where_pods_go(figures, options, placed):
    one = world(*figures, **options)
    one.cycle()
    assert one.placed() == placed


@pytest.mark.shows("scheduler 3.11 usage/thresholds")
def test_pods_wait_for_the_load_to_fall_and_it_is_looked_again():
    one = world(measured("a", 4, 8), measured("b", 4, 1))
    decisions = one.cycle()
    assert one.told() == "All nodes are too busy: 2 are above 80 % of its CPU. This starts when their load falls."
    assert one.condition()["reason"] == "NodesBusy"
    assert decisions.wake == START + 15_000
    one.now += 400_000
    one.snapshot.loads.note({**measured("b", 1, 1), "at": one.now})
    one.cycle()
    assert one.placed() == "g b"


def test_without_the_plugin_load_changes_nothing():
    one = world(measured("a", 4, 8))
    one.put(configuration("actions: enqueue, allocate"))
    assert one.cycle().wake is None
    assert one.placed() == "g a"


figures = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(0, 80), st.integers(0, 400)), max_size=6
)


@examples(150)
@given(figures, st.integers(1, 100), st.integers(0, 2), st.integers(0, 2))
def test_the_node_is_one_that_is_not_busy_and_worth_most(listed, limit, cpu, memory):
    listed.sort(key=lambda each: -each[3])
    arguments = f"thresholds: {{cpu: {limit}, mem: {limit}}}, cpu.weight: {cpu}, memory.weight: {memory}"
    figures = [measured(n, Fraction(c, 10), Fraction(m, 10), before=old) for n, c, m, old in listed]
    one = world(*figures, arguments=arguments)
    worth = {name: value(name, listed, limit, cpu, memory) for name in "ab"}
    usable = [name for name in "ab" if worth[name] is not None]
    one.cycle()
    if not usable:
        assert one.where() == {}
    else:
        chosen = one.where()["g-0"]
        assert worth[chosen] is not None
        assert float(worth[chosen]) == pytest.approx(float(max(worth[name] for name in usable)))


def value(name, listed, limit, cpu, memory):
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
