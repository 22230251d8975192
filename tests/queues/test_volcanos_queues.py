"""Queues that keep no wish, as Volcano's definition has none: their state is what it was left as."""

from __future__ import annotations

import pytest

from cluster.store import Create, Delete, Patch, store
from kube.kinds.scheduling import QueueState
from kube.resources import COMMANDS, POD_GROUPS, QUEUES
from queues import state_commands, states
from queues.controller import PAUSE_MS
from queues.states import CLOSED_BY_PARENT_ANNOTATION
from tests.queues.test_controller import controller, group, later, status, time

__all__ = ["controller", "time"]  # fixtures
pytestmark = pytest.mark.django_db(transaction=True)


def queue(name, parent="root", state=None, by_parent=None):
    """Store a queue without a wish."""
    metadata = {"name": name}
    if by_parent:
        metadata["annotations"] = {CLOSED_BY_PARENT_ANNOTATION: by_parent}
    obj = {"metadata": metadata, "spec": {"weight": 1, "parent": parent}}
    store.write(Create(QUEUES, {**obj, "status": {"state": state}} if state else obj))


def command(controller, time, name, wish):
    uid = store.get(QUEUES, "", name).uid
    obj = state_commands.to_queue(name, uid, QueueState(wish))
    obj["metadata"] = {**obj["metadata"], "name": f"{name}-{wish.lower()}", "namespace": "default"}
    store.write(Create(COMMANDS, obj))
    later(controller, time)
    assert not store.find(COMMANDS)


def note(name):
    metadata = store.get(QUEUES, "", name).object["metadata"]
    return (metadata.get("annotations") or {}).get(CLOSED_BY_PARENT_ANNOTATION)


@pytest.mark.shows("queues 2.3/Unknown")
@pytest.mark.parametrize(
    ("kept", "state", "by_parent", "wish"),
    [
        ("Open", "Closed", False, "Open"),
        ("Closed", "Open", False, "Closed"),
        ("", "", False, "Open"),
        ("", "Open", False, "Open"),
        ("", "Unknown", False, "Open"),
        ("", "Closing", False, "Closed"),
        ("", "Closed", False, "Closed"),
        ("", "Closed", True, "Open"),
        ("", "Closing", True, "Open"),
    ],
)
def test_wish(kept, state, by_parent, wish):
    assert states.wish(kept, state, is_closed_by_parent=by_parent) == wish


def test_queue_is_closed_and_opened_by_commands(controller, time):
    queue("plain")
    later(controller, time)
    assert status("plain")["state"] == "Open"
    command(controller, time, "plain", "Closed")
    assert status("plain")["state"] == "Closed"
    assert "state" not in store.get(QUEUES, "", "plain").object["spec"]
    command(controller, time, "plain", "Open")
    assert status("plain")["state"] == "Open"


@pytest.mark.shows("queues 2.3/Closing, nothing left")
def test_queue_with_work_closes_when_none_is_left(controller, time):
    queue("plain")
    group("a", queue="plain", phase="Running")
    later(controller, time)
    command(controller, time, "plain", "Closed")
    assert status("plain")["state"] == "Closing"
    store.write(Delete(POD_GROUPS, "d", "a"))
    later(controller, time)
    assert status("plain")["state"] == "Closed"


def test_queue_that_volcano_closed_stays_closed(controller, time):
    queue("theirs", state="Closed")
    later(controller, time)
    assert status("theirs")["state"] == "Closed"


@pytest.mark.shows("queues 1.4/closed-by-parent")
@pytest.mark.parametrize(("note_of_volcano", "state"), [("true", "Open"), ("false", "Closed"), (None, "Closed")])
def test_queue_that_volcano_closed_with_its_parent_opens_with_it(controller, time, note_of_volcano, state):
    queue("team", state="Closed")
    queue("sub", parent="team", state="Closed", by_parent=note_of_volcano)
    later(controller, time)
    assert status("sub")["state"] == "Closed"
    command(controller, time, "team", "Open")
    assert [status(name)["state"] for name in ("team", "sub")] == ["Open", state]


def test_queues_below_a_closed_one_close_and_open_with_it(controller, time):
    queue("team")
    queue("sub", parent="team")
    queue("own", parent="team", state="Closed")
    later(controller, time)
    command(controller, time, "team", "Closed")
    later(controller, time)
    assert [status(name)["state"] for name in ("team", "sub", "own")] == ["Closed"] * 3
    assert note("sub") == "true"
    command(controller, time, "team", "Open")
    later(controller, time)
    assert [status(name)["state"] for name in ("team", "sub", "own")] == ["Open", "Open", "Closed"]
    assert note("sub") == "false"


def test_status_of_which_the_cluster_drops_a_part_is_written_once(controller, time):
    queue("plain")
    later(controller, time)
    whole = status("plain")
    kept = {key: value for key, value in whole.items() if key not in ("reason", "message")}
    store.write(Patch(QUEUES, "", "plain", {"status": {"reason": None, "message": None}}, "status"))
    before = store.revision()
    for _ in range(3):
        later(controller, time)
    assert status("plain") == kept
    assert [change for change in store.changes(before, [QUEUES]) if change.name == "plain"] == []
    group("a", queue="plain")
    time.move(PAUSE_MS / 1000)
    later(controller, time)
    assert status("plain")["pending"] == 1
