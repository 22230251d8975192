"""When running pods are moved to other nodes: Volcano's plugin rescheduling (reference/volcano-scheduler §3.11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube.yaml.tree import child
from scheduler.policy.arguments import Arguments
from scheduler.policy.findings import nearest, quoted

INTERVAL_MS = 300_000
STRATEGY = "lowNodeUtilization"
RESOURCES = ("cpu", "memory", "pods")
LOW, TARGET = "thresholds", "targetThresholds"
FIELDS = ("thresholdPriorityClassName", "nodeFit", "numberOfNodes")
WHOLE = 100


@dataclass(frozen=True, slots=True)
class Levels:
    """Percentages of a node's CPU, memory and pods."""

    cpu: int = WHOLE
    memory: int = WHOLE
    pods: int = WHOLE

    def of(self, resource: str) -> int:
        """Return the percentage for one of RESOURCES."""
        return {"cpu": self.cpu, "memory": self.memory, "pods": self.pods}[resource]


@dataclass(frozen=True, slots=True)
class Rescheduling:
    """Pods move from nodes where requests exceed `target` for any resource to nodes where they are at most `low` for all.

    interval_ms is the time between two checks of the nodes.
    """

    low: Levels = Levels()
    target: Levels = Levels()
    interval_ms: int = INTERVAL_MS


def rescheduling_of(arguments: Arguments) -> Rescheduling | None:
    """Return when pods are moved; None where no strategy moves any. What cannot be read gets a warning and its default."""
    interval = arguments.wait("interval", default="5m") or INTERVAL_MS
    stated = arguments.values.get("strategies")
    if stated is None:
        stated = [{"name": STRATEGY}]
    path = child(arguments.path, "strategies")
    if not isinstance(stated, list):
        arguments.warn(path, f"strategies is a list, not {quoted(stated)}; no pod is moved.")
        return None
    found = None
    for number, each in enumerate(stated):
        params = _params(Arguments({}, f"{path}[{number}]", arguments.warn), each)
        found = found or params
    return None if found is None else _of_levels(found, interval)


def _params(at: Arguments, strategy: Any) -> Arguments | None:
    """Return the parameters of a strategy; None, with a warning, where it is not STRATEGY."""
    name = strategy.get("name") if isinstance(strategy, dict) else strategy
    if not isinstance(strategy, dict) or name != STRATEGY:
        hint = nearest(name, (STRATEGY,)) if isinstance(name, str) else ""
        at.warn(at.path, f"There is no strategy {quoted(name)} here, only {STRATEGY}.{hint}")
        return None
    key = "parameters" if "params" not in strategy and "parameters" in strategy else "params"
    found = Arguments(strategy, at.path, at.warn).within(key)
    for other in found.values:
        if other in FIELDS:
            found.warn(child(found.path, other), f"{other} has no effect here.")
        elif other not in (LOW, TARGET):
            hint = nearest(other, (LOW, TARGET))
            found.warn(child(found.path, other), f"There is no parameter {quoted(other)}.{hint}")
    return found


def _of_levels(params: Arguments, interval: int) -> Rescheduling:
    target = _levels(params.within(TARGET), dict.fromkeys(RESOURCES, WHOLE))
    low = _levels(params.within(LOW), target)
    for name in RESOURCES:
        if low[name] > target[name]:
            message = f"{LOW}.{name} is above {TARGET}.{name}, {target[name]}, which is used for both."
            params.warn(child(params.path, LOW), message)
            low[name] = target[name]
    if set(target.values()) == {WHOLE}:
        message = f"No pod is moved: all {TARGET} are {WHOLE}, and of no node more than that is asked for."
        params.warn(child(params.path, TARGET), message)
    return Rescheduling(Levels(**low), Levels(**target), interval)


def _levels(stated: Arguments, default: Mapping[str, int]) -> dict[str, int]:
    for name in (each for each in stated.values if each not in RESOURCES):
        stated.warn(child(stated.path, name), f"{quoted(name)} is left out: there are {', '.join(RESOURCES)}.")
    return {name: stated.percentage(name, default[name]) for name in RESOURCES}
