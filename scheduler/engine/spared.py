"""What is kept free on a node for its idle devices, so that pods that ask for them find CPU and memory too (`proportional`,
reference/volcano-scheduler §3.11 resource-strategy-fit).

It is kept from pods that ask for none of these devices: so much for each unused device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Spared(NamedTuple):
    """`each` of `column` stays free for each one of the column `device` that is free."""

    column: int
    device: int
    each: int


def left(free: NDArray[np.int64], spared: Sequence[Spared]) -> NDArray[np.int64]:
    """Return what pods may use of rows of free amounts; the rows themselves where nothing is kept from them."""
    if not spared:
        return free
    found = free.copy()
    for column, device, each in spared:
        np.minimum(found[:, column], free[:, column] - each * np.maximum(free[:, device], 0), out=found[:, column])
    return found


def left_of(free: list[int], spared: Sequence[Spared]) -> list[int]:
    """Return the same for one row."""
    if not spared:
        return free
    found = list(free)
    for column, device, each in spared:
        found[column] = min(found[column], free[column] - each * max(free[device], 0))
    return found
