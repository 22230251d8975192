"""The measured load of nodes, with times: an input of the cycle besides the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

WINDOW_MS = 5 * 60_000
"""How long figures are averaged; older ones are ignored (reference/volcano-scheduler §3.11, usage)."""


class Load(NamedTuple):
    """What a node uses, in percent of its capacity."""

    cpu: float
    memory: float


class _Figure(NamedTuple):
    at: int
    cpu: int  # in thousandths
    memory: int  # in bytes


class Loads:
    """The figures of the last minutes, by node."""

    def __init__(self) -> None:
        self._figures: dict[str, list[_Figure]] = {}

    def note(self, figures: Mapping[str, Any]) -> None:
        """Add the latest figures of a node (`cluster.backend.Nodes.usage`); the same figures again change nothing."""
        machine = figures.get("machine")
        if not machine:
            return
        history = self._figures.setdefault(figures["node"], [])
        if not history or history[-1].at < figures["at"]:
            history.append(_Figure(figures["at"], machine[0] // 1_000_000, machine[1]))
            history[:] = [each for each in history if each.at > figures["at"] - WINDOW_MS]

    def of(self, node: str, capacity: Mapping[str, int], now: int) -> Load | None:
        """Return what a node with this capacity used on average in the last minutes; None where nothing was measured."""
        recent = [each for each in self._figures.get(node, ()) if now - WINDOW_MS < each.at <= now]
        cpu, memory = capacity.get("cpu", 0), capacity.get("memory", 0)
        if not recent or cpu <= 0 or memory <= 0:
            return None
        return Load(
            100 * sum(each.cpu for each in recent) / len(recent) / cpu,
            100 * sum(each.memory for each in recent) / len(recent) / memory,
        )
