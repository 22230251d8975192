"""What the conditions of a pod group say about why it waits, whoever schedules it."""

from __future__ import annotations

from collections.abc import Sequence

from kube.kinds.meta import Condition
from kube.volcano import pod_groups, reserved_room


def holding(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that says why a pod group is not placed; an empty one if nothing holds it.

    The condition about the group's reservation is skipped, and so are conditions that hold data.
    """
    true = [each for each in conditions if each.status == "True" and each.type != reserved_room.CONDITION]
    true = [each for each in true if not each.type.startswith(pod_groups.DATA)]
    newest = max(true, key=lambda each: each.last_transition_time, default=None)
    return newest if newest is not None and newest.type != "Scheduled" else Condition()
