"""Pods that are alike to the scheduler, and amounts read from objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from kube import amounts, quantity
from kube.amounts import Amounts
from kube.usage import RequestKey, request_of
from scheduler.engine.arrays import Vector
from scheduler.engine.cause import Constraint
from scheduler.records.profiles import Profile

UNREADABLE = "resources that cannot be read"
"""Stands for a request that is no quantity; no node offers it."""

LARGEST = 1 << 53
"""Amounts are capped here, at nine petabytes of memory, so that no sum over pods exceeds 64 bits."""


ShapeKey = tuple[tuple[bytes, ...], RequestKey, Constraint | None, Profile | None]


class PodShape:
    """Pods with the same request that may use the same nodes, as long as there are any.

    A cycle knows it as the PodClass of its number (`NodeTable.pod_class`). The
    number is reused once no pod is left. constraint is what keeps the pods
    from being placed, whatever room there is; profile is how they relate to other pods.
    """

    __slots__ = (
        "constraint",
        "foreign",
        "key",
        "number",
        "pods",
        "profile",
        "request",
        "rule_key",
        "vector",
        "version",
    )

    def __init__(self, key: ShapeKey) -> None:
        self.number, self.key = -1, key
        self.rule_key, request, self.constraint, self.profile = key
        try:
            self.request = request_of(request)
        except ValueError:
            self.request = {"pods": 1, UNREADABLE: 1}
        self.pods = 0
        self.version = -1
        self.vector: Vector = np.zeros(0, dtype=np.int64)
        self.foreign: tuple[tuple[str, int], ...] = ()


def readable(offered: dict[str, Any] | None) -> Amounts:
    """Return the amounts that an object states; entries that are no quantities are left out."""
    parsed: Amounts = {}
    for name, text in (offered or {}).items():
        try:
            parsed[name] = amounts.one(name, text)
        except quantity.QuantityError:
            continue
    return parsed
