"""What was evicted and has started again is left alone by reclaim for a while."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kube.evictions import FIRST_EVICTED
from kube.meta import now_text
from kube.resources import POD_GROUPS, PODS
from scheduler.policy.policy import Action
from tests.tables import cases

from .world import START, World, configuration, pod, queue, situation

MINUTE = 60_000
JUST, LONG_AGO = START - MINUTE, START - 6 * MINUTE
HALVES = "node n1 8 pods:99; queue a; queue b"
EIGHT, FOUR = "group r 1/8x1 queue=a @n1", "group r 1/4x1 queue=a @n1"
ASKS = "group x 4x1 queue=b"


def again(text, *started, evicted=START - 10 * MINUTE):
    """The objects of a situation whose groups were evicted at a time, and whose pods have run since others."""
    times = iter(started)
    for kind, obj in situation(text):
        if kind is POD_GROUPS:
            obj["metadata"]["annotations"] = {FIRST_EVICTED: now_text(evicted)}
        if kind is PODS:
            told = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now_text(next(times, started[-1]))}
            obj["status"]["conditions"] = [told]
        yield kind, obj


def gang(minimum, *started):
    return [*again(f"group r {minimum}/8x1 queue=a @n1", *started)]


def configured(arguments, name="reclaim"):
    section = f"configurations:\n- name: {name}\n  arguments: {arguments}"
    return configuration(f"actions: enqueue, allocate, reclaim, preempt\n{section}")


@pytest.mark.shows("scheduler 2.5/again")
@cases("objects, victims", {
    "pods that started again a minute ago": (gang(1, JUST), 0),
    "pods that started again six minutes ago": (gang(1, LONG_AGO), 4),
    "pods that have run since before it": ([*again(EIGHT, JUST, evicted=JUST + 1000)], 4),
    "of some pods those that have run for long": (gang(1, *[LONG_AGO] * 5, JUST), 4),
    "these are too few": (gang(1, *[LONG_AGO] * 3, JUST), 0),
    "a gang that started again a minute ago": (gang(8, JUST), 0),
    "a gang half of which has run for long": (gang(8, *[LONG_AGO] * 4, JUST), 8),
    "a gang less than half of which has": (gang(8, *[LONG_AGO] * 3, JUST), 0),
    "a gang that goes with a pod that could not go alone": (gang(5, *[LONG_AGO] * 7, JUST), 8),
    "all of a gang and what it has beyond its minimum": (gang(5, JUST), 0),
    "others go in its place": ([*again(FOUR, JUST), "group z 1/4x1 queue=a @n1"], 4),
    "a shorter time": ([*gang(1, JUST), configured("{minRuntime: 30s}")], 4),
    "a shorter time of gangreclaim": ([*gang(1, JUST), configured("{minRuntime: 30s}", "gangreclaim")], 4),
    "a longer time": ([*gang(1, LONG_AGO), configured("{minRuntime: 1h}")], 0),
    "no time": ([*gang(1, JUST), configured("{minRuntime: 0}")], 4),
})  # fmt: skip
def test_who_is_left_alone(objects, victims):
    here = World(HALVES, *objects, ASKS)
    decisions = here.cycle()
    assert len(here.going()) == victims
    assert all(each.action is Action.RECLAIM for each in decisions.evictions)


@pytest.mark.shows("scheduler 2.5/again")
def test_preempt_does_not_ask_how_long_it_ran():
    low = again("group low 1/4x1 low @n1", JUST)
    here = World("node n1; queue default reclaimable=false; group g 1x1 high", *low)
    here.cycle()
    assert here.going() == ["low-3"]


def test_who_waits_is_told_until_when_and_starts_then():
    here = World(HALVES, *gang(1, JUST, JUST + 30_000), ASKS)
    decisions = here.cycle()
    assert here.told("x").endswith(
        "Protected from being evicted for it: 8 pods by the minimum run time after an eviction (minRuntime 5 min), "
        "until 2026-01-01 00:04:30 UTC."
    )
    assert decisions.wake <= JUST + 5 * MINUTE, "when the first of them may go"
    here.cycle(seconds=4 * 60)
    assert here.going() == [], "one may go, and that is too little"
    here.cycle(seconds=30)
    assert len(here.going()) == 4


def test_it_is_noted_once_on_whose_pods_are_evicted():
    here = World(HALVES, EIGHT, ASKS)
    here.cycle(seconds=7)

    def noted(name):
        return (here.get(POD_GROUPS, name)["metadata"].get("annotations") or {}).get(FIRST_EVICTED)

    assert (noted("r"), noted("x")) == (now_text(START + 7000), None)
    here.gone()
    here.cycle(seconds=1)
    here.put("queue b deserved=8; queue a deserved=0; group more 2x1 queue=b")
    here.cycle(seconds=1)
    assert len(here.going()) == 2, "those that stayed were not evicted, so nothing protects them"
    assert noted("r") == now_text(START + 7000)


@pytest.mark.shows("scheduler 2.5/again")
@pytest.mark.parametrize(("arguments", "seconds"), [("{}", 300), ("{minRuntime: 40s}", 40), ("{minRuntime: 0}", 0)])
def test_two_queues_that_are_owed_in_turn_do_not_take_a_node_from_each_other_all_the_time(arguments, seconds):
    """The one node is deserved by one queue, then by the other, each 10 s."""
    here = World("node n1 1; queue a; queue b; group x 1x1 queue=a; group y 1x1 queue=b", configured(arguments))
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
