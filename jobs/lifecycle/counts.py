"""How many of a job's pods are in each phase."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kube.kinds.core import PodPhase

_PHASES = tuple(phase.value for phase in PodPhase)  # Pending, Running, Succeeded, Failed, Unknown
_TOTALS = ("pending", "running", "succeeded", "failed", "unknown", "terminating")


class Counts(Struct):
    """Pods by task and phase, and in total; those being deleted are only in `terminating`."""

    tasks: dict[str, dict[str, int]] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0
    idle: int = 0  # in phase Running without a running container; not a counter of the status

    def sum_up(self) -> None:
        """Compute the totals from the tasks."""
        totals = dict.fromkeys(_PHASES, 0)
        for phases in self.tasks.values():
            for phase, number in phases.items():
                totals[phase] = totals.get(phase, 0) + number
        self.pending, self.running, self.succeeded, self.failed, self.unknown = map(totals.__getitem__, _PHASES)

    def add_pending(self, task: str, number: int) -> None:
        """Count pods of a task that are being made."""
        phases = self.tasks[task]
        phases[PodPhase.PENDING.value] = phases.get(PodPhase.PENDING.value, 0) + number
        self.sum_up()

    def end(self, task: str, phase: str) -> None:
        """Count a pod of a task, so far counted in `phase`, as terminating."""
        phases = self.tasks.get(task, {})
        if phases.get(phase):
            phases[phase] -= 1
        self.terminating += 1

    @property
    def ended(self) -> int:
        """How many pods ran to an end, well or badly."""
        return self.succeeded + self.failed

    @property
    def started(self) -> int:
        """How many pods run or have run."""
        return self.running + self.ended

    @property
    def present(self) -> int:
        """How many pods exist, including those being deleted."""
        return self.pending + self.started + self.unknown + self.terminating

    def fields(self) -> dict[str, Any]:
        """Return the counters of a job's status; zeros are left out, as in Volcano."""
        numbers = {name: getattr(self, name) for name in _TOTALS}
        fields: dict[str, Any] = {name: number for name, number in numbers.items() if number}
        by_task = {
            task: {"phase": {phase: number for phase, number in sorted(phases.items()) if number}}
            for task, phases in self.tasks.items()
            if any(phases.values())
        }
        return fields | ({"taskStatusCount": by_task} if by_task else {})
