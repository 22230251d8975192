"""The weights of a policy as the engine has them: by the columns of the nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.engine.scoring import Weights
from scheduler.engine.spared import Spared
from scheduler.policy.policy import Fit, Policy, Scoring

Columns = tuple[tuple[int, int, bool], ...]

SIZED = ("cpu", "memory")
RARE = ("nvidia.com/gpu",)
"""What balanced adds to CPU and memory for pods that request it (reference/volcano-scheduler §3.8)."""


def weights_of(scoring: Scoring | None, columns: Mapping[str, int]) -> Weights | None:
    """Return the weights for a cluster whose nodes offer these resources; None for None."""
    if scoring is None:
        return None
    return Weights(
        scoring.binpack,
        tuple((columns[name], weight) for name, weight in scoring.resources if name in columns),
        scoring.least,
        scoring.most,
        scoring.balanced,
        tuple(columns[name] for name in SIZED if name in columns),
        tuple(columns[name] for name in RARE if name in columns),
        *(_fit(scoring.fit, columns) if scoring.fit is not None else ()),
    )


def spared_of(amounts: Iterable[tuple[str, str, int]], columns: Mapping[str, int]) -> tuple[Spared, ...]:
    """Return what is kept for idle devices, as far as nodes have the devices and resources."""
    return tuple(
        Spared(columns[name], columns[device], amount)
        for device, name, amount in amounts
        if device in columns and name in columns
    )


def packed_columns(policy: Policy, columns: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """Return the columns by which HyperNodes are compared, with their weights."""
    return tuple((columns[name], weight) for name, weight in policy.packed if name in columns and weight)


def _fit(fit: Fit, columns: Mapping[str, int]) -> tuple[int, Columns, int, tuple[tuple[int, int], ...], int]:
    """Return the last fields of Weights."""
    found = ((column, fit.strategy(name)) for name, column in columns.items())
    fitted = tuple((column, each.weight, each.much) for column, each in found if each is not None)
    scarce = tuple((columns[name], weight) for name, weight in fit.scarce if name in columns)
    return fit.weight, fitted, fit.spare, scarce, sum(weight for _, weight in fit.scarce)
