"""ResourceQuotas as the scheduler keeps them, from the objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube import quantity
from kube.amounts import Amounts
from scheduler.records.reading import QuotaView
from scheduler.records.records import Quota


def quota_record(view: QuotaView) -> Quota | None:
    """Return what the scheduler keeps of a quota; None for one with scopes, where only pods show whether they count."""
    if view.spec.scopes or view.spec.scope_selector:
        return None
    return Quota(counted(view.spec.hard), counted(view.status.used))


def counted(written: Mapping[str, Any] | None) -> Amounts:
    """Return amounts under the names that quotas use, CPU in thousandths; values that are no quantities are left out."""
    totals: dict[str, int] = {}
    for name, text in (written or {}).items():
        try:
            value = quantity.parse(text)
        except quantity.QuantityError:
            continue
        totals[name] = quantity.milli(value) if name.rpartition(".")[2] == "cpu" else quantity.units(value)
    return totals
