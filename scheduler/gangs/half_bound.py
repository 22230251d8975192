"""Gangs whose pods a cluster binds one by one, so that a scheduler can be stopped in the middle of one.

Before such a gang is bound, its condition Scheduled is written as Unknown, with the reason Binding; with the last
bind it becomes True. A scheduler that finds it Unknown, and some of the pods on nodes, continues where another one
stopped: it binds the other pods or, if they find no room now, gives back the nodes of the bound ones. Otherwise two
half-bound gangs could wait for each other forever. In the embedded cluster a gang is bound in one transaction, and
none of this is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from scheduler.decisions import Bind, Need
from scheduler.engine.gang import Gang
from scheduler.gangs.layout import Layout
from scheduler.records.reading import GroupCondition
from scheduler.records.records import Group, Pod, TaskStatus

SCHEDULED = "Scheduled"
BINDING = "Binding"
GIVEN_BACK = "GivenBack"  # the reason of the event


def needs(gang: Gang, taken: Sequence[int], binds: Sequence[Bind]) -> list[Need]:
    """Return the minima of a gang over its binds, which come bin by bin, taken[i] of bin i.

    Empty if one of the pods has no controller that would make it again: such a gang cannot be taken back.
    """
    if not all(bind.pod.controlled for bind in binds):
        return []
    first = list(accumulate(taken, initial=0))
    together = [(step.need, step.bins) for step in gang.steps]
    together += [(part.need, part.bins) for part in gang.parts if part.need and any(taken[some] for some in part.bins)]
    return [
        (need, [position for number in bins for position in range(first[number], first[number + 1])])
        for need, bins in together
    ]


def announcement(
    group: Group, binds: Sequence[Bind], minima: Sequence[Need], time: str, now: int
) -> GroupCondition | None:
    """Return the condition that is written before a gang is bound; None if fewer than two of its pods start together.

    Also None if pods of the group have nodes already: those must not be given back with the others.
    """
    if group.holders or group.ready() or sum(need for need, _ in minima) < 2:
        return None
    return GroupCondition(
        type=SCHEDULED,
        status="Unknown",
        reason=BINDING,
        message=f"{len(binds)} pods get their nodes",
        last_transition_time=time,
        transition_id=str(now),
    )


def is_half_bound(group: Group, layout: Layout) -> bool:
    """Tell whether another scheduler was stopped in the middle of a gang; False once a pod has ended, as the gang was whole then."""
    has_ended = group.counts[TaskStatus.SUCCEEDED] or group.counts[TaskStatus.FAILED]
    conditions = (group.view.status.conditions if group.view else None) or ()
    is_announced = any((each.type, each.status, each.reason) == (SCHEDULED, "Unknown", BINDING) for each in conditions)
    return is_announced and layout.needed > 0 and group.ready() > 0 and not has_ended


def given_back(group: Group) -> list[Pod]:
    """Return the pods of a half-bound gang that are to be made again, by name."""
    return [pod for _, pod in sorted(group.holders.items()) if not pod.deleting]


def event_text(group: Group) -> str:
    """Return the message of the event for a gang whose nodes are given back."""
    return (
        f"{group.ready()} of the {group.min_member} pods that start together had nodes when the scheduler was stopped,"
        " and the others find no room now, so all are made again."
    )
