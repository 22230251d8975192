"""The queue controller against the real store: states, counters and what is allocated."""

from __future__ import annotations

import pytest

from cluster import clock
from cluster.bootstrap import bootstrap
from cluster.controllers.garbage import GarbageCollector
from cluster.runtime import registry
from cluster.store import Create, Delete, Group, Patch, Update, store
from kube.intake_times import SHUT_SINCE
from kube.meta import now_text, timestamp
from kube.resources import COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS, QUEUES
from proof.modes.mode import Runner, others
from queues import states
from queues.controller import PAUSE_MS, QueueConsumer
from tests import builders
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode"), pytest.mark.each_backend]


class Controller(Runner):
    """The queue controller, run by hand on the store's clock."""

    def __init__(self, time):
        super().__init__(registry.get("queues"), 0, QueueConsumer())
        self.time = time

    def settle(self):
        while self.step():
            pass

    def later(self):
        """Let things settle, with time for every pause."""
        self.settle()
        self.time.move(PAUSE_MS / 1000)
        self.settle()


@pytest.fixture
def time(moved_clock):
    return moved_clock


@pytest.fixture
def controller(time):
    bootstrap()
    controller = Controller(time)
    controller.later()
    return controller


def queue(name, parent="root", state="Open"):
    found = states.standing(state, "", {})
    status = {"state": found.state.value, "reason": found.reason, "message": found.message}
    store.write(Create(QUEUES, builders.of(QUEUES, name, weight=1, parent=parent, state=state, status=status)))


def group(name, queue="default", phase="Pending", **fields):
    store.write(Create(POD_GROUPS, builders.pod_group(name, queue=queue, status={"phase": phase}, **fields)))


def pod(name, queue="default", node="n", phase="Running", cpu="1", group=""):
    main = builders.container(requests={"cpu": cpu, "memory": "1Gi"})
    notes = {"volcano.sh/queue-name": queue, "scheduling.k8s.io/group-name": group}
    made = builders.pod(name, main, annotations=notes, nodeName=node or None, status={"phase": phase})
    store.write(Create(PODS, made))


def wish(name, state):
    store.write(Patch(QUEUES, "", name, {"spec": {"state": state}}))


def status(name="default"):
    return store.get(QUEUES, "", name).object["status"]


def states_of(*names):
    return [status(name)["state"] for name in names]


@pytest.mark.shows("scheduler 5.4/queues", "queues 1.3/allocated")
def test_allocated_is_what_bound_pods_ask_for_up_to_root_until_they_end_or_go(controller):
    queue("team")
    queue("sub", parent="team")
    pod("a", "sub", cpu="1500m")
    pod("b", "sub", cpu="1")
    pod("waits", "sub", node="")
    pod("ended", "sub", phase="Succeeded")
    controller.later()
    amounts = {"cpu": "2500m", "memory": "2Gi", "pods": "2"}
    assert [status(name)["allocated"] for name in ("sub", "team", "root")] == [amounts] * 3
    store.write(Patch(PODS, "default", "a", {"status": {"phase": "Failed"}}, "status"))
    store.write(Delete(PODS, "default", "b", grace=0))
    controller.later()
    nothing = {"cpu": "0", "memory": "0"}
    assert [status(name)["allocated"] for name in ("default", "sub", "team", "root")] == [nothing] * 4


@pytest.mark.shows(
    "queues 1.2/state", "queues 1.5/default", "queues 2.3/Closing, nothing left", "queues 2.4/event",
    "queues 2.8/pods that run", "queue state 2/closing ends nothing", "queues 2.4/children close",
    "queues 2.4/children open",
)  # fmt: skip
def test_closing_queue_says_at_once_how_many_are_left_and_closes_when_none_is(controller):
    queue("sub", parent="default")
    queue("own", parent="default", state="Closed")
    group("a", phase="Running")
    group("b")
    controller.settle()
    wish("default", "Closed")
    controller.settle()
    assert status()["state"] == "Closing"
    assert "2 unfinished pod groups are left (1 pending, 1 running)" in status()["message"]
    store.write(Delete(POD_GROUPS, "default", "b"))
    store.write(Patch(POD_GROUPS, "default", "a", {"status": {"phase": "Completed"}}))
    controller.later()
    assert states_of("default", "sub", "own") == ["Closed"] * 3
    assert "parent queue default" in status("sub")["message"]
    wish("default", "Open")
    controller.later()
    assert states_of("default", "sub", "own") == ["Open", "Open", "Closed"]
    told = [e.object for e in store.find(EVENTS, order="created") if e.object["involvedObject"]["name"] == "default"]
    assert [each["reason"] for each in told] == ["Closing", "Closed", "Opened"]


def test_groups_without_pods_whose_job_is_gone_keep_no_queue_from_closing(controller):
    """Their job was deleted while nobody looked after what belonged to it."""
    gone = builders.owner(builders.of(JOBS, "gone"), uid="gone")
    for phase in ("Pending", "Inqueue", "Unknown", "Running"):
        group(phase.lower(), phase=phase, ownerReferences=[gone])
    wish("default", "Closed")
    controller.later()
    assert "4 unfinished pod groups are left (1 inqueue, 1 pending, 1 running, 1 unknown)" in status()["message"]
    collector = Runner(registry.get("garbage"), 0, GarbageCollector())
    while collector.step():
        pass
    controller.later()
    assert (status()["state"], status().keys() & {"pending", "inqueue", "unknown", "running"}) == ("Closed", set())


def shut_since(name="default"):
    return store.get(QUEUES, "", name).object["metadata"].get("annotations", {}).get(SHUT_SINCE)


def test_queue_notes_since_when_it_is_not_open(controller, time):
    queue("team")
    queue("sub", parent="team")
    group("a", queue="sub")
    controller.later()
    assert shut_since("sub") is None
    wish("team", "Closed")
    controller.later()
    first = shut_since("sub")
    assert (first, status("sub")["state"]) == (shut_since("team"), "Closing")
    time.move(60)
    wish("sub", "Closed")
    store.write(Delete(POD_GROUPS, "default", "a"))
    controller.later()
    assert (first, status("sub")["state"]) == (shut_since("sub"), "Closed"), "it was shut before"
    wish("sub", "Open")
    wish("team", "Open")
    controller.later()
    assert shut_since("sub") is None
    time.move(60)
    wish("sub", "Closed")
    controller.later()
    assert shut_since("sub") > first


def test_since_when_is_told_by_the_clock_of_the_cluster(controller, runner_mode):
    """That of the cluster is five minutes ahead of the controller's on another machine."""
    now = clock.milliseconds()
    theirs = {
        "manager": "other", "operation": "Update", "apiVersion": QUEUES.api_version, "subresource": "status",
        "time": timestamp(now + 300_000), "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:other": {}}},
    }  # fmt: skip
    sent = {"metadata": {"name": "default"}, "status": {**status(), "other": 1}}
    store.write(Update(QUEUES, sent, "status", managed=[theirs]))
    group("a")
    wish("default", "Closed")
    controller.settle()
    assert status()["state"] == "Closing"
    assert shut_since() == (theirs["time"] if runner_mode.name == "in-place" else now_text(now))


def test_counters_are_written_a_few_times_a_second_however_much_happens(controller, time):
    before = store.revision()
    for number in range(20):
        group(f"g{number}")
        controller.step()
        time.move(0.01)
    controller.later()
    writes = [c for c in store.changes(before, [QUEUES]) if c.name == "default"]
    assert len(writes) <= 3
    assert status()["pending"] == 20


def test_new_process_writes_what_the_last_one_still_owed(controller, time):
    for name in ("a", "b"):
        group(name)
        controller.settle()
    time.move(PAUSE_MS / 1000)
    Controller(time).settle()
    assert status()["pending"] == 2


def test_clock_that_is_set_back_delays_no_status(controller, time):
    group("a")
    controller.settle()
    time.us -= 600 * 1_000_000
    group("b")
    controller.later()
    assert status()["pending"] == 2


@cases("kept", {"keeps its wish": "Open", "keeps none, as Volcano's": None})
def test_state_that_a_client_writes_while_the_counters_are_planned_is_not_lost(controller, monkeypatch, kept):
    queue("team")
    wish("team", kept)
    group("a", queue="team", phase="Running")
    controller.later()
    store.write(Delete(POD_GROUPS, "default", "a"))
    plan = controller.consumer.plan

    def interrupted(*args):
        planned = plan(*args)
        if any(group.key == "team" for group in planned.groups) and "running" in status("team"):
            with others():
                store.write(Patch(QUEUES, "", "team", {"status": {"state": "Closed"}}, "status"))
            monkeypatch.undo()
        return planned

    monkeypatch.setattr(controller.consumer, "plan", interrupted)
    controller.later()
    assert controller.consumer.plan == plan
    assert (status("team")["state"], "running" in status("team")) == ("Closed", False)


def test_queue_deleted_meanwhile_does_not_stop_the_others(controller):
    queue("team")
    store.commit([Group([Delete(QUEUES, "", "team")])])
    group("a", queue="team")
    group("b")
    controller.later()
    assert status()["pending"] == 1


def order(action, name="default", *, uid=None, **metadata):
    """Store a Command as vcctl does: in the namespace `default`, for the queue that has the name now."""
    uid = store.get(QUEUES, "", name).uid if uid is None else uid
    target = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "name": name, "uid": uid}
    notes = {"ui.volcano.sh/created-by": "olga"}
    about = {"generateName": f"{name}-", "namespace": "default", "annotations": notes, **metadata}
    return store.write(Create(COMMANDS, {"metadata": about, "action": action, "target": target}))[0]


def told():
    found = [e.object for e in store.find(EVENTS, order="created") if e.object["reason"] == "CommandIssued"]
    return [(e["type"], e["message"]) for e in found]


def wished(name="default"):
    return store.get(QUEUES, "", name).object["spec"]["state"]


@pytest.mark.shows("queues 2.2/target", "queues 2.2/once", "queue state 5/operate")
@cases("before, action, has_work, wish, after", {
    "close an empty queue | queues 2.3/Open, CloseQueue, empty": ("Open", "CloseQueue", False, "Closed", "Closed"),
    "close a queue with work | queues 2.3/Open, CloseQueue, in use": ("Open", "CloseQueue", True, "Closed", "Closing"),
    "close a closed queue | queues 2.3/Closed, CloseQueue": ("Closed", "CloseQueue", False, "Closed", "Closed"),
    "close a closing queue | queues 2.3/Closing, CloseQueue": ("Closed", "CloseQueue", True, "Closed", "Closing"),
    "open a closed queue | queues 2.3/Closed, OpenQueue": ("Closed", "OpenQueue", False, "Open", "Open"),
    "open a closing queue | queues 2.3/Closing, OpenQueue": ("Closed", "OpenQueue", True, "Open", "Open"),
    "open an open queue | queues 2.3/Open, OpenQueue": ("Open", "OpenQueue", False, "Open", "Open"),
    "look at it again | queues 2.3/Closed, SyncQueue": ("Closed", "SyncQueue", False, "Closed", "Closed"),
})  # fmt: skip
def test_command_sets_the_wish_and_is_gone(controller, before, action, has_work, wish, after):
    queue("team", state=before)
    if has_work:
        group("a", queue="team")
    controller.later()
    order(action, "team")
    controller.settle()
    assert (wished("team"), status("team")["state"]) == (wish, after)
    assert store.find(COMMANDS) == []
    assert told() == [("Normal", f"olga asked for {action}.")]


@pytest.mark.shows("queues 2.2/unknown action", "queues 2.4/root")
@cases("name, action, why", {
    "root": ("root", "CloseQueue", "root queue can not be closed; close the queues below it."),
    "action of a job": ("default", "AbortJob", "it is no action of a queue; nothing is done."),
    "unknown": ("default", "Jump", "it is no action of a queue; nothing is done."),
})  # fmt: skip
def test_command_that_cannot_be_carried_out_is_told_and_dropped(controller, name, action, why):
    order(action, name)
    controller.settle()
    assert store.find(COMMANDS) == []
    assert status(name)["state"] == "Open"
    assert told() == [("Warning", f"olga asked for {action}: {why}")]


@pytest.mark.shows("queues 2.2/target gone")
def test_commands_taken_back_and_to_queues_that_are_gone_are_dropped(controller):
    order("CloseQueue", uid="that of an earlier queue of the name")
    order("CloseQueue", "gone", uid="some")
    store.write(Delete(COMMANDS, "default", order("CloseQueue").name))
    controller.settle()
    assert (store.find(COMMANDS), told(), wished()) == ([], [], "Open")


@pytest.mark.shows("queues 2.4/below a closed one")
def test_burst_of_commands_is_carried_out_in_order_and_a_queue_below_a_closed_one_is_opened_with_it(controller):
    queue("team", state="Closed")
    queue("sub", parent="team", state="Closed")
    for name, action in (("sub", "OpenQueue"), ("default", "OpenQueue"), ("default", "CloseQueue")):
        order(action, name)
    controller.later()
    assert (wished("sub"), wished(), len(told()), store.find(COMMANDS)) == ("Open", "Closed", 3, [])
    assert states_of("sub", "default") == ["Closed", "Closed"]
    order("OpenQueue", "team")
    controller.later()
    assert status("sub")["state"] == "Open"


@pytest.mark.shows("queues 2.2/once")
def test_new_process_carries_out_the_command_that_the_last_one_left(controller, time):
    order("CloseQueue", finalizers=["example.com/kept"])
    Controller(time).later()
    wish("default", "Open")
    Controller(time).later()
    assert (wished(), len(told()), len(store.find(COMMANDS))) == ("Open", 1, 1)
