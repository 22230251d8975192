"""What was evicted and has started again is left alone by reclaim for a while; who waits for its room is told until when."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kube.evictions import FIRST_EVICTED
from kube.meta import now_text
from kube.resources import POD_GROUPS
from scheduler.engine.message import people
from scheduler.policy.policy import Action
from tests.tables import cases

from .test_preempt import low, waiting
from .test_preempt import world as crowded
from .test_reclaim import HALVES, asks, runs, world
from .world import START, configuration, pod, queue

MINUTE = 60_000


def again(objects, *started, evicted=START - 10 * MINUTE):
    """Have groups among some objects been evicted at a time, and their pods have got their nodes at others: the last of them the rest."""
    times = iter(started)
    for kind, obj in objects:
        if kind is POD_GROUPS:
            obj["metadata"]["annotations"] = {FIRST_EVICTED: now_text(evicted)}
        else:
            time = next(times, started[-1])
            told = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now_text(time)}
            obj["status"]["conditions"] = [told]
    return objects


def configured(arguments, name="reclaim"):
    return configuration(
        f"actions: enqueue, allocate, reclaim, preempt\nconfigurations:\n- name: {name}\n  arguments: {arguments}"
    )


JUST, LONG_AGO = START - MINUTE, START - 6 * MINUTE


@pytest.mark.shows("scheduler 2.5/again")
@cases("objects, victims", {
    "pods that started again a minute ago": (again(runs("a", 8), JUST), 0),
    "pods that started again six minutes ago": (again(runs("a", 8), LONG_AGO), 4),
    "pods that have run since before it": (again(runs("a", 8), JUST, evicted=JUST + 1000), 4),
    "of some pods those that have run for long": (again(runs("a", 8), *[LONG_AGO] * 5, JUST), 4),
    "these are too few": (again(runs("a", 8), *[LONG_AGO] * 3, JUST), 0),
    "a gang that started again a minute ago": (again(runs("a", 8, minimum=8), JUST), 0),
    "a gang half of which has run for long": (again(runs("a", 8, minimum=8), *[LONG_AGO] * 4, JUST), 8),
    "a gang less than half of which has": (again(runs("a", 8, minimum=8), *[LONG_AGO] * 3, JUST), 0),
    "a gang that goes with a pod that could not go alone": (again(runs("a", 8, minimum=5), *[LONG_AGO] * 7, JUST), 8),
    "all of a gang and what it has beyond its minimum": (again(runs("a", 8, minimum=5), JUST), 0),
    "others go in its place": ([*again(runs("a", 4), JUST), *runs("a", 4, name="z")], 4),
    "a shorter time": ([*again(runs("a", 8), JUST), configured("{minRuntime: 30s}")], 4),
    "a shorter time of gangreclaim": ([*again(runs("a", 8), JUST), configured("{minRuntime: 30s}", "gangreclaim")], 4),
    "a longer time": ([*again(runs("a", 8), LONG_AGO), configured("{minRuntime: 1h}")], 0),
    "no time": ([*again(runs("a", 8), JUST), configured("{minRuntime: 0}")], 4),
})  # fmt: skip
def test_who_is_left_alone(objects, victims):
    here = world(*HALVES, *objects, *asks("b", 4))
    decisions = here.cycle()
    assert len(here.going()) == victims
    assert all(each.action is Action.RECLAIM for each in decisions.evictions)


@pytest.mark.shows("scheduler 2.5/again")
def test_preempt_does_not_ask_how_long_it_ran():
    here = crowded(*again(low(4), JUST), *waiting())
    here.cycle()
    assert here.going() == ["low-3"]


def test_who_waits_is_told_until_when_and_starts_then():
    here = world(*HALVES, *again(runs("a", 8), JUST, JUST + 30_000), *asks("b", 4))
    decisions = here.cycle()
    assert people(here.condition("ask-b")["message"]).endswith(
        "Protected from being evicted for it: 8 pods by the minimum run time after an eviction (minRuntime 5 min), "
        "until 2026-01-01 00:04:30 UTC."
    )
    assert decisions.wake <= JUST + 5 * MINUTE, "when the first of them may go"
    here.cycle(seconds=4 * 60)
    assert here.going() == [], "one may go, and that is too little"
    here.cycle(seconds=30)
    assert len(here.going()) == 4


def test_it_is_noted_once_on_whose_pods_are_evicted():
    here = world(*HALVES, *runs("a", 8), *asks("b", 4))
    here.cycle(seconds=7)

    def noted(name):
        return (here.get(POD_GROUPS, name)["metadata"].get("annotations") or {}).get(FIRST_EVICTED)

    assert noted("run-a") == now_text(START + 7000)
    assert noted("ask-b") is None
    here.gone()
    here.cycle(seconds=1)
    here.put(queue("b", deserved={"cpu": "8"}), queue("a", deserved={"cpu": "0"}))
    here.put(*asks("b", 2, name="more"))
    here.cycle(seconds=1)
    assert len(here.going()) == 2, "those that stayed were not evicted, so nothing protects them"
    assert noted("run-a") == now_text(START + 7000)


@pytest.mark.shows("scheduler 2.5/again")
@pytest.mark.parametrize(("arguments", "seconds"), [("{}", 300), ("{minRuntime: 40s}", 40), ("{minRuntime: 0}", 0)])
def test_two_queues_that_are_owed_in_turn_do_not_take_a_node_from_each_other_all_the_time(arguments, seconds):
    """The one node is deserved by one queue, then by the other, each 10 s: so often as somebody can change what queues deserve."""
    here = world(queue("a"), queue("b"), *asks("a", name="x"), *asks("b", name="y"), configured(arguments), cpu="1")
    gone = []
    for turn in range(120):
        parts = {"a": "01"[turn % 2], "b": "10"[turn % 2]}
        here.put(*(queue(name, deserved={"cpu": cpu}) for name, cpu in parts.items()))
        for _ in range(2):
            decisions = here.cycle(seconds=5)
            for each in decisions.evictions:
                gone.append((here.now, each.pod.name))
                here.gone(each.pod.name)
                here.put(pod(each.pod.name, each.pod.name.partition("-")[0]))
    times = [at for at, _ in gone]
    assert all(later - at >= seconds * 1000 for at, later in pairwise(times[1:]))
    least = 1200 // (seconds + 20) if seconds else 100
    assert least <= len(gone) <= (2 + 1200 // seconds if seconds else 120), "nor does one keep it for good"
