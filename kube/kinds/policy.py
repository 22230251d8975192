"""PodDisruptionBudget and Eviction of `policy/v1` (reference: kubernetes-api §4.7)."""

from __future__ import annotations

from enum import StrEnum


class UnhealthyPodEvictionPolicy(StrEnum):
    """When pods that are not ready may be evicted."""

    IF_HEALTHY_BUDGET = "IfHealthyBudget"
    ALWAYS_ALLOW = "AlwaysAllow"
