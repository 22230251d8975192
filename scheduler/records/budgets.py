"""Disruption budgets as the scheduler reads them: PodDisruptionBudgets, and the annotations of pod groups.

A PodDisruptionBudget covers the pods that it selects (reference: kubernetes-api §4.7); `volcano.sh/jdb-min-available`, or else
`volcano.sh/jdb-max-unavailable`, of a pod group covers the pods of that group (reference/volcano-scheduler §3.11, tdm).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from cluster.rules import disruption
from kube import selector
from kube.kinds.fields import View
from kube.kinds.policy import UnhealthyPodEvictionPolicy
from kube.selector import LabelSelector, SelectorError
from scheduler.records.records import Group, TaskStatus

NONE = LabelSelector(nothing=True)


class _Spec(View):
    selector: dict[str, Any] | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class _Budget(View):
    spec: _Spec = _Spec()


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget: its pods, how many of them must stay or may go, and whether unhealthy ones may always go."""

    key: str
    selects: LabelSelector
    least: int | str | None
    most: int | str | None
    unhealthy_go: bool

    def needed(self, expected: int) -> int:
        """Return how many of `expected` pods must stay healthy."""
        return disruption.desired({"minAvailable": self.least, "maxUnavailable": self.most}, expected)


def budget_of(key: str, body: bytes) -> Budget:
    """Read a PodDisruptionBudget; raise msgspec.ValidationError where it cannot be read."""
    spec = msgspec.json.decode(body, type=_Budget).spec
    try:
        selects = selector.from_object(spec.selector)
    except SelectorError:
        selects = NONE
    least = spec.min_available
    if least is None and spec.max_unavailable is None:
        least = 1
    always = spec.unhealthy_pod_eviction_policy == UnhealthyPodEvictionPolicy.ALWAYS_ALLOW
    budget = Budget(key, selects, least, spec.max_unavailable, always)
    try:
        budget.needed(1)
    except ValueError as error:
        raise msgspec.ValidationError(str(error)) from error
    return budget


def allowed_by_group(group: Group) -> int | None:
    """Return how many running pods of a group its own annotations allow to go; None where they are absent or unreadable."""
    notes = group.view.metadata.annotations if group.view else None
    if notes is None or not (notes.least_available or notes.most_unavailable):
        return None
    ended = group.counts[TaskStatus.SUCCEEDED] + group.counts[TaskStatus.FAILED]
    budget = {"minAvailable": notes.least_available or None}
    if not notes.least_available:
        budget = {"maxUnavailable": notes.most_unavailable}
    try:
        needed = disruption.desired(budget, group.total - ended)
    except ValueError:
        return None
    return max(group.counts[TaskStatus.RUNNING] - needed, 0)
