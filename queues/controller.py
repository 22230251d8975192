"""The queue controller: writes each queue's state, counters and allocated resources.

It reads queues, pod groups, pods, namespaces and Commands. A queue's status covers the queue and those below it.
Thousands of changes a second may concern one queue, so its status is written at most every `PAUSE_MS`, with a timer for
the last write; a change of the state is written at once. A write of the status is refused if the queue has changed since
it was planned: clients write the state as well, and theirs would be lost.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cluster import api
from cluster.api import backend
from cluster.consumers.consumer import RETRY, Consumer, Plan
from cluster.runtime import retries
from cluster.store import Change, Create, Group, Patch, Update, Write, store
from cluster.writes import Timer
from kube import amounts, events, usage
from kube.kinds.pod import UNENDED
from kube.kinds.scheduling import PodGroupPhase, QueueState
from kube.meta import Object, now_text
from kube.resources import COMMANDS, EVENTS, NAMESPACES, POD_GROUPS, PODS, QUEUES
from kube.usage import ROOT_QUEUE, Usage
from kube.volcano import commands
from kube.volcano.commands import CommandFact
from kube.volcano.intake_times import SHUT_SINCE
from queues import state_commands
from queues.rules import hierarchy, states
from queues.rules.states import CLOSED_BY_PARENT, CLOSED_BY_PARENT_ANNOTATION
from queues.state_commands import QueueFact

NAME = "queues"
PAUSE_MS = 250  # between two writes of one queue's counters
_COUNTED = tuple(phase.value for phase in PodGroupPhase)
_FLUSH = "flush"
log = logging.getLogger(__name__)


@dataclass(slots=True)
class QueuesState:
    """All queues, their parents and children, and what each of them holds."""

    queues: dict[str, QueueFact] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    children: dict[str, dict[str, None]] = field(default_factory=dict)
    wishes: dict[str, str] = field(default_factory=dict)
    commands: dict[str, CommandFact] = field(default_factory=dict)  # key → Command to a queue, in their order
    usage: Usage = field(default_factory=Usage)
    written: dict[str, int] = field(default_factory=dict)  # queue → when its status was last written
    sent: dict[str, dict[str, Any]] = field(default_factory=dict)  # queue → what was written then
    stale: set[str] = field(default_factory=set)

    def put(self, name: str, queue: QueueFact | None) -> None:
        """Store a queue, None for one that is gone, and mark every queue as stale whose status this may change."""
        self.stale.add(name)
        previous = self.queues.pop(name, None)
        if queue is not None:
            self.queues[name] = queue
        before = None if previous is None else (_parent(previous), previous.wish)
        if before == (None if queue is None else (_parent(queue), queue.wish)):
            return
        if before is not None:
            self.stale.add(self.parents.pop(name))
            del self.children[before[0]][name], self.wishes[name]
        if queue is not None:
            parent = _parent(queue)
            self.parents[name], self.wishes[name] = parent, queue.wish
            self.children.setdefault(parent, {})[name] = None
        # A queue's wish and its parent decide about the queues below it as well.
        self.stale.update(hierarchy.subtree(name, self.children))


class QueueConsumer(Consumer[QueuesState]):
    """Writes the status of all queues."""

    name = NAME

    def load(self, shard: int, revision: int) -> QueuesState:
        """Read all queues and pod groups, and the pods that have not ended."""
        state = QueuesState()
        for stored in store.find(QUEUES):
            state.put(stored.name, stored.read(QueueFact))
        for stored in store.find(NAMESPACES):
            state.usage.put_namespace(stored.name, usage.namespace_queue(stored.body))
        for stored in store.find(POD_GROUPS):
            _put_group(state, stored.key, stored.body)
        for stored in store.find(PODS, phase=UNENDED):
            state.usage.put_pod(stored.key, usage.pod_use(stored.body, backend.schedulers))
        for stored in sorted(store.find(COMMANDS), key=lambda stored: stored.revision):
            _put_command(state, stored.key, commands.read(stored.body, stored.revision))
        state.stale = set(state.queues)
        return state

    def apply(self, state: QueuesState, change: Change) -> None:
        """Bring the counts from one revision to the next."""
        key = change.key
        body = None if change.verb == "DELETED" else change.body
        try:
            match change.resource:
                case QUEUES.id:
                    state.put(change.name, None if body is None else change.read(QueueFact))
                    if body is None:
                        state.written.pop(change.name, None)
                        state.sent.pop(change.name, None)
                case POD_GROUPS.id:
                    _put_group(state, key, body)
                case PODS.id:
                    use = None if body is None else usage.pod_use(body, backend.schedulers)
                    state.stale |= state.usage.put_pod(key, use)
                case NAMESPACES.id:
                    queue = "" if body is None else usage.namespace_queue(body)
                    state.stale |= state.usage.put_namespace(change.name, queue)
                case COMMANDS.id:
                    _put_command(state, key, None if body is None else commands.read(body, change.revision))
        except msgspec.ValidationError as error:
            log.error("ignored %s %s, which cannot be read: %s", change.resource, change.key, error)

    def plan(self, state: QueuesState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Carry out Commands, and write the status of queues that changed, of each at most every `PAUSE_MS`."""
        refused = {timer.key for timer in timers if timer.kind == RETRY}
        state.stale |= refused & state.queues.keys()
        for name in refused:
            state.sent.pop(name, None)
        groups = list(_carry_out(state, now))
        commanded = {command.target_name for command in state.commands.values()}
        groups += retries.event_groups(timers, lambda key: _about(state, key), now, state_commands.COMPONENT)
        for name in list(_with_ancestors(state, state.stale)):
            queue = state.queues[name]
            if name in commanded and not queue.spec.state:
                continue  # its Command writes the state; the rest follows when that has come back
            if wished := _newly_wished(queue):
                groups.append(Group(_pinned(_as_written(state, queue, wished, now), queue), name))
                continue  # what follows for others is planned when the wish has come back
            wanted = status_of(state, queue)
            is_written = wanted == queue.status or _is_as_sent(state, queue, wanted)
            needs_note = _note_of_shutting(queue, wanted, now) is not None
            if is_written and not needs_note:
                state.stale.discard(name)
            elif needs_note or _is_due(state, queue, wanted, now):
                writes = _writes(queue, wanted, now)
                groups.append(Group(writes if name in commanded else _pinned(writes, queue), name))
                state.written[name], state.sent[name] = now, wanted
                state.stale.discard(name)
            else:
                state.stale.add(name)
        state.stale &= state.queues.keys()
        return Plan(groups, [Timer(_FLUSH, "", now + PAUSE_MS)] if state.stale else [])


def status_of(state: QueuesState, queue: QueueFact, requested: str = "") -> dict[str, Any]:
    """Return the status that a queue should have; fields of others stay.

    `requested` is a wish that is being written just now, "" to go by the wish of the queue.
    """
    name, used = queue.metadata.name, state.usage
    phases: Counter[str] = Counter()
    total, loose = Counter({"cpu": 0, "memory": 0}), 0
    for each in hierarchy.subtree(name, state.children):
        phases.update(used.groups_in.get(each) or {})
        total.update(used.in_queue.get(each) or {})
        loose += used.loose_in[each]
    wish = QueueState.OPEN if name == ROOT_QUEUE else requested or queue.wish
    target = states.next_state(wish, states.closed_above(name, state.parents, state.wishes), phases, loose)
    status = {key: value for key, value in queue.status.items() if key not in ("pending", *map(str.lower, _COUNTED))}
    status |= {"state": str(target.state), "reason": target.reason, "message": target.message}
    status |= {phase.lower(): phases[phase] for phase in _COUNTED if phases[phase]}
    allocated = {key: amount for key, amount in total.items() if amount or key in ("cpu", "memory")}
    status["allocated"] = amounts.resource_list(allocated)
    return status


def _newly_wished(queue: QueueFact) -> str:
    """Return the wish that a client wrote as the state of a queue; "" if there is none, or it is the queue's wish already."""
    wished = states.written_wish(queue.status) if queue.spec.state else ""
    is_refused = wished == QueueState.CLOSED and states.closing_problem(queue.metadata.name)
    return "" if is_refused or wished == queue.spec.state else wished


def _as_written(state: QueuesState, queue: QueueFact, wished: str, now: int) -> list[Write]:
    """Return the writes that store as the wish what a client wrote as the state, with an event."""
    about, wanted = queue.about, status_of(state, queue, wished)
    name, uid = queue.metadata.name, queue.metadata.uid
    event = events.event(about, wanted["reason"], wanted["message"], now, component=state_commands.COMPONENT)
    written: list[Write] = [
        Patch(QUEUES, "", name, {"spec": {"state": wished}}, uid=uid),
        Update(QUEUES, {**about, "status": wanted}, "status"),
        Create(EVENTS, event),
    ]
    if (shut := _note_of_shutting(queue, wanted, now)) is not None:
        written.append(shut)
    return written


def _carry_out(state: QueuesState, now: int) -> Iterator[Group]:
    """Yield the writes of the first Command to each queue; the next Command follows when this one is gone."""
    busy: set[str] = set()
    for command in state.commands.values():
        if command.target_name not in busy:
            busy.add(command.target_name)
            queue = state.queues.get(command.target_name)
            writes = state_commands.writes(command, queue, now)
            requested = state_commands.requested_wish(command, queue)
            if queue is not None and requested and not queue.spec.state:
                writes += _writes(queue, status_of(state, queue, requested), now)
            yield Group(writes, command.target_name)


def _about(state: QueuesState, name: str) -> Object | None:
    queue = state.queues.get(name)
    return None if queue is None else queue.about


def _is_as_sent(state: QueuesState, queue: QueueFact, wanted: dict[str, Any]) -> bool:
    """Return whether a status was written, and lacks only fields that the cluster's definition of queues does not have.

    A definition without these fields has no `spec.state` either, so a queue with a wish lacks nothing.
    """
    if queue.spec.state:
        return False
    return state.sent.get(queue.metadata.name) == wanted and queue.status.items() <= wanted.items()


def _is_due(state: QueuesState, queue: QueueFact, wanted: dict[str, Any], now: int) -> bool:
    if wanted["state"] != queue.status.get("state"):
        return True
    # A time in the future was noted before the clock was set back.
    return not 0 <= now - state.written.get(queue.metadata.name, 0) < PAUSE_MS


def _writes(queue: QueueFact, wanted: dict[str, Any], now: int) -> list[Write]:
    about = queue.about
    writes: list[Write] = [Update(QUEUES, {**about, "status": wanted}, "status")]
    if (note := _note_of_parent(queue, wanted)) is not None:
        # A queue that is closed without the note stays closed: the note is written before the state, and removed after it.
        writes.insert(0 if note.patch["metadata"]["annotations"][CLOSED_BY_PARENT_ANNOTATION] == "true" else 1, note)
    if (shut := _note_of_shutting(queue, wanted, now)) is not None:
        writes.append(shut)
    if queue.status.get("state") not in (None, "", wanted["state"]):
        event = events.event(about, wanted["reason"], wanted["message"], now, component=state_commands.COMPONENT)
        writes.append(Create(EVENTS, event))
    return writes


def _pinned(writes: Sequence[Write], queue: QueueFact) -> list[Write]:
    """Return the writes with the resourceVersion in the first: all are refused if the queue has changed since it was read."""
    first, version = writes[0], queue.metadata.resource_version
    match first:
        case Patch():
            first = msgspec.structs.replace(first, version=version)
        case Update():
            metadata = {**first.object["metadata"], "resourceVersion": version}
            first = msgspec.structs.replace(first, object={**first.object, "metadata": metadata})
    return [first, *writes[1:]]


def _note_of_shutting(queue: QueueFact, wanted: dict[str, Any], now: int) -> Patch | None:
    """Return the patch of the annotation that says since when a queue is not Open; None if it is right as it is.

    Jobs are older or newer than the annotation by their creation times, which the cluster writes. In a cluster with an
    API of its own the annotation is therefore by that cluster's clock, too: if ours is behind, jobs that were in the queue
    would count as new, and keep it Closing.
    """
    is_shut = wanted["state"] != QueueState.OPEN
    if is_shut == bool(queue.shut_since):
        return None
    since = now_text(now)
    if is_shut and api.backend.is_mirror:
        if queue.status.get("state") in (None, "", QueueState.OPEN):
            return None  # it is written when the state has come back with its time
        since = queue.status_written or since
    noted = {"metadata": {"annotations": {SHUT_SINCE: since if is_shut else None}}}
    return Patch(QUEUES, "", queue.metadata.name, noted, uid=queue.metadata.uid)


def _note_of_parent(queue: QueueFact, wanted: dict[str, Any]) -> Patch | None:
    """Return the patch of the annotation whether a queue without a wish is closed by its parent; None if it is right."""
    by_parent = wanted["reason"] == CLOSED_BY_PARENT
    if queue.spec.state or by_parent == queue.is_closed_by_parent:
        return None
    noted = {"metadata": {"annotations": {CLOSED_BY_PARENT_ANNOTATION: "true" if by_parent else "false"}}}
    return Patch(QUEUES, "", queue.metadata.name, noted, uid=queue.metadata.uid)


def _put_command(state: QueuesState, key: str, command: CommandFact | None) -> None:
    """Store a Command to a queue until it is gone."""
    if command is None or command.deleting:
        state.commands.pop(key, None)
    elif command.target == QUEUES.id:
        state.commands[key] = command


def _put_group(state: QueuesState, key: str, body: bytes | None) -> None:
    """Count a pod group in its queue, and no longer in the previous one."""
    state.stale |= state.usage.put_group(key, None if body is None else usage.group_use(body))


def _parent(queue: QueueFact) -> str:
    return "" if queue.metadata.name == ROOT_QUEUE else queue.spec.parent or ROOT_QUEUE


def _with_ancestors(state: QueuesState, names: set[str]) -> Iterator[str]:
    """Yield the queues of these names that exist, and those above them, each once."""
    seen: set[str] = set()
    for name in sorted(names):
        current = name
        while current in state.queues and current not in seen:
            seen.add(current)
            yield current
            current = _parent(state.queues[current])
