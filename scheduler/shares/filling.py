"""Sharing an amount by weight: every part is the same per unit of weight, within bounds."""

from __future__ import annotations

import numpy as np

from scheduler.engine.arrays import Vector

STEPS = 128
"""Halvings that reduce any interval that amounts can span to two neighbouring floats."""


def fill(amount: int, weights: Vector, least: Vector, most: Vector) -> Vector:
    """Return whole parts of an amount in proportion to weights, none below `least` or above `most`.

    The whole amount is given out, unless every part is at its most; never less than
    the sum of `least`. What does not divide evenly goes to the parts smallest for their weight, then to the first.
    This is the result to which the loop of proportion (reference/volcano-scheduler §3.5) converges.
    """
    most = np.maximum(np.minimum(most, amount), least)
    if most.sum() <= amount:
        return most
    bounds = most.astype(np.float64)

    def parts_at(level: float) -> Vector:
        even = np.minimum(level * weights, bounds).astype(np.int64)
        parts: Vector = np.minimum(np.maximum(even, least), most)
        return parts

    parts = parts_at(0.0)
    if parts.sum() >= amount:
        return parts
    low, high = 0.0, float(most.max()) + 1.0
    for _ in range(STEPS):
        level = (low + high) / 2
        if level in (low, high):
            break
        if (given := parts_at(level)).sum() <= amount:
            low, parts = level, given
        else:
            high = level
    # What rounding left over is given out one unit each, first to the parts smallest for their weight.
    rest = amount - int(parts.sum())
    while rest > 0 and (open_ := np.flatnonzero(parts < most)).size:
        poorest = open_[np.argsort((parts[open_] + 1) / weights[open_], kind="stable")][:rest]
        parts[poorest] += 1
        rest -= poorest.size
    return parts
