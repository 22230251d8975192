"""Scheduling gates: what holds a pod back from the scheduler (Kubernetes' Pod Scheduling Readiness)."""

from __future__ import annotations

from kube import lenient
from kube.meta import Object, now_text

SCHEDULED = "PodScheduled"
REASON = "SchedulingGated"
MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def is_gated(pod: Object) -> bool:
    """Whether a pod is held back."""
    return bool(lenient.sequence(pod, "spec", "schedulingGates"))


def with_condition(pod: Object, now: int) -> Object:
    """Return a new pod that says that it is held back (now in epoch ms); one that is not, as it is."""
    if not is_gated(pod):
        return pod
    status = lenient.mapping(pod, "status")
    conditions = lenient.sequence(status, "conditions")
    if any(lenient.text(each, "type") == SCHEDULED for each in conditions):
        return pod
    condition = {
        "type": SCHEDULED,
        "status": "False",
        "reason": REASON,
        "message": MESSAGE,
        "lastTransitionTime": now_text(now),
    }
    return {**pod, "status": {**status, "conditions": [*conditions, condition]}}


def scheduled(pod: Object, now: int) -> list[Object]:
    """Return a pod's conditions from the moment on at which it has a node (now in epoch ms)."""
    conditions = lenient.sequence(pod, "status", "conditions")
    others = [each for each in conditions if lenient.text(each, "type") != SCHEDULED]
    return [*others, {"type": SCHEDULED, "status": "True", "lastTransitionTime": now_text(now)}]
