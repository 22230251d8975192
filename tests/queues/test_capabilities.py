"""What a queue can in each state: the table of the seed "Queue State Management", through the door, the controller and the scheduler."""

from __future__ import annotations

import pytest

from cluster import api
from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, store
from kube.errors import Forbidden, Invalid
from kube.resources import EVENTS, JOBS, POD_GROUPS, QUEUES
from tests.cluster.api.conftest import admin, job, person  # noqa: F401
from tests.queues.test_controller import Controller, later, status, time  # noqa: F401
from tests.scheduler import world
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)

# state: default, can be set, receives delivery, can be deleted, can be scheduled
CAPABILITIES = [
    pytest.param("Open", True, True, True, False, True, id="Open", marks=pytest.mark.shows("queue state 1/Open")),
    pytest.param(
        "Closed", False, True, False, True, True, id="Closed", marks=pytest.mark.shows("queue state 1/Closed")
    ),
    pytest.param(
        "Closing", False, False, False, False, True, id="Closing", marks=pytest.mark.shows("queue state 1/Closing")
    ),
]


@pytest.fixture
def controller(time):  # noqa: F811
    bootstrap()
    running = Controller()
    later(running, time)
    return running


def new(name="team", **spec):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


def work(phase="Running", name="work", queue="team"):
    """A pod group, which only the job controller makes and the scheduler moves on."""
    metadata = {"name": name, "namespace": "default"}
    spec = {"queue": queue, "minMember": 1}
    store.write(Create(POD_GROUPS, {"metadata": metadata, "spec": spec, "status": {"phase": phase}}))


def bring(admin, controller, time, state):  # noqa: F811
    """Make the queue team and bring it into a state as people do."""
    api.create(admin, QUEUES, new())
    if state != "Open":
        if state == "Closing":
            work()
        api.patch(admin, QUEUES, "", "team", {"spec": {"state": "Closed"}})
    later(controller, time)
    assert status("team")["state"] == state


def is_refused(error, step):
    try:
        step()
    except error:
        return True
    return False


@pytest.mark.shows(
    "queues 4/Open",
    "queues 4/Closed, Closing",
    "queue state 2/default",
    "queue state 2/only two",
    "queue state 3/Open",
    "queue state 3/not Open",
    "queue state 4/Closing",
)
@pytest.mark.parametrize(
    ("state", "is_default", "can_be_set", "receives", "can_be_deleted", "is_scheduled"), CAPABILITIES
)
def test_what_a_queue_can(
    admin,  # noqa: F811
    controller,
    time,  # noqa: F811
    state,
    is_default,
    can_be_set,
    receives,
    can_be_deleted,
    is_scheduled,
):
    api.create(admin, QUEUES, new("plain"))
    assert (status("plain")["state"] == state) is is_default
    assert is_refused(Invalid, lambda: api.create(admin, QUEUES, new("made", state=state))) is not can_be_set

    bring(admin, controller, time, state)
    wished = {"spec": {"state": state}}
    assert is_refused(Invalid, lambda: api.patch(admin, QUEUES, "", "plain", wished)) is not can_be_set
    delivered = {**job("new"), "spec": {**job("new")["spec"], "queue": "team"}}
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
        world.node("n", cpu="2"),
        world.queue("team", state=state),
        world.queue("other"),
        *(world.group(name, queue=queue) for name, queue in (("a", "team"), ("b", "other"), ("c", "other"))),
        world.pod("b", "b", node="n", phase="Running"),
        world.pod("c", "c"),
        world.pod("a", "a"),
    )
    placed.cycle()
    assert placed.where() == {"a": "n", "b": "n"}


# Clients of Volcano open and close a queue by what they write into its status. Its type there has no reason and no message.


def write_state(admin, wanted, name="team", **more):  # noqa: F811
    obj = store.get(QUEUES, "", name).object
    kept = {key: value for key, value in obj["status"].items() if key not in ("reason", "message")}
    api.update(admin, QUEUES, {**obj, "status": {**kept, "state": wanted, **more}}, subresource="status")


def wished(name="team"):
    return store.get(QUEUES, "", name).object["spec"]["state"]


@pytest.mark.shows("queues 1.1/status")
@cases("keeps_reason", {
    "without reason": False,
    "with what was there": True,
})  # fmt: skip
@cases("before, written, wish, after", {
    "close an open queue": ("Open", "Closed", "Closed", "Closed"),
    "open a closed queue": ("Closed", "Open", "Open", "Open"),
    "open a closing queue": ("Closing", "Open", "Open", "Open"),
    "close a closing queue": ("Closing", "Closed", "Closed", "Closing"),
    "open an open queue": ("Open", "Open", "Open", "Open"),
    "Closing is nothing to wish": ("Open", "Closing", "Open", "Open"),
    "nor is Unknown": ("Closed", "Unknown", "Closed", "Closed"),
})  # fmt: skip
def test_a_state_that_a_client_writes_is_a_wish(
    admin,  # noqa: F811
    controller,
    time,  # noqa: F811
    before,
    written,
    wish,
    after,
    keeps_reason,
):
    bring(admin, controller, time, before)
    told = status("team")
    kept = {key: told[key] for key in ("reason", "message")} if keeps_reason else {}
    write_state(admin, written, **kept)
    later(controller, time)
    assert (wished(), status("team")["state"]) == (wish, after)
    assert status("team")["reason"]
    if (wish == "Open") != (before == "Open"):
        assert status("team")["message"] in [each.object["message"] for each in store.find(EVENTS)]


@pytest.mark.shows("queue state 2/closing ends nothing")
def test_closing_by_the_status_waits_for_work(admin, controller, time):  # noqa: F811
    bring(admin, controller, time, "Open")
    work()
    write_state(admin, "Closed")
    later(controller, time)
    assert (wished(), status("team")["state"]) == ("Closed", "Closing")
    store.write(Delete(POD_GROUPS, "default", "work"))
    later(controller, time)
    assert status("team")["state"] == "Closed"


@pytest.mark.shows("queues 2.4/root")
def test_root_is_not_closed_by_the_status(admin, controller, time):  # noqa: F811
    write_state(admin, "Closed", "root")
    later(controller, time)
    assert status("root")["state"] == "Open"


@pytest.mark.shows("queue state 2/deleted when Closed")
@cases("waits", {
    "at once": False,
    "a second later": True,
})  # fmt: skip
@cases("has_work", {
    "empty": False,
    "with work": True,
})  # fmt: skip
def test_closing_by_the_status_and_deleting(admin, controller, time, waits, has_work):  # noqa: F811
    bring(admin, controller, time, "Open")
    if has_work:
        work("Pending")
    work("Completed", "done")
    write_state(admin, "Closed")
    if waits:
        later(controller, time)
    if has_work:
        with pytest.raises(Forbidden, match="state is `Closing`; wait until what is left in it has ended"):
            api.delete(admin, QUEUES, "", "team")
    else:
        api.delete(admin, QUEUES, "", "team")
        assert "team" not in [each.name for each in store.find(QUEUES)]


def test_a_wish_written_while_the_controller_was_away_is_not_lost(admin, controller, time):  # noqa: F811
    bring(admin, controller, time, "Open")
    write_state(admin, "Closed")
    later(Controller(), time)
    assert (wished(), status("team")["state"]) == ("Closed", "Closed")


@pytest.mark.shows("queues 1.2/type")
def test_fields_of_a_queue_that_nothing_reads_are_kept(admin, controller):  # noqa: F811
    kept = {"type": "research", "extendClusters": [{"name": "far", "weight": 2, "capacity": {"cpu": "4"}}]}
    api.create(admin, QUEUES, new(**kept))
    assert kept.items() <= store.get(QUEUES, "", "team").object["spec"].items()
