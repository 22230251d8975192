"""Groups for which room is being made: pods were asked to end so that they can start.

Such a group is *nominated*. That stands in its status and nowhere else, so that it survives whatever process decides: its
condition Unschedulable has the reason WaitingForVictims. As long as it has, the room that pods leave which are going is kept
for the group, and nobody else is evicted for it. It ends when the group gets its nodes, or waits for something else.
"""

from __future__ import annotations

from scheduler.engine.cause import Reason
from scheduler.reasons.message import UNSCHEDULABLE
from scheduler.records.reading import GroupView


def is_nominated(view: GroupView) -> bool:
    """Tell whether a pod group says of itself that it waits for pods that were asked to end for it."""
    return any(
        (each.type, each.status, each.reason) == (UNSCHEDULABLE, "True", Reason.WAITING_FOR_VICTIMS)
        for each in view.status.conditions or ()
    )
