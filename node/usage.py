"""What this machine and its containers use: measured by the agent, read for metrics.k8s.io.

One sample of all processes every `EVERY_S` seconds, in a thread of its own. What
a container has used is the time of its living processes and of those that its
shim has collected; what it uses is the difference of two samples. The latest
figures are a file, `usage.json` in the node's directory: nothing of them is
worth a write to the store.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from node.faults import Repeated
from node.paths import Layout
from node.shim.shim import write_json

EVERY_S = 15.0  # as metrics-server does
LEAST_S = 1.0  # the kernel counts hundredths of a second: less time says little
STALE_S = 4 * EVERY_S  # older figures are of an agent that is gone
NAME = "usage.json"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
log = logging.getLogger(__name__)


class Process(NamedTuple):
    """One process, from its line in /proc."""

    parent: int
    ticks: int  # of its own processor time
    collected: int  # of the children's that it has waited for
    started: int  # ticks after boot
    memory: int  # bytes, resident


class Container(NamedTuple):
    """A running container, identified by its shim."""

    uid: str
    name: str
    shim: int
    root: int = 0  # the first process of its own, where what is beside that is its engine's


class Total(NamedTuple):
    """What a container has used until a time."""

    at: float  # seconds after boot
    seconds: float
    memory: int = 0


class Usage(NamedTuple):
    """What something used in a stretch of time."""

    nanocores: int
    memory: int
    window_ms: int


class Sampler(Repeated):
    """Measures again and again; `running` returns the containers, `devices` the devices' figures; both are called in another thread."""

    def __init__(
        self,
        layout: Layout,
        node: str,
        running: Callable[[], list[Container]],
        devices: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        super().__init__(self.sample, "usage", EVERY_S, "measuring what pods use", log, at_once=True)
        self.path = layout.root / NAME
        self.node = node
        self._running = running
        self._devices = devices
        self._previous: dict[int, Total] = {}  # by shim
        # By shim: the init of its container's namespace of processes, 0 if it has none.
        self._inits: dict[int, int] = {}
        self._machine = Total(0.0, 0.0)

    def sample(self) -> None:
        """Measure once, and write down what has been used since the last time; too soon after that do nothing."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        if now - self._machine.at < LEAST_S:
            return
        containers = self._running()
        totals = self._totals(containers, now)
        machine = machine_total(now)
        used = [
            [container.uid, container.name, *usage]
            for container in containers
            if container.shim in totals
            and (usage := _difference(self._previous.get(container.shim), totals[container.shim]))
        ]
        figures = {"node": self.node, "at": time.time_ns() // 1_000_000, "containers": used}
        if devices := self._devices():
            figures["devices"] = devices
        figures["machine"] = _difference(self._machine if self._machine.at else None, machine)
        self._previous, self._machine = totals, machine
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(str(self.path), figures)

    def _totals(self, containers: list[Container], now: float) -> dict[int, Total]:
        if not containers:
            return {}
        processes = all_processes()
        self._find_inits(processes, {container.shim for container in containers})
        totals = {container.shim: [0, 0] for container in containers if container.shim in processes}
        owners = {shim: shim for shim in totals}
        for container in containers:
            if (
                container.root and container.shim in totals
            ):  # what is below the shim is the engine's, but for the container's own
                owners |= {container.shim: 0, container.root: container.shim}
        for pid, process in processes.items():
            owner = _owner(pid, processes, owners)
            if owner:
                # A shim's own time is the cluster's; what it has collected is the container's.
                own = process.ticks if pid != owner else 0
                totals[owner][0] += own + process.collected
                totals[owner][1] += process.memory if pid not in (owner, self._inits.get(owner)) else 0
        for shim in totals:
            if shim not in self._previous:
                # A container that has started since the last sample had used nothing when it did.
                started = processes[shim].started / TICKS
                if now - started < 2 * EVERY_S:
                    self._previous[shim] = Total(started, 0.0)
        return {shim: Total(now, ticks / TICKS, memory) for shim, (ticks, memory) in totals.items()}

    def _find_inits(self, processes: dict[int, Process], shims: set[int]) -> None:
        """Find the init processes of new containers, which are the cluster's as the shims are."""
        self._inits = {shim: init for shim, init in self._inits.items() if shim in shims}
        fresh = shims - self._inits.keys()
        self._inits |= dict.fromkeys(fresh, 0)
        for pid, process in processes.items():
            if process.parent in fresh and _is_init(pid):
                self._inits[process.parent] = pid


def _owner(pid: int, processes: dict[int, Process], owners: dict[int, int]) -> int:
    """Return the shim above a process, 0 when there is none; results are cached in `owners`."""
    path = []
    while pid not in owners:
        path.append(pid)
        process = processes.get(pid)
        if process is None or process.parent <= 1:
            owners[pid] = 0
            break
        pid = process.parent
    owner = owners[pid]
    for each in path:
        owners[each] = owner
    return owner


def _is_init(pid: int) -> bool:
    """Whether a process is the first of a namespace of its own: there it has the number 1."""
    try:
        with Path(f"/proc/{pid}/status").open() as file:
            numbers = next((line.split()[1:] for line in file if line.startswith("NSpid:")), [])
    except OSError:  # it ended meanwhile
        return False
    return len(numbers) > 1 and numbers[-1] == "1"


def _difference(previous: Total | None, current: Total) -> Usage | None:
    if previous is None or current.at - previous.at < LEAST_S:
        return None
    window = current.at - previous.at
    nanocores = int(max(0.0, current.seconds - previous.seconds) / window * 1e9)
    return Usage(nanocores, current.memory, int(window * 1000))


def all_processes() -> dict[int, Process]:
    """Return every process of this machine that can be read."""
    processes: dict[int, Process] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123
                text = file.read(1024)
        except OSError:  # it ended meanwhile
            continue
        fields = text[text.rindex(b")") + 2 :].split()
        processes[int(name)] = Process(
            int(fields[1]),
            int(fields[11]) + int(fields[12]),
            int(fields[13]) + int(fields[14]),
            int(fields[19]),
            int(fields[21]) * PAGE,
        )
    return processes


def machine_total(now: float) -> Total:
    """Return what this whole machine has used since boot, and the memory that it could not give to others."""
    with Path("/proc/stat").open() as file:
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, file.readline().split()[1:9])
    memory = {}
    for line in Path("/proc/meminfo").read_text().splitlines()[:8]:
        name, _, rest = line.partition(":")
        memory[name] = int(rest.split()[0]) * 1024
    busy = (user + nice + system + irq + soft + steal) / TICKS
    return Total(now, busy, memory["MemTotal"] - memory["MemAvailable"])


def read(layout: Layout, now: int) -> dict[str, Any]:
    """Return the latest figures of this machine, {} when there are none that still mean something."""
    return read_file(layout.root / NAME, now)


def read_file(file: Path, now: int) -> dict[str, Any]:
    """Return the figures in a file, {} when there are none or they are old at a time (ms)."""
    try:
        figures = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    fresh = isinstance(figures, dict) and abs(now - figures.get("at", 0)) < STALE_S * 1000
    return figures if fresh else {}
