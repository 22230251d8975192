"""Who is let in: room of the cluster, ceilings of queues, and who holds what was promised."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import resources
from kube.intake_times import JOB_MADE, SHUT_SINCE
from kube.meta import timestamp
from scheduler.policy.policy import DEFAULT
from tests.campaign import examples
from tests.tables import cases

from .world import START, World, configuration, group, node, pod, priority_class, queue


def asking(name, cpu, **more):
    return group(name, phase="Pending", minResources={"cpu": str(cpu)}, **more)


def test_pods_with_an_unknown_demand_promise_nothing():
    claiming = pod("o-0", "o", "10", resourceClaims=[{"name": "gpu"}])
    world = World("node n1 100; queue default 10; group o 10 phase=Inqueue; group g 10", claiming)
    world.cycle()
    assert "g" in world.inside()


def test_a_full_queue_starves_nobody_else():
    """A backlog of 200 jobs of 10 CPU behind a ceiling of 10, a gang of 16 CPU elsewhere, a cluster of 1,600."""
    world = World("node n00..99 16; queue default; queue small 10; group backlog-000..199 10 queue=small")
    world.cycle()
    assert world.inside() == {"backlog-000"}
    world.put("group gang 16 created=2026-02-01")
    world.cycle()
    assert world.inside() == {"backlog-000", "gang"}
    assert world.told("backlog-001") == (
        "Waits for room in queue small: its minimum needs 10 CPU, 0 CPU of 10 CPU can still be given out. "
        "Queue small may still take 10 CPU for 1 job that entered before."
    )


@pytest.mark.shows("scheduler 2.1/turns")
def test_a_backlog_keeps_no_other_queue_out():
    """Half of the cluster is free again for whoever is behind, however long, old and urgent the other backlog is."""
    world = World("node n1 20; queue long; queue late; group long-00..29 4 queue=long high")
    world.cycle()
    assert len(world.inside()) == 6
    world.put("group late-0..8 4 queue=late created=2026-02-01; group long-00..02 queue=long phase=Completed")
    world.cycle()
    assert {name for name in world.inside() if name.startswith("late")} == {"late-0", "late-1", "late-2"}


PARENTS = {"a": "", "b": "a", "c": "a", "d": "b", "e": "b"}
LEAVES = ("c", "d", "e", "free")
ABOVE = {"c": ("c", "a"), "d": ("d", "b", "a"), "e": ("e", "b", "a"), "free": ("free",)}
CLUSTER = 20
limits = st.fixed_dictionaries({name: st.sampled_from([None, 4, 7, 12]) for name in PARENTS})
some_groups = st.lists(
    st.tuples(st.sampled_from(LEAVES), st.integers(1, 9), st.sampled_from(["", "high"])), max_size=14
)


def queues(ceilings):
    rooms = {name: {"cpu": str(limit)} if limit else None for name, limit in ceilings.items()}
    return [*(queue(name, room, parent=PARENTS[name]) for name, room in rooms.items()), queue("free")]


def backlog(asked):
    return [
        asking(f"g{number:02}", cpu, queue=where, priorityClassName=urgency)
        for number, (where, cpu, urgency) in enumerate(asked)
    ]


GATE = configuration("actions: enqueue\ntiers: [{plugins: [{name: overcommit}]}]")


def let_in(ceilings, groups):
    """Return whom the gate lets in by itself, where nothing is placed."""
    world = World(node("n1", cpu=str(CLUSTER)), priority_class("high", 5), GATE, *queues(ceilings), *groups)
    world.cycle()
    return world.inside()


def of(obj):
    spec = obj["spec"]
    return spec["queue"], int(spec["minResources"]["cpu"]), spec["priorityClassName"]


@pytest.mark.shows("scheduler 2.1/room", "scheduler 2.1/passing")
@examples(150)
@given(limits, some_groups)
def test_what_entered_fits_under_every_ceiling_and_what_waits_does_not(ceilings, asked):
    """Beside what is as urgent: what is less urgent is no obstacle. Among equals the older enters first."""
    groups = backlog(asked)
    entered = let_in(ceilings, groups)
    rooms = {**ceilings, "cluster": CLUSTER * DEFAULT.overcommit // 1000}
    given_out, beside, refused = {"": Counter(), "high": Counter()}, {"": Counter(), "high": Counter()}, set()
    for _, obj in groups:
        where, cpu, urgency = of(obj)
        if obj["metadata"]["name"] not in entered:
            refused.add(of(obj))
            continue
        assert of(obj) not in refused
        given_out[urgency].update(dict.fromkeys((*ABOVE[where], "cluster"), cpu))
        for each in {urgency, ""}:
            beside[each].update(dict.fromkeys((*ABOVE[where], "cluster"), cpu))
    for each in given_out.values():
        assert all(each[name] <= room for name, room in rooms.items() if room)
    for where, cpu, urgency in refused:
        assert any(rooms.get(name) and beside[urgency][name] + cpu > rooms[name] for name in (*ABOVE[where], "cluster"))


@examples(150)
@given(limits, st.lists(st.sampled_from(LEAVES), max_size=25), st.sampled_from(LEAVES))
def test_without_a_queue_nobody_enters_later(ceilings, asked, where):
    """Of groups that ask for the same, at least those enter that entered beside the queue."""
    groups = backlog([(each, 2, "") for each in asked])
    others = [(kind, obj) for kind, obj in groups if obj["spec"]["queue"] != where]
    names = {obj["metadata"]["name"] for _, obj in others}
    assert let_in(ceilings, others) >= let_in(ceilings, groups) & names


# Idle room

HOPELESS = {
    "a pod larger than any node": {"cpu": "17"},
    "a label that no node has": {"nodeSelector": {"gpu": "a100"}},
    "two pods of a port on one node":
        {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}], "nodeSelector": {"only": "one"}},
}  # fmt: skip


@cases("spec", HOPELESS)
def test_those_that_can_never_start_hold_up_nobody(spec):
    """They entered, and have shown what they are: more of them than the cluster holds, and one more job elsewhere."""
    cpu, more = spec.get("cpu", "8"), {key: value for key, value in spec.items() if key != "cpu"}
    world = World("node n0 16 only=one; node n1..7 16 only=no; queue default; queue other; group gang 16 queue=other")
    for number in range(15):
        world.put(f"group h{number} {2 * int(cpu)} minMember=2 phase=Inqueue")
        world.put(*(pod(f"h{number}-{i}", f"h{number}", "", requests={"cpu": cpu}, **more) for i in range(2)))
    world.cycle(seconds=11)
    assert "gang" in world.inside()


EIGHT = {"minimum": 8, "queue": "other", "minTaskMember": {"main": 8}}


def test_whoever_waits_for_room_elsewhere_keeps_no_room_idle():
    """These may be on two nodes alone: nine others stand still unless somebody is let in for them."""
    world = World(
        "node n0..1 8 zone=a; node n2..10 8 zone=b; queue default; queue other",
        "group p01..14 8 phase=Inqueue",
        *(f"pod p{number:02}-0 8 group=p{number:02} ?zone=a" for number in range(1, 15)),
        *(asking(f"o{number}", 8, **EIGHT) for number in range(12)),
    )
    world.cycle(seconds=11)
    assert len([name for name in world.inside() if name.startswith("o")]) == 9


def test_room_in_which_pods_of_that_size_do_not_fit_lets_nobody_in():
    """So no pods are made for a backlog because a little is free on each node."""
    world = World(
        "node n0..7 4; group r 8x3 @n0,n1,n2,n3,n4,n5,n6,n7; group w0..2 4 phase=Inqueue",
        "pod w0-0 4 group=w0; pod w1-0 4 group=w1; pod w2-0 4 group=w2",
        asking("equal", 8, minimum=4, minTaskMember={"main": 4}),
        asking("mixed", 6, minimum=4, minTaskMember={"main": 1, "more": 3}),
    )
    world.cycle(seconds=11)
    assert world.inside() == {"w0", "w1", "w2", "mixed"}


def test_a_quota_that_has_room_for_one_lets_one_in_for_idle_room():
    hard = {"hard": {"cpu": "28"}}
    quota = {"metadata": {"name": "q", "namespace": "ns"}, "spec": hard, "status": hard}
    world = World(
        "node n1 12 zone=a; node n2 12; pod f 12 scheduler=other @n1; group w0..1 12 phase=Inqueue; group g0..1 3",
        *("pod w0-0 12 group=w0 ?zone=a; pod w1-0 12 group=w1 ?zone=a", (resources.RESOURCE_QUOTAS, quota)),
    )
    world.cycle(seconds=11)
    assert world.inside() == {"w0", "w1", "g0"}


FULL = "node n1 10; queue default; group o 1x8 @n1"


HOUR_S = 3600
SLA = """\
actions: enqueue, allocate
tiers: [{plugins: [{name: overcommit}, {name: gang, arguments: {reservation-wait: never}}, {name: sla%s}]}]
"""
AN_HOUR = configuration(SLA % ", arguments: {sla-waiting-time: 1h}")
EACH_ITS_OWN = configuration(SLA % "")


def waiting_for(name, cpu, wait="", *, key="volcano.sh/sla-waiting-time", ago_s=0, **more):
    """A group that asks for so much since so long, and says how long it may wait."""
    kind, one = asking(name, cpu, created=timestamp(START - ago_s * 1000), **more)
    if wait:
        one["metadata"]["annotations"] = {key: wait}
    return kind, one


@pytest.mark.shows("scheduler 3.11 sla/sla-waiting-time", "scheduler 3.11 sla/annotation", "scheduler 3.11 sla/entry")
@cases("configured, asks, enters", {
    "it has waited": (AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S), True),
    "not long enough yet": (AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S - 1), False),
    "it says more itself": (AN_HOUR, waiting_for("g", 5, "2h", ago_s=HOUR_S), False),
    "it says so itself": (EACH_ITS_OWN, waiting_for("g", 5, "30s", ago_s=30), True),
    "by the other name": (EACH_ITS_OWN, waiting_for("g", 5, "30s", key="sla-waiting-time", ago_s=30), True),
    "nobody says anything": (EACH_ITS_OWN, waiting_for("g", 5, ago_s=9 * HOUR_S), False),
    "no duration": (EACH_ITS_OWN, waiting_for("g", 5, "soon", ago_s=HOUR_S), False),
    "no duration: that of the policy": (AN_HOUR, waiting_for("g", 5, "-1h", ago_s=HOUR_S), True),
    "there can never be enough": (AN_HOUR, waiting_for("g", 13, ago_s=HOUR_S), False),
    "its queue is closed": (AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S, queue="closed"), False),
    "more than its queue may ever have": (AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S, queue="small"), False),
})  # fmt: skip
def test_who_has_waited_for_his_time_is_let_in(configured, asks, enters):
    world = World(FULL, "queue closed Closed; queue small 4", configured, asks)
    world.cycle()
    assert world.inside() == ({"g"} if enters else set())


def test_the_scheduler_looks_again_when_the_time_is_over():
    world = World(FULL, AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S - 3))
    for _ in range(10):
        decisions = world.cycle()
        if world.inside():
            break
        world.now = decisions.wake
    assert (world.inside(), world.now) == ({"g"}, START + 3000)


def test_what_one_who_has_waited_may_take_is_given_to_nobody_else():
    """The room for 4 more goes to whoever is first by his time; who waited takes what is not there."""
    world = World(FULL, AN_HOUR, waiting_for("late", 3, ago_s=5), waiting_for("overdue", 5, ago_s=HOUR_S))
    world.cycle()
    assert world.inside() == {"overdue"}


@pytest.mark.shows("scheduler 3.11 sla/order")
def test_in_a_priority_those_with_a_time_come_first_and_among_them_the_soonest():
    world = World(
        "node n1 1; queue default; group urgent 1 high",
        *(EACH_ITS_OWN, waiting_for("old", 1, ago_s=100)),
        *(waiting_for("later", 1, "2h", ago_s=50), waiting_for("sooner", 1, "1h", ago_s=5)),
    )
    order = []
    for _ in range(4):
        world.cycle()
        order += world.inside()
        world.remove(resources.POD_GROUPS, order[-1])
    assert order == ["urgent", "sooner", "later", "old"]


def shut(since=START, state="Closing"):
    kind, obj = queue(state=state)
    if since is not None:
        obj["metadata"]["annotations"] = {SHUT_SINCE: timestamp(since)}
    return kind, obj


def made_at(name, made, job_made=None, phase="Pending"):
    kind, obj = group(name, phase=phase, created=timestamp(made), minResources={"cpu": "1"})
    if job_made is not None:
        obj["metadata"]["annotations"] = {JOB_MADE: timestamp(job_made)}
    return kind, obj


BEFORE, AFTER = START - 60_000, START + 60_000


@pytest.mark.shows("queue state 4/Closing", "queues 2.8/entry")
@cases("its_queue, its_group, enters", {
    "it waited there before": (shut(), made_at("g", BEFORE), True),
    "made within the second": (shut(), made_at("g", START), True),
    "new work": (shut(), made_at("g", AFTER), False),
    "new work without a phase": (shut(), made_at("g", AFTER, phase=""), False),
    "its job begins again": (shut(), made_at("g", AFTER, BEFORE), True),
    "a new job": (shut(), made_at("g", AFTER, AFTER), False),
    "it had entered": (shut(), made_at("g", AFTER, phase="Inqueue"), True),
    "nobody knows since when": (shut(since=None), made_at("g", AFTER), True),
    "it is open again": (shut(state="Open"), made_at("g", AFTER), True),
    "it is closed": (shut(state="Closed"), made_at("g", BEFORE), False),
})  # fmt: skip
@pytest.mark.parametrize("configured", ["", "actions: allocate"], ids=["gate", "without the action enqueue"])
def test_a_closing_queue_takes_nothing_new(its_queue, its_group, enters, configured):
    world = World(node("n"), its_queue, its_group, *([configuration(configured)] if configured else []))
    world.cycle()
    world.cycle(seconds=3600)
    assert world.inside() == ({"g"} if enters else set())
    if not enters:
        assert world.told() == "Queue default is closed; open it or choose another."
        world.put(queue())
        world.cycle()
        assert world.inside() == {"g"}


STATES = ("Open", "Open", "Closing", "Closed")


@given(steps=st.lists(st.one_of(st.sampled_from(STATES), st.sampled_from(["group", "cycle"])), min_size=4, max_size=20))
@examples(500, deadline=None)
def test_who_came_while_a_queue_was_shut_waits_and_nobody_else_does(steps):
    """The queue notes since when it is shut, as its controller does; all would be let in for want of nothing."""
    world = World(node("n", cpu="99"), queue())
    state, since, may, number = "Open", None, set(), 0
    for step in [*steps, "cycle"]:
        world.now += 1000
        if step == "group":
            world.put(made_at(f"g{number}", world.now))
            if state == "Open":
                may.add(f"g{number}")
            number += 1
        elif step == "cycle":
            world.cycle()
            if state == "Open":
                may |= {f"g{each}" for each in range(number)}
            if state != "Closed":
                assert world.inside() == may
        else:
            since = None if step == "Open" else since or world.now
            state = step
            world.put(shut(since=since, state=state))
            if state == "Open":
                may |= {f"g{each}" for each in range(number)}
