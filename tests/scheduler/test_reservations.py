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
from kube.resources import DISRUPTION_BUDGETS, NODES, POD_GROUPS, PODS
from kube.usage import ESTIMATE_ANNOTATION
from scheduler.cycle import reserved
from scheduler.cycle.reserved import GivenBack
from scheduler.engine.message import people
from scheduler.policy.arguments import LONGEST_MS
from tests.tables import cases

from .world import START, World, configuration, group, keeping, node, pod, priority_class, queue

WAIT = 300
HOUR = 3600
OWN = queue(reclaimable=False)


def job(name, cpu="1", pods=1, *, ago=0, estimate="", minimum=None, **spec):
    """A group and its pods, which wait since so many seconds."""
    created = timestamp(START - ago * 1000)
    kind, made = group(name, pods if minimum is None else minimum, created=created, **spec)
    if estimate:
        made["metadata"]["annotations"] = {ESTIMATE_ANNOTATION: estimate}
    found = [(kind, made)]
    for number in range(pods):
        one, waiting = pod(f"{name}-{number}", name, cpu)
        waiting["metadata"]["creationTimestamp"] = created
        found.append((one, waiting))
    return found


def running(name, node, cpu="1", pods=1, *, since=0, estimate="", **spec):
    """A group whose pods run on a node, since so many seconds."""
    kind, made = group(name, pods, phase="Running", **spec)
    if estimate:
        made["metadata"]["annotations"] = {ESTIMATE_ANNOTATION: estimate}
    started = {"type": "Scheduled", "status": "True", "reason": "r", "message": ""}
    made["status"]["conditions"] = [{**started, "lastTransitionTime": timestamp(START - since * 1000)}]
    return [(kind, made), *(pod(f"{name}-{number}", name, cpu, phase="Running", node=node) for number in range(pods))]


def world(*objects, cpus=(4, 4), more=(OWN,)):
    nodes = [node(f"n{number}", cpu=str(cpu), pods=99) for number, cpu in enumerate(cpus)]
    return World(*nodes, *more, priority_class("high", 9), *(each for some in objects for each in some))


def kept(world, name="big"):
    """Return the reservation of a group."""
    conditions = world.snapshot.groups[f"ns/{name}"].conditions
    return reserved.reservation_of(conditions)


def reason(world, name):
    return (world.condition(name) or {}).get("reason")


def told(world, name):
    return people(world.condition(name)["message"])


FULL = (*running("a", "n0", pods=4), *running("b", "n1", pods=4))


@cases("ago, is_reserved", {
    "long": (WAIT, True),
    "not long enough": (WAIT - 1, False),
})  # fmt: skip
def test_who_has_waited_long_gets_a_reservation(ago, is_reserved):
    some = world(FULL, job("big", pods=6, ago=ago))
    some.cycle()
    assert (kept(some) is not None) == is_reserved


def test_one_is_woken_when_somebody_has_waited_long():
    some = world(FULL, job("big", pods=6, ago=WAIT - 2))
    while kept(some) is None and some.now <= START + 2000:
        some.now = some.cycle().wake
    assert kept(some).made == START + 2000


@cases("objects, more", {
    "more than the cluster": (job("big", pods=9, ago=WAIT), (OWN,)),
    "a pod larger than any node": (job("big", "5", ago=WAIT), (OWN,)),
    "more than its queue may have": (job("big", pods=6, ago=WAIT), (queue(capability={"cpu": "5"}),)),
    "others' guarantees leave too little": (job("big", pods=6, ago=WAIT), (OWN, queue("vip", **keeping(3)))),
    "no such queue": (job("big", pods=6, ago=WAIT, queue="gone"), (OWN,)),
})  # fmt: skip
def test_who_would_never_fit_gets_none(objects, more):
    some = world(FULL, objects, more=more)
    some.cycle()
    assert not some.snapshot.reserved


@cases("more, of_big", {
    "a guarantee of another queue": (queue("vip", **keeping(7)), "default"),
    "a lower limit of its own queue": (queue("own", {"cpu": "9"}), "own"),
})  # fmt: skip
def test_room_is_given_back_that_a_change_of_queues_makes_useless(more, of_big):
    some = world(FULL, job("big", pods=10, ago=WAIT, queue=of_big), cpus=(4, 4, 8), more=(OWN, queue("own")))
    some.cycle()
    assert kept(some)
    some.put(more, *job("small"))
    some.cycle()
    assert kept(some) is None
    assert "small-0" in some.where()


def test_room_is_kept_where_it_will_be_there_soonest():
    """By the estimates of those who run: n1 is free in ten minutes, n0 in an hour, and of n2 nobody says anything."""
    some = world(
        running("a", "n0", pods=4, estimate="1h"),
        running("b", "n1", pods=4, estimate="15m", since=300),
        running("c", "n2", pods=4),
        job("big", "3", ago=WAIT),
        cpus=(4, 4, 4),
    )
    some.cycle()
    assert kept(some).places == ((("n1", 1),),)
    assert kept(some).expected == START + 600_000
    assert told(some, "big") == (
        "Room is kept for this since 2026-01-01 00:00:00 UTC on n1; "
        "by what the jobs there say of themselves it can start at 2026-01-01 00:10:00 UTC."
    )


def test_where_nobody_says_anything_the_node_counts_that_fewest_have_to_leave():
    some = world(running("a", "n0", pods=4), running("b", "n1", "2", pods=2), job("big", "4", ago=WAIT))
    some.cycle()
    assert kept(some).places == ((("n1", 1),),)
    assert kept(some).expected is None
    assert told(some, "big").endswith("on n1; it starts when enough of what runs there has ended.")


def test_what_becomes_free_there_is_left_to_it_and_those_behind_are_told():
    some = world(FULL, job("big", "4", ago=WAIT))
    some.cycle()
    some.put(*job("small", ago=1))
    some.remove(PODS, "a-3")
    some.cycle(seconds=1)
    assert kept(some).places == ((("n0", 1),),)
    assert "small-0" not in some.where()
    assert reason(some, "small") == "RoomKept"
    assert told(some, "small").startswith(
        "The room that this needs is kept for job group big, which has waited long (reservation)."
    )
    for name in ("a-0", "a-1", "a-2"):
        some.remove(PODS, name)
    some.cycle(seconds=1)
    assert some.where()["big-0"] == "n0"
    assert kept(some) is None
    assert some.condition("big", "Reserved")["status"] == "False"


def test_pods_beyond_a_minimum_are_told_the_same():
    some = world(FULL, job("big", "4", ago=WAIT))
    some.cycle()
    some.put(*running("more", "n1"), pod("more-9", "more"))
    some.remove(PODS, "a-3")
    some.cycle(seconds=1)
    told = some.get(PODS, "more-9")["status"]["conditions"][0]["message"]
    assert told.startswith("The room that this needs is kept for job group big")


def test_elsewhere_others_start_as_ever():
    some = world(FULL, job("big", "4", ago=WAIT), more=(OWN, queue("other")))
    some.cycle()
    some.put(*job("mine"), *job("theirs", queue="other"))
    some.remove(PODS, "b-0")
    some.remove(PODS, "b-1")
    some.cycle(seconds=1)
    assert {some.where().get("mine-0"), some.where().get("theirs-0")} == {"n1"}


def test_beside_what_is_kept_on_a_node_others_start():
    some = world(FULL, job("big", "3", 2, ago=WAIT))
    some.cycle()
    assert kept(some).places == ((("n0", 1), ("n1", 1)),)
    some.put(*job("first"), *job("second"))
    for name in ("a-0", "a-1", "a-2", "a-3"):
        some.remove(PODS, name)
    some.cycle(seconds=1)
    assert (some.where().get("first-0"), some.where().get("second-0")) == ("n0", None)


def test_it_starts_anywhere_as_soon_as_it_fits():
    some = world(FULL, job("big", "4", ago=WAIT))
    some.cycle()
    for name in ("b-0", "b-1", "b-2", "b-3"):
        some.remove(PODS, name)
    some.cycle(seconds=1)
    assert some.where()["big-0"] == "n1"


ENDS = (*running("a", "n0", pods=3, estimate="1h"), *running("b", "n1", pods=4, estimate="1h"))


@pytest.mark.shows("1.1/runningEstimate", "scheduler 2.3/others")
@cases("backfiller, starts", {
    "ends before": (job("short", estimate="59m"), True),
    "ends just then": (job("short", estimate="1h"), True),
    "ends later": (job("short", estimate="61m"), False),
    "says nothing": (job("short"), False),
    "says nothing that can be read": (job("short", estimate="soon"), False),
    "of another queue": (job("short", estimate="5m", queue="other"), True),
})  # fmt: skip
def test_who_ends_in_time_may_use_the_room_meanwhile(backfiller, starts):
    some = world(ENDS, job("big", "4", ago=WAIT), backfiller, more=(OWN, queue("other")))
    some.cycle()
    assert ("short-0" in some.where()) == starts


def test_no_sub_group_is_split_that_uses_the_room_meanwhile():
    """There is room for two: the first pod, which is in no sub-group, and one of the two that start together."""
    policy = {"name": "p", "labelSelector": {"matchLabels": {"part": "0"}}, "subGroupSize": 2}
    objects = job("short", pods=3, minimum=1, estimate="5m", subGroupPolicy=[policy])
    for _, made in objects[2:]:
        made["metadata"]["labels"] = {"part": "0"}
    ends = (*running("a", "n0", pods=2, estimate="1h"), *running("b", "n1", pods=4, estimate="1h"))
    some = world(ends, job("big", "4", ago=WAIT), objects)
    some.cycle()
    assert [name for name in some.where() if name.startswith("short")] == ["short-0"]


@pytest.mark.shows("scheduler 2.3/others")
def test_without_the_action_backfill_nobody_uses_it():
    some = world(ENDS, job("big", "4", ago=WAIT), job("short", estimate="5m"), [configuration("actions: allocate")])
    some.cycle()
    assert kept(some) is not None
    assert "short-0" not in some.where()


def test_nobody_uses_the_room_any_more_when_it_is_overdue():
    some = world(ENDS, job("big", "4", ago=WAIT))
    some.cycle()
    some.put(*job("short", estimate="1s"))
    some.cycle(seconds=HOUR)
    assert "short-0" not in some.where()


def test_nobody_comes_in_between_when_room_is_free_sooner_than_expected():
    """What is left on the node says that it ends in ten minutes, so half an hour is too long."""
    some = world(
        running("a", "n0", pods=2, estimate="1h"),
        running("c", "n0", pods=1, estimate="10m"),
        running("b", "n1", pods=4, estimate="9h"),
        job("big", "4", ago=WAIT),
    )
    some.cycle()
    assert kept(some).expected == START + HOUR * 1000
    some.remove(PODS, "a-0")
    some.remove(PODS, "a-1")
    some.put(*job("long", estimate="30m"), *job("short", estimate="9m"))
    some.cycle(seconds=1)
    assert "long-0" not in some.where()
    assert some.where()["short-0"] == "n0"


LOW = {"priorityClassName": "low"}
PRIORITIES = [priority_class("low", 1), priority_class("mid", 5)]


@cases("actions, spec, starts", {
    "lower": ("allocate, backfill, preempt", LOW, True),
    "equal": ("allocate, backfill, preempt", {"priorityClassName": "mid"}, False),
    "nobody is preempted": ("allocate, backfill", LOW, False),
    "of another queue": ("allocate, backfill, preempt", {**LOW, "queue": "other"}, False),
})  # fmt: skip
def test_who_may_be_evicted_may_use_the_room_meanwhile(actions, spec, starts):
    mid = {"priorityClassName": "mid"}
    some = world(
        running("a", "n0", pods=3, **mid),
        running("b", "n1", pods=4, **mid),
        job("big", "4", ago=WAIT, **mid),
        job("loose", **spec),
        [configuration(f'actions: "{actions}"'), *PRIORITIES],
        more=(OWN, queue("other")),
    )
    some.cycle()
    assert ("loose-0" in some.where()) == starts
    if starts:
        for name in ("a-0", "a-1", "a-2"):
            some.remove(PODS, name)
        some.cycle(seconds=1)
        assert some.going() == ["loose-0"]
        assert reason(some, "big") == "WaitingForVictims"
        assert kept(some) is None
        some.gone()
        some.cycle(seconds=1)
        assert some.where()["big-0"] == "n0"


def noted(objects, kind, **notes):
    """Give objects of a kind annotations of Volcano."""
    for each, obj in objects:
        if each is kind:
            found = obj["metadata"].setdefault("annotations", {})
            found |= {f"volcano.sh/{name.replace('_', '-')}": value for name, value in notes.items()}
    return objects


def labelled(objects):
    """Have a budget about the pods of some objects that lets none of them go."""
    for _, obj in objects:
        obj["metadata"]["labels"] = {"app": "web"}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": "100%"}
    return [*objects, (DISRUPTION_BUDGETS, {"metadata": {"name": "web", "namespace": "ns"}, "spec": spec})]


@cases("loose, plugins, starts", {
    "time to cool down": (noted(job("loose", **LOW), PODS, cooldown_time="1h"), "pdb, cdp", False),
    "time that does not count": (noted(job("loose", **LOW), PODS, cooldown_time="1h"), "pdb", True),
    "its own budget": (noted(job("loose", **LOW), POD_GROUPS, jdb_min_available="1"), "pdb", False),
    "a budget": (labelled(job("loose", **LOW)), "pdb", False),
    "a budget that does not count": (labelled(job("loose", **LOW)), "cdp", True),
})  # fmt: skip
def test_who_might_be_protected_later_does_not_use_the_room_meanwhile(loose, plugins, starts):
    """Else the room would be used up by one of them after the other, and the one that it is kept for would have none of it."""
    listed = ", ".join(f"{{name: {each}}}" for each in plugins.split(", "))
    some = world(
        running("a", "n0", pods=3, priorityClassName="mid"),
        running("b", "n1", pods=4, priorityClassName="mid"),
        job("big", "4", ago=WAIT, priorityClassName="mid"),
        loose,
        [configuration(f'actions: "allocate, backfill, preempt"\ntiers: [{{plugins: [{listed}]}}]'), *PRIORITIES],
    )
    some.cycle()
    assert kept(some) is not None
    assert ("loose-0" in some.where()) == starts


def test_who_is_more_urgent_in_the_queue_comes_first():
    some = world(FULL, job("big", "4", ago=WAIT))
    some.cycle()
    some.put(*job("urgent", priorityClassName="high"))
    some.remove(PODS, "a-0")
    some.cycle(seconds=1)
    assert some.where()["urgent-0"] == "n0"


def test_what_is_guaranteed_to_a_queue_is_there_at_once():
    some = world(
        running("a", "n0", pods=4), running("b", "n1", pods=2), job("big", "3", ago=WAIT),
        more=(OWN, queue("vip", **keeping(2))),
    )  # fmt: skip
    some.cycle()
    assert kept(some).places == ((("n1", 1),),)
    some.put(*job("theirs", pods=2, queue="vip"), *job("mine"))
    some.cycle(seconds=1)
    assert {name for name in some.where() if name[0] in "tm"} == {"theirs-0", "theirs-1"}


def test_room_that_is_kept_for_a_queue_is_nothing_that_it_has_to_give():
    """Each queue that runs has what it deserves; the room of b's pods is kept for a pod of c beyond that, and a is owed a pod."""
    shares = [queue(name, deserved={"cpu": str(cpus)}) for name, cpus in (("a", 2), ("b", 4), ("c", 4))]
    mine = world(
        *(running(f"b{number}", "n0", queue="b", estimate="1h") for number in range(4)),
        *(running(f"c{number}", "n1", queue="c") for number in range(4)),
        job("big", queue="c", ago=WAIT),
        more=shares,
    )
    mine.cycle()
    assert kept(mine).places == ((("n0", 1),),)
    mine.put(*job("owed", queue="a"))
    mine.cycle(seconds=1)
    assert (mine.going(), reason(mine, "owed")) == ([], "NotEnoughResources")


def test_who_waits_for_his_victims_takes_no_kept_room_meanwhile():
    reclaims = configuration('actions: "allocate, reclaim"\ntiers: [{plugins: [{name: gang}]}]')
    rich = [each for number in range(4) for each in running(f"rich{number}", "n0", queue="rich")]
    big = job("big", "4", ago=WAIT)
    ends = running("b", "n1", pods=4, estimate="1h")
    some = world(rich, ends, big, more=(OWN, queue("rich"), queue("poor"), reclaims))
    some.cycle()
    assert kept(some).places == ((("n1", 1),),)
    some.put(*job("theirs", queue="poor"))
    some.cycle(seconds=1)
    (victim,) = some.going()
    some.remove(PODS, "b-0")
    some.cycle(seconds=1)
    assert "theirs-0" not in some.where()
    some.gone(victim)
    some.cycle(seconds=1)
    assert some.where()["theirs-0"] == "n0"


def test_one_for_each_queue_and_the_first_in_its_order():
    some = world(
        FULL,
        job("young", "4", ago=WAIT),
        job("old", "4", ago=WAIT + 9),
        job("theirs", "4", ago=WAIT, queue="other"),
        more=(OWN, queue("other")),
    )
    some.cycle()
    assert sorted(some.snapshot.reserved) == ["ns/old", "ns/theirs"]
    assert kept(some, "old").places != kept(some, "theirs").places


def test_another_process_goes_on_with_it():
    some = world(ENDS, job("big", "4", ago=WAIT))
    some.cycle()
    before = kept(some)
    some.snapshot = some.rebuilt()
    some.put(*job("small"))
    some.cycle(seconds=5)
    assert kept(some) == before
    assert "small-0" not in some.where()


@pytest.mark.parametrize("lost", ["gone", "too small", "closed"])
def test_where_a_node_is_lost_room_is_chosen_anew(lost):
    some = world(FULL, job("big", "4", ago=WAIT))
    some.cycle()
    assert kept(some).places == ((("n0", 1),),)
    if lost == "gone":
        some.remove(NODES, "n0")
    elif lost == "too small":
        some.put(node("n0", cpu="3", pods=99))
    else:
        some.put(node("n0", pods=99, unschedulable=True))
    some.cycle(seconds=1)
    assert kept(some) == Reservation(START, 12 * WAIT * 1000, None, ((("n1", 1),),), ((("cpu", 4000),),))


def test_a_gang_that_changed_has_room_chosen_anew():
    some = world(FULL, job("big", "2", pods=2, ago=WAIT, minimum=2))
    some.cycle()
    assert kept(some).places == ((("n0", 2),),)
    some.put(*job("big", "2", pods=3, ago=WAIT, minimum=3))
    some.cycle(seconds=1)
    assert kept(some).places == ((("n0", 2), ("n1", 1)),)


def test_room_kept_in_vain_is_given_back_for_as_long_and_then_kept_for_twice_as_long():
    some = world(FULL, job("big", "4", ago=WAIT))
    some.cycle()
    hold = kept(some).hold // 1000
    assert hold == 12 * WAIT
    some.remove(PODS, "a-0")
    some.put(*job("small"))
    some.cycle(seconds=hold - 1)
    assert "small-0" not in some.where()
    some.cycle(seconds=1)
    assert "small-0" in some.where()
    assert kept(some) is None
    assert reserved.given_back_of(some.snapshot.groups["ns/big"].conditions) == GivenBack(some.now, hold * 1000)
    some.cycle(seconds=hold - 1)
    assert kept(some) is None
    some.cycle(seconds=1)
    assert kept(some).hold == 2 * hold * 1000


def test_room_for_a_group_that_is_expected_late_is_kept_until_the_wait_after_that_as_it_says():
    long = (running(name, node, pods=4, estimate="2h") for name, node in (("a", "n0"), ("b", "n1")))
    some = world(*long, job("big", "4", ago=WAIT))
    some.cycle()
    end = 2 * HOUR + WAIT
    assert kept(some).until == START + end * 1000
    some.cycle(seconds=end - 1)
    assert kept(some).until == START + end * 1000
    some.cycle(seconds=1)
    assert kept(some) is None


def test_never_is_never():
    off = 'actions: "allocate"\ntiers: [{plugins: [{name: gang, arguments: {reservation-wait: never}}]}]'
    some = world(FULL, job("big", "4", ago=9 * HOUR))
    some.cycle()
    assert kept(some) is not None
    some.put(configuration(off), *job("small"))
    some.remove(PODS, "a-0")
    some.cycle(seconds=1)
    assert kept(some) is None
    assert some.where()["small-0"] == "n0"


def test_who_is_above_what_his_queue_deserves_is_told_of_kept_room_as_well():
    """Of 4 CPU each of the two queues deserves 2; the one that has 3 would fit in the fourth if that were not kept."""
    some = world(running("a", "n0", pods=4), job("big", "4", ago=WAIT, queue="b"), cpus=(4,), more=(OWN, queue("b")))
    some.cycle()
    assert kept(some) is not None
    some.put(*job("small"))
    some.remove(PODS, "a-0")
    some.cycle(seconds=1)
    assert (reason(some, "small"), some.where().get("small-0")) == ("RoomKept", None)
    assert "kept for job group big" in told(some, "small")


# Given back by hand


def release(world, name="big", at=None):
    """Give back what is kept for a group, as people do."""
    made = copy.deepcopy(world.get(POD_GROUPS, name))
    made["metadata"].setdefault("annotations", {})[RELEASED] = now_text(world.now) if at is None else at
    world.put((POD_GROUPS, made))


def test_room_that_is_given_back_goes_to_others_at_once_and_is_kept_again_after_the_wait():
    some = world(running("a", "n0", pods=4), job("big", "4", ago=WAIT), cpus=(4,))
    some.cycle()
    some.put(*job("small"))
    some.remove(PODS, "a-0")
    some.cycle(seconds=1)
    assert (kept(some).made, some.where().get("small-0")) == (START, None)
    some.now += 1000
    release(some)
    released = some.now
    some.cycle()
    assert some.where()["small-0"] == "n0"
    assert (kept(some), some.condition("big", reserved.TYPE)["reason"]) == (None, reserved.RELEASED)
    assert reason(some, "big") == "NotEnoughResources"
    while kept(some) is None:
        some.now = some.cycle().wake
    assert kept(some).made == released + WAIT * 1000
    assert kept(some).hold == 12 * WAIT * 1000


def test_room_that_is_given_back_may_be_kept_for_the_next_one_of_the_queue():
    some = world(FULL, job("big", "4", ago=WAIT + 1), job("next", "4", ago=WAIT))
    some.cycle()
    assert (kept(some) is None, kept(some, "next")) == (False, None)
    some.now += 1000
    release(some)
    some.cycle()
    assert (kept(some), kept(some, "next").made) == (None, some.now)


@cases("at, is_kept", {
    "before it was kept": (timestamp(START - 1000), True),
    "in the second in which it was kept": (timestamp(START), False),
    "some day": ("9999-01-01T00:00:00Z", False),
    "no time": ("now", True),
    "nothing": ("", True),
})  # fmt: skip
def test_what_is_kept_later_is_not_given_back(at, is_kept):
    some = world(FULL, job("big", "4", ago=2 * WAIT))
    some.cycle()
    release(some, at=at)
    some.cycle(seconds=1)
    some.cycle(seconds=1)
    assert (kept(some) is not None) == is_kept


def test_who_starts_as_it_gives_back_its_room_has_started():
    some = world(running("a", "n0", pods=4), job("big", "4", ago=WAIT), cpus=(4,))
    some.cycle()
    for number in range(4):
        some.remove(PODS, f"a-{number}")
    some.now += 1000
    release(some)
    some.cycle()
    assert some.where()["big-0"] == "n0"
    assert kept(some) is None


# At the entry


def asking(name, cpu, *, ago=0, **spec):
    return [group(name, 1, phase="", minResources={"cpu": cpu}, created=timestamp(START - ago * 1000), **spec)]


def test_who_is_kept_out_for_long_is_let_in_and_keeps_nobody_else_out():
    some = world(FULL, asking("big", "4", ago=WAIT))
    some.cycle()
    assert some.status("big")["phase"] == "Inqueue"
    assert kept(some).places == ()
    some.remove(PODS, "b-0")
    some.put(*asking("small", "1"))
    some.cycle(seconds=1)
    assert some.status("small")["phase"] == "Inqueue"
    _, one = pod("big-0", "big", "4")
    one["metadata"]["creationTimestamp"] = timestamp(some.now)
    some.put((PODS, one))
    some.cycle(seconds=1)
    assert kept(some).places == ((("n1", 1),),)


def test_one_at_a_time_is_let_in_out_of_turn():
    some = world(FULL, asking("big", "4", ago=WAIT), asking("more", "4", ago=WAIT))
    some.cycle()
    assert [some.status(name)["phase"] for name in ("big", "more")] == ["Inqueue", "Pending"]


def test_who_was_let_in_and_whose_pods_do_not_come_is_no_longer_waited_for():
    some = world(FULL, asking("big", "4", ago=WAIT), asking("more", "4", ago=WAIT))
    some.cycle()
    some.cycle(seconds=WAIT + 11)
    some.cycle(seconds=1)
    assert (kept(some), some.status("more")["phase"]) == (None, "Inqueue")


def test_a_place_in_line_that_is_given_back_goes_to_the_next():
    some = world(FULL, asking("big", "4", ago=WAIT + 1), asking("more", "4", ago=WAIT))
    some.cycle()
    assert [some.status(name)["phase"] for name in ("big", "more")] == ["Inqueue", "Pending"]
    some.now += 1000
    release(some)
    some.cycle()
    assert (kept(some), some.status("more")["phase"]) == (None, "Inqueue")
    assert kept(some, "more").made == some.now


def test_who_gave_back_its_place_before_it_had_one_waits_from_then_on():
    kind, made = asking("big", "4", ago=9 * WAIT)[0]
    made["metadata"]["annotations"] = {RELEASED: timestamp(START - 1000)}
    some = world(FULL, [(kind, made)])
    while kept(some) is None:
        some.now = some.cycle().wake
    assert kept(some).made == START + (WAIT - 1) * 1000


# What stands in the status

some_places = st.lists(
    st.lists(st.tuples(st.from_regex(r"[a-z0-9]([-.a-z0-9]{0,20}[a-z0-9])?", fullmatch=True), st.integers(1, 9999)), max_size=3).map(tuple),
    max_size=3,
).map(tuple)  # fmt: skip
some_times = st.integers(0, 4_000_000_000_000)
some_amounts = st.dictionaries(st.sampled_from(("cpu", "memory", "nvidia.com/gpu")), st.integers(1, 10**12), max_size=3)
some_requests = st.lists(some_amounts.map(lambda each: tuple(sorted(each.items()))), max_size=3).map(tuple)


@given(
    st.builds(
        Reservation,
        some_times,
        st.integers(1, 10**12),
        st.none() | some_times,
        some_places,
        some_requests,
        st.none() | some_times,
    )
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
    some = world(FULL, job("big", "500m", pods=2, ago=WAIT))
    some.cycle()
    made = copy.deepcopy(some.get(POD_GROUPS, "big"))
    (condition,) = (each for each in made["status"]["conditions"] if each["type"] == reserved.TYPE)
    assert condition["message"] == "Kept for 1h0m0s at most; on n0: 2; each cpu: 500m"
    condition["message"] = condition["message"].partition("; each")[0]
    some.put((POD_GROUPS, made))
    some.cycle()
    assert some.condition("big", reserved.TYPE)["message"].endswith("; on n0: 2; each cpu: 500m")


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
    kind, made = job("big", "4", ago=WAIT)[0]
    since = timestamp(START)
    made["status"]["conditions"] = [
        {"type": reserved.TYPE, "status": "True", "reason": reserved.KEPT, "message": message, "lastTransitionTime": since}
    ]  # fmt: skip
    some = world(FULL, [(kind, made)], job("big", "4", ago=WAIT)[1:], more=(OWN, queue("b")))
    some.put(*job("fine", queue="b"), node("n2", cpu="1", pods=99))
    some.cycle()
    assert "fine-0" in some.where()
    assert kept(some).hold <= LONGEST_MS


def test_places_that_were_sought_in_vain_are_sought_again_only_when_something_changes():
    """Beside a pod that nobody knows to leave no time is ever right, so nobody has to look again and again."""
    world = World(
        node("n1", cpu="4"),
        pod("x", "", "2", phase="Running", node="n1", scheduler="another"),
        queue(),
        group("big"),
        pod("big-0", "big", "4"),
    )
    world.cycle()
    world.cycle(seconds=600)
    world.cycle(seconds=10)
    assert world.condition("big")["reason"] == "NotEnoughResources"
    assert world.cycle(seconds=1).wake is None
    world.remove(PODS, "x")
    world.cycle()
    assert world.where()["big-0"] == "n1"


@cases("more, of_runs, of_big, of_small", {
    "the cluster, where something is guaranteed": ((queue("vip", **keeping(1)),), "default", "default", "default"),
    "its own queue": ((queue("own", {"cpu": "10"}),), "own", "own", "own"),
    "the queue above":
        ((queue("team", {"cpu": "10"}), queue("a", parent="team"), queue("b", parent="team")), "a", "b", "a"),
    "the queue above, with a guarantee below": (
        (queue("team", {"cpu": "11"}), queue("a", parent="team", **keeping(2)), queue("b", parent="team")), "b", "a",
        "b",
    ),
})  # fmt: skip
def test_kept_room_and_pods_that_still_run_there_count_once(more, of_runs, of_big, of_small):
    some = world(
        running("r", "n0", pods=4, queue=of_runs), running("s", "n1", pods=4, queue=of_runs),
        job("big", "4", pods=2, ago=WAIT, queue=of_big), cpus=(4, 4, 3), more=(OWN, *more),
    )  # fmt: skip
    some.cycle()
    assert {name for some in kept(some).places for name, _ in some} == {"n0", "n1"}
    some.put(*job("small", queue=of_small))
    some.cycle()
    assert some.where()["small-0"] == "n2"
    some.put(*job("more", pods=2, queue=of_small))
    some.cycle()
    assert "more-0" not in some.where(), "two do not fit beside it"


def test_what_is_free_of_kept_room_still_counts():
    """Of what its queue may use nobody else takes what the group will need there."""
    some = world(
        running("r", "n0", pods=2, queue="own"), running("s", "n1", pods=4),
        job("big", "4", pods=2, ago=WAIT, queue="own"), cpus=(4, 4, 3), more=(OWN, queue("own", {"cpu": "10"})),
    )  # fmt: skip
    some.cycle()
    some.put(*job("three", "3", queue="own"), *job("two", "2", queue="own"))
    some.cycle()
    assert some.where().get("two-0") == "n2"
    assert "three-0" not in some.where()
