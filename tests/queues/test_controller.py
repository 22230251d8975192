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
from kube.resources import COMMANDS, EVENTS, POD_GROUPS, PODS, QUEUES
from proof.modes.mode import Runner, others
from queues import states
from queues.controller import PAUSE_MS, QueueConsumer
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode"), pytest.mark.each_backend]


class Controller(Runner):
    """The queue controller, run by hand on the store's clock."""

    def __init__(self):
        super().__init__(registry.get("queues"), 0, QueueConsumer())

    def settle(self):
        while self.step():
            pass


@pytest.fixture
def time(moved_clock):
    return moved_clock


@pytest.fixture
def controller(time):
    bootstrap()
    controller = Controller()
    later(controller, time)
    return controller


def later(controller, time):
    """Let things settle, with time for every pause."""
    controller.settle()
    time.move(PAUSE_MS / 1000)
    controller.settle()


def queue(name, parent="root", state="Open", **spec):
    spec = {"weight": 1, "parent": parent, "state": state, **spec}
    status = states.standing(state, "", {})
    written = {"state": status.state.value, "reason": status.reason, "message": status.message}
    store.write(Create(QUEUES, {"metadata": {"name": name}, "spec": spec, "status": written}))


def group(name, queue="default", phase="Pending"):
    metadata = {"name": name, "namespace": "d"}
    store.write(Create(POD_GROUPS, {"metadata": metadata, "spec": {"queue": queue}, "status": {"phase": phase}}))


def pod(name, queue="default", node="n", phase="Running", cpu="1", group=""):
    notes = {"volcano.sh/queue-name": queue, "scheduling.k8s.io/group-name": group}
    metadata = {"name": name, "namespace": "d", "annotations": notes}
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    spec = {"containers": [{"name": "c", "resources": resources}], **({"nodeName": node} if node else {})}
    store.write(Create(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": phase}}))


def wish(name, state):
    store.write(Patch(QUEUES, "", name, {"spec": {"state": state}}))


def status(name="default"):
    return store.get(QUEUES, "", name).object["status"]


@pytest.mark.shows("queues 1.3/pending, running, unknown, inqueue, completed")
def test_pod_groups_are_counted_by_phase(controller, time):
    for number, phase in enumerate(["Pending", "", "Inqueue", "Running", "Completed", "Unknown"]):
        group(f"g{number}", phase=phase)
    later(controller, time)
    counted = {key: status().get(key) for key in ("pending", "inqueue", "running", "completed", "unknown")}
    assert counted == {"pending": 2, "inqueue": 1, "running": 1, "completed": 1, "unknown": 1}
    store.write(Delete(POD_GROUPS, "d", "g3"))
    later(controller, time)
    assert "running" not in status()


@pytest.mark.shows("scheduler 5.4/queues", "queues 1.3/allocated")
def test_allocated_is_what_bound_pods_ask_for_up_to_root(controller, time):
    queue("team")
    queue("sub", parent="team")
    pod("a", "sub", cpu="1500m")
    pod("b", "sub", cpu="1")
    pod("waits", "sub", node="")
    pod("ended", "sub", phase="Succeeded")
    later(controller, time)
    for name in ("sub", "team", "root"):
        assert status(name)["allocated"] == {"cpu": "2500m", "memory": "2Gi", "pods": "2"}
    assert status()["allocated"] == {"cpu": "0", "memory": "0"}


@pytest.mark.shows("queues 1.3/allocated")
def test_pod_that_ends_or_goes_gives_back_what_it_held(controller, time):
    pod("a")
    pod("b")
    later(controller, time)
    store.write(Patch(PODS, "d", "a", {"status": {"phase": "Failed"}}, "status"))
    store.write(Delete(PODS, "d", "b", grace=0))
    later(controller, time)
    assert status()["allocated"] == {"cpu": "0", "memory": "0"}


@pytest.mark.shows(
    "queues 1.2/state",
    "queues 1.5/default",
    "queues 2.3/Closing, nothing left",
    "queues 2.4/event",
    "queues 2.8/pods that run",
    "queue state 2/closing ends nothing",
)
def test_closing_queue_says_how_many_are_left_and_closes_when_none_is(controller, time):
    group("a", phase="Running")
    group("b")
    wish("default", "Closed")
    controller.settle()
    assert status()["state"] == "Closing"
    assert "2 unfinished pod groups are left (1 pending, 1 running)" in status()["message"]
    store.write(Delete(POD_GROUPS, "d", "b"))
    store.write(Patch(POD_GROUPS, "d", "a", {"status": {"phase": "Completed"}}))
    later(controller, time)
    assert status()["state"] == "Closed"
    wish("default", "Open")
    controller.settle()
    assert status()["state"] == "Open"
    assert [e.object["reason"] for e in store.find(EVENTS, order="created")] == ["Closing", "Closed", "Opened"]


def test_group_with_a_pod_that_has_not_ended_keeps_its_queue_from_closing(controller, time):
    """The first pod of a series has succeeded and its group says Completed, the second waits for a node."""
    group("series", phase="Completed")
    pod("series-0", phase="Succeeded", group="series")
    pod("series-1", phase="Pending", node="", group="series")
    wish("default", "Closed")
    later(controller, time)
    assert (status()["state"], status().get("inqueue"), status().get("completed")) == ("Closing", 1, None)
    assert "1 unfinished pod group is left (1 inqueue)" in status()["message"]
    store.write(Patch(PODS, "d", "series-1", {"spec": {"nodeName": "n"}}))
    later(controller, time)
    assert (status()["state"], status().get("running")) == ("Closing", 1)
    store.write(Patch(PODS, "d", "series-1", {"status": {"phase": "Succeeded"}}, "status"))
    later(controller, time)
    assert (status()["state"], status().get("completed")) == ("Closed", 1)


@pytest.mark.parametrize("phase", ["Pending", "Inqueue", "Unknown", "Running"])
def test_group_without_pods_whose_job_is_gone_keeps_no_queue_from_closing(controller, time, phase):
    """Its job was deleted while nobody looked after what belonged to it."""
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "gone", "uid": "gone"}
    of_job = {"name": "a", "namespace": "d", "ownerReferences": [{**job, "controller": True}]}
    store.write(Create(POD_GROUPS, {"metadata": of_job, "spec": {"queue": "default"}, "status": {"phase": phase}}))
    wish("default", "Closed")
    later(controller, time)
    assert (status()["state"], status().get(phase.lower())) == ("Closing", 1)
    collector = Runner(registry.get("garbage"), 0, GarbageCollector())
    while collector.step():
        pass
    later(controller, time)
    assert (status()["state"], status().get(phase.lower())) == ("Closed", None)


def test_group_without_pods_that_is_nobodys_is_work_until_it_is_deleted(controller, time):
    """Somebody has made it for pods to come, and may bring them at any time; the page of the queue names it."""
    group("by-hand", phase="Inqueue")
    wish("default", "Closed")
    later(controller, time)
    assert status()["message"].startswith("Closing: 1 unfinished pod group is left (1 inqueue).")
    store.write(Delete(POD_GROUPS, "d", "by-hand"))
    later(controller, time)
    assert status()["state"] == "Closed"


def test_queue_closes_when_none_is_left_below_it(controller, time):
    queue("prod")
    queue("nlp", parent="prod")
    queue("speech", parent="prod")
    group("runs", queue="nlp", phase="Running")
    wish("prod", "Closed")
    later(controller, time)
    assert [status(n)["state"] for n in ("prod", "nlp", "speech")] == ["Closing", "Closing", "Closed"]
    assert "1 unfinished pod group is left (1 running)" in status("prod")["message"]
    assert (status("prod")["running"], status("root")["running"]) == (1, 1)
    store.write(Delete(POD_GROUPS, "d", "runs"))
    later(controller, time)
    assert [status(n)["state"] for n in ("prod", "nlp")] == ["Closed", "Closed"]


def shut_since(name="default"):
    return store.get(QUEUES, "", name).object["metadata"].get("annotations", {}).get(SHUT_SINCE)


def test_queue_notes_since_when_it_is_not_open(controller, time):
    queue("team")
    queue("sub", parent="team")
    group("a", queue="sub")
    later(controller, time)
    assert shut_since("sub") is None
    wish("team", "Closed")
    later(controller, time)
    first = shut_since("sub")
    assert (first, status("sub")["state"]) == (shut_since("team"), "Closing")
    time.move(60)
    wish("sub", "Closed")
    store.write(Delete(POD_GROUPS, "d", "a"))
    later(controller, time)
    assert (first, status("sub")["state"]) == (shut_since("sub"), "Closed"), "it was shut before"
    wish("sub", "Open")
    wish("team", "Open")
    later(controller, time)
    assert shut_since("sub") is None
    time.move(60)
    wish("sub", "Closed")
    later(controller, time)
    assert shut_since("sub") > first


def test_since_when_is_told_by_the_clock_of_the_cluster(controller, time, runner_mode):
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
    expected = theirs["time"] if runner_mode.name == "in-place" else now_text(now)
    assert shut_since() == expected


@pytest.mark.shows("queues 1.4/closed-by-parent", "queues 2.4/children close", "queues 2.4/children open")
def test_queues_below_a_closed_one_close_and_open_with_it(controller, time):
    queue("team")
    queue("sub", parent="team")
    queue("own", parent="team", state="Closed")
    wish("team", "Closed")
    later(controller, time)
    assert [status(n)["state"] for n in ("team", "sub", "own")] == ["Closed", "Closed", "Closed"]
    assert "parent queue team" in status("sub")["message"]
    wish("team", "Open")
    later(controller, time)
    assert [status(n)["state"] for n in ("team", "sub", "own")] == ["Open", "Open", "Closed"]


@pytest.mark.shows("queues 2.5/new child of a closed queue", "queues 2.5/moved")
def test_queue_that_comes_below_a_closed_one_closes_and_opens_where_it_is_open(controller, time):
    queue("shut", state="Closed")
    queue("new", parent="shut")
    queue("moved")
    later(controller, time)
    assert [status(n)["state"] for n in ("new", "moved")] == ["Closed", "Open"]
    for name, parent in (("new", "root"), ("moved", "shut")):
        store.write(Patch(QUEUES, "", name, {"spec": {"parent": parent}}))
    later(controller, time)
    assert [status(n)["state"] for n in ("new", "moved")] == ["Open", "Closed"]


def test_counters_are_written_a_few_times_a_second_however_much_happens(controller, time):
    before = store.revision()
    for number in range(20):
        group(f"g{number}")
        controller.step()
        time.move(0.01)
    later(controller, time)
    writes = [c for c in store.changes(before, [QUEUES]) if c.name == "default"]
    assert len(writes) <= 3
    assert status()["pending"] == 20


def test_change_of_state_is_written_at_once(controller):
    group("a")
    controller.settle()
    wish("default", "Closed")
    controller.settle()
    assert status()["state"] == "Closing"


def test_new_process_writes_what_the_last_one_still_owed(controller, time):
    group("a")
    controller.settle()
    group("b")
    controller.settle()
    time.move(PAUSE_MS / 1000)
    Controller().settle()
    assert status()["pending"] == 2


def test_clock_that_is_set_back_delays_no_status(controller, time):
    group("a")
    controller.settle()
    time.us -= 600 * 1_000_000
    group("b")
    later(controller, time)
    assert status()["pending"] == 2


@cases("kept", {
    "keeps its wish": "Open",
    "keeps none, as Volcano's": None,
})  # fmt: skip
def test_state_that_a_client_writes_while_the_counters_are_planned_is_not_lost(controller, time, monkeypatch, kept):
    queue("team")
    wish("team", kept)
    group("a", queue="team", phase="Running")
    later(controller, time)
    store.write(Delete(POD_GROUPS, "d", "a"))
    plan = controller.consumer.plan

    def interrupted(*args):
        planned = plan(*args)
        if any(group.key == "team" for group in planned.groups) and "running" in status("team"):
            with others():
                store.write(Patch(QUEUES, "", "team", {"status": {"state": "Closed"}}, "status"))
            monkeypatch.undo()
        return planned

    monkeypatch.setattr(controller.consumer, "plan", interrupted)
    later(controller, time)
    assert controller.consumer.plan == plan
    assert (status("team")["state"], "running" in status("team")) == ("Closed", False)


def test_queue_deleted_meanwhile_does_not_stop_the_others(controller, time):
    queue("team")
    store.commit([Group([Delete(QUEUES, "", "team")])])
    group("a", queue="team")
    group("b")
    later(controller, time)
    assert status()["pending"] == 1


def order(action, name="default", *, uid=None, by="olga", **metadata):
    """Store a Command as vcctl does: in the namespace `default`, for the queue that has the name now."""
    uid = store.get(QUEUES, "", name).uid if uid is None else uid
    target = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "name": name, "uid": uid}
    notes = {"ui.volcano.sh/created-by": by} if by else {}
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
def test_command_sets_the_wish_and_is_gone(controller, time, before, action, has_work, wish, after):
    queue("team", state=before)
    if has_work:
        group("a", queue="team")
    later(controller, time)
    order(action, "team")
    controller.settle()
    assert (wished("team"), status("team")["state"]) == (wish, after)
    assert store.find(COMMANDS) == []
    assert told() == [("Normal", f"olga asked for {action}.")]


@pytest.mark.shows("queues 2.2/unknown action", "queues 2.4/root")
@cases("name, action, message", {
    "root": ("root", "CloseQueue",
        "olga asked for CloseQueue: root queue can not be closed; close the queues below it."),
    "action of a job": ("default", "AbortJob", "olga asked for AbortJob: it is no action of a queue; nothing is done."),
    "unknown": ("default", "Jump", "olga asked for Jump: it is no action of a queue; nothing is done."),
})  # fmt: skip
def test_command_that_cannot_be_carried_out_is_told_and_dropped(controller, name, action, message):
    order(action, name)
    controller.settle()
    assert store.find(COMMANDS) == []
    assert status(name)["state"] == "Open"
    assert told() == [("Warning", message)]


@pytest.mark.shows("queues 2.2/target gone")
@cases("name, uid", {
    "an earlier queue of the name": ("default", "other"),
    "no such queue": ("gone", "some"),
})  # fmt: skip
def test_command_for_a_queue_that_is_gone_is_dropped(controller, name, uid):
    order("CloseQueue", name, uid=uid)
    controller.settle()
    assert (store.find(COMMANDS), told(), wished()) == ([], [], "Open")


def test_burst_of_commands_to_queues_is_carried_out_in_order(controller, time):
    queue("team")
    for name, action in (("team", "CloseQueue"), ("default", "CloseQueue"), ("team", "OpenQueue")):
        order(action, name)
    later(controller, time)
    assert (wished("team"), wished(), store.find(COMMANDS)) == ("Open", "Closed", [])
    assert len(told()) == 3


@pytest.mark.shows("queues 2.4/below a closed one")
def test_queue_below_a_closed_one_is_opened_with_it(controller, time):
    queue("team", state="Closed")
    queue("sub", parent="team", state="Closed")
    order("OpenQueue", "sub")
    later(controller, time)
    assert (wished("sub"), status("sub")["state"]) == ("Open", "Closed")
    order("OpenQueue", "team")
    later(controller, time)
    assert status("sub")["state"] == "Open"


def test_command_taken_back_has_no_effect(controller):
    taken = order("CloseQueue")
    store.write(Delete(COMMANDS, "default", taken.name))
    controller.settle()
    assert (wished(), told()) == ("Open", [])


@pytest.mark.shows("queues 2.2/once")
def test_new_process_carries_out_the_command_that_the_last_one_left(controller, time):
    order("CloseQueue", finalizers=["example.com/kept"])
    later(Controller(), time)
    wish("default", "Open")
    later(Controller(), time)
    assert (wished(), len(told()), len(store.find(COMMANDS))) == ("Open", 1, 1)
