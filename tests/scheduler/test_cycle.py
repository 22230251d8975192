"""A whole cycle, from objects to what is written."""

from __future__ import annotations

import pytest

from kube import resources
from scheduler.engine.message import people

from .world import World, group, keeping, node, pod, priority_class, queue


def pods(count, name="g", **more):
    return [pod(f"{name}-{i}", name, **more) for i in range(count)]


SIMULATED = [{"key": "ui.volcano.sh/simulated", "value": "true", "effect": "NoSchedule"}]


def sentence(world, name="g"):
    return people(world.condition(name)["message"])


@pytest.mark.shows(
    "scheduler 1.3/group-name",
    "scheduler 1.9/bound",
    "scheduler 5.1/at once",
    "scheduler 5.2/Scheduled",
    "scheduler 5.4/group is ready",
    "groups 3.5/group-name",
    "coscheduling 3/all at once",
)
def test_a_gang_that_fits_is_bound_and_running_in_one_write():
    world = World(node("n1"), queue(), group(minimum=3), *pods(3))
    world.cycle()
    assert world.where() == {"g-0": "n1", "g-1": "n1", "g-2": "n1"}
    assert world.status()["phase"] == "Running"
    assert world.condition(kind="Scheduled")["status"] == "True"
    assert world.events == []
    bound = world.get(resources.PODS, "g-0")["status"]["conditions"]
    assert bound == [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00.000000Z"}]


@pytest.mark.shows(
    "scheduler 1.8/minimum",
    "scheduler 2.2/minimum first",
    "scheduler 3.1/minimum",
    "scheduler 5.1/Inqueue",
    "scheduler 5.2/Unschedulable",
    "scheduler 5.2/Scheduled",
    "scheduler 5.2/both",
    "scheduler 5.4/group is ready",
    "groups 3.1/minMember",
    "groups 3.2/conditions",
    "coscheduling 3/does not fit",
    "scheduler 10.1/2",
    "scheduler 10.1/11",
)
def test_a_gang_waits_until_every_member_fits():
    world = World(node("n1", cpu="3"), pod("x", "", "1", node="n1"), queue(), group(minimum=3), *pods(3))
    world.cycle()
    assert world.where() == {"x": "n1"}
    assert world.status()["phase"] == "Inqueue"
    assert sentence(world) == "2 of 3 pods fit; each needs 1 CPU, the most free on one node then is 0 CPU (n1)."
    world.put(node("n2", cpu="1"))
    world.cycle()
    assert len(world.where()) == 4
    assert [event["reason"] for event in world.events] == ["Unschedulable", "Scheduled"]
    assert world.condition()["status"] == "False"


@pytest.mark.shows("scheduler 3.1/enough pods", "coscheduling 3/too few pods", "scheduler 10.1/8")
def test_a_gang_waits_until_its_pods_exist():
    world = World(node("n1"), queue(), group(minimum=3), *pods(2))
    assert world.cycle().wake is not None
    assert world.condition() is None
    world.cycle(seconds=11)
    assert world.condition()["reason"] == "NotEnoughTasks"
    assert sentence(world) == "2 of 3 pods exist; waiting for the others to be created."
    world.put(pod("g-2"))
    world.cycle()
    assert len(world.where()) == 3


@pytest.mark.parametrize(
    ("more", "reason", "words"),
    [
        pytest.param(1, "NotEnoughTasks", "3 of 4 pods exist; waiting for the others to be created.", id="some more"),
        pytest.param(2, "NotEnoughResources", "3 of 4 pods fit; each needs 1 CPU, the most free on one node then is 0 CPU (n1).", id="all"),
    ],
)  # fmt: skip
def test_a_gang_and_its_pods_say_at_once_that_more_pods_exist(more, reason, words):
    world = World(node("n1"), pod("x", "", "1", node="n1"), queue(), group(minimum=4), *pods(2))
    world.cycle()
    world.cycle(seconds=11)
    assert sentence(world).startswith("2 of 4 pods exist;")
    world.put(*pods(2 + more)[2:])
    world.cycle(seconds=0.1)
    assert (world.condition()["reason"], sentence(world)) == (reason, words)
    for name in ("g-0", "g-1", f"g-{1 + more}"):
        assert world.get(resources.PODS, name)["status"]["conditions"][0]["message"] == words
    written = world.writes
    for _ in range(3):
        assert world.cycle(seconds=0.1).groups == []
    assert world.writes == written


def test_a_gang_whose_nodes_were_refused_does_not_go_on_saying_that_pods_are_missing():
    """As on another cluster, whose answer takes until then (`SchedulerConsumer.committed`)."""
    world = World(node("n1"), queue(), group(minimum=4), *pods(2))
    world.cycle()
    world.cycle(seconds=11)
    world.snapshot.resting = {"ns/g"}
    world.put(*pods(4)[2:])
    world.cycle(seconds=0.1)
    assert world.where() == {}
    assert (world.condition()["reason"], world.condition()["status"]) == ("NotEnoughTasks", "False")


def test_how_many_pods_would_fit_is_written_after_a_while():
    """That changes whenever others end: with a thousand gangs that wait, a thousand writes each time."""
    world = World(node("n1"), queue(), group(minimum=4), *pods(4), pod("x", "", "3", node="n1"))
    world.cycle()
    assert sentence(world).startswith("1 of 4 pods fit;")
    world.put(pod("x", "", "1", node="n1"))
    world.cycle(seconds=1)
    assert sentence(world).startswith("1 of 4 pods fit;")
    world.cycle(seconds=4)
    assert sentence(world).startswith("3 of 4 pods fit;")


def test_pods_beyond_the_minimum_say_at_once_how_many_have_a_node_still():
    world = World(node("n1", cpu="3"), queue(), group(minimum=1), *pods(5))
    world.cycle()
    world.put(pod("x", "", "1", node="n1"))
    world.remove(resources.PODS, "g-0")
    world.cycle(seconds=1)
    told = world.get(resources.PODS, "g-4")["status"]["conditions"][0]["message"]
    assert told.startswith("2 of 4 pods have a node; each of the others needs 1 CPU")


def test_a_gang_whose_pods_do_not_exist_says_so_although_the_clock_was_set_back():
    world = World(node("n1"), queue(), group(minimum=3), *pods(2))
    world.cycle()
    world.cycle(seconds=-600)
    assert world.condition()["reason"] == "NotEnoughTasks"


def test_a_group_without_pods_is_let_in_and_then_left_alone():
    world = World(node("n1"), queue(), group(phase=""))
    world.cycle()
    assert world.status()["phase"] == "Inqueue"
    written = world.writes
    world.cycle()
    world.cycle(seconds=1)
    assert world.writes == written


@pytest.mark.shows(
    "scheduler 3.7/unschedulable",
    "scheduler 5.2/reasons",
    "scheduler 5.4/group waits",
    "scheduler 5.4/entry refused",
    "coscheduling 2/events",
    "coscheduling 4/cluster autoscaler",
    "scheduler 10.1/8",
    "scheduler 10.1/19",
    "scheduler 11/8",
    "scheduler 11/9",
)
@pytest.mark.parametrize(
    ("objects", "reason", "words"),
    [
        pytest.param([], "NoNodes", "The cluster has no nodes.", id="no nodes"),
        pytest.param(
            [node("n1", ready=False)], "NodesUnavailable", "No node takes pods: 1 is not ready.", id="not ready"
        ),
        pytest.param(
            [node("n1", unschedulable=True), node("n2", ready=False), node("n3", ready=False)],
            "NodesUnavailable",
            "No node takes pods: 2 are not ready, 1 is unschedulable.",
            id="unschedulable",
        ),
        pytest.param(
            [node("n1", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])],
            "UntoleratedTaint",
            "The pods do not tolerate the taints of the nodes: gpu=yes on 1 node.",
            id="taint",
        ),
        pytest.param(
            [node("n1", cpu="1"), node("s1", taints=SIMULATED), node("s2", taints=SIMULATED)],
            "NeverFits",
            "This can never start: a pod needs 2 CPU, the largest node that it may use has 1 CPU (n1). "
            "Other nodes have taints that the pods do not tolerate: ui.volcano.sh/simulated=true on 2 nodes.",
            id="too large but for nodes that are not asked for",
        ),
        pytest.param(
            [node("n1", unschedulable=True), node("s1", taints=SIMULATED)],
            "NodesUnavailable",
            "No node takes pods: 1 is unschedulable. "
            "Other nodes have taints that the pods do not tolerate: ui.volcano.sh/simulated=true on 1 node.",
            id="a taint beside what passes",
        ),
        pytest.param(
            [node("n1", cpu="1500m"), node("n2", cpu="1")],
            "NeverFits",
            "This can never start: a pod needs 2 CPU, the largest node that it may use has 1.5 CPU (n1).",
            id="too large",
        ),
        pytest.param(
            [node("n1", cpu="2"), node("n2", cpu="4"), pod("other", "", "3", node="n2", phase="Running")],
            "NeverFits",
            "This can never start: of the 4 pods that must start together only 3 fit, even on empty nodes.",
            id="gang too large",
        ),
        pytest.param(
            [node("n1", cpu="8"), pod("other", "", "5", node="n1", phase="Running")],
            "NotEnoughResources",
            "1 of 4 pods fit; each needs 2 CPU, the most free on one node then is 1 CPU (n1).",
            id="waits for room",
        ),
        pytest.param(
            [node("n1", cpu="8", pods=2), node("n2", cpu="2"), node("n3", cpu="2"), pod("o", "", "1", node="n3")],
            "NotEnoughResources",
            "3 of 4 pods fit; each needs 2 CPU, which no node has free at once then.",
            id="no node has all of it",
        ),
        pytest.param(
            [node("n1", cpu="64"), queue(capability={"cpu": "7"})],
            "QueueTooSmall",
            "This can never start in queue default: it needs more than the queue's limit of 7 CPU.",
            id="queue ceiling",
        ),
        pytest.param(
            [
                node("n1", cpu="64"),
                queue("root", {"cpu": "9"}),
                queue(parent="root"),
                queue("other", parent="root"),
                group("o", 1, queue="other", phase="Running"),
                pod("o-0", "o", "2", node="n1", phase="Running"),
            ],
            "ParentQueueLimit",
            "Queue root, which is above its own, has room for 3 of the 4 pods that must start together: the next one "
            "needs 2 CPU, and 1 CPU of 9 CPU is left then.",
            id="ceiling of an ancestor",
        ),
        pytest.param(
            [node("n1", cpu="8"), queue("kept", **keeping(2))],
            "QueueGuarantees",
            "This can never start: it needs 8 CPU, and of 8 CPU in the cluster all but 6 CPU are kept "
            "for the guarantees of other queues.",
            id="guarantees that can never leave room",
        ),
        pytest.param(
            [
                node("n1", cpu="14"),
                queue("a", **keeping(2)),
                queue("b", **keeping(1)),
                pod("o", "", "1", node="n1", phase="Running"),
                pod("foreign", "", "3", node="n1", phase="Running", scheduler="other"),
            ],
            "QueueGuarantees",
            "The cluster has room for 3 of the 4 pods that must start together: the next one needs 2 CPU, "
            "and 1 CPU of 14 CPU is left then, as guarantees keep 2 CPU for queue a and 1 CPU for queue b.",
            id="what is guaranteed to others, beside pods that use no queue",
        ),
        pytest.param(
            [
                node("n1", cpu="64"),
                queue("team", {"cpu": "9"}),
                queue(parent="team"),
                queue("kept", parent="team", **keeping(1)),
                group("o", 1, phase="Running"),
                pod("o-0", "o", "1", node="n1", phase="Running"),
            ],
            "QueueGuarantees",
            "Queue team has room for 3 of the 4 pods that must start together: the next one needs 2 CPU, "
            "and 1 CPU of 9 CPU is left then, as guarantees keep 1 CPU for queue kept.",
            id="a guarantee beside it below a ceiling",
        ),
    ],
)
def test_every_gang_that_is_not_placed_says_why(objects, reason, words):
    world = World(queue(), *objects, group(minimum=4), *pods(4, cpu="2"))
    world.cycle()
    assert world.condition()["reason"] == reason
    assert sentence(world) == words
    assert {"g-0", "g-1", "g-2", "g-3"}.isdisjoint(world.where())
    (event,) = [event for event in world.events if event["involvedObject"]["name"] == "g"]
    assert (event["type"], event["reason"]) == ("Warning", "Unschedulable")
    told = world.get(resources.PODS, "g-0")["status"]["conditions"][0]
    assert (told["status"], told["reason"], told["message"]) == ("False", "Unschedulable", words)


@pytest.mark.shows("scheduler 5.3/causes")
def test_simulated_nodes_take_only_pods_that_ask_for_them():
    simulated = [node(f"s{number}", cpu="64", taints=SIMULATED) for number in range(3)]
    world = World(node("n1", cpu="1"), *simulated, queue(), group(), pod("g-0", cpu="2"))
    world.cycle()
    assert world.condition()["message"].endswith(
        "Origin reason is 0/4 nodes are unavailable: 1 Insufficient cpu, "
        "3 node(s) had untolerated taint {ui.volcano.sh/simulated: true}."
    )
    asking = {"key": "ui.volcano.sh/simulated", "operator": "Exists", "effect": "NoSchedule"}
    world.put(group("h"), pod("h-0", "h", "2", tolerations=[asking]))
    world.cycle()
    assert world.where() == {"h-0": "s0"}


def test_a_selector_that_no_node_matches():
    world = World(node("n1"), queue(), group(), pod("g-0", nodeSelector={"disk": "ssd"}))
    world.cycle()
    assert sentence(world) == "No node has the label disk=ssd (1 node looked at)."
    world.put(node("n1", labels={"disk": "ssd"}))
    world.cycle()
    assert world.where() == {"g-0": "n1"}


def needing(*expressions):
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


GPU = {"key": "gpu", "operator": "In", "values": ["h100", "a10O"]}
LABELLED = ({"gpu": "a100", "zone": "x"}, {"gpu": "t4", "zone": "y"})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param({"nodeSelector": {"gpu": "zeus", "zone": "x"}}, "No node has the label gpu=zeus (2 nodes looked at).", id="one is missing"),
        pytest.param({"nodeSelector": {"gpu": "A100"}}, "No node has the label gpu=A100 (2 nodes looked at). Nodes have gpu=a100: is that what was meant?", id="a slip"),
        pytest.param(needing(GPU), "No node has the label gpu=a10O or gpu=h100 (2 nodes looked at). Nodes have gpu=a100: is that what was meant?", id="any of some values"),
        pytest.param(needing({**GPU, "values": [f"a10{n}" for n in range(1, 8)]}), "No node has the label gpu=a101 or gpu=a102 or gpu=a103 or 4 other values (2 nodes looked at).", id="any of many values"),
        pytest.param(needing({"key": "disk", "operator": "Exists"}), "No node has the label disk (2 nodes looked at).", id="whatever value"),
        pytest.param({"nodeSelector": {"gpu": "a100", "zone": "y"}}, "No node has the labels that the pods select (2 nodes looked at).", id="each is somewhere"),
        pytest.param({"nodeSelector": {"gpu": "zeus", "disk": "ssd"}}, "No node has the labels that the pods select (2 nodes looked at).", id="two are missing"),
    ],
)  # fmt: skip
def test_the_label_that_no_node_has_is_named_where_it_alone_is_to_blame(asked, said):
    world = World(queue(), group(), pod("g-0", **asked))
    for number, labels in enumerate(LABELLED):
        world.put(node(f"n{number}", labels=labels))
    world.cycle()
    assert sentence(world) == said


def test_the_label_is_looked_for_again_when_nodes_change():
    world = World(queue(), group(), pod("g-0", nodeSelector={"gpu": "h100", "zone": "x"}))
    world.put(node("n0", labels={"zone": "x"}))
    world.cycle()
    assert sentence(world) == "No node has the label gpu=h100 (1 node looked at)."
    world.put(node("n1", labels={"gpu": "h100"}))
    world.cycle(seconds=60)
    assert sentence(world) == "No node has the labels that the pods select (2 nodes looked at)."


@pytest.mark.shows("scheduler 1.1/resources")
def test_a_resource_that_no_node_has():
    world = World(node("n1"), queue(), group(), pod("g-0", requests={"nvidia.com/gpu": "2"}))
    world.cycle()
    assert sentence(world) == (
        "This can never start: a pod needs 2 nvidia.com/gpu, and no node that it may use has any."
    )
    world.put(node("n2", **{"nvidia.com/gpu": "4"}))
    world.cycle()
    assert world.where() == {"g-0": "n2"}


@pytest.mark.shows("2.4/2", "scheduler 1.6/queue missing", "scheduler 10.1/21")
def test_a_queue_that_does_not_exist_stops_nobody_else():
    world = World(node("n1"), queue(), group("a", queue="gone"), pod("a-0", "a"), group("b"), pod("b-0", "b"))
    world.cycle()
    assert world.condition("a")["reason"] == "QueueNotFound"
    assert sentence(world, "a") == "Queue gone does not exist; create it or choose another."
    assert world.where() == {"b-0": "n1"}


@pytest.mark.shows(
    "scheduler 2.1/minResources",
    "scheduler 3.5/state",
    "queues 2.8/entry",
    "queues 2.8/no minResources",
    "queues 2.8/pods that wait",
    "queue state 4/Closing",
)
def test_a_closed_queue_lets_nobody_in_but_a_closing_one_goes_on():
    world = World(
        node("n1"),
        queue("shut", state="Closed"),
        queue("closing", state="Closing"),
        group("a", queue="shut", phase=""),
        pod("a-0", "a"),
        group("b", queue="closing"),
        pod("b-0", "b"),
    )
    world.cycle()
    assert world.condition("a")["reason"] == "QueueClosed"
    assert world.where() == {"b-0": "n1"}


@pytest.mark.shows("scheduler 5.3/group", "scheduler 5.3/nodes")
def test_the_message_ends_with_the_text_of_volcano():
    world = World(node("n1", cpu="1"), node("n2", unschedulable=True), queue(), group(minimum=2), *pods(2))
    world.put(node("n3", cpu="5"), pod("other", "", "5", node="n3"))
    world.cycle()
    assert world.condition()["message"].removeprefix(sentence(world)) == (
        " 1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; "
        "Pending: 1 Schedulable, 1 Unschedulable. Origin reason is "
        "0/3 nodes are unavailable: 1 node(s) were unschedulable, 2 Insufficient cpu."
    )


@pytest.mark.shows("scheduler 1.10/jobs", "groups 3.1/priorityClassName", "scheduler 3.11 tdm/order of jobs")
def test_higher_priority_goes_first_then_age_then_name():
    world = World(
        node("n1", cpu="2"),
        queue(),
        priority_class("high", 10),
        group("old"),
        group("young", created="2026-01-02T00:00:00Z"),
        group("urgent", created="2026-01-03T00:00:00Z", priorityClassName="high"),
        *[pod(f"{name}-0", name) for name in ("young", "old", "urgent")],
    )
    world.cycle()
    assert world.where() == {"old-0": "n1", "urgent-0": "n1"}


@pytest.mark.shows(
    "scheduler 1.4/which pods",
    "scheduler 1.10/pods",
    "scheduler 2.4/within a job",
    "scheduler 10.2/3",
    "scheduler 10.2/5",
)
def test_the_driver_and_two_executors_start_or_nobody_does():
    spark = [pod("s-driver-0", "s", "2", role="driver", priority=100)] + [
        pod(f"s-executor-{i}", "s", "1", role="executor", priority=1) for i in range(5)
    ]
    world = World(node("n1", cpu="4"), queue(), group("s", 3), *spark)
    world.cycle()
    assert sorted(world.where()) == ["s-driver-0", "s-executor-0", "s-executor-1"]
    world = World(
        node("n1", cpu="1"), node("n2", cpu="2"), pod("x", "", "1", node="n2"), queue(), group("s", 3), *spark
    )
    world.cycle()
    assert sorted(world.where()) == ["x"]


@pytest.mark.shows(
    "scheduler 1.3/task-spec",
    "scheduler 1.4/minTaskMember",
    "scheduler 1.4/minTaskMember too large",
    "scheduler 3.1/of each task",
    "groups 3.1/minTaskMember",
    "scheduler 10.1/10",
)
@pytest.mark.parametrize(
    ("minima", "expected"),
    [
        pytest.param({"ps": 1, "worker": 2}, ["g-ps-0", "g-worker-0", "g-worker-1"], id="minima hold"),
        pytest.param({"ps": 2, "worker": 4}, ["g-ps-0", "g-ps-1", "g-worker-0"], id="ignored above minMember"),
        pytest.param({"worker": 1}, ["g-ps-0", "g-ps-1", "g-worker-0"], id="the rest in task order"),
    ],
)
def test_minima_of_tasks(minima, expected):
    tasks = [pod(f"g-ps-{i}", role="ps", priority=9) for i in range(2)]
    tasks += [pod(f"g-worker-{i}", role="worker") for i in range(4)]
    world = World(node("n1", cpu="3"), queue(), group(minimum=3, minTaskMember=minima), *tasks)
    world.cycle()
    assert sorted(world.where()) == expected


def test_pods_beyond_the_minimum_say_what_they_wait_for():
    world = World(node("n1", cpu="3"), queue(), group(minimum=2), *pods(5))
    world.cycle()
    assert len(world.where()) == 3
    assert world.status()["phase"] == "Running"
    told = world.get(resources.PODS, "g-4")["status"]["conditions"][0]
    assert told["message"] == (
        "3 of 5 pods have a node; each of the others needs 1 CPU, the most free on one node is 0 CPU (n1)."
    )


@pytest.mark.shows(
    "scheduler 1.10/pods", "scheduler 5.4/pods", "coscheduling 3/too few pods", "scheduler 10.1/19", "scheduler 10.2/3"
)
def test_at_most_ten_pods_of_a_waiting_gang_are_told():
    world = World(node("n1", cpu="10", pods=200), queue(), group(minimum=100), *pods(100))
    decisions = world.cycle()
    assert [note.pod.name for note in decisions.groups[0].notes] == [f"g-{i}" for i in range(10)]


@pytest.mark.shows("scheduler 5.1/written")
def test_nothing_is_written_twice():
    world = World(node("n1", cpu="1"), queue(), group(minimum=2), *pods(2))
    world.cycle()
    written = world.writes
    for seconds in (0, 1, 10, 100):
        assert world.cycle(seconds).groups == []
    assert world.writes == written


@pytest.mark.shows("scheduler 5.4/group waits", "scheduler 5.4/pods", "scheduler 11/17")
def test_new_numbers_are_written_after_a_while_and_without_a_new_event():
    world = World(node("n1", cpu="6"), queue(), group(minimum=3), *pods(3, cpu="2"))
    filler = pod("filler", "", "3", node="n1")
    world.put(filler)
    world.cycle()
    before = world.condition()["message"]
    world.put(pod("filler", "", "1", node="n1"))
    decisions = world.cycle(seconds=1)
    assert decisions.groups == []
    assert decisions.wake is not None
    world.cycle(seconds=(decisions.wake - world.now) / 1000)
    assert world.condition()["message"] != before
    assert len(world.events) == 1
    world.cycle(seconds=60)
    told = world.get(resources.PODS, "g-0")["status"]["conditions"][0]
    assert told["message"] == sentence(world)


@pytest.mark.shows(
    "scheduler 5.1/Pending",
    "scheduler 5.1/Running",
    "scheduler 5.1/Completed",
    "scheduler 5.1/back to Pending",
    "scheduler 5.1/counters",
    "groups 3.2/phase",
    "groups 3.2/running, succeeded, failed",
    "coscheduling 1/status",
    "scheduler 10.1/4",
    "scheduler 11/16",
)
@pytest.mark.parametrize(
    ("phases", "before", "phase"),
    [
        pytest.param(["Running"] * 3, "Running", "Running", id="all run"),
        pytest.param(["Succeeded", "Succeeded", "Failed"], "Running", "Completed", id="all finished"),
        pytest.param(["Running", "Failed", "Succeeded"], "Running", "Running", id="one failed, none is missing"),
        pytest.param([], "Completed", "Completed", id="finished and cleaned away"),
        pytest.param([], "Running", "Pending", id="all pods gone"),
    ],
)
def test_phases(phases, before, phase):
    members = [pod(f"g-{i}", phase=p, node="n1") for i, p in enumerate(phases)]
    world = World(node("n1"), queue(), group(minimum=3, phase=before), *members)
    world.cycle(seconds=1)
    status = world.status()
    assert status["phase"] == phase
    assert [status.get(k, 0) for k in ("running", "succeeded", "failed")] == [
        phases.count(p) for p in ("Running", "Succeeded", "Failed")
    ]


@pytest.mark.shows("scheduler 1.4/ready", "coscheduling 3/succeeded count", "scheduler 10.1/10")
@pytest.mark.parametrize(
    ("phases", "starts"),
    [
        pytest.param(["Failed"] * 3, True, id="all that were started have failed"),
        pytest.param(["Failed"] * 2, True, id="with it there is the minimum"),
        pytest.param(["Succeeded", "Failed", "Failed"], True, id="one has succeeded"),
        pytest.param(["Running", "Failed"], False, id="one runs still"),
        pytest.param(["Failed"], False, id="others are to be made"),
        pytest.param(["Running", "Running", "Failed"], True, id="two run and make the minimum with it"),
    ],
)
@pytest.mark.parametrize("roles", [None, {"worker": 3}], ids=["", "of a role"])
def test_last_pod_of_a_gang_that_has_failed_does_not_wait_for_those_that_failed(phases, starts, roles):
    more = {"minTaskMember": roles} if roles else {}
    members = [pod(f"g-{i}", phase=p, node="n1", role="worker") for i, p in enumerate(phases)]
    world = World(
        node("n1", cpu="9"), queue(), group(minimum=3, phase="Running", **more), *members, pod("g-9", role="worker")
    )
    world.cycle(seconds=1)
    assert ("g-9" in world.where()) is starts


def _with(*phases):
    return [pod(f"g-{i}", phase=phase, node="n1") for i, phase in enumerate(phases)]


def test_what_became_of_pods_is_written_once_for_a_second():
    world = World(node("n1"), queue(), group(minimum=2, phase="Running"), *_with("Pending", "Pending"))
    world.cycle(seconds=1)
    before = world.writes
    world.put(*_with("Running"))
    assert world.cycle().wake == world.now + 1000
    world.put(*_with("Succeeded", "Running"))
    assert world.cycle(seconds=0.9).wake == world.now + 100
    assert world.writes == before
    world.cycle(seconds=0.1)
    assert world.writes == before + 1
    assert (world.status()["running"], world.status()["succeeded"]) == (1, 1)


def test_when_thousands_of_groups_start_what_became_of_their_pods_is_written_later():
    count = 3000
    groups = [group(f"g{n}", phase="Running") for n in range(count)]
    running = [pod(f"g{n}-0", f"g{n}", phase="Running", node="n1") for n in range(count)]
    world = World(node("n1", cpu=str(count), pods=count), queue(), *groups, *running)
    assert world.cycle().wake == world.now + count
    world.cycle(seconds=count / 1000 - 0.1)
    assert world.writes == 0
    world.cycle(seconds=0.1)
    assert world.writes == count


def test_nobody_is_woken_for_a_pod_of_which_nothing_is_counted():
    world = World(node("n1"), queue(), group(minimum=1, phase="Running"), *_with("Running"))
    world.cycle(seconds=1)
    world.cycle(seconds=1)
    world.put(*_with("Running"))
    assert world.cycle().wake is None


def test_what_a_pod_says_beside_hides_nothing_of_what_is_counted():
    world = World(node("n1"), queue(), group(minimum=1, phase="Running"), *_with("Pending"))
    world.cycle(seconds=1)
    world.cycle(seconds=1)
    world.put(*_with("Running"))
    world.cycle()
    world.put(*_with("Running"))
    world.cycle(seconds=1)
    assert world.status()["running"] == 1


def test_what_became_of_pods_is_written_although_the_clock_was_set_back():
    world = World(node("n1"), queue(), group(minimum=1, phase="Running"), *_with("Running"))
    world.cycle(seconds=-60)
    assert world.status()["running"] == 1


def test_nothing_is_written_of_a_group_that_is_gone_within_the_second():
    world = World(node("n1"), queue(), group(minimum=1, phase="Running"), *_with("Succeeded"))
    world.cycle()
    world.remove(resources.POD_GROUPS, "g")
    world.remove(resources.PODS, "g-0")
    assert world.cycle().wake is None
    assert world.writes == 0


@pytest.mark.shows("scheduler 5.1/Unknown", "scheduler 10.1/9")
def test_a_gang_that_lost_a_pod_and_cannot_place_another_is_unknown():
    world = World(node("n1", cpu="2"), queue(), group(minimum=3, phase="Running"), pod("g-2"))
    world.put(*[pod(f"g-{i}", phase="Running", node="n1") for i in range(2)])
    world.cycle()
    assert world.status()["phase"] == "Unknown"
    world.put(node("n2"))
    world.cycle()
    assert world.status()["phase"] == "Running"


@pytest.mark.shows("scheduler 5.1/Unknown")
@pytest.mark.parametrize(
    ("minimum", "others"),
    [
        pytest.param(2, [], id="its pod was not made again"),
        pytest.param(2, [pod("g-1", cpu="9")], id="no room"),
        pytest.param(2, [pod("g-1", schedulingGates=[{"name": "x"}])], id="a gate"),
        pytest.param(3, [pod("g-1", phase="Failed", node="n1")], id="one has failed"),
        pytest.param(
            2,
            [pod("g-1", phase="Failed", node="n1"), pod("g-2", schedulingGates=[{"name": "x"}])],
            id="one has failed, and the next has a gate",
        ),
    ],
)
def test_what_is_unknown_stays_so_and_is_written_once(minimum, others):
    world = World(node("n1"), queue(), group(minimum=minimum, phase="Running"))
    world.put(pod("g-0", phase="Running", node="n1"), *others)
    world.cycle()
    world.cycle(seconds=11)
    written = world.writes
    for _ in range(40):
        assert world.status()["phase"] == "Unknown"
        world.cycle(seconds=3)
    assert world.writes == written


def test_what_is_unknown_is_over_when_nobody_runs():
    world = World(node("n1"), queue(), group(minimum=2, phase="Running"), pod("g-0", phase="Running", node="n1"))
    world.cycle()
    world.cycle(seconds=11)
    assert world.status()["phase"] == "Unknown"
    world.put(pod("g-0", phase="Failed", node="n1"))
    world.cycle(seconds=3)
    assert world.status()["phase"] == "Inqueue"


@pytest.mark.shows(
    "scheduler 2.1/Inqueue", "scheduler 5.1/back to Pending", "coscheduling 3/some run", "scheduler 11/16"
)
def test_a_lost_pod_is_awaited_before_the_gang_is_called_unknown():
    world = World(node("n1"), queue(), group(minimum=2, phase="Running"))
    world.put(*[pod(f"g-{i}", phase="Running", node="n1") for i in range(2)])
    world.cycle()
    world.remove(resources.PODS, "g-1")
    decisions = world.cycle()
    assert world.status()["phase"] == "Inqueue"
    assert decisions.wake is not None
    world.cycle(seconds=11)
    assert world.status()["phase"] == "Unknown"


@pytest.mark.shows(
    "scheduler 1.1/resources",
    "scheduler 2.1/minResources",
    "scheduler 2.1/room",
    "scheduler 2.1/priority",
    "scheduler 2.4/entry",
    "scheduler 5.1/Pending",
    "scheduler 5.1/Inqueue",
    "groups 3.1/minResources",
    "scheduler 10.1/3",
    "scheduler 11/4",
    "scheduler 11/10",
)
@pytest.mark.parametrize(
    ("objects", "minimum", "phase", "words"),
    [
        pytest.param([], {"cpu": "4"}, "Inqueue", "", id="fits"),
        pytest.param([], {"cpu": "4800m"}, "Inqueue", "", id="within the overcommit factor"),
        pytest.param([], None, "Inqueue", "", id="states nothing"),
        pytest.param([], {"requests.cpu": "99", "cpu": "1"}, "Inqueue", "", id="quota spellings are ignored"),
        pytest.param(
            [],
            {"cpu": "5"},
            "Pending",
            "This can never start: its minimum needs 5 CPU, the whole cluster has 4 CPU.",
            id="more than the cluster",
        ),
        pytest.param(
            [group("x", minResources={"cpu": "3"})],
            {"cpu": "2"},
            "Pending",
            "Waits for room in the cluster: its minimum needs 2 CPU, 1.8 CPU can still be given out. "
            "Queue default may still take 3 CPU for 1 job that entered before.",
            id="others are in already",
        ),
        pytest.param(
            [group("x", minResources={"cpu": "3"}, phase="Running"), pod("x-0", "x", "3", node="n1", phase="Running")],
            {"cpu": "2"},
            "Pending",
            "Waits for room in the cluster: its minimum needs 2 CPU, 1.8 CPU can still be given out.",
            id="what runs counts once",
        ),
        pytest.param(
            [group("x", phase="Running", priorityClassName="low"), pod("x-0", "x", "3", node="n1", phase="Running")],
            {"cpu": "4"},
            "Inqueue",
            "",
            id="what lower priority uses is no obstacle",
        ),
        pytest.param([node("n2", cpu="99", ready=False)], {"cpu": "5"}, "Pending", None, id="only ready nodes count"),
    ],
)
def test_who_is_let_in(objects, minimum, phase, words):
    spec = {} if minimum is None else {"minResources": minimum}
    world = World(
        node("n1"), queue(), priority_class("low", -5), *objects, group("z", phase="Pending", minimum=2, **spec)
    )
    world.cycle()
    assert world.status("z")["phase"] == phase
    if words:
        assert sentence(world, "z") == words


def test_a_group_that_is_let_in_late_no_longer_says_that_it_waits():
    world = World(node("n1"), queue(), group(phase="Pending", minResources={"cpu": "6"}))
    world.cycle()
    assert world.condition()["status"] == "True"
    world.put(node("n2"))
    world.cycle()
    assert world.status()["phase"] == "Inqueue"
    assert world.condition()["status"] == "False"


@pytest.mark.shows(
    "groups 3.6/which",
    "groups 3.6/minMember",
    "groups 3.6/group-min-member",
    "groups 3.6/minResources",
    "groups 3.6/annotations",
    "coscheduling 3/no group",
    "scheduler 10.1/6",
)
def test_pods_without_a_group_get_one():
    world = World(node("n1"), queue(), pod("solo", group=""))
    world.cycle()
    made = world.get(resources.POD_GROUPS, "podgroup-uid-solo")
    assert made["spec"] == {"minMember": 1, "queue": "default"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-solo"
    world.cycle()
    assert world.where() == {"solo": "n1"}
    assert world.cycle().adoptions == []


@pytest.mark.shows("groups 3.5/queue-name", "groups 3.6/closed queue")
@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_pods_without_a_group_wait_until_their_queue_is_open(state):
    kind, obj = pod("solo", group="")
    obj["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = "shut"
    world = World(node("n1"), queue("shut", state=state), (kind, obj))
    world.cycle()
    (told,) = world.get(resources.PODS, "solo")["status"]["conditions"]
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert told["message"] == "Queue shut is closed; open it or choose another."
    assert world.cycle().adoptions == []
    assert world.writes == 1
    world.put(queue("shut"))
    world.cycle()
    world.cycle()
    assert world.where() == {"solo": "n1"}


def test_a_pod_joins_the_group_that_its_controller_has_in_a_closing_queue():
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    kind, obj = pod("late", group="")
    obj["metadata"]["ownerReferences"] = [owner]
    world = World(node("n1"), queue(state="Closing"), group("podgroup-uid-j"), (kind, obj))
    world.cycle()
    world.cycle()
    assert world.where() == {"late": "n1"}


@pytest.mark.shows("groups 3.6/one for a controller")
def test_pods_of_one_controller_share_a_group():
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    world = World(node("n1"), queue())
    for name in ("a", "b"):
        kind, obj = pod(name, group="")
        obj["metadata"]["ownerReferences"] = [owner]
        world.put((kind, obj))
    world.cycle()
    assert world.get(resources.POD_GROUPS, "podgroup-uid-j")["metadata"]["ownerReferences"] == [owner]
    world.cycle()
    assert len(world.where()) == 2


@pytest.mark.shows("scheduler 1.5/all pods", "scheduler 1.6/other schedulers")
def test_pods_of_other_schedulers_only_take_room():
    world = World(node("n1", cpu="2"), queue(), group(minimum=2), *pods(2))
    world.put(pod("theirs", group="", scheduler="another", node="n1"), pod("t2", "", scheduler="x"))
    world.cycle()
    assert world.where() == {"theirs": "n1"}
    assert world.cycle().adoptions == []


@pytest.mark.shows("scheduler 1.6/group missing", "groups 3.5/group-name", "coscheduling 3/group missing")
def test_a_pod_whose_group_does_not_exist_is_told_after_a_while():
    world = World(node("n1"), queue(), pod("p", "nowhere"))
    world.cycle()
    world.cycle(seconds=11)
    told = world.get(resources.PODS, "p")["status"]["conditions"][0]
    assert told["message"].startswith("Pod group nowhere does not exist;")


@pytest.mark.shows("scheduler 1.3/scheduling gates")
def test_gated_pods_do_not_exist_yet():
    gate = [{"name": "hold"}]
    world = World(node("n1"), queue(), group(minimum=2), pod("g-0"), pod("g-1", schedulingGates=gate))
    world.cycle()
    world.cycle(seconds=11)
    assert world.where() == {}
    assert sentence(world) == "1 of 2 pods may be scheduled; 1 is held back by scheduling gates."
    world.put(pod("g-1"))
    world.cycle()
    assert len(world.where()) == 2


@pytest.mark.shows("scheduler 1.3/being deleted", "scheduler 1.5/future", "scheduler 2.2/releasing")
def test_room_that_a_leaving_pod_still_holds_is_not_given_out():
    world = World(node("n1", cpu="1"), queue(), group(), pod("g-0"))
    world.put(pod("old", "x", node="n1", phase="Running", deleted="2026-01-01T00:00:00Z"))
    world.cycle()
    assert "g-0" not in world.where()
    world.remove(resources.PODS, "old")
    world.cycle()
    assert world.where() == {"g-0": "n1"}


def test_other_conditions_of_a_pod_survive_its_binding():
    kind, obj = pod("g-0")
    obj["status"]["conditions"] = [{"type": "Initialized", "status": "True", "extra": 1}]
    world = World(node("n1"), queue(), group(), (kind, obj))
    world.cycle()
    kept = world.get(resources.PODS, "g-0")["status"]["conditions"]
    assert {"type": "Initialized", "status": "True", "extra": 1} in kept


@pytest.mark.shows("scheduler 11/12")
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param((resources.PODS, {"metadata": {"name": "x", "namespace": "ns"}, "spec": 7}), id="spec"),
        pytest.param((resources.PODS, {"metadata": {"name": "x", "namespace": "ns"}, "status": None}), id="null"),
        pytest.param(pod("x", cpu="much"), id="request"),
        pytest.param(pod("x", cpu="-5"), id="negative request"),
        pytest.param(pod("x", cpu="9223372036854775807"), id="huge request"),
        pytest.param(
            pod("x", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}), id="terms"
        ),
        pytest.param(pod("x", tolerations=7), id="tolerations"),
        pytest.param(pod("x", nodeSelector=["a"]), id="selector"),
        pytest.param(node("x", cpu="lots"), id="node amount"),
        pytest.param(queue("x", capability={"cpu": "?"}), id="queue amount"),
        pytest.param(queue("x", parent="x"), id="queue that is its own parent"),
        pytest.param(group("x", minMember="many"), id="minimum"),
    ],
)
def test_an_object_that_makes_no_sense_stops_nobody(broken):
    world = World(node("n1"), queue(), broken, group(), pod("g-0"))
    world.cycle()
    assert world.where()["g-0"] == "n1"


def test_pods_beyond_the_minimum_are_told_at_once_that_the_gang_started_without_them():
    world = World(
        node("n1", cpu="1"), queue(), group("o", phase="Running"), pod("o-0", "o", phase="Running", node="n1")
    )
    world.put(group(), pod("g-0"), pod("g-1"))
    world.cycle()
    world.remove(resources.PODS, "o-0")
    world.cycle(seconds=1)
    told = world.get(resources.PODS, "g-1")["status"]["conditions"][0]["message"]
    assert told.startswith("1 of 2 pods have a node; each of the others needs 1 CPU")


@pytest.mark.parametrize(
    ("others", "phase"),
    [
        pytest.param([], "Completed", id="all have ended"),
        pytest.param([pod("b", cpu="99")], "Inqueue", id="one waits"),
        pytest.param([pod("b", node="n1", phase="Running")], "Running", id="one runs"),
    ],
)
def test_group_whose_pods_come_one_after_the_other_is_completed_when_all_have_ended(others, phase):
    world = World(node("n1"), queue(), group(phase="Running"), pod("a", node="n1", phase="Succeeded"), *others)
    world.cycle(seconds=11)
    assert world.status()["phase"] == phase
