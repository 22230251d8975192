"""PodDisruptionBudget and Eviction of `policy/v1` (reference: kubernetes-api §4.7)."""

from __future__ import annotations

from enum import StrEnum

from kube.kinds.fields import AnyObject, Int32, Int64, IntOrString, Time, View
from kube.meta import Condition, ObjectMeta


class UnhealthyPodEvictionPolicy(StrEnum):
    """When pods that are not ready may be evicted."""

    IF_HEALTHY_BUDGET = "IfHealthyBudget"
    ALWAYS_ALLOW = "AlwaysAllow"


class PodDisruptionBudgetSpec(View):
    """How many pods must stay; one of the two numbers is given."""

    min_available: IntOrString | None = None
    selector: AnyObject | None = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(View):
    """How many pods may go now."""

    observed_generation: Int64 = 0
    disrupted_pods: dict[str, Time] = {}
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    conditions: list[Condition] = []


class PodDisruptionBudget(View):
    """A bound on how many pods are evicted at once."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Eviction(View):
    """The wish that a pod leaves its node; metadata names the pod."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    delete_options: AnyObject | None = None
