"""The queue controller against the real store. How to read a story, says story.py."""

import pytest

from cluster import clock
from cluster.controllers.garbage import GarbageCollector
from cluster.runtime import registry
from cluster.store import Delete, Group, Patch, Update, store
from kube.meta import now_text, timestamp
from kube.resources import COMMANDS, EVENTS, JOBS, PODS, QUEUES
from proof.modes.mode import Runner, others
from queues.controller import PAUSE_MS
from tests import builders
from tests.queues.story import Controller, Story, group, order, shut_since, status, wished
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode"), pytest.mark.each_backend]
CLOSED = "queue team root Closed, later"
WITH_WORK = "group a team, later"


@pytest.fixture
def story(controller):
    return Story(controller)


@cases("text", {
    "says at once how many are left and closes when none is, with those below it | queues 1.2/state"
    " + queues 1.5/default + queues 2.3/Closing, nothing left + queues 2.4/event + queues 2.8/pods that run"
    " + queue state 2/closing ends nothing + queues 2.4/children close + queues 2.4/children open": """
        queue sub default, queue own default Closed, group a default Running, group b, settle
        wish default Closed, settle → default Closing; says 2 unfinished pod groups are left (1 pending, 1 running)
        ungroup b, phase a Completed, later → default Closed; sub Closed; own Closed; says parent queue default
        wish default Open, later → default Open; sub Open; own Closed; told Closing Closed Opened""",
    "close an empty queue | queues 2.3/Open, CloseQueue, empty + queues 2.2/target + queues 2.2/once"
    " + queue state 5/operate": "queue team, later, command Close team → team.wish Closed; team Closed",
    "close a queue with work | queues 2.3/Open, CloseQueue, in use + queues 2.2/target":
        f"queue team, {WITH_WORK}, command Close team → team.wish Closed; team Closing",
    "close a closed queue | queues 2.3/Closed, CloseQueue":
        f"{CLOSED}, command Close team → team.wish Closed; team Closed",
    "close a closing queue | queues 2.3/Closing, CloseQueue":
        f"{CLOSED}, {WITH_WORK}, command Close team → team.wish Closed; team Closing",
    "open a closed queue | queues 2.3/Closed, OpenQueue": f"{CLOSED}, command Open team → team.wish Open; team Open",
    "open a closing queue | queues 2.3/Closing, OpenQueue":
        f"{CLOSED}, {WITH_WORK}, command Open team → team.wish Open; team Open",
    "open an open queue | queues 2.3/Open, OpenQueue":
        "queue team, later, command Open team → team.wish Open; team Open",
    "look at it again | queues 2.3/Closed, SyncQueue": f"{CLOSED}, command Sync team → team.wish Closed; team Closed",
    "a queue below a closed one is opened with it | queues 2.4/below a closed one": f"""
        {CLOSED}, queue sub team Closed, command Open sub, later → sub.wish Open; sub Closed
        command Open team, later → sub Open""",
    "a new process writes what the last one owed": "group a, settle, group b, settle, next, later → default.pending 2",
    "a queue without a wish is closed and opened by commands | queues 2.3/Closing, nothing left": """
        wishless plain, group a plain Running, later → plain Open
        group b plain, command Close plain, later → plain Closing; plain.pending 1
        ungroup a, ungroup b, later → plain Closed; plain.wish
        command Open plain, later → plain Open""",
    **{
        f"a queue that Volcano closed with its parent opens with it: {note} | queues 1.4/closed-by-parent": f"""
        wishless team root Closed, wishless sub team Closed {note}, later → team Closed; sub Closed
        command Open team, later → team Open; sub {state}"""
        for note, state in (("true", "Open"), ("false", "Closed"), ("", "Closed"))
    },
    "queues without a wish close and open with the one above": """
        wishless team, wishless sub team, wishless own team Closed, later, command Close team, later
        → team Closed; sub Closed; own Closed; sub.note true
        command Open team, later → team Open; sub Open; own Closed; sub.note false""",
})  # fmt: skip
def test_what_becomes_of_queues(story, text):
    story.goes(text)


@pytest.mark.shows("scheduler 5.4/queues", "queues 1.3/allocated")
def test_allocated_is_what_bound_pods_ask_for_up_to_root_until_they_end_or_go(story):
    story.goes("""
        queue team, queue sub team, pod a sub 1500m, pod b sub 1
        pod waits sub 1 nowhere, pod ended sub 1 n Succeeded, later
    """)
    amounts = {"cpu": "2500m", "memory": "2Gi", "pods": "2"}
    assert [status(name)["allocated"] for name in ("sub", "team", "root")] == [amounts] * 3
    store.write(Patch(PODS, "default", "a", {"status": {"phase": "Failed"}}, "status"))
    store.write(Delete(PODS, "default", "b", grace=0))
    story.controller.later()
    nothing = {"cpu": "0", "memory": "0"}
    assert [status(name)["allocated"] for name in ("default", "sub", "team", "root")] == [nothing] * 4


def test_groups_without_pods_whose_job_is_gone_keep_no_queue_from_closing(story):
    """Their job was deleted while nobody looked after what belonged to it."""
    gone = builders.owner(builders.of(JOBS, "gone"), uid="gone")
    for phase in ("Pending", "Inqueue", "Unknown", "Running"):
        group(phase.lower(), phase=phase, ownerReferences=[gone])
    left = "4 unfinished pod groups are left (1 inqueue, 1 pending, 1 running, 1 unknown)"
    story.goes(f"wish default Closed, later → default Closing; says {left}")
    collector = Runner(registry.get("garbage"), 0, GarbageCollector())
    while collector.step():
        pass
    story.goes("later → default Closed; default.pending 0; default.inqueue 0; default.unknown 0; default.running 0")


def test_queue_notes_since_when_it_is_not_open(story):
    story.goes("queue team, queue sub team, group a sub, later")
    assert shut_since("sub") is None
    story.goes("wish team Closed, later → sub Closing")
    first = shut_since("sub")
    assert first == shut_since("team")
    story.goes("wait 60, wish sub Closed, ungroup a, later → sub Closed")
    assert shut_since("sub") == first, "it was shut before"
    story.goes("wish sub Open, wish team Open, later")
    assert shut_since("sub") is None
    story.goes("wait 60, wish sub Closed, later")
    assert shut_since("sub") > first


def test_since_when_is_told_by_the_clock_of_the_cluster(story, runner_mode):
    """That of the cluster is five minutes ahead of the controller's on another machine."""
    now = clock.milliseconds()
    theirs = {
        "manager": "other", "operation": "Update", "apiVersion": QUEUES.api_version, "subresource": "status",
        "time": timestamp(now + 300_000), "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:reservation": {}}},
    }  # fmt: skip
    sent = {"metadata": {"name": "default"}, "status": {**status(), "reservation": {"nodes": ["n"]}}}
    store.write(Update(QUEUES, sent, "status", managed=[theirs]))
    story.goes("group a, wish default Closed, settle → default Closing")
    assert shut_since() == (theirs["time"] if runner_mode.name == "in-place" else now_text(now))


def test_counters_are_written_a_few_times_a_second_however_much_happens(controller):
    before = store.revision()
    for number in range(20):
        group(f"g{number}")
        controller.step()
        controller.clock.move(0.01)
    controller.later()
    writes = [c for c in store.changes(before, [QUEUES]) if c.name == "default"]
    assert len(writes) <= 3
    assert status()["pending"] == 20


def test_clock_that_is_set_back_delays_no_status(story, moved_clock):
    story.goes("group a, settle")
    moved_clock.us -= 600 * 1_000_000
    story.goes("group b, later → default.pending 2")


@cases("wish", {"keeps its wish": "Open", "keeps none, as Volcano's": None})
def test_state_that_a_client_writes_while_the_counters_are_planned_is_not_lost(story, monkeypatch, wish):
    consumer = story.controller.consumer
    story.goes("queue team")
    story.wish("team", wish)
    story.goes("group a team Running, later, ungroup a")
    plan = consumer.plan

    def interrupted(*args):
        planned = plan(*args)
        if any(group.key == "team" for group in planned.groups) and "running" in status("team"):
            with others():
                store.write(Patch(QUEUES, "", "team", {"status": {"state": "Closed"}}, "status"))
            monkeypatch.undo()
        return planned

    monkeypatch.setattr(consumer, "plan", interrupted)
    story.goes("later → team Closed; team.running 0")
    assert consumer.plan == plan


def test_queue_deleted_meanwhile_does_not_stop_the_others(story):
    story.goes("queue team")
    store.commit([Group([Delete(QUEUES, "", "team")])])
    story.goes("group a team, group b, later → default.pending 1")


def event_texts():
    found = [e.object for e in store.find(EVENTS, order="created") if e.object["reason"] == "CommandIssued"]
    return [(e["type"], e["message"]) for e in found]


@pytest.mark.shows("queues 2.2/unknown action", "queues 2.4/root")
@cases("name, action, why", {
    "root": ("root", "CloseQueue", "root queue can not be closed; close the queues below it."),
    "action of a job": ("default", "AbortJob", "it is no action of a queue; nothing is done."),
    "unknown": ("default", "Jump", "it is no action of a queue; nothing is done."),
})  # fmt: skip
def test_command_that_cannot_be_carried_out_is_told_and_dropped(controller, name, action, why):
    order(action, name)
    controller.settle()
    assert (store.find(COMMANDS), status(name)["state"]) == ([], "Open")
    assert event_texts() == [("Warning", f"olga asked for {action}: {why}")]


@pytest.mark.shows("queues 2.2/target gone")
def test_commands_taken_back_and_to_queues_that_are_gone_are_dropped(controller):
    order("CloseQueue", uid="that of an earlier queue of the name")
    order("CloseQueue", "gone", uid="some")
    store.write(Delete(COMMANDS, "default", order("CloseQueue").name))
    controller.settle()
    assert (store.find(COMMANDS), event_texts(), wished()) == ([], [], "Open")


@pytest.mark.shows("queues 2.2/once")
def test_commands_are_carried_out_in_order_and_by_a_new_process_not_again(controller, moved_clock):
    for action in ("OpenQueue", "CloseQueue"):
        order(action)
    controller.later()
    assert (wished(), event_texts()) == (
        "Closed",
        [("Normal", f"olga asked for {each}Queue.") for each in ("Open", "Close")],
    )
    order("CloseQueue", finalizers=["example.com/kept"])
    Controller(moved_clock).later()
    Story(controller).wish("default", "Open")
    Controller(moved_clock).later()
    assert (wished(), len(event_texts()), len(store.find(COMMANDS))) == ("Open", 3, 1)


def test_status_of_which_the_cluster_drops_a_part_is_written_once(story):
    story.goes("wishless plain, later")
    remaining = {key: value for key, value in status("plain").items() if key not in ("reason", "message")}
    store.write(Patch(QUEUES, "", "plain", {"status": {"reason": None, "message": None}}, "status"))
    before = store.revision()
    story.goes("later, later, later")
    assert status("plain") == remaining
    assert [change for change in store.changes(before, [QUEUES]) if change.name == "plain"] == []
    story.goes(f"group a plain, wait {PAUSE_MS / 1000}, later → plain.pending 1")
