"""Which queues take new work: open ones without queues below them (reference: volcano-queue-podgroup-cli §3.7, §4).

One rule for what people submit, jobs and pod groups. What controllers make
for work that was admitted earlier is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kube import lenient, names
from kube.errors import Cause, invalid
from kube.kinds.scheduling import QueueState
from kube.meta import Object
from kube.usage import DEFAULT_QUEUE, QUEUE_ANNOTATION, ROOT_QUEUE, queue_named

FIELD = "spec.queue"


class QueuesView(Protocol):
    """What may be asked about queues."""

    def queue(self, name: str) -> Object | None: ...
    def queue_children(self, name: str) -> list[Object]: ...


class NamespacesView(Protocol):
    """What may be asked about namespaces."""

    def namespace(self, name: str) -> Object | None: ...


def check(name: str, what: str, view: QueuesView) -> Iterator[Cause]:
    """Say why the queue of this name takes no new work; `what` is submitted to it, in a word."""
    if not name or names.dns_subdomain(name):
        return  # the schema tells that it is not a name
    queue = view.queue(name)
    if queue is None:
        detail = f"unable to find {what} queue: queue {name} not found; choose one that exists."
        yield invalid(FIELD, name, detail)
        return
    state = queue_state(queue)
    if state != QueueState.OPEN:
        detail = f"can only submit {what} to queue with state `Open`, queue `{name}` status is `{state}`; open it or choose another."
        yield invalid(FIELD, name, detail)
    if name == ROOT_QUEUE:
        detail = f"can not submit {what} to root queue; choose a queue below it, such as default."
        yield invalid(FIELD, name, detail)
        return
    children = view.queue_children(name)
    if children:
        detail = (
            f"can only submit {what} to leaf queue, and `{name}` has {len(children)} child queues; choose one of them."
        )
        yield invalid(FIELD, name, detail)


def refusal(name: str, state: str, *, has_children: bool) -> str:
    """Return in a few words why a queue takes no new work; "" for one that does, as `check` says at length."""
    if name == ROOT_QUEUE:
        return "root of all queues"
    if state != QueueState.OPEN:
        return state.lower()
    return "has queues below it" if has_children else ""


def queue_state(queue: Object) -> str:
    """Return a queue's state; one that its controller has not seen is what it wishes to be."""
    return lenient.text(queue, "status", "state") or lenient.text(queue, "spec", "state") or QueueState.OPEN


def default_group(group: Object, old: Object | None, view: NamespacesView) -> None:
    """Let a new pod group without a queue, or in the default one, come into the queue that its namespace names, if any."""
    spec = group.setdefault("spec", {})
    if old is not None or not isinstance(spec, dict) or _queue_of(group) != DEFAULT_QUEUE:
        return
    namespace = view.namespace(lenient.text(group, "metadata", "namespace")) or {}
    if named := lenient.text(namespace, "metadata", "annotations", QUEUE_ANNOTATION):
        spec["queue"] = named


def check_group(group: Object, old: Object | None, view: QueuesView) -> list[Cause]:
    """Say why a pod group may not come into its queue; one that is there already may stay and change."""
    name = _queue_of(group)
    if old is not None and name == _queue_of(old):
        return []
    return list(check(name, "PodGroup", view))


def _queue_of(group: Object) -> str:
    return queue_named(lenient.text(group, "spec", "queue"))
