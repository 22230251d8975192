"""One scheduling cycle: a pure function from the world to decisions.

enqueue (who may have pods), allocate (who gets nodes), then what is said about
those who do not. Pod groups go by priority, then age, then key. A group whose
queue is wrong gets its cause and stops nobody else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from scheduler.decisions import Adoption, Bind, Decisions
from scheduler.engine.cause import Cause, Reason
from scheduler.engine.cluster import UNLIMITED, Cluster, PodClass, Vector
from scheduler.engine.explain import Names, explain, explain_rest
from scheduler.engine.place import Placer, place
from scheduler.enqueue import enqueue, is_outside, queue_cause
from scheduler.layout import first_pods, layout_of
from scheduler.records import DEFAULT_QUEUE
from scheduler.status import NOTED_PODS, Outcome, Writer

if TYPE_CHECKING:
    from scheduler.engine.gang import Attempt, Gang
    from scheduler.layout import Layout
    from scheduler.records import Group, Orphan
    from scheduler.snapshot import Snapshot

GRACE_MS = 10_000
"""How long pods of a gang may be about to be created before that is called waiting."""


def schedule(snapshot: Snapshot, now: int) -> Decisions:
    """Return what is to be done now; the snapshot is not changed (but for its memo of layouts).

    The same snapshot and time give the same decisions, whatever order the
    changes came in.
    """
    decisions = Decisions(adoptions=_adoptions(snapshot))
    ordered = _ordered(snapshot)
    cycle = _Cycle(snapshot, now, decisions)
    answers = enqueue(snapshot, ordered, cycle.cluster)
    cycle.allocate([group for group in ordered if answers.get(group.key) is None])
    writer = Writer(decisions, waiting=len(ordered), now=now)
    for group in ordered:
        if cycle.is_unchanged(group) or (cycle.goes_on_waiting(group, answers) and writer.was_told(group)):
            continue
        writer.write(cycle.outcome(group, answers))
    for key in sorted(snapshot.dirty - snapshot.waiting):
        if (settled := snapshot.groups.get(key)) is not None and settled.exists:
            writer.write(Outcome(settled, [], []))
    return decisions


def _ordered(snapshot: Snapshot) -> list[Group]:
    """Return the waiting groups: priority, age, key."""
    groups = [snapshot.groups[key] for key in snapshot.waiting]
    return sorted(groups, key=lambda g: (-snapshot.priority_of(g.priority_class), g.created, g.key))


class _Cycle:
    """The arrays of one cycle, and what became of each gang."""

    def __init__(self, snapshot: Snapshot, now: int, decisions: Decisions) -> None:
        self._snapshot, self._now, self._decisions = snapshot, now, decisions
        nodes = snapshot.nodes
        allocatable, free = nodes.matrices()
        self._queues = _Queues(snapshot)
        self._classes: dict[int, PodClass] = {}
        self.cluster = Cluster(allocatable, free, self._classes, self._queues.rooms, nodes.exclusions)
        self._names = Names(
            nodes.names(), list(nodes.columns), self._queues.names, [r.copy() for r in self._queues.ceilings]
        )
        self._pods = nodes.columns.get("pods", -1)
        self._placer: Placer | None = None
        self._gangs: dict[str, Gang] = {}
        self._attempts: dict[str, Attempt] = {}
        self._causes: dict[tuple[Gang, int], Cause] = {}

    def allocate(self, groups: list[Group]) -> None:
        """Place the gangs of these groups, in order."""
        for group in groups:
            if group.exists and group.pending and group.queue in self._snapshot.queues:
                layout = layout_of(self._snapshot, group)
                if layout.heaps and not layout.absent:
                    self._gangs[group.key] = self._gang(group, layout)
        attempts = place(self.cluster, self._gangs.values(), pods=self._pods)
        self._attempts = dict(zip(self._gangs, attempts, strict=True))

    def is_unchanged(self, group: Group) -> bool:
        """Tell whether a group still waits for its first pods, as in the cycle before."""
        if group.pending or is_outside(group) or group.key in self._snapshot.dirty:
            return False
        due = group.changed + GRACE_MS
        if due <= self._now:
            return False
        self._decisions.wake_at(due)
        return True

    def goes_on_waiting(self, group: Group, answers: dict[str, Cause | None]) -> bool:
        """Tell whether a group waited before, waits still, and nothing of its own changed."""
        if group.key in self._snapshot.dirty:
            return False
        attempt = self._attempts.get(group.key)
        return answers.get(group.key) is not None or (attempt is not None and attempt.short is not None)

    def outcome(self, group: Group, answers: dict[str, Cause | None]) -> Outcome:
        """Return what became of a waiting group, with the cause if it goes on waiting."""
        if not group.exists:
            return self._after_grace(group, Cause(Reason.GROUP_NOT_FOUND, group=group.name))
        layout = layout_of(self._snapshot, group)
        pods = layout.pods()
        cause = answers.get(group.key) or queue_cause(self._snapshot, group)
        entered = is_outside(group) and cause is None
        if cause is not None:
            return Outcome(group, [], first_pods(group, NOTED_PODS), cause)
        if layout.absent:
            return self._absent(group, layout, entered=entered)
        attempt = self._attempts.get(group.key)
        if attempt is None:
            return Outcome(group, [], pods, entered=entered)
        if attempt.short is not None:
            return Outcome(group, [], pods, self._explain(group, layout), entered)
        return self._started(group, layout, attempt, entered=entered)

    def _started(self, group: Group, layout: Layout, attempt: Attempt, *, entered: bool) -> Outcome:
        binds: list[Bind] = []
        unbound = []
        for number, heap in enumerate(layout.heaps):
            taken = attempt.taken[number]
            chosen = attempt.nodes(number).tolist() if taken else []
            binds += [
                Bind(pod, self._names.nodes[node])
                for pod, node in zip(heap.pods[:taken], chosen, strict=True)
            ]
            unbound += heap.pods[taken:]
        cause = None
        if unbound:
            cause = explain_rest(
                self._explainer(), self._gangs[group.key], attempt, self._names, started=group.ready()
            )
        return Outcome(group, binds, unbound, cause, entered)

    def _absent(self, group: Group, layout: Layout, *, entered: bool) -> Outcome:
        """Return the outcome for a gang some of whose pods do not exist."""
        exist = layout.needed - layout.absent
        cause = Cause(
            Reason.NOT_ENOUGH_TASKS,
            fit=group.ready() + exist,
            needed=group.ready() + layout.needed,
            gated=layout.gated,
        )
        if entered:
            return Outcome(group, [], [], None, entered)
        if group.scheduled() >= group.min_member and not group.pending:
            return Outcome(group, [], [])  # all have run or run still; nothing is missing (§5.2)
        return self._after_grace(group, cause)

    def _after_grace(self, group: Group, cause: Cause) -> Outcome:
        due = group.changed + GRACE_MS
        if due > self._now:
            self._decisions.wake_at(due)
            return Outcome(group, [], [])
        return Outcome(group, [], first_pods(group, NOTED_PODS), cause)

    def _explain(self, group: Group, layout: Layout) -> Cause:
        """Return why a gang did not fit; equal gangs are explained once."""
        gang = self._gangs[group.key]
        key = replace(gang, level=0), layout.needed
        cause = self._causes.get(key)
        if cause is None:
            cause = explain(self._explainer(), gang, self._names, needed=layout.needed)
            self._causes[key] = cause
        return cause

    def _explainer(self) -> Placer:
        if self._placer is None:
            self._placer = Placer(self.cluster, pods=self._pods)
        return self._placer

    def _gang(self, group: Group, layout: Layout) -> Gang:
        nodes = self._snapshot.nodes
        for heap in layout.heaps:
            shape = heap.shape
            if shape.number not in self._classes:
                vector, verdicts = nodes.vector(shape), nodes.verdicts(shape)
                self._classes[shape.number] = PodClass(vector, verdicts, shape.foreign)
        limits = self._queues.limits(group.queue)
        return replace(layout.gang, queues=limits) if limits else layout.gang


class _Queues:
    """The ceilings of queues as arrays: a queue without a capability has none."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        limited = sorted(name for name, queue in snapshot.queues.items() if queue.capability)
        self.names = limited
        self._numbers = {name: number for number, name in enumerate(limited)}
        self.ceilings = [self._ceiling(name) for name in limited]
        self.rooms: list[Vector | None] = [ceiling.copy() for ceiling in self.ceilings]
        self._chains: dict[str, tuple[int, ...]] = {}
        if limited:
            self._subtract_usage()

    def limits(self, name: str) -> tuple[int, ...]:
        """Return the numbers of the limited queues among a queue and its ancestors."""
        if not self._numbers:
            return ()
        if name not in self._chains:
            self._chains[name] = tuple(self._numbers[n] for n in self._line(name) if n in self._numbers)
        return self._chains[name]

    def _line(self, name: str) -> list[str]:
        """Return a queue and its ancestors; a circle of parents ends where it began."""
        line: list[str] = []
        while name in self._snapshot.queues and name not in line:
            line.append(name)
            name = self._snapshot.queues[name].parent
        return line

    def _ceiling(self, name: str) -> Vector:
        ceiling = np.full(len(self._snapshot.nodes.columns), UNLIMITED, dtype=np.int64)
        for resource, amount in self._snapshot.queues[name].capability.items():
            column = self._snapshot.nodes.columns.get(resource)
            if column is not None:
                ceiling[column] = max(amount, 0)
        return ceiling

    def _subtract_usage(self) -> None:
        for (queue, _), shapes in self._snapshot.usage.items():
            for number in self.limits(queue):
                room = self.rooms[number]
                for shape, count in shapes.items():
                    if room is not None:
                        room -= self._snapshot.nodes.vector(shape) * count


def _adoptions(snapshot: Snapshot) -> list[Adoption]:
    """Return the groups to be made for pods that name none (queue-podgroup §3.6).

    Pods of one controller share a group, named after its uid; a pod without
    controller gets a group of its own.
    """
    found: dict[tuple[str, str], list[Orphan]] = {}
    for key in sorted(snapshot.orphans):
        orphan = snapshot.orphans[key]
        name = f"podgroup-{orphan.owner.uid if orphan.owner else orphan.uid}"
        found.setdefault((orphan.namespace, name), []).append(orphan)
    return [_adoption(snapshot, namespace, name, pods) for (namespace, name), pods in found.items()]


def _adoption(snapshot: Snapshot, namespace: str, name: str, pods: list[Orphan]) -> Adoption:
    known = snapshot.groups.get(f"{namespace}/{name}")
    queue = pods[0].queue or snapshot.namespace_queues.get(namespace) or DEFAULT_QUEUE
    return Adoption(namespace, name, queue, known is None or not known.exists, pods)
