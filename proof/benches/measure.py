"""Reading what processes use, and saying numbers shortly."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from proof.systems.system import System

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_S = (
    2.0  # between two looks at the memory of all processes, which take up to a tenth of a second of processor each
)


def pss_mb(pid: int) -> float:
    """Proportional memory of a process in MB: shared pages are shared out."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu_s(pid: int) -> float:
    """Processor seconds that a process has used."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    return 0.0


class Processors:
    """Counts from its making on how many processor seconds each of a system's processes has used."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.before = self._now()

    def used(self) -> dict[str, float]:
        """Return the seconds of each process that has used some, by its program."""
        seconds = {name: round(now - self.before.get(name, 0), 1) for name, now in self._now().items()}
        return {name: each for name, each in sorted(seconds.items()) if each}

    def _now(self) -> dict[str, float]:
        return {name: cpu_s(pid) for name, pid in self.system.children().items()}


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which `share` of the sorted values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class PeakMemory(threading.Thread):
    """Watches a system's processes and keeps the most memory that each had, in MB."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        self.system = system
        self.peak: dict[str, float] = {}
        self.total = 0.0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(SAMPLE_S):
            self._look()
        self._look()

    def _look(self) -> None:
        now = {name: pss_mb(pid) for name, pid in self.system.children().items()}
        now["up"] = pss_mb(self.system.up.pid)
        self.total = max(self.total, sum(now.values()))
        for name, value in now.items():
            self.peak[name] = max(self.peak.get(name, 0.0), value)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.join()


def idle(system: System, seconds: float = 20.0) -> dict[str, Any]:
    """Memory in MB and share of one core of the whole system while nobody asks for anything."""
    pids = system.tree()
    before, begun = sum(map(cpu_s, pids)), time.monotonic()
    time.sleep(seconds)  # the length of the measurement, not a wait for something
    used = sum(map(cpu_s, pids)) - before
    names = {**{pid: name for name, pid in system.children().items()}, system.up.pid: "up"}
    memory = {names.get(pid, str(pid)): round(pss_mb(pid), 1) for pid in pids}
    return {
        "memory_mb": round(sum(memory.values()), 1),
        "cpu_percent_of_a_core": round(100 * used / (time.monotonic() - begun), 2),
        "processes": memory,
    }
