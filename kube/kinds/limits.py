"""How much a namespace may use: ResourceQuota and LimitRange (reference: kubernetes-api §6.3)."""

from __future__ import annotations

from enum import StrEnum


class QuotaScope(StrEnum):
    """Which pods a quota counts."""

    TERMINATING = "Terminating"
    NOT_TERMINATING = "NotTerminating"
    BEST_EFFORT = "BestEffort"
    NOT_BEST_EFFORT = "NotBestEffort"
    PRIORITY_CLASS = "PriorityClass"
    CROSS_NAMESPACE_POD_AFFINITY = "CrossNamespacePodAffinity"


class LimitType(StrEnum):
    """What an item of a LimitRange limits."""

    POD = "Pod"
    CONTAINER = "Container"
    CLAIM = "PersistentVolumeClaim"
