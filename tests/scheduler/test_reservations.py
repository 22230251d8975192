"""Room that is kept for who has waited long: who gets it, where, who may use it meanwhile, and how it ends."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kube.kept_room import RELEASED, Reservation
from kube.meta import now_text, timestamp
from kube.resources import POD_GROUPS
from scheduler.cycle import reserved
from scheduler.cycle.reserved import GivenBack
from scheduler.policy.arguments import LONGEST_MS
from tests.tables import cases

from .blocks import blocks
from .world import START, Story, World, configuration, priority_class, situation

WAIT = 300
HOUR = 3600
OWN = "queue default reclaimable=false"
NODES = f"node n0..1 pods:99; {OWN}"
FULL = f"{NODES}; group a 4x1 @n0; group b 4x1 @n1"
ENDS = f"{NODES}; group a 3x1 @n0 estimate=1h; group b 4x1 @n1 estimate=1h"
BIG = "group big 1x4 ago=300"


def after_a_cycle(*objects):
    here = World(*objects)
    here.cycle()
    return here


def kept(world, name="big"):
    """Return the reservation of a group."""
    return reserved.reservation_of(world.snapshot.groups[f"ns/{name}"].conditions)


@blocks("reservations")
def test_what_comes_of_kept_room_step_by_step(block, golden):
    golden(block, Story().tell, by_line=True)


@cases("group", {
    "more than the cluster": "group big 9x1 ago=300",
    "a pod larger than any node": "group big 1x5 ago=300",
    "more than its queue may have": "group big 6x1 ago=300; queue default 5",
    "others' guarantees leave too little": "group big 6x1 ago=300; queue vip keeps=3",
    "no such queue": "group big 6x1 ago=300 queue=gone",
})  # fmt: skip
def test_who_would_never_fit_gets_none(group):
    assert not after_a_cycle(FULL, group).snapshot.reserved


@cases("change, of_big", {
    "a guarantee of another queue": ("queue vip keeps=7", "default"),
    "a lower limit of its own queue": ("queue own 9", "own"),
})  # fmt: skip
def test_room_is_given_back_that_a_change_of_queues_makes_useless(change, of_big):
    here = after_a_cycle(FULL, "node n2 8 pods:99; queue own", f"group big 10x1 ago=300 queue={of_big}")
    assert kept(here)
    here.put(change, "group small 1x1")
    here.cycle()
    assert kept(here) is None
    assert "small-0" in here.where()


@pytest.mark.shows("1.1/runningEstimate", "scheduler 2.3/others")
@cases("says, starts", {
    "ends before": ("estimate=59m", True),
    "ends just then": ("estimate=1h", True),
    "ends later": ("estimate=61m", False),
    "says nothing": ("", False),
    "says nothing that can be read": ("estimate=soon", False),
    "of another queue": ("estimate=5m queue=other", True),
})  # fmt: skip
def test_who_ends_in_time_may_use_the_room_meanwhile(says, starts):
    here = after_a_cycle(ENDS, BIG, f"queue other; group short 1x1 {says}")
    assert ("short-0" in here.where()) == starts


def test_no_sub_group_is_split_that_uses_the_room_meanwhile():
    """There is room for two: the first pod, which is in no sub-group, and one of the two that start together."""
    (kind, group), *pods = situation("group short 1/3x1 estimate=5m")
    policy = {"name": "p", "labelSelector": {"matchLabels": {"part": "0"}}, "subGroupSize": 2}
    group["spec"]["subGroupPolicy"] = [policy]
    for _, made in pods[1:]:
        made["metadata"]["labels"] = {"part": "0"}
    ends = f"{NODES}; group a 2x1 @n0 estimate=1h; group b 4x1 @n1 estimate=1h"
    assert after_a_cycle(ends, BIG, (kind, group), *pods).placed() == "short n0"


MID = "group a 3x1 @n0 priorityClassName=mid; group b 4x1 @n1 priorityClassName=mid; " + BIG + " priorityClassName=mid"


@cases("actions, spec, starts", {
    "lower": ("allocate, backfill, preempt", "low", True),
    "equal": ("allocate, backfill, preempt", "priorityClassName=mid", False),
    "nobody is preempted": ("allocate, backfill", "low", False),
    "of another queue": ("allocate, backfill, preempt", "low queue=other", False),
})  # fmt: skip
def test_who_may_be_evicted_may_use_the_room_meanwhile(actions, spec, starts):
    here = World(
        NODES, MID, f"queue other; conf actions: '{actions}'; group loose 1x1 {spec}", priority_class("mid", 5)
    )
    here.cycle()
    assert ("loose-0" in here.where()) == starts
    if starts:
        here.put("-pod a-0..2")
        here.cycle(seconds=1)
        assert here.going() == ["loose-0"]
        assert here.reason("big") == "WaitingForVictims"
        assert kept(here) is None
        here.gone()
        here.cycle(seconds=1)
        assert here.where()["big-0"] == "n0"


@cases("loose, plugins, starts", {
    "time to cool down": ("group loose 1x1 low cooldown=1h", "pdb, cdp", False),
    "time that does not count": ("group loose 1x1 low cooldown=1h", "pdb", True),
    "its own budget": ("group loose 1x1 low jdb-min-available=1", "pdb", False),
    "a budget": ("group loose 1x1 low +app=web; budget web minAvailable=100% +app=web", "pdb", False),
    "a budget that does not count": ("group loose 1x1 low +app=web; budget web minAvailable=100% +app=web", "cdp", True),
})  # fmt: skip
def test_who_might_be_protected_later_does_not_use_the_room_meanwhile(loose, plugins, starts):
    """Else the room would be used up by one of them after the other, and the one that it is kept for would have none of it."""
    listed = ", ".join(f"{{name: {each}}}" for each in plugins.split(", "))
    policy = f"conf actions: 'allocate, backfill, preempt', tiers: [{{plugins: [{listed}]}}]"
    here = after_a_cycle(NODES, MID, priority_class("mid", 5), policy, loose)
    assert kept(here) is not None
    assert ("loose-0" in here.where()) == starts


def test_room_that_is_kept_for_a_queue_is_nothing_that_it_has_to_give():
    """Each queue that runs has what it deserves; the room of b's pods is kept for a pod of c beyond that, and a is owed a pod."""
    here = World("node n0..1 pods:99; queue a deserved=2; queue b deserved=4; queue c deserved=4")
    here.put("group b0..3 1x1 @n0 queue=b estimate=1h; group c0..3 1x1 @n1 queue=c; group big 1x1 queue=c ago=300", OWN)
    here.cycle()
    assert kept(here).places == ((("n0", 1),),)
    here.put("group owed 1x1 queue=a")
    here.cycle(seconds=1)
    assert (here.going(), here.reason("owed")) == ([], "NotEnoughResources")


def test_who_waits_for_his_victims_takes_no_kept_room_meanwhile():
    here = World(
        f"{NODES}; queue rich; queue poor; group rich0..3 1x1 @n0 queue=rich; group b 4x1 @n1 estimate=1h", BIG
    )
    here.put(configuration('actions: "allocate, reclaim"\ntiers: [{plugins: [{name: gang}]}]'))
    here.cycle()
    assert kept(here).places == ((("n1", 1),),)
    here.put("group theirs 1x1 queue=poor")
    here.cycle(seconds=1)
    (victim,) = here.going()
    here.put("-pod b-0")
    here.cycle(seconds=1)
    assert "theirs-0" not in here.where()
    here.gone(victim)
    here.cycle(seconds=1)
    assert here.where()["theirs-0"] == "n0"


def test_another_process_goes_on_with_it():
    here = after_a_cycle(ENDS, BIG)
    before = kept(here)
    here.snapshot = here.rebuilt()
    here.put("group small 1x1")
    here.cycle(seconds=5)
    assert kept(here) == before
    assert here.placed() == ""


@cases("lost", {"gone": "-node n0", "too small": "node n0 3 pods:99", "closed": "node n0 pods:99 cordoned"})
def test_where_a_node_is_lost_room_is_chosen_anew(lost):
    here = after_a_cycle(FULL, BIG)
    assert kept(here).places == ((("n0", 1),),)
    here.put(lost)
    here.cycle(seconds=1)
    assert kept(here) == Reservation(START, 12 * WAIT * 1000, None, ((("n1", 1),),), ((("cpu", 4000),),))


def test_room_kept_in_vain_is_given_back_for_as_long_and_then_kept_for_twice_as_long():
    here = after_a_cycle(FULL, BIG)
    hold = kept(here).hold // 1000
    assert hold == 12 * WAIT
    here.put("-pod a-0; group small 1x1")
    here.cycle(seconds=hold - 1)
    assert "small-0" not in here.where()
    here.cycle(seconds=1)
    assert "small-0" in here.where()
    assert kept(here) is None
    assert reserved.given_back_of(here.snapshot.groups["ns/big"].conditions) == GivenBack(here.now, hold * 1000)
    here.cycle(seconds=hold - 1)
    assert kept(here) is None
    here.cycle(seconds=1)
    assert kept(here).hold == 2 * hold * 1000


def test_room_for_a_group_that_is_expected_late_is_kept_until_the_wait_after_that_as_it_says():
    here = after_a_cycle(NODES, "group a 4x1 @n0 estimate=2h; group b 4x1 @n1 estimate=2h", BIG)
    end = 2 * HOUR + WAIT
    assert kept(here).until == START + end * 1000
    here.cycle(seconds=end - 1)
    assert kept(here).until == START + end * 1000
    here.cycle(seconds=1)
    assert kept(here) is None


def test_who_is_above_what_his_queue_deserves_is_told_of_kept_room_as_well():
    """Of 4 CPU each of the two queues deserves 2; the one that has 3 would fit in the fourth if that were not kept."""
    here = after_a_cycle(f"node n0 pods:99; {OWN}; queue b; group a 4x1 @n0; {BIG} queue=b")
    assert kept(here) is not None
    here.put("group small 1x1; -pod a-0")
    here.cycle(seconds=1)
    assert (here.reason("small"), here.where().get("small-0")) == ("RoomKept", None)
    assert "kept for job group big" in here.told("small")


# Given back by hand


def release(world, name="big", at=None):
    """Give back what is kept for a group, as people do."""
    made = copy.deepcopy(world.get(POD_GROUPS, name))
    made["metadata"].setdefault("annotations", {})[RELEASED] = now_text(world.now) if at is None else at
    world.put((POD_GROUPS, made))


def release_after_a_second(world):
    world.now += 1000
    release(world)
    world.cycle()


def cycle_until_kept(world):
    while kept(world) is None:
        world.now = world.cycle().wake
    return kept(world)


def test_room_that_is_given_back_goes_to_others_at_once_and_is_kept_again_after_the_wait():
    here = after_a_cycle(f"node n0 pods:99; {OWN}; group a 4x1 @n0; {BIG}")
    here.put("group small 1x1; -pod a-0")
    here.cycle(seconds=1)
    assert (kept(here).made, here.placed()) == (START, "")
    release_after_a_second(here)
    released = here.now
    assert here.placed() == "small n0"
    assert (kept(here), here.condition("big", reserved.TYPE)["reason"]) == (None, reserved.RELEASED)
    assert here.reason("big") == "NotEnoughResources"
    again = cycle_until_kept(here)
    assert (again.made, again.hold) == (released + WAIT * 1000, 12 * WAIT * 1000)


def test_room_that_is_given_back_may_be_kept_for_the_next_one_of_the_queue():
    here = after_a_cycle(FULL, "group big 1x4 ago=301; group next 1x4 ago=300")
    assert (kept(here) is None, kept(here, "next")) == (False, None)
    release_after_a_second(here)
    assert (kept(here), kept(here, "next").made) == (None, here.now)


@cases("at, is_kept", {
    "before it was kept": (timestamp(START - 1000), True),
    "in the second in which it was kept": (timestamp(START), False),
    "some day": ("9999-01-01T00:00:00Z", False),
    "no time": ("now", True),
    "nothing": ("", True),
})  # fmt: skip
def test_what_is_kept_later_is_not_given_back(at, is_kept):
    here = after_a_cycle(FULL, "group big 1x4 ago=600")
    release(here, at=at)
    here.cycle(seconds=1)
    here.cycle(seconds=1)
    assert (kept(here) is not None) == is_kept


def test_who_starts_as_it_gives_back_its_room_has_started():
    here = after_a_cycle(f"node n0 pods:99; {OWN}; group a 4x1 @n0; {BIG}")
    here.put("-pod a-0..3")
    release_after_a_second(here)
    assert here.where()["big-0"] == "n0"
    assert kept(here) is None


def test_a_place_in_line_that_is_given_back_goes_to_the_next():
    here = after_a_cycle(FULL, "group big 4 ago=301; group more 4 ago=300")
    assert (kept(here).places, here.phase("big"), here.phase("more")) == ((), "Inqueue", "Pending")
    release_after_a_second(here)
    assert (kept(here), here.phase("more")) == (None, "Inqueue")
    assert kept(here, "more").made == here.now


def test_who_gave_back_its_place_before_it_had_one_waits_from_then_on():
    here = World(FULL, "group big 4 ago=2700")
    release(here, at=timestamp(START - 1000))
    assert cycle_until_kept(here).made == START + (WAIT - 1) * 1000


# What stands in the status

some_places = st.lists(
    st.lists(st.tuples(st.from_regex(r"[a-z0-9]([-.a-z0-9]{0,20}[a-z0-9])?", fullmatch=True), st.integers(1, 9999)), max_size=3).map(tuple),
    max_size=3,
).map(tuple)  # fmt: skip
some_times = st.integers(0, 4_000_000_000_000)
some_amounts = st.dictionaries(st.sampled_from(("cpu", "memory", "nvidia.com/gpu")), st.integers(1, 10**12), max_size=3)
some_requests = st.lists(some_amounts.map(lambda each: tuple(sorted(each.items()))), max_size=3).map(tuple)
held = st.integers(1, 10**12)


@given(
    st.builds(Reservation, some_times, held, st.none() | some_times, some_places, some_requests, st.none() | some_times)
)
def test_what_is_written_is_read(reservation):
    if not any(reservation.requests):
        reservation = dataclasses.replace(reservation, requests=())
    again = reserved.reservation_of([reserved.written(reservation, START)])
    if any(reservation.places):
        assert again == reservation
    else:
        assert again == dataclasses.replace(reservation, places=again.places, requests=again.requests)
        assert not any(again.places)


def test_how_much_each_pod_asks_for_is_written_where_it_was_not():
    """As an earlier version wrote it."""
    here = after_a_cycle(FULL, "group big 2x500m ago=300")
    made = copy.deepcopy(here.get(POD_GROUPS, "big"))
    (condition,) = (each for each in made["status"]["conditions"] if each["type"] == reserved.TYPE)
    assert condition["message"] == "Kept for 1h0m0s at most; on n0: 2; each cpu: 500m"
    condition["message"] = condition["message"].partition("; each")[0]
    here.put((POD_GROUPS, made))
    here.cycle()
    assert here.condition("big", reserved.TYPE)["message"].endswith("; on n0: 2; each cpu: 500m")


@given(st.text(max_size=80))
def test_what_somebody_else_wrote_there_raises_nothing(text):
    condition = reserved.written(Reservation(START, 1000), START)
    reserved.reservation_of([replace(condition, message=text)])
    reserved.given_back_of([replace(condition, message=text, status="False", reason=reserved.GIVEN_BACK)])


@cases("message", {
    "more pods than there are numbers for": f"Kept for 1h0m0s at most; on n0: {10**30}",
    "less than no pods": "Kept for 1h0m0s at most; on n0: -4",
    "without end": f"Kept for {10**30}h at most; on n0: 1",
})  # fmt: skip
def test_a_reservation_that_somebody_made_up_stops_no_cycle(message):
    """Whoever may write the status of a group in one namespace writes something there."""
    here = World(FULL, BIG, "queue b; group fine 1x1 queue=b; node n2 1 pods:99")
    made = copy.deepcopy(here.get(POD_GROUPS, "big"))
    condition = {"type": reserved.TYPE, "status": "True", "reason": reserved.KEPT, "message": message}
    made["status"]["conditions"] = [condition | {"lastTransitionTime": timestamp(START)}]
    here.put((POD_GROUPS, made))
    here.cycle()
    assert "fine-0" in here.where()
    assert kept(here).hold <= LONGEST_MS


@cases("queues, of_runs, of_big, of_small", {
    "the cluster, where something is guaranteed": ("queue vip keeps=1", "default", "default", "default"),
    "its own queue": ("queue own 10", "own", "own", "own"),
    "the queue above": ("queue team 10; queue a parent=team; queue b parent=team", "a", "b", "a"),
    "the queue above, with a guarantee below":
        ("queue team 11; queue a parent=team keeps=2; queue b parent=team", "b", "a", "b"),
})  # fmt: skip
def test_kept_room_and_pods_that_still_run_there_count_once(queues, of_runs, of_big, of_small):
    here = World(
        NODES, f"node n2 3 pods:99; {queues}; group r 4x1 @n0 queue={of_runs}; group s 4x1 @n1 queue={of_runs}"
    )
    here.put(f"group big 2x4 ago=300 queue={of_big}")
    here.cycle()
    assert {name for some in kept(here).places for name, _ in some} == {"n0", "n1"}
    here.put(f"group small 1x1 queue={of_small}")
    here.cycle()
    assert here.where()["small-0"] == "n2"
    here.put(f"group more 2x1 queue={of_small}")
    here.cycle()
    assert "more-0" not in here.where(), "two do not fit beside it"
