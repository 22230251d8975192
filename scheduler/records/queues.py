"""Queues as the scheduler keeps them, from the objects."""

from __future__ import annotations

from kube.kinds.scheduling import DequeueStrategy
from kube.volcano import intake_times
from scheduler.records.reading import NodeGroupsView, QueueAffinityView, QueueView
from scheduler.records.records import GroupAffinity, Queue
from scheduler.records.shapes import readable


def queue_record(name: str, view: QueueView, created: int) -> Queue:
    """Return what the scheduler keeps of a queue; amounts that cannot be read count as absent."""
    spec = view.spec
    return Queue(
        name,
        view.status.state,
        readable(spec.capability),
        spec.parent or "",
        guarantee=readable(spec.guarantee.resource if spec.guarantee else None),
        deserved=readable(spec.deserved),
        weight=max(spec.weight or 1, 1),
        priority=spec.priority or 0,
        created=created,
        strategy=spec.dequeue_strategy or DequeueStrategy.TRAVERSE,
        reclaimable=spec.reclaimable is not False,
        affinity=_affinity(spec.affinity),
        shut_since=intake_times.moment(view.metadata.annotations.shut_since if view.metadata.annotations else ""),
    )


def _affinity(view: QueueAffinityView | None) -> GroupAffinity | None:
    if view is None:
        return None
    near, apart = (view.node_group_affinity or NodeGroupsView(), view.node_group_anti_affinity or NodeGroupsView())
    listed = (
        near.required_during_scheduling_ignored_during_execution,
        near.preferred_during_scheduling_ignored_during_execution,
        apart.required_during_scheduling_ignored_during_execution,
        apart.preferred_during_scheduling_ignored_during_execution,
    )
    return GroupAffinity(*(tuple(dict.fromkeys(each or ())) for each in listed))
