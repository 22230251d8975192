"""Commands to jobs and queues, as vcctl sends them."""

from __future__ import annotations

from kube.meta import Object
from kube.resources import COMMANDS, JOBS, QUEUES, Resource
from proof.simulation.people.desk import Desk, phase_of, queue_state, wish
from proof.simulation.people.request import Request, create, name_of

ACTIVE = ("Pending", "Running", "Restarting")
STOPPED = ("Aborted", "Aborting")
UNUSUAL = 0.1  # of all commands go to a job in a phase where they mean little
NAMESPACE = "default"  # where commands to queues lie
ODD = ("SyncJob", "EnqueueJob", "RestartTask", "RestartPod", "OpenQueue", "NoSuchAction")


def target(resource: Resource, obj: Object) -> Object:
    """Return what a command is for; the API asks for its uid."""
    uid = obj["metadata"]["uid"]
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name_of(obj), "uid": uid}


def _command(desk: Desk, action: str, resource: Resource, obj: Object, namespace: str, *, owned: bool) -> Object:
    aim = target(resource, obj)
    metadata: Object = {"name": desk.name("c"), "namespace": namespace}
    if owned:
        aim |= {"controller": True, "blockOwnerDeletion": True}
        metadata["ownerReferences"] = [aim]
    return {"metadata": metadata, "action": action, "target": aim}


def to_job(desk: Desk, action: str, *phases: str) -> Request | None:
    """Return the request that orders something of a job, None when there is no job."""
    found = desk.job() if desk.chance(UNUSUAL) else desk.job(*phases)
    if found is None:
        return None
    who = desk.whose(found)
    namespace, owned = found["metadata"]["namespace"], desk.chance(0.5)  # as vcctl makes it, or by hand
    body = _command(desk, action, JOBS, found, namespace, owned=owned)
    return create(who, COMMANDS, body, f"{who} orders {action} of {name_of(found)}, which is {phase_of(found)}")


@wish(3)
def abort_a_job(desk: Desk) -> Request | None:
    """Stop it, so that it can be resumed."""
    return to_job(desk, "AbortJob", *ACTIVE)


@wish(2.5)
def resume_a_job(desk: Desk) -> Request | None:
    """Let a stopped one go on."""
    return to_job(desk, "ResumeJob", *STOPPED)


@wish(2)
def restart_a_job(desk: Desk) -> Request | None:
    """Begin anew."""
    return to_job(desk, "RestartJob", "Running", "Pending")


@wish(1)
def terminate_a_job(desk: Desk) -> Request | None:
    """Stop it for good."""
    return to_job(desk, "TerminateJob", *ACTIVE)


@wish(1)
def complete_a_job(desk: Desk) -> Request | None:
    """Call it done."""
    return to_job(desk, "CompleteJob", "Running")


@wish(0.4)
def order_something_odd(desk: Desk) -> Request | None:
    """An action that a Command cannot carry out, or that nobody knows."""
    return to_job(desk, desk.one(ODD))


@wish(0.5)
def order_at_any_time(desk: Desk) -> Request | None:
    """Any action in any phase."""
    return to_job(desk, desk.one(("AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob")))


def _to_queue(desk: Desk, action: str, *states: str) -> Request | None:
    queue = desk.any(QUEUES, lambda each: queue_state(each) in states and name_of(each) != "root")
    if queue is None or name_of(queue) == "default":
        return None
    owned = desk.chance(0.5)  # as vcctl makes it, or by hand
    body = _command(desk, action, QUEUES, queue, NAMESPACE, owned=owned)
    return create("olga", COMMANDS, body, f"olga orders {action} of {name_of(queue)}")


@wish(0.6)
def order_a_queue_closed(desk: Desk) -> Request | None:
    """`vcctl queue operate -a close`."""
    return _to_queue(desk, "CloseQueue", "Open")


@wish(0.8)
def order_a_queue_open(desk: Desk) -> Request | None:
    """`vcctl queue operate -a open`."""
    return _to_queue(desk, "OpenQueue", "Closed", "Closing")
