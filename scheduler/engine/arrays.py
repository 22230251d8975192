"""Amounts as arrays.

Amounts are whole numbers (cpu in thousandths, everything else in units), so
that sums are exact: two ways to count the same pods never differ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.int64]
Matrix = NDArray[np.int64]
Verdicts = NDArray[np.int32]
Scores = NDArray[np.float64]
Amount = tuple[int, int]
"""A column, and how much of it."""

UNLIMITED = int(np.iinfo(np.int64).max)
"""A ceiling that no sum of pods reaches."""
MAX_REQUEST = 1 << 61
"""Sums of requests are cut here, so that two of them together stay within 64 bits. No cluster has so much."""


def times(request: Vector, pods: int) -> Vector:
    """Return what so many pods with this request ask for, cut at MAX_REQUEST."""
    return np.minimum(request, MAX_REQUEST // max(pods, 1)) * pods


def together(some: Vector, more: Vector) -> Vector:
    """Return the sum of two, cut at MAX_REQUEST."""
    total: Vector = np.minimum(some + more, MAX_REQUEST)
    return total
