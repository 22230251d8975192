"""The scheduler as a reader of the log: one shard, so one leader.

It binds in the transaction that moves its cursor. Two worker processes that
both believe they lead cannot both move it, so no pod is bound twice and no node
is filled twice. What a commit changed comes back through the log before the
next cycle. A group whose writes conflict with another change is not stored at all; the next cycle,
which has read that change, tries it again.

Its configuration is one ConfigMap, read from the log like everything else; the next cycle uses it. A
configuration that cannot be used changes nothing, and gets an event that says why.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cluster.api import backend
from cluster.consumers.consumer import RETRY, Consumer, Plan, timers_of
from cluster.runtime import retries
from cluster.store import Change, Stored, store
from cluster.writes import Group, Timer
from kube.errors import ApiError
from kube.resources import (
    CLAIMS,
    CONFIGMAPS,
    DISRUPTION_BUDGETS,
    HYPER_NODES,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_QUOTAS,
)
from kube.volcano import scheduler_configuration
from scheduler.cycle.cycle import schedule
from scheduler.evicting import COMPONENT
from scheduler.snapshot.snapshot import Snapshot
from scheduler.writes import about_configuration, about_group, group_key, groups_of

RESOURCES = (
    NODES,
    HYPER_NODES,
    QUEUES,
    PRIORITY_CLASSES,
    NAMESPACES,
    RESOURCE_QUOTAS,
    POD_GROUPS,
    CLAIMS,
    DISRUPTION_BUDGETS,
    PODS,
)
AGAIN = "cycle"
log = logging.getLogger(__name__)
LOOK_MS = 1000  # between two checks whether the pods of a gang that was taken back exist again


class SchedulerConsumer(Consumer[Snapshot]):
    """Decides which pods run where; the rules are in `scheduler.cycle`."""

    name = "scheduler"

    def load(self, shard: int, revision: int) -> Snapshot:
        """Return the world as it is, with every pod group to be looked at."""
        snapshot = Snapshot(backend.schedulers, heeds_claims=backend.is_mirror)
        snapshot.groups.resting = {timer.key for timer in timers_of(self.name, shard, RETRY)}
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
        # With its history: if the newest configuration cannot be used, the last good one holds.
        configuration = scheduler_configuration.NAMESPACE, scheduler_configuration.NAME
        for change in reversed(store.history(CONFIGMAPS, *configuration)):
            snapshot.apply(change)
        return snapshot

    def apply(self, state: Snapshot, change: Change) -> None:
        """Take over one change."""
        state.apply(change)

    def plan(self, state: Snapshot, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Run one cycle."""
        back = [timer.key for timer in timers if timer.kind == RETRY]
        state.groups.resting.difference_update(back)
        state.groups.report_again(map(group_key, back))
        if state.policy.usage is not None:
            for figures in backend.nodes.usage(now):
                state.loads.note(figures)
        decisions = schedule(state, now)
        state.groups.settled(decisions.reported)
        timers_wanted = [] if decisions.wake is None else [Timer(AGAIN, "", decisions.wake)]
        events = retries.event_groups(timers, lambda key: about_group(state.groups.get(group_key(key))), now, COMPONENT)
        groups = [*groups_of(decisions, now), *events, *_refusals(state, now)]
        # A gang that was taken back is bound once its pods exist again; until then the refusal stands.
        left = {key for key in back if key in state.groups.waiting} - {group.key for group in groups}
        timers_wanted += [Timer(RETRY, key, now + LOOK_MS) for key in sorted(left)]
        return Plan(groups, timers_wanted)

    def committed(self, state: Snapshot, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError]) -> None:
        """Let the groups rest whose writes failed: otherwise each cycle would try them again."""
        pairs = zip(groups, outcomes, strict=True)
        state.groups.resting |= {group.key for group, outcome in pairs if group.key and isinstance(outcome, ApiError)}


def _refusals(state: Snapshot, now: int) -> list[Group]:
    """Return, once, the event that says why a configuration cannot be used."""
    refused, state.configuration.refused = state.configuration.refused, None
    if refused is None:
        return []
    log.warning("the scheduler's configuration is not used: %s", refused.message)
    return [Group([about_configuration(refused, now)])]
