"""Preempt: groups of higher priority take the room of others in their queue."""

from __future__ import annotations

import pytest

from kube import resources
from scheduler.engine.message import people
from scheduler.policy.policy import Action, Policy

from .world import World, group, node, pod, priority_class, queue

HIGH = {"priorityClassName": "high"}
OWN = queue(reclaimable=False)  # nobody else takes anything from it
CLASSES = (priority_class("high", 100), priority_class("low", 1))


def running(name, group="low", cpu="1", *, node="n1", **more):
    return pod(name, group, cpu, phase="Running", node=node, **more)


def waiting(count=1, cpu="1", *, name="g", **spec):
    """A group of high priority and its pods, all of which must start together."""
    return [group(name, count, **{**HIGH, **spec}), *(pod(f"{name}-{number}", name, cpu) for number in range(count))]


def low(count, *, name="low", minimum=1, cpu="1", node="n1", **spec):
    """A group of low priority whose pods run."""
    return [
        group(name, minimum, phase="Running", **{"priorityClassName": "low", **spec}),
        *(running(f"{name}-{number}", name, cpu, node=node) for number in range(count)),
    ]


def world(*objects, cpu="4", nodes=("n1",)):
    return World(*(node(each, cpu=cpu, pods=99) for each in nodes), OWN, *CLASSES, *objects)


def labelled(kind, obj, where, value):
    obj["metadata"].setdefault(where, {})["volcano.sh/preemptable"] = value
    return kind, obj


NEVER = priority_class("calm", 100, preemptionPolicy="Never")


@pytest.mark.shows(
    "scheduler 1.3/preemptable",
    "scheduler 1.10/victims",
    "scheduler 2.4/queue",
    "scheduler 2.4/priority",
    "scheduler 2.4/Never",
    "scheduler 2.4/preemptable",
    "scheduler 2.4/no use",
    "scheduler 2.4/free room",
    "scheduler 2.4/gangs",
    "scheduler 2.4/roles",
    "scheduler 3.1/victims",
    "scheduler 3.2/victims",
    "scheduler 3.3/classes",
    "scheduler 3.4/victims",
    "coscheduling 4/preemption",
    "scheduler 10.1/17",
    "scheduler 10.2/7",
    "scheduler 11/1",
    "scheduler 11/14",
    "scheduler 3.11 tdm/preempt",
    "scheduler 2.6/gangpreempt",
)
@pytest.mark.parametrize(
    ("objects", "victims"),
    [
        pytest.param([*low(4), *waiting()], ["low-3"], id="one goes, the one that was to start last"),
        pytest.param([*low(4), *waiting(2)], ["low-2", "low-3"], id="as many as the minimum needs"),
        pytest.param([*low(3), *waiting(2)], ["low-2"], id="what is free counts"),
        pytest.param([*low(2, cpu="2"), *waiting(1)], ["low-1"], id="a large pod for a small one"),
        pytest.param([*low(4), *waiting(5)], [], id="nobody goes for a gang that would not fit"),
        pytest.param([*low(4), *waiting(1, "9")], [], id="nobody goes for a pod larger than any node"),
        pytest.param([*low(4), *waiting(priorityClassName="low")], [], id="equal priority"),
        pytest.param([*low(4, priorityClassName="high"), *waiting(priorityClassName="low")], [], id="lower"),
        pytest.param([*low(4), *waiting(queue="other"), queue("other")], [], id="another queue"),
        pytest.param([*low(4, minimum=4), *waiting()], [f"low-{n}" for n in range(4)], id="a gang goes whole"),
        pytest.param([*low(4, minimum=3), *waiting()], ["low-3"], id="what is beyond a minimum goes alone"),
        pytest.param(
            [*low(2, minimum=2), *low(2, name="loose", minimum=1), *waiting()],
            ["loose-1"],
            id="loose pods before whole gangs",
        ),
        pytest.param(
            [*low(2, name="mid", priorityClassName="mid"), priority_class("mid", 50), *low(2), *waiting(3)],
            ["low-0", "low-1", "mid-1"],
            id="the lowest priority first",
        ),
        pytest.param(
            [
                *low(2, name="a", created="2026-01-02T00:00:00Z"),
                *low(2, name="b", created="2026-01-01T00:00:00Z"),
                *waiting(),
            ],
            ["a-1"],
            id="the youngest first",
        ),
        pytest.param([*low(4), NEVER, *waiting(priorityClassName="calm")], [], id="its class preempts never"),
        pytest.param(
            [*low(4), group("g", 1, **HIGH), pod("g-0", preemptionPolicy="Never")], [], id="its pod preempts never"
        ),
        pytest.param(
            [*low(3), labelled(*running("low-3"), "annotations", "false"), *waiting()], ["low-2"], id="a pod says no"
        ),
        pytest.param(
            [*low(3), labelled(*running("low-3"), "labels", "false"), *waiting()], ["low-2"], id="a pod's label says no"
        ),
        pytest.param(
            [*low(3), labelled(*running("low-3"), "annotations", "perhaps"), *waiting()],
            ["low-2"],
            id="no truth value is a no",
        ),
        pytest.param(
            [
                labelled(*group("low", 1, phase="Running", priorityClassName="low"), "annotations", "false"),
                *(running(f"low-{n}") for n in range(3)),
                labelled(*running("low-3"), "annotations", "true"),
                *waiting(),
            ],
            ["low-3"],
            id="a pod says yes where its group says no",
        ),
        pytest.param(
            [*low(3), running("low-3", priorityClassName="system-node-critical"), *waiting()],
            ["low-2"],
            id="critical pods stay",
        ),
        pytest.param(
            [*low(3, minimum=4), labelled(*running("low-3"), "annotations", "false"), *waiting()],
            [],
            id="a gang stays of which one pod has to stay",
        ),
        pytest.param(
            [*low(3, minimum=1), running("free", ""), *waiting(4)], [], id="pods without a group that exists stay"
        ),
        pytest.param(
            [
                group("low", 2, phase="Running", priorityClassName="low", minTaskMember={"a": 2}),
                running("a-0", role="a"),
                running("a-1", role="a"),
                running("b-0", role="b"),
                running("b-1", role="b"),
                *waiting(2),
            ],
            ["b-0", "b-1"],
            id="the minimum of a role stays",
        ),
    ],
)
def test_who_goes(objects, victims):
    here = world(*objects)
    decisions = here.cycle()
    assert here.going() == victims
    assert sorted(each.pod.name for each in decisions.evictions) == victims
    assert all(each.action is Action.PREEMPT for each in decisions.evictions)


def test_gang_that_gets_more_pods_in_the_same_cycle_stays_until_the_next():
    """It would go without them, and they would stay without it."""
    more = [pod("low-2", "low", "1"), *waiting(2, "2")]
    here = world(*low(2, minimum=2, cpu="2"), *more, cpu="5")
    assert here.cycle().evictions == []
    assert "low-2" in here.where()
    here.cycle()
    assert here.going() == ["low-0", "low-1", "low-2"]


@pytest.mark.shows("scheduler 1.9/evicted", "scheduler 1.9/evicted, group")
def test_victims_are_told_why_and_the_group_says_whom_it_waits_for():
    here = world(*low(4), *waiting(2))
    here.cycle()
    condition = here.condition()
    assert condition["reason"] == "WaitingForVictims"
    assert people(condition["message"]) == "2 pods of low are asked to end, so that this can start."
    (mark,) = here.get(resources.PODS, "low-3")["status"]["conditions"]
    assert (mark["type"], mark["status"], mark["reason"]) == ("DisruptionTarget", "True", "PreemptionByScheduler")
    told = [each for each in here.events if each["involvedObject"]["kind"] == "Pod"]
    assert {each["reason"] for each in told} == {"Evict"}
    assert told[0]["message"] == "Pod is evicted, because of preempt: pod group ns/g gets its room."
    assert told[0]["type"] == "Warning"


@pytest.mark.shows("scheduler 2.4/nominatedNodeName")
def test_group_starts_when_its_victims_are_gone():
    here = world(*low(4), *waiting(2))
    here.cycle()
    here.gone()
    here.cycle()
    assert {"g-0", "g-1"} <= here.where().keys()
    assert here.condition()["status"] == "False"
    assert here.condition(kind="Scheduled")["status"] == "True"


def test_nobody_else_goes_while_victims_are_going():
    here = world(*low(4), *waiting(2))
    here.cycle()
    for _ in range(3):
        assert here.cycle(seconds=20).evictions == []
    here.gone("low-3")
    assert here.cycle(seconds=20).evictions == []
    assert people(here.condition()["message"]).startswith("2 pods of low")


@pytest.mark.shows("scheduler 2.2/nominated node", "scheduler 2.4/nominatedNodeName")
@pytest.mark.parametrize("seconds", [0, 60])
def test_room_of_victims_is_kept(seconds):
    """Also from what its controller makes again, and from a queue that would be served before."""
    here = world(*low(4), *waiting(2), queue("other", priority=9))
    here.cycle()
    here.gone("low-3")
    here.put(pod("low-3", "low"), group("new", queue="other", **HIGH), pod("new-0", "new"))
    here.cycle(seconds)
    assert "low-3" not in here.where()
    assert "new-0" not in here.where()
    here.gone("low-2")
    here.cycle(seconds)
    assert {"g-0", "g-1"} <= here.where().keys()


def test_who_decides_next_knows_what_is_kept():
    here = world(*low(4), *waiting(2))
    here.cycle()
    here.snapshot = here.rebuilt()
    here.gone("low-3")
    here.put(pod("low-3", "low"))
    assert here.cycle(seconds=60).evictions == []
    here.gone("low-2")
    here.snapshot = here.rebuilt()
    here.cycle()
    assert {"g-0", "g-1"} <= here.where().keys()


def test_higher_priority_in_the_queue_takes_what_is_kept():
    here = world(*low(4), *waiting(2), priority_class("top", 1000))
    here.cycle()
    here.gone("low-3")
    here.put(*waiting(name="top", priorityClassName="top"))
    here.cycle()
    assert "top-0" in here.where()
    assert here.going() == ["low-1", "low-2"]


def test_room_is_free_for_others_when_the_group_wants_it_no_more():
    here = world(*low(4), *waiting(2))
    here.cycle()
    here.gone()
    here.put(pod("low-2", "low"), pod("low-3", "low"))
    here.remove(resources.PODS, "g-0")
    here.remove(resources.PODS, "g-1")
    here.remove(resources.POD_GROUPS, "g")
    here.cycle()
    assert {"low-2", "low-3"} <= here.where().keys()


def test_others_go_when_victims_never_leave_a_node_that_is_lost():
    here = world(*low(4), *low(4, name="far", node="n2"), *waiting(), nodes=("n1", "n2"))
    here.cycle()
    (victim,) = here.going()
    lost = here.where()[victim]
    here.put(node(lost, cpu="4", pods=99, ready=False))
    decisions = here.cycle(seconds=20)
    assert [each.pod.node for each in decisions.evictions] == ["n1" if lost == "n2" else "n2"]


@pytest.mark.shows("scheduler 1.5/future", "scheduler 1.8/promised", "scheduler 2.4/free room", "scheduler 10.1/11")
def test_pods_that_go_anyway_are_room_to_come():
    here = world(*low(3), running("low-3", deleted="2026-01-01T00:00:00Z"), *waiting())
    assert here.cycle().evictions == []
    assert here.condition()["reason"] == "NotEnoughResources"


def test_two_groups_have_different_victims():
    here = world(*low(4), *waiting(1, name="a"), *waiting(2, name="b"))
    decisions = here.cycle()
    assert sorted((each.beneficiary, each.pod.name) for each in decisions.evictions) == [
        ("ns/a", "low-3"),
        ("ns/b", "low-1"),
        ("ns/b", "low-2"),
    ]


@pytest.mark.shows("scheduler 2.4/full queue")
def test_full_queue_is_room_to_be_made_too():
    here = World(node("n1", cpu="99", pods=99), queue(capability={"cpu": "4"}), *CLASSES, *low(4), *waiting(2))
    here.cycle()
    assert here.going() == ["low-2", "low-3"]
    here.gone()
    here.cycle()
    assert {"g-0", "g-1"} <= here.where().keys()


@pytest.mark.shows("scheduler 2.4/not listed")
def test_action_that_is_not_configured_is_not_taken():
    here = world(*low(4), *waiting())
    here.snapshot.policy = Policy(frozenset({Action.ENQUEUE, Action.ALLOCATE}))
    assert here.cycle().evictions == []
    assert here.condition()["reason"] == "NotEnoughResources"


def test_gang_of_several_kinds_gets_room_on_several_nodes():
    here = world(
        *low(4, name="x"),
        *low(4, name="y", node="n2"),
        group("g", 2, **HIGH),
        pod("g-0", cpu="3"),
        pod("g-1", cpu="2"),
        nodes=("n1", "n2"),
    )
    here.cycle()
    assert len(here.going()) == 5
    here.gone()
    here.cycle()
    assert {"g-0", "g-1"} <= here.where().keys()


def test_same_snapshot_gives_the_same_victims():
    objects = [*low(4, name="a"), *low(4, name="b", node="n2"), *waiting(3)]
    here = world(*objects, nodes=("n1", "n2"))
    there = world(*reversed(objects), nodes=("n2", "n1"))
    assert [e.pod.name for e in here.cycle().evictions] == [e.pod.name for e in there.cycle().evictions]


def test_costly_search_in_vain_is_not_made_again_at_once(monkeypatch):
    """Each change of a large cluster would cost it again."""
    monkeypatch.setattr("scheduler.cycle.evictions.COSTLY", 3)
    fixed = running("fixed", priorityClassName="system-node-critical")
    here = world(*low(4), fixed, *waiting(1, "5"), cpu="5")
    decisions = here.cycle()
    assert decisions.evictions == []
    assert decisions.wake is not None
    here.remove(resources.PODS, "fixed")
    assert here.cycle(seconds=1).evictions == []
    assert len(here.cycle(seconds=5).evictions) == 4


@pytest.mark.parametrize("more", [(), (queue("vip", guarantee={"resource": {"cpu": "1"}}),)], ids=["", "a guarantee"])
def test_what_is_idle_while_victims_go_is_others(more):
    """The group's room comes from its victims: it waits for the ceiling of its queue, and nothing is kept for it beside them."""
    here = world(*low(2, queue="own"), *waiting(2, queue="own"), queue("own", {"cpu": "2"}), *more)
    here.cycle()
    assert here.going() == ["low-0", "low-1"]
    here.put(group("other"), pod("other-0", "other"))
    here.cycle()
    assert here.where()["other-0"] == "n1"
    here.gone()
    here.cycle()
    assert {"g-0", "g-1"} <= here.where().keys()


def test_what_victims_do_not_leave_is_kept_while_they_go():
    """The group needs four: two are free."""
    here = world(*low(2), *waiting(4))
    here.cycle()
    here.put(group("other"), pod("other-0", "other"))
    here.cycle()
    assert "other-0" not in here.where()
    here.gone()
    here.cycle()
    assert {f"g-{number}" for number in range(4)} <= here.where().keys()
