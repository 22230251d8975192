"""A machine that is simulated: what its processes do on the virtual clock, and a real agent that runs pods there.

The agent's rules, its writes and its files are the product's. Simulated is what
`node.agent.shims`, the shims and the kernel do: processes start, run, get
signals and end, and the disk remembers each attempt that was claimed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cluster import clock
from node.agent.agent import Agent
from node.agent.checks import Check, CheckResult
from node.agent.machine import Machine
from node.attempt import NEVER_RAN, Attempt, AttemptState, Run, unknown
from node.listen import Subscription
from node.paths import Layout
from node.pods.local_cluster import LocalCluster
from node.rules.programs import Program
from node.shim.isolation import landlock
from node.shim.order import Order, Wall

SECOND = 1_000_000
CONFIRMED_US = 50_000  # a start is confirmed within this time
LAUNCH_US = 5_000  # what a command takes at most that does nothing
RETENTION_US = 60 * SECOND  # how long the disk remembers the attempts of a pod that is gone
NO_SPAWNER = "The process that starts containers ended at once; is the machine out of memory or processes?"
CLAIMED = "This attempt is running or has run."
WITHDRAWN = "No such file or directory: the attempt's directory"
REFUSALS = ("No space left on device: the attempt's directory", "The process that starts containers was killed.")
_SLEEP = re.compile(r"\bsleep\s+(inf|[0-9.]+)")
_EXIT = re.compile(r"\bexit\s+(\d+)")


class Doing(NamedTuple):
    """What a command does when it is left alone: for how long, None for ever, and the code at its end."""

    lasts_us: int | None
    code: int


def doing(argv: list[str], random: random.Random) -> Doing:
    """Return what a command says that it does: sleep, exit, true, false; any other runs up to half a minute."""
    text = " ".join(argv)
    naps, exits = _SLEEP.findall(text), _EXIT.findall(text)
    launch = random.randint(0, LAUNCH_US)
    if "inf" in naps:
        return Doing(None, 0)
    if not (naps or exits or text in ("true", "false")):
        return Doing(random.randint(1, 30) * SECOND + launch, 0)
    code = int(exits[-1]) if exits else int(text == "false")
    return Doing(round(sum(map(float, naps)) * SECOND) + launch, code)


class Key(NamedTuple):
    """A container of a pod."""

    uid: str
    container: str


@dataclass(slots=True)
class Process:
    """A claimed attempt: a shim with the container's process, later what the disk remembers of it."""

    key: Key
    number: int
    streak: int
    starts_at: int  # all of these in microseconds of the monotonic clock
    doing: Doing
    ends_at: int | None = None
    kill_at: int | None = None
    code: int = 0
    signal: int = 0
    started_us: int = 0
    stopped: str = ""
    stop_grace_us: int = 0
    is_alive: bool = True
    outcome: Attempt | None = None

    @property
    def due(self) -> int | None:
        """When something happens to it next if nobody else does anything."""
        if not self.is_alive:
            return None
        if not self.started_us:
            return self.starts_at
        return min((at for at in (self.ends_at, self.kill_at) if at is not None), default=None)

    def read(self) -> Attempt:
        """Return what a reader of the disk finds. The first who finds that the shim is gone writes that down."""
        if self.outcome is None and self.is_alive:
            state = AttemptState.RUNNING if self.started_us else AttemptState.ORDERED
            return Attempt(self.number, state, self.streak, self.started_us)
        if self.outcome is None:
            lost = unknown(self.number, self.streak, self.started_us, clock.microseconds())
            self.outcome = lost._replace(stopped=self.stopped)
        return self.outcome

    def end(self, code: int, signal: int = 0) -> None:
        """The process ends and its shim writes down how."""
        self.is_alive = False
        reason = "Error" if code else "Completed"
        self.outcome = Attempt(
            self.number,
            AttemptState.ENDED,
            self.streak,
            self.started_us,
            clock.microseconds(),
            code,
            signal,
            reason,
            "",
            self.stopped,
        )


@dataclass(slots=True)
class Ordered:
    """An order that was handed over and not carried out yet; with a refusal it never is."""

    key: Key
    order: Order
    by: SimulatedRuntime
    due: int
    refusal: str

    @property
    def number(self) -> int:
        """The number of the attempt."""
        return int(self.order.directory.rpartition("/")[2])


class Processes:
    """The processes of one machine, on the virtual clock; they outlive the agent.

    `refuse` is the share of orders that are not carried out, `ignore` that of
    processes that go on after SIGTERM, `claim_late` that of orders whose claim
    comes with the start: an agent that begins meanwhile cannot see them.
    """

    def __init__(
        self, random: random.Random, *, refuse: float = 0.02, ignore: float = 0.2, claim_late: float = 0.0
    ) -> None:
        self.random = random
        self.refuse = refuse
        self.ignore = ignore
        self.claim_late = claim_late
        self.starts: list[tuple[str, str, int]] = []
        self.runtimes: list[SimulatedRuntime] = []  # those of living agents: one, if nothing is wrong
        self._disk: dict[str, dict[str, dict[int, Process]]] = {}
        self._ordered: list[Ordered] = []
        self._living: list[Process] = []

    def due(self) -> float | None:
        """Return the monotonic second at which something happens next; None: never."""
        at = min(self._dues(), default=None)
        return None if at is None else at / SECOND

    def advance(self) -> bool:
        """Let everything that is due happen; tell whether anything did."""
        now, has_happened = _now(), False
        while (at := min(self._dues(), default=None)) is not None and at <= now:
            self._happen(at)
            has_happened = True
        return has_happened

    def kill(self, uid: str, container: str) -> bool:
        """Have a container's process die of SIGKILL; tell whether there was one."""
        process = self._running(Key(uid, container))
        if process is None:
            return False
        self._end(process, 137, 9)
        return True

    def kill_shim(self, uid: str, container: str) -> bool:
        """Have a container end so that nobody sees how; tell whether there was one."""
        process = self._running(Key(uid, container))
        if process is None:
            return False
        self._lose(process)
        return True

    def reboot(self) -> None:
        """All processes are gone, and orders with them; the disk is as it was."""
        ordered, self._ordered = self._ordered, []
        for each in ordered:
            each.by.hear(each.key, REFUSALS[-1])
        for process in list(self._living):
            self._lose(process)

    @property
    def running(self) -> list[tuple[str, str]]:
        """Return the pod and container of every process, sorted; one that ran twice would be here twice."""
        return sorted((process.key.uid, process.key.container) for process in self._living if process.started_us)

    def living(self, uid: str) -> list[str]:
        """Return the containers of a pod that have a process, or a shim that is about to start one."""
        return sorted(process.key.container for process in self._living if process.key.uid == uid)

    def uids(self) -> list[str]:
        """Return the pods of which the disk remembers anything, in order."""
        return sorted(self._disk)

    def attempts(self, uid: str) -> Mapping[str, Mapping[int, Process]]:
        """Return what the disk remembers of a pod, by container and number."""
        return self._disk.get(uid, {})

    def order(self, key: Key, order: Order, by: SimulatedRuntime) -> int:
        """Take an order of an agent; return the number of its attempt. OSError when nobody can."""
        refusal = self.random.choice(("", *REFUSALS)) if self._chance(self.refuse) else None
        if refusal == "":
            raise OSError(NO_SPAWNER)
        ordered = Ordered(key, order, by, _now() + self.random.randint(0, CONFIRMED_US), refusal or "")
        self._ordered.append(ordered)
        self._disk.setdefault(key.uid, {})  # the agent has made the directories
        if not refusal and not self._chance(self.claim_late):
            self._claim(ordered)
        return ordered.number

    def withdraw(self, uid: str) -> None:
        """Take back the orders of a pod's attempts that are not claimed yet."""
        for ordered in self._ordered:
            if ordered.key.uid == uid:
                ordered.refusal = ordered.refusal or WITHDRAWN

    def stop(self, key: Key, reason: str, grace_s: float) -> None:
        """Send SIGTERM to a container's shim, with the wish that it ends for a reason within a grace."""
        for process in self._living:
            if process.key == key:
                process.stopped = process.stopped or reason
                grace_us = round(grace_s * SECOND)
                if process.started_us:
                    self._terminate(process, grace_us)
                else:
                    process.stop_grace_us = grace_us + 1  # obeyed when there is something to end

    def clean(self, living: Collection[str], running: Collection[str]) -> None:
        """Forget the pods that are gone and of which nothing happened for a while."""
        before = clock.microseconds() - RETENTION_US
        active = {*(each.key.uid for each in self._ordered), *(each.key.uid for each in self._living)}
        for uid in self.uids():
            ends = [one.read().finished_us for each in self._disk[uid].values() for one in each.values()]
            busy = uid in active
            if uid not in living and uid not in running and not busy and max(ends, default=0) < before:
                del self._disk[uid]

    def _dues(self) -> list[int]:
        ordered = [each.due for each in self._ordered]
        return ordered + [at for process in self._living if (at := process.due) is not None]

    def _happen(self, at: int) -> None:
        """Let the first thing happen that is due at a moment."""
        for ordered in self._ordered:
            if ordered.due == at:
                self._carry_out(ordered)
                return
        process = next(each for each in self._living if each.due == at)
        if not process.started_us:
            self._start(process)
        elif at == process.kill_at:
            self._end(process, 137, 9)
        else:
            self._end(process, process.code, process.signal)

    def _carry_out(self, ordered: Ordered) -> None:
        """Claim what was not claimed yet, or tell of the refusal; the agent looks what there is then."""
        if not ordered.refusal:
            self._claim(ordered)
        if ordered.refusal:
            self._ordered.remove(ordered)
            ordered.by.hear(ordered.key, ordered.refusal)

    def _claim(self, ordered: Ordered) -> None:
        """Claim the attempt of an order; whoever is second is refused when the order is due."""
        key, order = ordered.key, ordered.order
        numbers = self._disk[key.uid].setdefault(key.container, {})
        if ordered.number in numbers:
            ordered.refusal = CLAIMED
            return
        self._ordered.remove(ordered)
        command = doing(order.argv, self.random)
        numbers[ordered.number] = Process(key, ordered.number, order.streak, ordered.due, command)
        self._living.append(numbers[ordered.number])

    def _start(self, process: Process) -> None:
        self.starts.append((*process.key, process.number))
        process.started_us = clock.microseconds()
        lasts, process.code = process.doing
        process.ends_at = None if lasts is None else _now() + lasts
        if process.stop_grace_us:
            self._terminate(process, process.stop_grace_us - 1)
        self._tell(process.key)

    def _terminate(self, process: Process, grace_us: int) -> None:
        """Have a process obey SIGTERM within the grace, or ignore it; asked again, it is only killed sooner."""
        if process.kill_at is None and not self._chance(self.ignore):
            obeys_at = _now() + self.random.randint(0, grace_us)
            if process.ends_at is None or obeys_at < process.ends_at:
                process.ends_at, process.code, process.signal = obeys_at, 143, 15
        kill_at = _now() + grace_us
        process.kill_at = kill_at if process.kill_at is None else min(kill_at, process.kill_at)

    def _end(self, process: Process, code: int, signal: int) -> None:
        process.end(code, signal)
        self._living.remove(process)
        self._tell(process.key)

    def _lose(self, process: Process) -> None:
        process.is_alive = False
        self._living.remove(process)
        self._tell(process.key)

    def _running(self, key: Key) -> Process | None:
        return next((one for one in self._living if one.key == key and one.started_us), None)

    def _tell(self, key: Key) -> None:
        for runtime in self.runtimes:
            runtime.hear(key)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share


def _now() -> int:
    return round(clock.monotonic() * SECOND)


def _run_of(processes: Mapping[int, Process]) -> Run:
    """Return the latest two attempts of a container."""
    return Run(*[processes[number].read() for number in sorted(processes, reverse=True)[:2]])


class SimulatedRuntime:
    """What one agent knows of the machine's processes: the `Runtime` of `node.agent.runtime`."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self.processes.runtimes.append(self)
        self._runs: dict[str, dict[str, Run]] = {}
        self._watched: dict[Key, int] = {}  # the attempt of each container that may run
        self._stop_at: dict[Key, float | None] = {}  # of those whose shim is known
        self._refusals: dict[Key, str] = {}
        self._checked: list[CheckResult] = []  # the probes that were asked: all that are succeed
        self._events: dict[Key, str] = {}  # with the text of a refusal

    @property
    def has_events(self) -> bool:
        """Whether something has become of a process that was not looked at."""
        return bool(self._events)

    def hear(self, key: Key, refusal: str = "") -> None:
        """Note that something has become of a process."""
        if key in self._watched:
            self._events[key] = refusal

    def detach(self) -> None:
        """Hear nothing any more: the agent is dead."""
        if self in self.processes.runtimes:
            self.processes.runtimes.remove(self)

    def uids(self) -> list[str]:
        return self.processes.uids()

    def adopt(self, uid: str) -> bool:
        self.processes.withdraw(uid)
        for container, processes in self.processes.attempts(uid).items():
            self._runs.setdefault(uid, {})[container] = _run_of(processes)
            latest = processes[max(processes)]
            if latest.is_alive:
                self._watch(latest)
        return self.active(uid)

    def runs(self, uid: str) -> Mapping[str, Run]:
        return self._runs.get(uid, {})

    def active(self, uid: str) -> bool:
        return any(run.current is not None and run.current.active for run in self.runs(uid).values())

    def start(self, uid: str, container: str, order: Order) -> None:
        key = Key(uid, container)
        number = self._watched[key] = self.processes.order(key, order, self)
        self._stop_at.pop(key, None)
        before = self.runs(uid).get(container, NEVER_RAN).current
        ordered = Attempt(number, AttemptState.ORDERED, order.streak)
        self._runs.setdefault(uid, {})[container] = Run(ordered, before)
        self._refusals.pop(key, None)

    def refused(self, uid: str, container: str) -> str:
        return self._refusals.pop(Key(uid, container), "")

    def check(self, check: Check) -> None:
        self._checked.append(CheckResult(check, True))

    def check_results(self) -> list[CheckResult]:
        found, self._checked = self._checked, []
        return found

    def stop(self, uid: str, reason: str, grace_s: float, container: str = "") -> None:
        at = clock.monotonic() + grace_s
        for name in [container] if container else self.runs(uid):
            key = Key(uid, name)
            before = self._stop_at.get(key)
            if key in self._stop_at and (before is None or at < before):
                self._stop_at[key] = at
                self.processes.stop(key, reason, grace_s)

    def settle(self) -> set[str]:
        events, self._events = self._events, {}
        for key, refusal in events.items():
            self._refresh(key, refusal)
        return {key.uid for key in events}

    @property
    def unsettled(self) -> bool:
        return False  # whatever happens is heard

    def forget(self, uid: str) -> None:
        self._runs.pop(uid, None)

    def clean(self, living: Collection[str], running: Collection[str]) -> None:
        self.processes.clean(living, running)

    def _refresh(self, key: Key, refusal: str) -> None:
        run = self._runs[key.uid][key.container]
        process = self.processes.attempts(key.uid).get(key.container, {}).get(self._watched[key])
        if process is None:
            self._drop(key)
            self._refusals[key] = refusal or REFUSALS[-1]
            self._runs[key.uid][key.container] = _run_of(self.processes.attempts(key.uid).get(key.container, {}))
            return
        self._runs[key.uid][key.container] = Run(process.read(), run.last)
        if process.is_alive:
            self._watch(process)
        else:
            self._drop(key)

    def _watch(self, process: Process) -> None:
        self._watched[process.key] = process.number
        self._stop_at.setdefault(process.key, None)

    def _drop(self, key: Key) -> None:
        self._watched.pop(key, None)
        self._stop_at.pop(key, None)


class SimulatedMachine:
    """The `Readings` of a machine that always has enough of everything."""

    def capacity(self) -> dict[str, int]:
        return {"cpu": 8000, "memory": 32 << 30, "ephemeral-storage": 100 << 30}

    def memory_problem(self) -> str:
        return ""

    def disk_problem(self) -> str:
        return ""

    def programs(self) -> list[Program]:
        return list(Program)

    def info(self) -> dict[str, str]:
        return {"operatingSystem": "linux", "architecture": "amd64", "containerRuntimeVersion": "process://1.0"}


class Deaf:
    """A subscription that is never heard: the store is asked every half second."""

    is_alive = False

    def renew(self) -> bool:
        return False

    def drain(self) -> None:
        pass

    def close(self) -> None:
        pass


class SimulatedAgent:
    """A real agent whose machine is simulated. Its directory takes what is prepared for pods.

    `begin`, then `work` when it has news, when its subscription has some (after
    `listener.hear()`), or when `patience` is over.
    """

    def __init__(
        self, processes: Processes, directory: Path, name: str = "vm", subscription: Subscription | None = None
    ) -> None:
        self.runtime = SimulatedRuntime(processes)
        cluster = LocalCluster(subscription or Deaf())
        machine = Machine(SimulatedMachine(), name, Wall(landlock=landlock.LEAST_ABI), (), cluster)
        self.agent = Agent(Layout(directory), machine, self.runtime, cluster)
        self.listener = cluster.listener
        self.begin = self.agent.begin
        self.work = self.agent.work
        self.patience = self.agent.patience

    @property
    def has_events(self) -> bool:
        """Whether a process has started or ended and the agent has not looked at it."""
        return self.runtime.has_events

    def abandon(self) -> None:
        """The agent dies by SIGKILL: nothing is closed in order, processes go on."""
        self.runtime.detach()
        self.listener.close()
