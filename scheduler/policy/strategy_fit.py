"""The arguments of Volcano's plugin resource-strategy-fit (reference/volcano-scheduler §3.11)."""

from __future__ import annotations

from typing import Any

from kube.yaml.tree import child
from scheduler.policy.arguments import Arguments
from scheduler.policy.findings import nearest, quoted
from scheduler.policy.policy import Fit, Strategy

WEIGHT = "resourceStrategyFitWeight"
MOST, LEAST = "MostAllocated", "LeastAllocated"
DEFAULTS = (Strategy("cpu", 1, much=False), Strategy("memory", 1, much=False))
PROPORTIONAL_FIELDS = ("enable", "resources", "resourceProportion")
SPARED_UNITS = {"cpu": 1000, "memory": 1_000_000_000}
"""Resources that can be spared for idle devices; an argument of 1 means a whole CPU, or a gigabyte."""
SRA_FIELDS = ("enable", "resources", "weight", "resourceWeight")


def fit_of(arguments: Arguments) -> Fit:
    """Return how nodes are compared; what cannot be read gets a warning and its default."""
    stated = arguments.within("resources").values
    strategies = tuple(
        strategy for name, value in stated.items() if (strategy := _strategy(arguments, name, value)) is not None
    )
    return Fit(arguments.weight(WEIGHT, 10), strategies or DEFAULTS, *_scarce(arguments))


def _strategy(arguments: Arguments, name: str, value: Any) -> Strategy | None:
    path = child(child(arguments.path, "resources"), name)
    if not isinstance(value, dict):
        arguments.warn(path, f"{name} is a mapping with type and weight, not {quoted(value)}; it is left out.")
        return None
    inner = Arguments(value, path, arguments.warn)
    kind = value.get("type", LEAST)
    if kind not in (MOST, LEAST):
        hint = nearest(kind, (MOST, LEAST)) if isinstance(kind, str) else ""
        arguments.warn(path, f"type is {MOST} or {LEAST}, not {quoted(kind)}; {LEAST} is used.{hint}")
    return Strategy(name, inner.weight("weight", 1) or 1, kind == MOST)


def _scarce(arguments: Arguments) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return the weight of sparing scarce resources, and those resources, each with its weight."""
    inner = _within(arguments, "sra", SRA_FIELDS)
    if not inner.truth("enable", default=False):
        return 0, ()
    weights, listed = inner.within("resourceWeight"), inner.names("resources")
    return inner.weight("weight", 1), tuple((name, weights.weight(name, 1)) for name in listed)


def spared_amounts(arguments: Arguments) -> tuple[tuple[str, str, int], ...]:
    """Return what is spared for idle devices: the device, a resource, and how much of it per device; only what the arguments state."""
    inner = _within(arguments, "proportional", PROPORTIONAL_FIELDS)
    if not inner.truth("enable", default=False):
        return ()
    parts, listed = inner.within("resourceProportion"), inner.names("resources")
    by_name = {f"{device}.{name}": (device, name) for device in listed for name in SPARED_UNITS}
    for each in (each for each in parts.values if each not in by_name):
        hint = nearest(each, by_name)
        parts.warn(child(parts.path, each), f"{quoted(each)} is no cpu or memory of one of the resources.{hint}")
    return tuple(
        (device, name, amount)
        for each, (device, name) in by_name.items()
        if each in parts.values and (amount := parts.amount(each, SPARED_UNITS[name]))
    )


def _within(arguments: Arguments, name: str, fields: tuple[str, ...]) -> Arguments:
    """Return the arguments in a mapping among these, and warn of those not in `fields`."""
    inner = arguments.within(name)
    for each in (each for each in inner.values if each not in fields):
        inner.warn(child(inner.path, each), f"There is no argument {quoted(each)}.{nearest(each, fields)}")
    return inner
