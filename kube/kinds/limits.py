"""How much a namespace may use: ResourceQuota and LimitRange (reference: kubernetes-api §6.3)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from kube.kinds.fields import REQUIRED, Quantities, View
from kube.meta import ObjectMeta


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


class ScopeRequirement(View):
    """One condition on what a quota counts."""

    scope_name: Annotated[str, REQUIRED] = ""
    operator: Annotated[str, REQUIRED] = ""
    values: list[str] = []


class ScopeSelector(View):
    """Conditions that all hold for what a quota counts."""

    match_expressions: list[ScopeRequirement] = []


class ResourceQuotaSpec(View):
    """What a namespace may use at most."""

    hard: Quantities = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(View):
    """What is enforced, and what is used."""

    hard: Quantities = {}
    used: Quantities = {}


class ResourceQuota(View):
    """A bound on what all objects of a namespace use together."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class LimitRangeItem(View):
    """Bounds and defaults for one type of thing."""

    type: Annotated[str, REQUIRED] = ""
    max: Quantities = {}
    min: Quantities = {}
    default: Quantities = {}
    default_request: Quantities = {}
    max_limit_request_ratio: Quantities = {}


class LimitRangeSpec(View):
    """What is limited."""

    limits: Annotated[list[LimitRangeItem], REQUIRED] = []


class LimitRange(View):
    """Bounds on each pod, container or claim of a namespace."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()
