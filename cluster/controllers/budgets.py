"""The status of PodDisruptionBudgets: how many pods there are, must stay and may go (reference: kubernetes-api §4.7).

The status is for people and programs to read. Whether a pod may be evicted is
decided from the pods of that moment (`cluster.rules.disruption`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster.controllers.status_counter import Recounter, condition
from cluster.rules import disruption
from cluster.rules.disruption import BudgetStatus
from cluster.store import Change, store
from kube import lenient
from kube.kinds.pod import UNENDED
from kube.meta import Object
from kube.resources import DISRUPTION_BUDGETS, PODS

NAME = "budgets"
CONDITION = "DisruptionAllowed"


class BudgetController(Recounter):
    """Keeps the numbers of each disruption budget."""

    name = NAME
    kind = DISRUPTION_BUDGETS

    def matters(self, change: Change) -> bool:
        """Every change of a pod may: its phase, readiness and labels count."""
        return change.resource == PODS.id

    def statuses(self, namespace: str, keepers: Sequence[Object], now: int) -> list[Object]:
        """Count the pods that the budgets of a namespace select."""
        pods = [stored.object for stored in store.find(PODS, namespace=namespace, phase=UNENDED)]
        return [status(keeper, disruption.budget_status(keeper, pods), now) for keeper in keepers]


def status(budget: Object, counts: BudgetStatus, now: int) -> dict[str, Any]:
    """Return the status of a budget with these counts; its `disruptedPods` stay."""
    before = lenient.mapping(budget, "status")
    allowed = counts.allowed if counts.expected else 0
    generation = budget["metadata"].get("generation") or 0
    reason = "SufficientPods" if allowed else "InsufficientPods"
    after = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": counts.healthy,
        "desiredHealthy": counts.desired,
        "expectedPods": counts.expected,
        "conditions": [condition(before, CONDITION, reason, "", now, holds=allowed > 0, generation=generation)],
    }
    return {**{key: before[key] for key in ("disruptedPods",) if key in before}, **after}
