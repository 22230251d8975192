"""What one cycle works on: the snapshot, and the nodes, queues and gangs as they are after the steps so far."""

from __future__ import annotations

from dataclasses import replace

from scheduler.cycle.node_rules import NodeRules
from scheduler.cycle.order import by_turn
from scheduler.cycle.protection import Protection
from scheduler.cycle.queue_accounts import queue_accounts
from scheduler.cycle.weights import packed_columns, weights_of
from scheduler.decisions import Decisions
from scheduler.engine.accounts import Account
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Gang
from scheduler.engine.place import Placer
from scheduler.engine.pod_class import PodClass
from scheduler.engine.relations import Mark, Relations
from scheduler.gangs.layout import Layout, PodSet
from scheduler.gangs.task_topology import Kinship
from scheduler.policy.actions import Action
from scheduler.records.records import Group
from scheduler.snapshot.snapshot import Snapshot


class World:
    """One cycle.

    waiting    the groups that wait, in the order of their turns (`scheduler.cycle.order`)
    cluster    what nodes have and what is free of it; charged with what is placed
    accounts   the accounts of queues by name, each after its parent's; charged likewise. Empty where no group waits
    pods       the column of `pods`, -1 where no node has one
    gangs      those that want nodes in this cycle, by group key, in turn; empty before the second step
    decisions  what has been decided so far
    """

    def __init__(self, snapshot: Snapshot, now: int) -> None:
        self.snapshot, self.now, self.policy = snapshot, now, snapshot.policy
        self.decisions = Decisions()
        self.allocates = Action.ALLOCATE in self.policy.actions
        waiting = (snapshot.groups[key] for key in snapshot.groups.waiting)
        self.waiting = sorted(waiting, key=by_turn(self.policy, snapshot.priority_of))
        nodes = snapshot.nodes
        allocatable, free = nodes.matrices()
        self._classes: dict[int, PodClass] = {}
        self.cluster = Cluster(allocatable, free, self._classes, nodes.exclusions)
        self.cluster.weights = weights_of(self.policy.scoring, nodes.columns)
        if nodes.relations:
            self.cluster.relations = Relations(nodes.ground())
        self.accounts: dict[str, Account] = self.open_accounts() if self.waiting else {}
        self.rules = NodeRules(snapshot, now)
        self.protection = Protection(snapshot, now)
        self.gangs: dict[str, Gang] = {}
        self.pods = nodes.columns.get("pods", -1)
        self._marks: set[Mark] = set()

    def open_accounts(self) -> dict[str, Account]:
        """Return new accounts of all queues, charged with what pods on nodes use."""
        return queue_accounts(self.snapshot, self.waiting, self.cluster.allocatable, self.cluster.free)

    def placer(self) -> Placer:
        """Return a placer for the cluster as it is; what it learns stays valid while room only shrinks."""
        return Placer(self.cluster, pods=self.pods)

    def wake_at(self, due: int | None) -> None:
        """Have the next cycle begin at a time (ms), or sooner; None changes nothing."""
        if due is not None:
            self.decisions.wake_at(due)

    def class_of(self, group: Group, some: PodSet) -> int:
        """Return the class number of some pods of a group, after adding the class to the cluster."""
        number = self.rules.number(group, some)
        if number not in self._classes:
            self._classes[number] = self.rules.pod_class(group, some)
            if some.kinship is not None:
                self._count_kin(some.kinship)
        return number

    def gang_of(self, group: Group, layout: Layout) -> Gang:
        """Return the gang of a group, after adding its classes to the cluster."""
        if layout.gang.arranged is not None and self.cluster.hyper_nodes is None:
            self.cluster.hyper_nodes = self.snapshot.hyper_nodes()
            self.cluster.packed = packed_columns(self.policy, self.snapshot.nodes.columns)
        bins = layout.gang.bins
        for index, some in enumerate(layout.pod_sets):
            number = self.class_of(group, some)
            if number < 0:
                bins = (*bins[:index], replace(bins[index], pod_class=number), *bins[index + 1 :])
        parts = [self.snapshot.nodes.vector(shape) * count for shape, count in group.shapes.items()]
        held = tuple(sum(parts[1:], parts[0]).tolist()) if parts else ()
        return replace(layout.gang, bins=bins, account=self.accounts.get(group.queue), held=held)

    def _count_kin(self, kinship: Kinship) -> None:
        """Count the pods on nodes with the marks that a task topology looks at."""
        if self.cluster.relations is None:
            self.cluster.relations = Relations(self.snapshot.nodes.ground())
        numbers = self.snapshot.nodes.numbers()
        for mark, on in kinship.placed_by_mark().items():
            if mark not in self._marks:
                self._marks.add(mark)
                self.cluster.relations.shift(
                    (mark, numbers[name], pods) for name, pods in on.items() if name in numbers
                )
