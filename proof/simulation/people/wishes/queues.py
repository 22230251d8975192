"""Queues: made, weighed, bounded, closed, opened and deleted."""

from __future__ import annotations

from collections.abc import Callable

from kube.meta import Object
from kube.resources import QUEUES
from proof.simulation.people.before import WEIGHTS
from proof.simulation.people.desk import Desk, SoftLimit, queue_state, wish
from proof.simulation.people.request import JSON_PATCH, Request, create, delete, name_of, patch, version_of

PERMANENT = ("root", "default", *WEIGHTS)
MAX_QUEUES = 30
FULL = 60
CAPABILITIES = ("1", "4", "16", "64")


def _is_ours(queue: Object) -> bool:
    return name_of(queue) not in ("root", "default")


def _create(desk: Desk, spec: Object, what: str) -> Request | None:
    if len(desk.all(QUEUES)) >= FULL:
        return None
    name = desk.name("q-")
    body = {"metadata": {"name": name}, "spec": spec}
    return create("admin", QUEUES, body, f"admin makes the queue {name}{what}")


@wish(1)
def make_a_queue(desk: Desk) -> Request | None:
    """With a weight, and often more."""
    spec: Object = {"weight": desk.random.randint(1, 10)}
    if desk.chance(0.3):
        spec["capability"] = {"cpu": desk.one(CAPABILITIES)}
    if desk.chance(0.2):
        spec["reclaimable"] = False
    if desk.chance(0.2):
        spec["priority"] = desk.random.randint(0, 100)
    if desk.chance(0.1):
        spec["state"] = "Closed"
    if desk.chance(0.2):
        spec["dequeueStrategy"] = "fifo"
    return _create(desk, spec, f" of weight {spec['weight']}")


@wish(0.5)
def make_a_queue_below_another(desk: Desk) -> Request | None:
    """Below one that is not used itself."""
    parent = desk.any(QUEUES, _may_be_parent)
    if parent is None:
        return None
    spec = {"weight": desk.random.randint(1, 5), "parent": name_of(parent)}
    return _create(desk, spec, f" below {name_of(parent)}")


def _may_be_parent(queue: Object) -> bool:
    used = (queue.get("status") or {}).get("allocated") or {}
    is_top = (queue.get("spec") or {}).get("parent") in ("", None, "root")
    return (
        name_of(queue) not in PERMANENT
        and is_top
        and queue_state(queue) == "Open"
        and used.get("pods") in (None, "0", 0)
    )


def _changed(
    desk: Desk, change: Object, what: str, test: Callable[[Object], object] = _is_ours, actor: str = "admin"
) -> Request | None:
    queue = desk.any(QUEUES, test)
    if queue is None:
        return None
    return patch(actor, QUEUES, queue, {"spec": change}, f"{actor} {what} {name_of(queue)}")


@wish(0.7)
def weigh_a_queue(desk: Desk) -> Request | None:
    """Another weight."""
    weight = desk.random.randint(1, 10)
    return _changed(desk, {"weight": weight}, f"sets the weight {weight} of the queue")


@wish(0.5)
def weigh_a_queue_as_it_was_seen(desk: Desk) -> Request | None:
    """The same, if nobody else has changed it."""
    queue, weight = desk.any(QUEUES, _is_ours), desk.random.randint(1, 10)
    if queue is None:
        return None
    change = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version_of(queue)},
        {"op": "add", "path": "/spec/weight", "value": weight},
    ]
    words = f"admin sets the weight {weight} of the queue {name_of(queue)}, as it was seen"
    return patch("admin", QUEUES, queue, change, words, JSON_PATCH)


@wish(0.6)
def bound_a_queue(desk: Desk) -> Request | None:
    """A capability, which may be less than what is used; a guarantee does not stay beside it."""
    amount = desk.one(CAPABILITIES)
    change = {"capability": {"cpu": amount}, "guarantee": None, "deserved": None}
    return _changed(desk, change, f"bounds at {amount} cpu the queue")


@wish(0.8)
def unbound_a_queue(desk: Desk) -> Request | None:
    """All that there is."""
    return _changed(desk, {"capability": None}, "lifts the bound of the queue")


@wish(0.4)
def guarantee_something_to_a_queue(desk: Desk) -> Request | None:
    """Kept for a queue that lies directly below root."""
    amount = desk.one(("1", "4", "8"))
    share = {"cpu": amount}
    change = {"guarantee": {"resource": share}, "deserved": share, "capability": None}
    return _changed(desk, change, f"guarantees {amount} cpu to the queue", _is_at_top)


def _is_at_top(queue: Object) -> bool:
    return _is_ours(queue) and (queue.get("spec") or {}).get("parent") in ("", None, "root")


@wish(0.4)
def take_a_guarantee_back(desk: Desk) -> Request | None:
    """What was kept is free again."""
    change = {"guarantee": None, "deserved": None}
    return _changed(desk, change, "takes back the guarantee of the queue", _has_guarantee)


def _has_guarantee(queue: Object) -> bool:
    return bool((queue.get("spec") or {}).get("guarantee"))


@wish(0.3)
def let_others_reclaim_or_not(desk: Desk) -> Request | None:
    """Whether what a queue uses beyond its share may be taken back."""
    may = desk.chance(0.7)
    return _changed(desk, {"reclaimable": may}, f"sets reclaimable {str(may).lower()} of the queue")


@wish(0.8, soft_limit=SoftLimit(QUEUES, MAX_QUEUES))
def close_a_queue(desk: Desk) -> Request | None:
    """No new work; the first queues are closed seldom."""
    test = _is_open if desk.chance(0.2) else _is_open_and_new
    return _changed(desk, {"state": "Closed"}, "closes the queue", test, "olga")


def _is_open(queue: Object) -> bool:
    return _is_ours(queue) and queue_state(queue) == "Open"


def _is_open_and_new(queue: Object) -> bool:
    return _is_open(queue) and name_of(queue) not in PERMANENT


@wish(0.3)
def say_the_state_of_a_queue_again(desk: Desk) -> Request | None:
    """Close one that is closed, or open one that is open: nothing changes."""
    queue = desk.any(QUEUES, lambda each: _is_ours(each) and (each.get("spec") or {}).get("state"))
    if queue is None:
        return None
    change = {"spec": {"state": queue["spec"]["state"]}}
    words = f"olga says again that the queue {name_of(queue)} is to be {queue['spec']['state']}"
    return patch("olga", QUEUES, queue, change, words)


@wish(1)
def open_a_queue(desk: Desk) -> Request | None:
    """One that is closed or closing."""
    return _changed(desk, {"state": "Open"}, "opens the queue", _wishes_to_be_closed, "olga")


def _wishes_to_be_closed(queue: Object) -> bool:
    """Not one that is closed with its parent only: that one waits for its parent."""
    return (queue.get("spec") or {}).get("state") == "Closed"


@wish(1, soft_limit=SoftLimit(QUEUES, MAX_QUEUES))
def delete_a_queue(desk: Desk) -> Request | None:
    """One that is closed and has none below it."""
    parents = {(each.get("spec") or {}).get("parent") for each in desk.all(QUEUES)}
    closed = desk.all(QUEUES, lambda each: queue_state(each) == "Closed")
    queue = desk.one_or_none([each for each in closed if name_of(each) not in (*PERMANENT, *parents)])
    if queue is None:
        return None
    return delete("admin", QUEUES, queue, f"admin deletes the queue {name_of(queue)}")
