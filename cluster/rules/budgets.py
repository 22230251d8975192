"""PodDisruptionBudgets of `policy/v1`; evictions keep them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cluster.rules.checks import RulesView, check_selector, one_of
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
        if spec.get(field) is not None:
            causes += _check_amount(spec[field], f"spec.{field}")
    causes += check_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    causes += one_of(policy, UnhealthyPodEvictionPolicy, "spec.unhealthyPodEvictionPolicy", optional=True)
    return causes


def _check_amount(value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, int):
        if value < 0:
            yield invalid(path, value, "must be greater than or equal to 0")
    elif not _PERCENT.fullmatch(value):
        detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        yield invalid(path, value, detail)
    elif int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")
