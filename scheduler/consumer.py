"""The scheduler as a reader of the log: one shard, so one leader.

It binds in the transaction that moves its cursor. Two worker processes that
both believe to lead cannot both move it, so no pod is bound twice and no node
is filled twice. What a commit changed comes back through the log before the
next cycle. A group whose writes conflict with another change is stored in no part and tried again
in the next cycle, which has read that change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.runtime.consumer import Consumer, Plan
from cluster.store import Change, store
from cluster.writes import Timer
from kube.resources import NAMESPACES, NODES, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES
from scheduler.cycle.cycle import schedule
from scheduler.snapshot.snapshot import Snapshot
from scheduler.writes import groups_of

if TYPE_CHECKING:
    from collections.abc import Sequence

RESOURCES = (NODES, QUEUES, PRIORITY_CLASSES, NAMESPACES, POD_GROUPS, PODS)
AGAIN = "cycle"


class SchedulerConsumer(Consumer[Snapshot]):
    """Decides which pods run where; the rules are in `scheduler.cycle`."""

    name = "scheduler"

    def load(self, shard: int, revision: int) -> Snapshot:
        """Return the world as it is, with every pod group to be looked at."""
        snapshot = Snapshot()
        for resource in RESOURCES:
            for found in store.find(resource):
                snapshot.apply(
                    Change(
                        found.revision,
                        found.resource,
                        found.namespace,
                        found.name,
                        found.uid,
                        "ADDED",
                        found.created,
                        found.body,
                    )
                )
        return snapshot

    def apply(self, state: Snapshot, change: Change) -> None:
        """Take over one change."""
        state.apply(change)

    def plan(self, state: Snapshot, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Run one cycle."""
        decisions = schedule(state, now)
        state.settled(decisions.said)
        timers_wanted = [] if decisions.wake is None else [Timer(AGAIN, "", decisions.wake)]
        return Plan(groups_of(decisions, now), timers_wanted)
