"""What a Command does to a queue: OpenQueue and CloseQueue set its wish.

The Command is deleted in the same transaction (reference:
volcano-queue-podgroup-cli §2.2); the state follows from the wish. For a queue
without `spec.state` the controller writes the requested state at once.
"""

from __future__ import annotations

from typing import Any

from cluster.store import Create, Delete, Patch, Write
from kube import events
from kube.kinds.batch import Action
from kube.kinds.fields import View
from kube.kinds.scheduling import QueueState
from kube.meta import Object
from kube.resources import COMMANDS, EVENTS, QUEUES
from kube.volcano.commands import NAMESPACE_OF_QUEUES, REASON, CommandFact, order
from kube.volcano.intake_times import SHUT_SINCE
from queues.rules import states
from queues.rules.states import CLOSED_BY_PARENT_ANNOTATION, closing_problem

COMPONENT = "queue-controller"
WISHES: dict[str, QueueState] = {Action.OPEN_QUEUE: QueueState.OPEN, Action.CLOSE_QUEUE: QueueState.CLOSED}
_HARMLESS = (Action.SYNC_QUEUE,)
_ACTIONS = {wish: action for action, wish in WISHES.items()}


def to_queue(name: str, uid: str, wish: QueueState) -> Object:
    """Return the Command with which Volcano opens or closes a queue."""
    return order(QUEUES, NAMESPACE_OF_QUEUES, name, uid, Action(_ACTIONS[wish]))


class _Managed(View):
    """An entry of managedFields: the time of a client's last write to it."""

    subresource: str = ""
    time: str = ""


class _Metadata(View):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}
    managed_fields: list[_Managed] = []


class _QueueSpec(View):
    state: str = ""
    parent: str = ""


class QueueFact(View):
    """A stored version of a queue."""

    metadata: _Metadata = _Metadata()
    spec: _QueueSpec = _QueueSpec()
    status: dict[str, Any] = {}

    @property
    def is_closed_by_parent(self) -> bool:
        """Whether an annotation says that the queue is closed by its parent."""
        return self.metadata.annotations.get(CLOSED_BY_PARENT_ANNOTATION) == "true"

    @property
    def shut_since(self) -> str:
        """Since when the queue is not Open, by its annotation; "" without one."""
        return self.metadata.annotations.get(SHUT_SINCE, "")

    @property
    def status_written(self) -> str:
        """When the status was last written, by the API server's clock; "" if managedFields do not say."""
        times = (each.time for each in self.metadata.managed_fields if each.subresource == "status")
        return max(times, default="")

    @property
    def wish(self) -> str:
        """The wish of the queue, Open or Closed."""
        state = str(self.status.get("state") or "")
        return states.wish(self.spec.state, state, is_closed_by_parent=self.is_closed_by_parent)

    @property
    def about(self) -> Object:
        """The reference to the queue in events and status updates."""
        metadata = {"name": self.metadata.name, "uid": self.metadata.uid}
        return {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": metadata}


def writes(command: CommandFact, queue: QueueFact | None, now: int) -> list[Write]:
    """Return the writes of a Command to a queue; one to a queue that is gone is only deleted."""
    result: list[Write] = [Delete(COMMANDS, command.namespace, command.name, uid=command.uid)]
    if queue is None or not command.is_for(queue.metadata.uid):
        return result
    problem = _problem(command, queue)
    kind = events.WARNING if problem else events.NORMAL
    message = f"{command.request_text}: {problem}" if problem else f"{command.request_text}."
    event = events.event(queue.about, REASON, message, now, component=COMPONENT, kind=kind)
    result.append(Create(EVENTS, event))
    wish = requested_wish(command, queue)
    if wish and queue.spec.state and queue.spec.state != wish:
        result.append(Patch(QUEUES, "", queue.metadata.name, {"spec": {"state": wish}}, uid=queue.metadata.uid))
    return result


def requested_wish(command: CommandFact, queue: QueueFact | None) -> str:
    """Return the wish of a Command for its queue; "" if it has none, or may not have it."""
    if queue is None or not command.is_for(queue.metadata.uid) or _problem(command, queue):
        return ""
    return str(WISHES.get(command.action, ""))


def _problem(command: CommandFact, queue: QueueFact) -> str:
    if command.action not in (*WISHES, *_HARMLESS):
        return "it is no action of a queue; nothing is done."
    return closing_problem(queue.metadata.name) if command.action == Action.CLOSE_QUEUE else ""
