"""The arguments of Volcano's plugin resource-strategy-fit (reference/volcano-scheduler §3.11)."""

from __future__ import annotations

from typing import Any

from kube.yaml.tree import child
from scheduler.policy.arguments import Arguments
from scheduler.policy.findings import nearest, shown
from scheduler.policy.policy import Fit, Strategy

WEIGHT = "resourceStrategyFitWeight"
MOST, LEAST = "MostAllocated", "LeastAllocated"
DEFAULTS = (Strategy("cpu", 1, much=False), Strategy("memory", 1, much=False))
SRA_FIELDS = ("enable", "resources", "weight", "resourceWeight")


def fit_of(arguments: Arguments) -> Fit:
    """Return what nodes are compared by; what cannot be read is said, and its default holds."""
    stated = arguments.within("resources").values
    strategies = tuple(
        strategy
        for name, value in stated.items()
        if (strategy := _strategy(arguments, name, value)) is not None
    )
    return Fit(arguments.weight(WEIGHT, 10), strategies or DEFAULTS, *_scarce(arguments))


def _strategy(arguments: Arguments, name: str, value: Any) -> Strategy | None:
    path = child(child(arguments.path, "resources"), name)
    if not isinstance(value, dict):
        arguments.warn(path, f"{name} is a mapping with type and weight, not {shown(value)}; it is left out.")
        return None
    inner = Arguments(value, path, arguments.warn)
    kind = value.get("type", LEAST)
    if kind not in (MOST, LEAST):
        hint = nearest(kind, (MOST, LEAST)) if isinstance(kind, str) else ""
        arguments.warn(path, f"type is {MOST} or {LEAST}, not {shown(kind)}; {LEAST} is used.{hint}")
    return Strategy(name, inner.weight("weight", 1) or 1, kind == MOST)


def _scarce(arguments: Arguments) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return the weight of sparing what is scarce, and the resources that are, each with its weight."""
    inner = arguments.within("sra")
    for name in (each for each in inner.values if each not in SRA_FIELDS):
        hint = nearest(name, SRA_FIELDS)
        inner.warn(child(inner.path, name), f"There is no argument {shown(name)}.{hint}")
    if not inner.truth("enable", default=False):
        return 0, ()
    weights, listed = inner.within("resourceWeight"), inner.names("resources")
    return inner.weight("weight", 1), tuple((name, weights.weight(name, 1)) for name in listed)
