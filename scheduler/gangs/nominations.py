"""Groups for which room is being made: pods were evicted so that they can start.

Such a group is *nominated*. Only its status says so, which outlives the process that decides: its
condition Unschedulable has the reason WaitingForVictims. While it has, the room of its leaving victims is reserved
for the group, and no other pod is evicted for it. It ends when the group gets its nodes, or waits for something else.
"""

from __future__ import annotations

from scheduler.engine.cause import Reason
from scheduler.reasons.message import UNSCHEDULABLE
from scheduler.records.reading import GroupView


def is_nominated(view: GroupView) -> bool:
    """Tell whether the status of a pod group says that it waits for pods that were evicted for it."""
    return any(
        (each.type, each.status, each.reason) == (UNSCHEDULABLE, "True", Reason.WAITING_FOR_VICTIMS)
        for each in view.status.conditions or ()
    )
