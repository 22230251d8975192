"""Comparing nodes by the scorers of Volcano's nodeorder, binpack and resource-strategy-fit (reference/volcano-scheduler §3.8, §3.9, §3.11).

Each scorer gives 0 to 100, times its weight. Amounts are requests: the use assumed elsewhere for pods without requests (100m CPU,
200 MB) is not counted. The arithmetic is written twice, for one node and for many, with the same operations in the same order, so
that both give the same number to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, sqrt

import numpy as np
from numpy.typing import NDArray

from scheduler.engine.arrays import Matrix, Scores, Vector
from scheduler.engine.pod_class import PodClass


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the scorers, and the columns of the resources that they look at.

    packed are the columns that binpack looks at, with their weights. sized are those of CPU and memory, rare those that balanced
    adds for pods that ask for them. fitted are the columns that resource-strategy-fit looks at, each with its weight and whether
    much use is good; scarce those that it spares, with weights out of all_scarce.
    """

    binpack: int = 0
    packed: tuple[tuple[int, int], ...] = ()
    least: int = 0
    most: int = 0
    balanced: int = 0
    sized: tuple[int, ...] = ()
    rare: tuple[int, ...] = ()
    fit: int = 0
    fitted: tuple[tuple[int, int, bool], ...] = ()
    spare: int = 0
    scarce: tuple[tuple[int, int], ...] = ()
    all_scarce: int = 0


class Scorer:
    """What nodes are worth to one class of pods."""

    def __init__(self, weights: Weights, pod_class: PodClass) -> None:
        self._weights = weights
        request = pod_class.request.tolist()
        self._packed = [(c, request[c], w) for c, w in weights.packed if request[c]]
        self._packing = 100 * weights.binpack
        self._divisor = sum(w for _, _, w in self._packed)
        self._sized = [(c, request[c]) for c in weights.sized]
        columns = [*weights.sized, *(c for c in weights.rare if request[c])]
        self._balanced = [(c, request[c]) for c in columns] if any(request[c] for c in columns) else []
        self._fitted = [(c, request[c], w, much) for c, w, much in weights.fitted if request[c]]
        self._fits = bool(weights.fit and self._fitted)
        self._of_fit = sum(w for _, _, w, _ in self._fitted)
        self._spares = bool(weights.spare and weights.all_scarce)

    def one(self, free: Sequence[int], allocatable: Sequence[int]) -> float:
        """Return what a node is worth with one more pod on it."""
        packing = 0.0
        for c, q, w in self._packed:
            if (whole := allocatable[c]) > 0:
                packing += w * (float(whole - free[c] + q) / float(whole))
        packing = packing / self._divisor * self._packing if self._divisor else 0.0
        weights, least, most = self._weights, 0, 0
        sized = [(allocatable[c], free[c] - q) for c, q in self._sized if allocatable[c] > 0]
        if sized:
            least = sum(max(left, 0) * 100 // whole for whole, left in sized) // len(sized)
            most = sum(min(whole - left, whole) * 100 // whole for whole, left in sized) // len(sized)
        balanced = self._balance(free, allocatable) if self._balanced else 0
        score = packing + (weights.least * least + weights.most * most + weights.balanced * balanced)
        if self._fits:
            score += self._fit(free, allocatable)
        if self._spares:  # nodes with less of what is scarce are worth more
            has = sum(w for c, w in weights.scarce if allocatable[c] > 0)
            score += (1.0 - has / weights.all_scarce) * (100 * weights.spare)
        return score

    def _fit(self, free: Sequence[int], allocatable: Sequence[int]) -> float:
        """Return the score of resource-strategy-fit: 0 where something is short."""
        total = 0.0
        for c, q, w, much in self._fitted:
            if (whole := allocatable[c]) <= 0:
                continue
            left = free[c] - q
            if left < 0:
                return 0.0
            total += float(whole - left if much else left) * w / float(whole)
        return total / self._of_fit * (100 * self._weights.fit)

    def _balance(self, free: Sequence[int], allocatable: Sequence[int]) -> int:
        used = [
            min(float(allocatable[c] - free[c] + q) / float(allocatable[c]), 1.0)
            for c, q in self._balanced
            if allocatable[c] > 0
        ]
        spread = 0.0
        if len(used) == 2:
            spread = (max(used) - min(used)) / 2
        elif len(used) > 2:
            spread = _deviation_of(used)
        return floor((1 - spread) * 100)

    def many(self, free: Matrix, allocatable: Matrix) -> Scores:
        """Return the same for each row."""
        packing = np.zeros(len(free))
        for c, q, w in self._packed:
            whole = allocatable[:, c]
            packing += np.where(whole > 0, w * ((whole - free[:, c] + q) / np.maximum(whole, 1)), 0.0)
        packing = packing / self._divisor * self._packing if self._divisor else packing * 0
        weights = self._weights
        least, most = self._sizes(free, allocatable)
        balanced: Vector | int = self._balances(free, allocatable) if self._balanced else 0
        scores: Scores = packing + (weights.least * least + weights.most * most + weights.balanced * balanced)
        if self._fits:
            scores = scores + self._fit_many(free, allocatable)
        if self._spares:
            has = sum(((allocatable[:, c] > 0) * w for c, w in weights.scarce), np.zeros(len(free)))
            scores = scores + (1.0 - has / weights.all_scarce) * (100 * weights.spare)
        return scores

    def _fit_many(self, free: Matrix, allocatable: Matrix) -> Scores:
        total, short = np.zeros(len(free)), np.zeros(len(free), dtype=bool)
        for c, q, w, much in self._fitted:
            whole = allocatable[:, c]
            there, left = whole > 0, free[:, c] - q
            short |= there & (left < 0)
            part = np.where(there, whole - left if much else left, 0)
            total += part.astype(np.float64) * w / np.maximum(whole, 1)
        total = total / self._of_fit * (100 * self._weights.fit)
        fits: Scores = np.where(short, 0.0, total)
        return fits

    def _sizes(self, free: Matrix, allocatable: Matrix) -> tuple[Vector, Vector]:
        least, most, counted = (np.zeros(len(free), dtype=np.int64) for _ in range(3))
        for c, q in self._sized:
            whole = np.maximum(allocatable[:, c], 1)
            left = free[:, c] - q
            there = allocatable[:, c] > 0
            least += np.where(there, np.maximum(left, 0) * 100 // whole, 0)
            most += np.where(there, np.minimum(whole - left, whole) * 100 // whole, 0)
            counted += there
        divisor = np.maximum(counted, 1)
        return least // divisor, most // divisor

    def _balances(self, free: Matrix, allocatable: Matrix) -> Vector:
        columns = [c for c, _ in self._balanced]
        requested = np.array([q for _, q in self._balanced], dtype=np.int64)
        whole = allocatable[:, columns]
        there = whole > 0
        used = np.minimum((whole - free[:, columns] + requested) / np.maximum(whole, 1), 1.0)
        counted = there.sum(axis=1)
        spread = np.zeros(len(free))
        two, more = counted == 2, counted > 2
        highest = np.where(there, used, -np.inf)[two].max(axis=1)
        spread[two] = (highest - np.where(there, used, np.inf)[two].min(axis=1)) / 2
        spread[more] = _deviation(used[more], there[more])
        balances: Vector = np.floor((1 - spread) * 100).astype(np.int64)
        return balances


def _deviation_of(used: Sequence[float]) -> float:
    """Return the standard deviation, added up one by one: `sum` of Python 3.12 rounds differently."""
    total = squares = 0.0
    for each in used:
        total += each
    mean = total / len(used)
    for each in used:
        squares += (each - mean) * (each - mean)
    return sqrt(squares / len(used))


def _deviation(used: Scores, there: NDArray[np.bool_]) -> Scores:
    """Return each row's standard deviation of the values that are there, added up column by column."""
    counted = there.sum(axis=1)
    total = np.zeros(len(used))
    for c in range(used.shape[1]):
        total += np.where(there[:, c], used[:, c], 0.0)
    mean = total / np.maximum(counted, 1)
    squares = np.zeros(len(used))
    for c in range(used.shape[1]):
        away = used[:, c] - mean
        squares += np.where(there[:, c], away * away, 0.0)
    deviation: Scores = np.sqrt(squares / np.maximum(counted, 1))
    return deviation
