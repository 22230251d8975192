"""Whether a pod may be evicted now: what its PodDisruptionBudget asks for (reference: kubernetes-api §4.7).

How many pods a budget expects is taken from the pods that it selects and that have not ended. Kubernetes asks the
`scale` of their controllers, which jobs do not have: there a budget on a job's pods lets none go. A job's replicas
would be no better, because they count what has finished, and tasks that are not selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kube import meta, selector
from kube.errors import Cause, InternalError, TooManyRequests
from kube.kinds.core import PodPhase
from kube.kinds.pod import ENDED
from kube.meta import Object

TARGET = "DisruptionTarget"


class BudgetStatus(NamedTuple):
    """What a budget comes to: how many pods it has, needs, and can lose."""

    expected: int
    healthy: int
    desired: int

    @property
    def allowed(self) -> int:
        """How many pods may go now."""
        return max(self.healthy - self.desired, 0)


def counts(pod: Object) -> bool:
    """Whether the loss of a pod would be felt: one that ended, waits or is going already may always go."""
    return _phase(pod) == PodPhase.RUNNING and not pod["metadata"].get("deletionTimestamp")


def budget_status(budget: Object, pods: Iterable[Object]) -> BudgetStatus:
    """Return what a budget comes to with the pods of its namespace."""
    chosen = [pod for pod in pods if selects(budget, pod) and _phase(pod) not in ENDED]
    healthy = sum(1 for pod in chosen if is_ready(pod) and not pod["metadata"].get("deletionTimestamp"))
    return BudgetStatus(len(chosen), healthy, desired(budget.get("spec") or {}, len(chosen)))


def desired(spec: Object, expected: int) -> int:
    """Return how many of so many pods must stay healthy; ValueError when the spec of a budget cannot be read."""
    if spec.get("maxUnavailable") is not None:
        return max(expected - _amount(spec["maxUnavailable"], expected), 0)
    least = spec.get("minAvailable")
    return _amount(1 if least is None else least, expected)


def selects(budget: Object, pod: Object) -> bool:
    """Whether a budget is about a pod; an empty selector is about all pods of the namespace."""
    wanted = (budget.get("spec") or {}).get("selector")
    try:
        return selector.from_object(wanted).matches(pod["metadata"].get("labels"))
    except selector.SelectorError:
        return False


def check(pod: Object, budgets: Sequence[Object], pods: Sequence[Object]) -> None:
    """Raise TooManyRequests when the pod's budget does not let it go, InternalError when it has several."""
    concerned = [budget for budget in budgets if selects(budget, pod)]
    if not concerned:
        return
    if len(concerned) > 1:
        raise InternalError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    (budget,) = concerned
    status = budget_status(budget, pods)
    # A pod that is not ready may go: always by policy, otherwise when enough others are.
    policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy")
    has_enough = status.desired > 0 and status.healthy >= status.desired
    if not is_ready(pod) and (policy == "AlwaysAllow" or has_enough):
        return
    if status.allowed < 1:
        name = budget["metadata"]["name"]
        detail = f"The disruption budget {name} needs {status.desired} healthy pods and has {status.healthy} currently"
        raise TooManyRequests(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            causes=[Cause("DisruptionBudget", detail, "")],
        )


def marked(pod: Object, now: int) -> dict[str, Any] | None:
    """Return the pod's status with the condition that says why it goes, None when it has it already."""
    status = pod.get("status") or {}
    others = [each for each in status.get("conditions") or () if each.get("type") != TARGET]
    if not counts(pod) or len(others) < len(status.get("conditions") or ()):
        return None
    condition = {
        "type": TARGET,
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": meta.now_text(now),
    }
    return {**status, "conditions": [*others, condition]}


def is_ready(pod: Object) -> bool:
    """Whether a pod says that it is ready."""
    return says_ready((pod.get("status") or {}).get("conditions"))


def says_ready(conditions: Iterable[Object] | None) -> bool:
    """Whether the conditions of a pod say that it is ready."""
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions or ())


def _amount(value: Any, whole: int) -> int:
    """Read a number of pods, or a share of them in percent, rounded up."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * whole // 100)
    return int(value)


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")
