"""Gangs whose pods a cluster binds one by one, so that a scheduler can be stopped in the middle of one.

Before such a gang is bound, its condition Scheduled is announced as Unknown, with the reason Binding; with the last
of it the condition becomes True. A scheduler that finds it Unknown, and some of the pods on nodes, goes on
where another one has stopped: it binds the others, or gives back what they hold, if they find no room now. Otherwise two
half gangs could wait for each other for ever. In the embedded cluster a gang is bound in one transaction, and
nothing of this is ever written.
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
    """Return the minima of a gang over its binds, which are of its bins in their order, so many of each.

    None where nobody would make one of the pods again: what cannot be taken back has no use for a minimum.
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
    """Return the condition that is written before a gang is bound; None where it cannot be stopped half way.

    Beside pods that hold nodes already it is none: those are not to be given back with the others.
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
    """Say whether another scheduler was stopped in the middle of a gang; one of which a pod has ended was whole."""
    has_ended = group.counts[TaskStatus.SUCCEEDED] or group.counts[TaskStatus.FAILED]
    conditions = (group.view.status.conditions if group.view else None) or ()
    is_announced = any((each.type, each.status, each.reason) == (SCHEDULED, "Unknown", BINDING) for each in conditions)
    return is_announced and layout.needed > 0 and group.ready() > 0 and not has_ended


def given_back(group: Group) -> list[Pod]:
    """Return the pods of a half bound gang that are to be made again, by name."""
    return [pod for _, pod in sorted(group.holders.items()) if not pod.deleting]


def event_text(group: Group) -> str:
    """Return what the owner of a gang is told whose nodes are given back."""
    return (
        f"{group.ready()} of the {group.min_member} pods that start together had nodes when the scheduler was stopped,"
        " and the others find no room now, so all are made again."
    )
