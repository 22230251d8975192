"""What a queue can in each state: the table of the seed "Queue State Management", through the door, the controller and the scheduler.

Clients of Volcano open and close a queue by what they write into its status; its type there has no reason, no message and
no wish. What keeps no wish has the state as which it was left.
"""

from __future__ import annotations

import pytest

from cluster import api
from cluster.store import store
from kube.errors import Forbidden, Invalid
from kube.resources import EVENTS, JOBS, QUEUES
from tests import builders
from tests.cluster.api.conftest import admin, person
from tests.queues.story import Controller, Story, group, status, wished
from tests.queues.test_controller import controller
from tests.scheduler import world
from tests.tables import cases

__all__ = ["admin", "controller", "person"]  # fixtures
pytestmark = pytest.mark.django_db(transaction=True)


def new(name="team", **spec):
    return builders.of(QUEUES, name, weight=1, **spec)


def bring(admin, controller, state):
    """Make the queue team and bring it into a state as people do."""
    api.create(admin, QUEUES, new())
    if state != "Open":
        if state == "Closing":
            group("work", "team", "Running")
        api.patch(admin, QUEUES, "", "team", {"spec": {"state": "Closed"}})
    controller.later()
    assert status("team")["state"] == state


def is_refused(error, step):
    try:
        step()
    except error:
        return True
    return False


@pytest.mark.shows(
    "queues 4/Open", "queues 4/Closed, Closing", "queue state 2/default", "queue state 2/only two",
    "queue state 3/Open", "queue state 3/not Open", "queue state 4/Closing", "queues 1.2/type",
)  # fmt: skip
@cases("state, is_default, can_be_set, receives, can_be_deleted, is_scheduled", {
    "Open | queue state 1/Open": ("Open", True, True, True, False, True),
    "Closed | queue state 1/Closed": ("Closed", False, True, False, True, True),
    "Closing | queue state 1/Closing": ("Closing", False, False, False, False, True),
})  # fmt: skip
def test_what_a_queue_can(admin, controller, state, is_default, can_be_set, receives, can_be_deleted, is_scheduled):
    kept = {"type": "research", "extendClusters": [{"name": "far", "weight": 2, "capacity": {"cpu": "4"}}]}
    made = api.create(admin, QUEUES, new("plain", **kept))
    assert kept.items() <= made.object["spec"].items(), "nothing reads them"
    assert (status("plain")["state"] == state) is is_default
    assert is_refused(Invalid, lambda: api.create(admin, QUEUES, new("made", state=state))) is not can_be_set

    bring(admin, controller, state)
    wished = {"spec": {"state": state}}
    assert is_refused(Invalid, lambda: api.patch(admin, QUEUES, "", "plain", wished)) is not can_be_set
    delivered = builders.job("new", queue="team", minAvailable=1)
    assert is_refused((Invalid, Forbidden), lambda: api.create(admin, JOBS, delivered)) is not receives
    assert is_refused(Forbidden, lambda: api.delete(admin, QUEUES, "", "team")) is not can_be_deleted

    placed = world.World(world.node("n"), world.queue("team", state=state), world.group(queue="team"), world.pod("p"))
    placed.cycle()
    assert (placed.where() == {"p": "n"}) is is_scheduled


@pytest.mark.shows("queue state 1/Open", "queue state 1/Closed", "queue state 1/Closing")
@pytest.mark.parametrize("state", ["Open", "Closed", "Closing"])
def test_a_queue_deserves_the_same_in_each_state(state):
    """The last column of the table: a queue that is closed gets its share before another that has had his."""
    placed = world.World(
        world.node("n", cpu="2"), world.queue("team", state=state), world.queue("other"),
        *(world.group(name, queue=queue) for name, queue in (("a", "team"), ("b", "other"), ("c", "other"))),
        world.pod("b", "b", node="n", phase="Running"), world.pod("c", "c"), world.pod("a", "a"),
    )  # fmt: skip
    placed.cycle()
    assert placed.where() == {"a": "n", "b": "n"}


def write_state(admin, wanted, name="team", **more):
    """Write a state as a client of Volcano does."""
    obj = store.get(QUEUES, "", name).object
    kept = {key: value for key, value in obj["status"].items() if key not in ("reason", "message")}
    api.update(admin, QUEUES, {**obj, "status": {**kept, "state": wanted, **more}}, subresource="status")


@pytest.mark.shows("queues 1.1/status")
@pytest.mark.parametrize("keeps_reason", [False, True], ids=["without reason", "with what was there"])
@cases("before, written, wish, after", {
    "close an open queue": ("Open", "Closed", "Closed", "Closed"),
    "open a closed queue": ("Closed", "Open", "Open", "Open"),
    "open a closing queue": ("Closing", "Open", "Open", "Open"),
    "close a closing queue": ("Closing", "Closed", "Closed", "Closing"),
    "open an open queue": ("Open", "Open", "Open", "Open"),
    "Closing is nothing to wish": ("Open", "Closing", "Open", "Open"),
    "nor is Unknown": ("Closed", "Unknown", "Closed", "Closed"),
})  # fmt: skip
def test_a_state_that_a_client_writes_is_a_wish(admin, controller, before, written, wish, after, keeps_reason):
    bring(admin, controller, before)
    told = status("team")
    write_state(admin, written, **({key: told[key] for key in ("reason", "message")} if keeps_reason else {}))
    controller.later()
    assert (wished("team"), status("team")["state"]) == (wish, after)
    assert status("team")["reason"]
    if (wish == "Open") != (before == "Open"):
        assert status("team")["message"] in [each.object["message"] for each in store.find(EVENTS)]


@pytest.mark.shows("queue state 2/closing ends nothing", "queues 2.4/root")
def test_closing_by_the_status_waits_for_work_and_for_a_controller_and_is_nothing_for_root(
    admin, controller, moved_clock
):
    bring(admin, controller, "Open")
    group("work", "team", "Running")
    write_state(admin, "Closed")
    write_state(admin, "Closed", "root")
    story = Story(Controller(moved_clock)).goes("later → team.wish Closed; team Closing; root Open")
    story.goes("ungroup work, later → team Closed")


@pytest.mark.shows("queue state 2/deleted when Closed")
@pytest.mark.parametrize("waits", [False, True], ids=["at once", "a second later"])
@pytest.mark.parametrize("has_work", [False, True], ids=["empty", "with work"])
def test_closing_by_the_status_and_deleting(admin, controller, waits, has_work):
    bring(admin, controller, "Open")
    if has_work:
        group("work", "team")
    group("done", "team", "Completed")
    write_state(admin, "Closed")
    if waits:
        controller.later()
    if has_work:
        with pytest.raises(Forbidden, match="state is `Closing`; wait until what is left in it has ended"):
            api.delete(admin, QUEUES, "", "team")
    else:
        api.delete(admin, QUEUES, "", "team")
        assert "team" not in [each.name for each in store.find(QUEUES)]
