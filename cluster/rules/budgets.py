"""PodDisruptionBudgets of `policy/v1`; evictions keep them."""

from __future__ import annotations

import re

from cluster.rules.checks import NOT_NEGATIVE, RulesView, check_selector, one_of
from kube.errors import Cause, invalid
from kube.kinds.policy import UnhealthyPodEvictionPolicy
from kube.meta import Object

COUNTS = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
_PERCENT = re.compile(r"[0-9]+%")


def default(budget: Object, old: Object | None, view: RulesView) -> None:
    """A new budget lets nothing go until it was counted."""
    if old is None:
        budget["status"] = dict.fromkeys(COUNTS, 0)


def validate(budget: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a budget."""
    spec = budget.get("spec") or {}
    causes: list[Cause] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        causes.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        value, path = spec.get(field), f"spec.{field}"
        if isinstance(value, int) and value < 0:
            causes.append(invalid(path, value, NOT_NEGATIVE))
        elif isinstance(value, str) and not _PERCENT.fullmatch(value):
            detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            causes.append(invalid(path, value, detail))
        elif isinstance(value, str) and int(value[:-1]) > 100:
            causes.append(invalid(path, value, "must not be greater than 100%"))
    causes += check_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    causes += one_of(policy, UnhealthyPodEvictionPolicy, "spec.unhealthyPodEvictionPolicy", optional=True)
    return causes
