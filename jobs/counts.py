"""How many pods of a job are in which phase."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kube.kinds.core import PodPhase


class Counts(Struct):
    """Pods by task and phase; those being deleted are only in `terminating`."""

    tasks: dict[str, dict[str, int]] = {}
    terminating: int = 0

    def add(self, task: str, phase: str) -> None:
        """Count one more pod of a task."""
        phases = self.tasks.setdefault(task, {})
        phases[phase] = phases.get(phase, 0) + 1

    def move_to_terminating(self, task: str, phase: str) -> None:
        """Count a pod of a task as terminating from here on."""
        self.tasks[task][phase] -= 1
        self.terminating += 1

    def of(self, phase: str) -> int:
        """Return how many pods are in a phase."""
        return sum(phases.get(phase, 0) for phases in self.tasks.values())

    @property
    def pending(self) -> int:
        return self.of(PodPhase.PENDING)

    @property
    def running(self) -> int:
        return self.of(PodPhase.RUNNING)

    @property
    def succeeded(self) -> int:
        return self.of(PodPhase.SUCCEEDED)

    @property
    def failed(self) -> int:
        return self.of(PodPhase.FAILED)

    @property
    def unknown(self) -> int:
        return self.of(PodPhase.UNKNOWN)

    @property
    def ended(self) -> int:
        """How many pods ran to an end, well or badly."""
        return self.succeeded + self.failed

    @property
    def started(self) -> int:
        """How many pods run or have run."""
        return self.running + self.ended

    def fields(self) -> dict[str, Any]:
        """Return the counters of a job's status; zeros are left out, as in Volcano."""
        numbers = {
            "pending": self.pending,
            "running": self.running,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "unknown": self.unknown,
            "terminating": self.terminating,
        }
        fields: dict[str, Any] = {name: number for name, number in numbers.items() if number}
        by_task = {task: {"phase": _filled(phases)} for task, phases in self.tasks.items() if _filled(phases)}
        return fields | ({"taskStatusCount": by_task} if by_task else {})


def _filled(phases: dict[str, int]) -> dict[str, int]:
    return {phase: number for phase, number in sorted(phases.items()) if number}
