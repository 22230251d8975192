"""The status of ResourceQuotas: what they bound, and what is used of it (reference: kubernetes-api §6.3).

The status is for people and programs to read. What is refused is decided by
counting anew (`cluster.api.quota_room`), so a status that is late refuses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.api import custom_kinds, quota_room
from cluster.controllers.status_counter import Recounter, has_ended
from cluster.rules import quotas as rules
from cluster.rules.quotas import Quota
from cluster.store import Change
from kube import lenient
from kube.amounts import Amounts
from kube.meta import Object
from kube.resources import RESOURCE_QUOTAS

NAME = "quotas"


class QuotaController(Recounter):
    """Keeps what is used of each quota."""

    name = NAME
    kind = RESOURCE_QUOTAS

    def matters(self, change: Change) -> bool:
        """What comes and goes counts; so do claims that grow, services that change and pods that end."""
        if change.verb != "MODIFIED" or change.resource in quota_room.GROWING:
            return True
        return has_ended(change)

    def statuses(self, namespace: str, keepers: Sequence[Object], now: int) -> list[Object]:
        """Count what the quotas of a namespace bound."""
        quotas = [rules.read(keeper) for keeper in keepers]
        used = used_of(namespace, quotas)
        return [
            {"hard": lenient.mapping(keeper, "spec", "hard"), "used": rules.written(quota, used[quota.name])}
            for keeper, quota in zip(keepers, quotas, strict=True)
        ]


def used_of(namespace: str, quotas: Sequence[Quota]) -> dict[str, Amounts]:
    """Return what is used of each quota of a namespace by all kinds together."""
    used: dict[str, Amounts] = {quota.name: {} for quota in quotas}
    for kind in custom_kinds.namespaced():
        if kind.id not in quota_room.UNCOUNTED:
            for name, more in quota_room.count(kind, namespace, quotas).items():
                used[name] |= more
    return used
