"""Who is let in: room of the cluster, ceilings of queues, and who holds what was promised."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import resources
from kube.intake_times import JOB_MADE, SHUT_SINCE
from kube.meta import timestamp
from scheduler.engine.message import people
from scheduler.policy.policy import DEFAULT
from tests.campaign import examples

from .world import START, World, configuration, group, keeping, node, pod, priority_class, queue


def asking(name, cpu, **more):
    return group(name, phase="Pending", minResources={"cpu": str(cpu)}, **more)


def inside(world):
    phases = {key[2]: world.status(key[2]).get("phase") for key in world.objects if "podgroups" in key[0]}
    return {name for name, phase in phases.items() if phase == "Inqueue"}


def told(world, name):
    return people(world.condition(name)["message"])


def test_a_full_queue_starves_nobody_else():
    """A backlog of 200 jobs of 10 CPU behind a ceiling of 10, a gang of 16 CPU elsewhere, a cluster of 1,600."""
    world = World(
        *(node(f"n{i}", cpu="16") for i in range(100)),
        queue(),
        queue("small", {"cpu": "10"}),
        *(asking(f"backlog-{i:03}", 10, queue="small") for i in range(200)),
    )
    world.cycle()
    assert inside(world) == {"backlog-000"}
    world.put(asking("gang", 16, created="2026-02-01T00:00:00Z"))
    world.cycle()
    assert "gang" in inside(world)
    assert world.condition("backlog-001")["reason"] == "QueueLimit"
    assert told(world, "backlog-001") == (
        "Waits for room in queue small: its minimum needs 10 CPU, 0 CPU of 10 CPU can still be given out. "
        "Queue small may still take 10 CPU for 1 job that entered before."
    )


@pytest.mark.shows("scheduler 3.10/what entered", "scheduler 11/10")
def test_groups_that_entered_a_queue_before_its_ceiling_fell_promise_no_more_than_the_ceiling():
    world = World(
        *(node(f"n{i}", cpu="16") for i in range(100)),
        queue(),
        queue("small", {"cpu": "10"}),
        *(group(f"in-{i:03}", queue="small", minResources={"cpu": "10"}) for i in range(200)),
        asking("gang", 16),
    )
    world.cycle()
    assert "gang" in inside(world)


@pytest.mark.parametrize(
    ("minimum", "enters"),
    [
        pytest.param({"cpu": "17"}, True, id="more than the cluster has"),
        pytest.param({"cpu": "1", "example.com/gpu": "1"}, True, id="of something that no node has"),
        pytest.param({"cpu": "16"}, False, id="as much as there is"),
    ],
)
def test_a_promise_that_cannot_be_kept_holds_up_nobody(minimum, enters):
    """It was let in while the cluster was no limit, as without the plugin overcommit, or while there were more nodes."""
    world = World(node("n", cpu="16"), queue(), group("huge", minResources=minimum), asking("small", 16))
    world.cycle()
    assert ("small" in inside(world)) is enters


def test_the_sentence_names_the_queue_that_holds_most_of_what_was_given_out():
    world = World(
        *(node(f"n{i}", cpu="64") for i in range(13)),
        queue(),
        queue("research"),
        *(group(f"r-{i:02}", queue="research", minResources={"cpu": "10"}) for i in range(98)),
        group("other", minResources={"cpu": "8"}),
        asking("gang", 16),
    )
    world.cycle()
    assert told(world, "gang") == (
        "Waits for room in the cluster: its minimum needs 16 CPU, 10.4 CPU can still be given out. "
        "Queue research may still take 980 CPU for 98 jobs that entered before."
    )


@pytest.mark.shows("scheduler 3.5/entry")
@pytest.mark.parametrize(
    ("objects", "cpu", "reason", "words"),
    [
        pytest.param(
            [], 11, "QueueTooSmall",
            "This can never start in queue leaf: it needs more than the queue's limit of 10 CPU.",
            id="more than the queue may ever have",
        ),
        pytest.param(
            [group("o", queue="leaf", phase="Running"), pod("o-0", "o", "4", node="n1", phase="Running")],
            7, "QueueLimit",
            "Waits for room in queue leaf: its minimum needs 7 CPU, 6 CPU of 10 CPU can still be given out.",
            id="what pods of the queue hold",
        ),
        pytest.param(
            [group("o", queue="beside", minResources={"cpu": "9"})],
            7, "ParentQueueLimit",
            "Waits for room in queue above, which is above its own: its minimum needs 7 CPU, 3 CPU of 12 CPU can still be given out. "
            "Queue beside may still take 9 CPU for 1 job that entered before.",
            id="the ceiling of an ancestor, taken by a sibling",
        ),
        pytest.param(
            [group("o", queue="leaf", priorityClassName="low", minResources={"cpu": "10"})],
            10, "", "", id="lower priority in the same queue is no obstacle",
        ),
        pytest.param(
            [group("o", minimum=2, queue="leaf", minResources={"cpu": "10"}),
             pod("o-0", "o", "5", schedulingGates=[{"name": "x"}]),
             pod("o-1", "o", "5", schedulingGates=[{"name": "x"}])],
            10, "", "", id="gated pods promise nothing",
        ),
        pytest.param(
            [group("o", minimum=1, queue="leaf", minResources={"cpu": "10"}),
             pod("o-0", "o", "10", resourceClaims=[{"name": "gpu"}])],
            10, "", "", id="pods with an unknown demand promise nothing",
        ),
        pytest.param(
            [group("o", queue="above", minResources={"cpu": "10"})],
            10, "", "", id="groups in a queue that takes no pods promise nothing",
        ),
    ],
)  # fmt: skip
def test_entry_heeds_the_ceilings_of_a_queue_and_of_those_above_it(objects, cpu, reason, words):
    world = World(
        node("n1", cpu="100"),
        queue("above", {"cpu": "12"}),
        queue("leaf", {"cpu": "10"}, parent="above"),
        queue("beside", parent="above"),
        queue(),
        priority_class("low", -1),
        *objects,
        asking("g", cpu, queue="leaf"),
    )
    world.cycle()
    if reason:
        assert (world.condition("g")["reason"], told(world, "g")) == (reason, words)
    else:
        assert "g" in inside(world)


@pytest.mark.shows("scheduler 3.5/guarantees of others", "scheduler 11/11")
@pytest.mark.parametrize(
    ("cpu", "where", "words"),
    [
        pytest.param(4, "other", "", id="beside the guarantee there is room"),
        pytest.param(
            8, "other",
            "Waits for room in the cluster: its minimum needs 8 CPU, 4 CPU of 20 CPU can be given out, "
            "as guarantees keep 10 CPU for queue kept and 2 CPU for queue team.",
            id="what is guaranteed is not given out to others",
        ),
        pytest.param(
            11, "other",
            "This can never start: it needs 11 CPU, and of 20 CPU in the cluster all but 8 CPU are kept "
            "for the guarantees of other queues.",
            id="more than guarantees ever leave",
        ),
        pytest.param(
            21, "other", "This can never start: its minimum needs 21 CPU, the whole cluster has 20 CPU.",
            id="more than the cluster has, whatever is guaranteed",
        ),
        pytest.param(14, "kept", "", id="the queue itself has its guarantee"),
        pytest.param(
            5, "beside",
            "Waits for room in queue team: its minimum needs 5 CPU, 3 CPU of 8 CPU can be given out, "
            "as guarantees keep 2 CPU for queue below.",
            id="a guarantee below a ceiling",
        ),
        pytest.param(
            7, "beside",
            "This can never start: it needs 7 CPU, and of 8 CPU in queue team all but 6 CPU are kept "
            "for the guarantees of other queues.",
            id="a ceiling that guarantees below it narrow",
        ),
    ],
)  # fmt: skip
def test_entry_heeds_what_is_guaranteed_to_others(cpu, where, words):
    world = World(
        node("n1", cpu="20"),
        queue("kept", **keeping(10)),
        queue("other"),
        queue("team", {"cpu": "8"}, guarantee={"resource": {"cpu": "0"}}),
        queue("below", parent="team", **keeping(2)),
        queue("beside", parent="team"),
        group("runs", queue="beside", phase="Running"),
        pod("runs-0", "runs", "3", node="n1", phase="Running"),
        group("more", queue="other", phase="Running"),
        pod("more-0", "more", "5", node="n1", phase="Running"),
        asking("g", cpu, queue=where),
    )
    world.cycle()
    assert (told(world, "g") if world.condition("g") else "") == words
    assert ("g" in inside(world)) is (not words)


@pytest.mark.shows("scheduler 2.1/turns")
def test_a_backlog_keeps_no_other_queue_out():
    """Half of the cluster is free again for whoever is behind, however long, old and urgent the backlog of another queue is."""
    world = World(
        node("n1", cpu="20"),
        queue("long"),
        queue("late"),
        priority_class("high", 5),
        *(asking(f"long-{i:02}", 4, queue="long", priorityClassName="high") for i in range(30)),
    )
    world.cycle()
    assert len(inside(world)) == 6
    world.put(*(asking(f"late-{i}", 4, queue="late", created="2026-02-01T00:00:00Z") for i in range(9)))
    world.put(*(group(f"long-{i:02}", queue="long", phase="Completed") for i in range(3)))
    world.cycle()
    assert {name for name in inside(world) if name.startswith("late")} == {"late-0", "late-1", "late-2"}


@pytest.mark.shows("scheduler 2.2/dequeueStrategy")
@pytest.mark.parametrize(
    ("strategy", "entered", "reason"),
    [
        pytest.param("traverse", {"small", "elsewhere"}, "", id="the next one is tried"),
        pytest.param("fifo", {"in", "elsewhere"}, "QueueOrder", id="first in, first out"),
    ],
)
def test_a_queue_that_is_first_in_first_out_lets_nobody_pass(strategy, entered, reason):
    world = World(
        node("n1", cpu="20"),
        queue("strict", {"cpu": "8"}, dequeueStrategy=strategy),
        queue("loose"),
        group("in", queue="strict", minResources={"cpu": "2"}, created="2026-01-03T00:00:00Z"),
        pod("in-0", "in", "2"),
        asking("big", 9, queue="strict"),
        asking("small", 1, queue="strict", created="2026-01-02T00:00:00Z"),
        asking("elsewhere", 1, queue="loose", created="2026-01-02T00:00:00Z"),
    )
    world.cycle()
    assert world.condition("big")["reason"] == "QueueTooSmall"
    assert inside(world) == entered
    assert (world.where() == {}) is (strategy == "fifo")
    for name in ("small", "in"):
        assert (world.condition(name) or {"reason": ""})["reason"] == reason
        if reason:
            assert told(world, name) == (
                "Queue strict is first in, first out: this waits until job group big, which is before it, can start."
            )


TREE = {"a": ("b", "c"), "b": ("d", "e")}
LEAVES = ("c", "d", "e", "free")
ABOVE = {"c": ("c", "a"), "d": ("d", "b", "a"), "e": ("e", "b", "a"), "free": ("free",)}
CLUSTER = 20
limits = st.fixed_dictionaries({name: st.sampled_from([None, 4, 7, 12]) for name in (*TREE, *LEAVES[:3])})
some_groups = st.lists(
    st.tuples(st.sampled_from(LEAVES), st.integers(1, 9), st.sampled_from(["", "high"])), max_size=14
)


def queues(ceilings):
    parents = {below: above for above, children in TREE.items() for below in children}
    made = [
        queue(name, {"cpu": str(limit)} if limit else None, parent=parents.get(name, ""))
        for name, limit in ceilings.items()
    ]
    return [*made, queue("free")]


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
    return inside(world), world


def of(obj):
    spec = obj["spec"]
    return spec["queue"], int(spec["minResources"]["cpu"]), spec["priorityClassName"]


@pytest.mark.shows("scheduler 2.1/room")
@examples(150)
@given(limits, some_groups)
def test_what_entered_fits_under_every_ceiling(ceilings, asked):
    """Of each priority by itself: what is less urgent is no obstacle."""
    groups = backlog(asked)
    entered, _ = let_in(ceilings, groups)
    given_out = {"": Counter(), "high": Counter()}
    for _, obj in groups:
        where, cpu, urgency = of(obj)
        if obj["metadata"]["name"] in entered:
            given_out[urgency].update(dict.fromkeys((*ABOVE[where], "cluster"), cpu))
    for each in given_out.values():
        assert all(each[name] <= limit for name, limit in ceilings.items() if limit)
        assert each["cluster"] <= CLUSTER * DEFAULT.overcommit // 1000


@examples(150)
@given(limits, some_groups)
def test_among_equals_the_older_enters_first(ceilings, asked):
    groups = backlog(asked)
    entered, _ = let_in(ceilings, groups)
    refused = set()
    for _, obj in groups:
        if obj["metadata"]["name"] not in entered:
            refused.add(of(obj))
        else:
            assert of(obj) not in refused


@pytest.mark.shows("scheduler 2.1/passing")
@examples(150)
@given(limits, some_groups)
def test_nobody_is_kept_out_by_those_who_wait(ceilings, asked):
    """Who waits has no room beside those that entered and are as urgent: the backlog of no queue stands in the way."""
    groups = backlog(asked)
    entered, _ = let_in(ceilings, groups)
    inside_by_urgency = {"": Counter(), "high": Counter()}
    for _, obj in groups:
        where, cpu, urgency = of(obj)
        if obj["metadata"]["name"] in entered:
            for each in {urgency, ""}:
                inside_by_urgency[each].update(dict.fromkeys((*ABOVE[where], "cluster"), cpu))
    rooms = {**ceilings, "cluster": CLUSTER * DEFAULT.overcommit // 1000}
    for _, obj in groups:
        where, cpu, urgency = of(obj)
        if obj["metadata"]["name"] not in entered:
            taken = inside_by_urgency[urgency]
            assert any(rooms.get(name) and taken[name] + cpu > rooms[name] for name in (*ABOVE[where], "cluster"))


@examples(150)
@given(limits, st.lists(st.sampled_from(LEAVES), max_size=25), st.sampled_from(LEAVES))
def test_without_a_queue_nobody_enters_later(ceilings, asked, where):
    """Of groups that ask for the same, at least those enter that entered beside the queue."""
    groups = backlog([(each, 2, "") for each in asked])
    entered, _ = let_in(ceilings, groups)
    others = [(r, obj) for r, obj in groups if obj["spec"]["queue"] != where]
    names = {obj["metadata"]["name"] for _, obj in others}
    assert let_in(ceilings, others)[0] >= entered & names


# Idle room

HOPELESS = {
    "a pod larger than any node": {"cpu": "17"},
    "a label that no node has": {"nodeSelector": {"gpu": "a100"}},
    "two pods of a port on one node": {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}], "nodeSelector": {"only": "one"}},
}  # fmt: skip


@pytest.mark.parametrize("spec", HOPELESS.values(), ids=HOPELESS)
def test_those_that_can_never_start_hold_up_nobody(spec):
    """They entered, and have shown what they are: more of them than the cluster holds, and one more job elsewhere."""
    spec = dict(spec)
    cpu = spec.pop("cpu", "8")
    hopeless = [
        each
        for number in range(15)
        for each in (
            group(f"h{number}", 2, minResources={"cpu": str(2 * int(cpu))}),
            *(pod(f"h{number}-{i}", f"h{number}", "", requests={"cpu": cpu}, **spec) for i in range(2)),
        )
    ]
    nodes = [node(f"n{i}", cpu="16", labels={"only": "one" if i == 0 else "no"}) for i in range(8)]
    world = World(*nodes, queue(), queue("other"), *hopeless, asking("gang", 16, queue="other"))
    world.cycle(seconds=11)
    assert "gang" in inside(world)


def test_whoever_waits_for_room_elsewhere_keeps_no_room_idle():
    """The gang may be on two nodes alone, of which one is in use: nine others stand still unless somebody is let in for them."""
    nodes = [node(f"n{i}", cpu="8", labels={"zone": "a" if i < 2 else "b"}) for i in range(11)]
    patient = [pod(f"p{i}-0", f"p{i}", "8", nodeSelector={"zone": "a"}) for i in range(14)]
    world = World(
        *nodes, queue(), queue("other"),
        *(group(f"p{i}", minResources={"cpu": "8"}) for i in range(14)), *patient,
        *(asking(f"o{i:02}", 8, minimum=8, queue="other", minTaskMember={"main": 8}) for i in range(12)),
    )  # fmt: skip
    world.cycle(seconds=11)
    assert {name for name in inside(world) if name.startswith("o")} == {f"o{i:02}" for i in range(9)}


def test_room_in_which_pods_of_that_size_do_not_fit_lets_nobody_in():
    """So no pods are made for a backlog because a little is free on each node."""
    nodes = [node(f"n{i}", cpu="4") for i in range(8)]
    running = [pod(f"r{i}", "r", "3", node=f"n{i}", phase="Running") for i in range(8)]
    waits = [
        each for i in range(3) for each in (group(f"w{i}", minResources={"cpu": "4"}), pod(f"w{i}-0", f"w{i}", "4"))
    ]
    world = World(
        *nodes, queue(), group("r", phase="Running"), *running, *waits,
        asking("equal", 8, minimum=4, minTaskMember={"main": 4}),
        asking("mixed", 6, minimum=4, minTaskMember={"main": 1, "more": 3}),
    )  # fmt: skip
    world.cycle(seconds=11)
    assert inside(world) == {"w0", "w1", "w2", "mixed"}


def test_those_whose_pods_are_being_made_come_before_whoever_is_let_in_for_idle_room():
    world = World(node("n1", cpu="10"), queue(), group("in", minResources={"cpu": "10"}), asking("out", 4))
    world.cycle()
    assert inside(world) == {"in"}
    world.cycle(seconds=11)
    assert inside(world) == {"in", "out"}, "nobody makes them"


def test_a_quota_that_has_room_for_one_lets_one_in_for_idle_room():
    quota = {
        "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": {"cpu": "28"}},
        "status": {"hard": {"cpu": "28"}},
    }
    waits = [pod(f"w{i}-0", f"w{i}", "12", nodeSelector={"zone": "a"}) for i in range(2)]
    world = World(
        node("n1", cpu="12", labels={"zone": "a"}), node("n2", cpu="12"), queue(), (resources.RESOURCE_QUOTAS, quota),
        pod("f", "", "12", node="n1", phase="Running", scheduler="other"),
        *(group(f"w{i}", minResources={"cpu": "12"}) for i in range(2)), *waits, asking("g0", 3), asking("g1", 3),
    )  # fmt: skip
    world.cycle(seconds=11)
    assert inside(world) - {"w0", "w1"} == {"g0"}


some_jobs = st.lists(
    st.tuples(st.sampled_from(LEAVES), st.integers(1, 9), st.sampled_from(["", "high"]), st.sampled_from(["", "", "typo", "n1"])),
    max_size=14,
)  # fmt: skip


@examples(150)
@given(limits, some_jobs)
def test_no_room_is_idle_while_somebody_is_kept_out_for_whom_it_is_enough(ceilings, asked):
    """Whatever those that entered wait for: none of their labels, or their own node. Asked of the nodes and the queues themselves."""
    groups = backlog([each[:3] for each in asked])
    nodes = [node(name, cpu=str(CLUSTER // 2), labels={"own": name}) for name in ("n1", "n2")]
    world = World(*nodes, priority_class("high", 5), *queues(ceilings), *groups)
    for _ in range(30):
        for (_, obj), (_, cpu, _, place) in zip(groups, asked, strict=True):
            name = obj["metadata"]["name"]
            if name in inside(world) and ("pods", "ns", f"{name}-0") not in world.objects:
                world.put(pod(f"{name}-0", name, str(cpu), **({"nodeSelector": {"own": place}} if place else {})))
        world.cycle(seconds=1)
        world.gone()
    use, free = Counter(), {"n1": CLUSTER // 2, "n2": CLUSTER // 2}
    sizes = {obj["metadata"]["name"]: of(obj) for _, obj in groups}
    for name, at in world.where().items():
        where, cpu, _ = sizes[name.removesuffix("-0")]
        free[at] -= cpu
        use.update(dict.fromkeys(ABOVE[where], cpu))
    for name in sizes:
        if world.status(name).get("phase") != "Pending":
            continue
        where, cpu, _ = sizes[name]
        is_below = all(not ceilings.get(each) or use[each] + cpu <= ceilings[each] for each in ABOVE[where])
        assert cpu > max(free.values()) or not is_below


FULL = [node("n1", cpu="10"), queue(), group("o", phase="Running"), pod("o-0", "o", "8", node="n1", phase="Running")]


@pytest.mark.shows("scheduler 2.2/no enqueue", "scheduler 3.10/overcommit-factor", "scheduler 3.10/listed")
@pytest.mark.parametrize(
    ("text", "enters"),
    [
        pytest.param("", set(), id="by default 1.2 times the cluster"),
        pytest.param("actions: enqueue, allocate", {"g"}, id="without overcommit the cluster is no limit"),
        pytest.param(
            "actions: enqueue, allocate\ntiers: [{plugins: [{name: overcommit}]}]", set(), id="Volcano's default factor"
        ),
        pytest.param(
            "actions: enqueue, allocate\ntiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 1.3}}]}]",
            {"g"},
            id="a factor that is just enough",
        ),
        pytest.param(
            "actions: enqueue, allocate\n"
            "tiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 1.299}}]}]",
            set(),
            id="a factor that is just too little",
        ),
        pytest.param("actions: allocate", {"g"}, id="without enqueue all enter"),
    ],
)
def test_the_configuration_says_who_enters(text, enters):
    world = World(*FULL, asking("g", 5))
    if text:
        world.put(configuration(text))
    world.cycle()
    assert inside(world) == enters


def test_a_change_of_the_configuration_is_told_at_once_to_everybody_who_waits():
    world = World(*FULL, asking("g", 11))
    world.cycle()
    world.cycle()  # what it was told is no news any more
    assert world.condition("g")["reason"] == "NotEnoughResources"
    world.put(
        configuration("actions: enqueue\ntiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 1}}]}]")
    )
    world.cycle()
    assert world.condition("g")["reason"] == "NeverFits"


@pytest.mark.parametrize("away", [{"ready": False}, {"unschedulable": True}], ids=["not ready", "closed to new pods"])
def test_what_only_nodes_that_are_away_could_hold_waits_for_them(away):
    world = World(node("n1"), node("n2", cpu="8", **away), queue(), asking("g", 11), asking("more", 13))
    world.cycle()
    assert world.condition("g")["reason"] == "NodesUnavailable"
    assert told(world, "g") == (
        "Waits for nodes: its minimum needs 11 CPU, those that take pods have 4 CPU; "
        "8 CPU more are on nodes that are not ready or closed to new pods."
    )
    assert world.condition("more")["reason"] == "NeverFits"
    world.put(node("n2", cpu="8"))
    world.cycle(seconds=9)
    assert inside(world) == {"g"}


@pytest.mark.shows("queues 2.8/entry")
def test_without_enqueue_a_closed_queue_lets_nobody_in():
    world = World(node("n1"), queue(state="Closed"), asking("g", 1), configuration("actions: allocate"))
    world.cycle()
    assert inside(world) == set()


@pytest.mark.shows("scheduler 3.10/listed")
def test_without_overcommit_the_ceilings_of_queues_hold():
    world = World(*FULL, queue("leaf", {"cpu": "4"}), asking("g", 5, queue="leaf"), configuration("actions: enqueue"))
    world.cycle()
    assert world.condition("g")["reason"] == "QueueTooSmall"


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
@pytest.mark.parametrize(
    ("configured", "asks", "enters"),
    [
        pytest.param(AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S), True, id="it has waited"),
        pytest.param(AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S - 1), False, id="not long enough yet"),
        pytest.param(AN_HOUR, waiting_for("g", 5, "2h", ago_s=HOUR_S), False, id="it says more itself"),
        pytest.param(EACH_ITS_OWN, waiting_for("g", 5, "30s", ago_s=30), True, id="it says so itself"),
        pytest.param(
            EACH_ITS_OWN, waiting_for("g", 5, "30s", key="sla-waiting-time", ago_s=30), True, id="by the other name"
        ),
        pytest.param(EACH_ITS_OWN, waiting_for("g", 5, ago_s=9 * HOUR_S), False, id="nobody says anything"),
        pytest.param(EACH_ITS_OWN, waiting_for("g", 5, "soon", ago_s=HOUR_S), False, id="no duration"),
        pytest.param(AN_HOUR, waiting_for("g", 5, "-1h", ago_s=HOUR_S), True, id="no duration: that of the policy"),
        pytest.param(AN_HOUR, waiting_for("g", 13, ago_s=HOUR_S), False, id="there can never be enough"),
        pytest.param(
            AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S, queue="closed"), False, id="its queue is closed"
        ),
        pytest.param(
            AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S, queue="small"), False, id="more than its queue may ever have"
        ),
    ],
)  # fmt: skip
def test_who_has_waited_for_his_time_is_let_in(configured, asks, enters):
    world = World(*FULL, queue("closed", state="Closed"), queue("small", {"cpu": "4"}), configured, asks)
    world.cycle()
    assert inside(world) == ({"g"} if enters else set())


def test_the_scheduler_looks_again_when_the_time_is_over():
    world = World(*FULL, AN_HOUR, waiting_for("g", 5, ago_s=HOUR_S - 3))
    for _ in range(10):
        decisions = world.cycle()
        if inside(world):
            break
        assert decisions.wake is not None
        world.now = decisions.wake
    assert (inside(world), world.now) == ({"g"}, START + 3000)


def test_what_one_who_has_waited_may_take_is_given_to_nobody_else():
    """The room for 4 more goes to whoever is first by his time; who waited takes what is not there."""
    world = World(*FULL, AN_HOUR, waiting_for("late", 3, ago_s=5), waiting_for("overdue", 5, ago_s=HOUR_S))
    world.cycle()
    assert inside(world) == {"overdue"}


@pytest.mark.shows("scheduler 3.11 sla/order")
def test_in_a_priority_those_with_a_time_come_first_and_among_them_the_soonest():
    world = World(
        node("n1", cpu="1"), queue(), EACH_ITS_OWN, priority_class("high", 10),
        waiting_for("old", 1, ago_s=100), waiting_for("later", 1, "2h", ago_s=50),
        waiting_for("sooner", 1, "1h", ago_s=5), waiting_for("urgent", 1, priorityClassName="high"),
    )  # fmt: skip
    order = []
    for _ in range(4):
        world.cycle()
        (first,) = inside(world)
        order.append(first)
        world.remove(resources.POD_GROUPS, first)
    assert order == ["urgent", "sooner", "later", "old"]


def shut(name="default", since=START, state="Closing"):
    kind, obj = queue(name, state=state)
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
@pytest.mark.parametrize(
    ("its_queue", "its_group", "enters"),
    [
        pytest.param(shut(), made_at("g", BEFORE), True, id="it waited there before"),
        pytest.param(shut(), made_at("g", START), True, id="made within the second"),
        pytest.param(shut(), made_at("g", AFTER), False, id="new work"),
        pytest.param(shut(), made_at("g", AFTER, phase=""), False, id="new work without a phase"),
        pytest.param(shut(), made_at("g", AFTER, BEFORE), True, id="its job begins again"),
        pytest.param(shut(), made_at("g", AFTER, AFTER), False, id="a new job"),
        pytest.param(shut(), made_at("g", AFTER, phase="Inqueue"), True, id="it had entered"),
        pytest.param(shut(since=None), made_at("g", AFTER), True, id="nobody knows since when"),
        pytest.param(shut(state="Open"), made_at("g", AFTER), True, id="it is open again"),
        pytest.param(shut(state="Closed"), made_at("g", BEFORE), False, id="it is closed"),
    ],
)
@pytest.mark.parametrize("configured", ["", "actions: allocate"], ids=["gate", "without the action enqueue"])
def test_a_closing_queue_takes_nothing_new(its_queue, its_group, enters, configured):
    world = World(node("n"), its_queue, its_group)
    if configured:
        world.put(configuration(configured))
    world.cycle()
    world.cycle(seconds=3600)
    assert inside(world) == ({"g"} if enters else set())
    if not enters:
        assert told(world, "g") == "Queue default is closed; open it or choose another."
        world.put(queue())
        world.cycle()
        assert inside(world) == {"g"}


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
                assert inside(world) == may
        else:
            since = None if step == "Open" else since or world.now
            state = step
            world.put(shut(since=since, state=state))
            if state == "Open":
                may |= {f"g{each}" for each in range(number)}
