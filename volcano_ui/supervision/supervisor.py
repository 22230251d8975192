"""Supervision of child processes: they are restarted when they end, and none of them outlives the supervisor.

Each program runs in a session of its own and writes to its own log file, or to the supervisor's output.

* Linux sends a program a signal when its supervisor dies, however that happens (PR_SET_PDEATHSIG).
* Processes that a program leaves behind become children of the supervisor (PR_SET_CHILD_SUBREAPER), which
  reaps those that end and kills the rest when it stops, except those that are to be spared.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from redis import RedisError

from node.shim import tree
from volcano_ui import heartbeat, logs
from volcano_ui.heartbeat import Pulse
from volcano_ui.supervision.forks import Fork, ForkServer, Order

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# Looked up before any fork: a child must not import or allocate between fork and exec.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 10.0
# A program that ran this long, which is longer than any of them takes to start, was well; its next
# failure counts as the first.
WELL_AFTER_S = 5.0
HOUSEKEEPING_S = 5.0
LOOK_S = 1.0
ASK_EVERY_S = 5.0
SILENT_S = 20.0
LONGEST_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Program:
    """What to run, and how to stop it.

    `stage` orders the end: lower stages get SIGTERM first and are awaited, each program for `patience_s`; for an infinite
    one `outwait` has to be called before `stop`. A program with signs of life, or with a probe, is killed and started
    again when these fail for `SILENT_S` seconds. When the supervisor is killed, so are all programs.
    """

    name: str
    command: list[str]
    stage: int = 1
    patience_s: float = 2.0
    descriptors: tuple[int, ...] = ()
    before: Callable[[], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)  # beside the supervisor's
    gives_signs: bool = False  # of life, by `heartbeat`
    umask: int = -1  # -1: the supervisor's
    may_fork: bool = False  # a Python program of ours, which the fork server may start if there is one
    probe: Callable[[], None] | None = None  # without signs of life: raises OSError or RedisError unless it answers


@dataclass
class Child:
    """A program that is running, or about to run again."""

    program: Program
    process: asyncio.subprocess.Process | Fork | None = None
    keeper: asyncio.Task[None] | None = None
    failures: int = 0
    started: float = field(default=0.0)
    pulse: Pulse = field(default_factory=lambda: Pulse(LOOK_S, SILENT_S))
    signs: int = -1  # the end of the pipe that its signs of life come from
    probing: asyncio.Task[None] | None = None
    answered: bool = False  # the probe, since the last look

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self.process.pid if self.process and self.process.returncode is None else None


class Supervisor:
    """Starts programs, restarts those that end, stops all of them. Used from one event loop.

    Without a folder for logs programs write to this process's output, each with its name, which is in `logs.PROGRAM`.
    """

    def __init__(
        self,
        *,
        logs: Path | None,
        cwd: Path,
        environment: dict[str, str],
        say: Callable[[str], None],
        spared: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self._logs = logs
        self._cwd = cwd
        self._environment = environment
        self._say = say
        self._spared = spared
        self._children: dict[str, Child] = {}
        self._stopping = False
        self._starting = 0
        self._housekeeper: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._fork_server: ForkServer | None = None
        if _prctl:
            _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    async def start_fork_server(self) -> None:
        """Start the fork server, from which programs with `may_fork` are forked from here on; on Linux only."""
        if _prctl is None:
            return
        name = "fork-server"
        self._fork_server = ForkServer(
            cwd=self._cwd,
            environment={**self._environment, logs.PROGRAM: name},
            log=self._logs and self._logs / f"{name}.log",
            before_exec=die_with(os.getpid()),
        )
        self._starting += 1
        try:
            await self._fork_server.start()
        finally:
            self._starting -= 1

    async def start(self, program: Program) -> None:
        """Run program and keep it running until `stop`."""
        if self._housekeeper is None:
            self._housekeeper = asyncio.create_task(self._housekeep())
            self._listener = asyncio.create_task(self._watch_signs())
        child = self._children[program.name] = Child(program)
        await self._spawn(child)
        child.keeper = asyncio.create_task(self._keep(child))

    async def call(self, *command: str) -> int:
        """Run a command to its end, its output going to the terminal, and return its exit status."""
        self._starting += 1
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=self._cwd,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with(os.getpid()),
            )
            try:
                return await process.wait()
            finally:
                _kill_group(process.pid)
        finally:
            self._starting -= 1

    async def end(self, programs: Collection[Program], most_s: float = math.inf) -> None:
        """End some programs, stage by stage and waiting at most `most_s` for each, and keep the others running."""
        children = [child for child in self._children.values() if child.program in programs]
        for child in children:
            for task in (child.keeper, child.probing):
                if task:
                    task.cancel()
        for stage in sorted({child.program.stage for child in children}):
            await asyncio.gather(*(self._end(child, most_s) for child in children if child.program.stage == stage))
        for child in children:
            _close_signs(child)
            del self._children[child.program.name]

    async def outwait(self) -> None:
        """End the programs whose patience is infinite, however long that takes; all others go on meanwhile."""
        await self.end([child.program for child in self._endless()])

    def hurry(self) -> None:
        """Send SIGTERM once more to the programs whose patience is infinite."""
        for child in self._endless():
            if child.pid is not None:
                os.kill(child.pid, signal.SIGTERM)

    def _endless(self) -> list[Child]:
        return [child for child in self._children.values() if child.program.patience_s == math.inf]

    async def stop(self) -> None:
        """End every program, stage by stage, and the processes that they left behind, except those to be spared."""
        self._stopping = True
        await self.end([child.program for child in self._children.values()], LONGEST_PATIENCE_S)
        for task in (self._housekeeper, self._listener):
            if task:
                task.cancel()
        if self._fork_server:
            await self._fork_server.stop()
        _kill_orphans(self._spared)

    async def _keep(self, child: Child) -> None:
        while child.process:
            code = await child.process.wait()
            if self._stopping:
                return
            _kill_group(child.process.pid)
            well = time.monotonic() - child.started > WELL_AFTER_S
            child.failures = 1 if well else child.failures + 1
            wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (child.failures - 1))
            self._report(child, f"{self._end_text(child, code)}; starting it again in {wait:g} s")
            await asyncio.sleep(wait)
            await self._spawn(child)

    def _report(self, child: Child, text: str) -> None:
        line = f"✗ {child.program.name} {text}"
        if log := self._log(child.program):
            with log.open("a") as stream:
                stream.write(f"{line}\n")
        self._say(line)

    def _end_text(self, child: Child, code: int) -> str:
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        log = self._log(child.program)
        last = logs.last_message(log) if log else ""
        return f"ended with exit code {code}" + (f" ({last})" if last else "")

    def _log(self, program: Program) -> Path | None:
        return self._logs and self._logs / f"{program.name}.log"

    async def _spawn(self, child: Child) -> None:
        program = child.program
        if program.before:
            program.before()
        child.started = time.monotonic()
        theirs = _open_signs(child)
        environment = {**self._environment, logs.PROGRAM: program.name, **program.environment}
        environment.pop(heartbeat.DESCRIPTOR, None)
        if theirs:
            environment[heartbeat.DESCRIPTOR] = str(theirs[0])
        self._starting += 1
        try:
            log = self._log(program)
            with log.open("ab") if log else contextlib.nullcontext() as output:
                child.process = await self._start_process(child, environment, theirs, output)
        finally:
            self._starting -= 1
            for end in theirs:
                os.close(end)
        if program.probe and child.probing is None:
            child.probing = asyncio.create_task(_probe_forever(child, program.probe))

    async def _start_process(
        self, child: Child, environment: dict[str, str], signs: tuple[int, ...], output: BinaryIO | None
    ) -> asyncio.subprocess.Process | Fork:
        program, descriptors = child.program, (*child.program.descriptors, *signs)
        if self._fork_server and program.may_fork:
            outputs = (output.fileno(),) * 2 if output else ()
            umask = program.umask if program.umask >= 0 else _umask()
            order = Order(program.command, environment, umask, [*(1, 2)[: len(outputs)], *descriptors])
            try:
                return await self._fork_server.fork(order, (*outputs, *descriptors))
            except OSError as error:
                self._report(child, f"could not be forked ({error}); starting it by itself")
        return await asyncio.create_subprocess_exec(
            *program.command,
            cwd=self._cwd,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=descriptors,
            umask=program.umask,
            preexec_fn=die_with(os.getpid()),
        )

    async def _watch_signs(self) -> None:
        """Kill programs that give no sign of life any more; they are started again as if they had ended by themselves."""
        while True:
            await asyncio.sleep(LOOK_S)
            now = time.monotonic()
            for child in self._children.values():
                if child.pulse.look(now, has_beat=_has_signs(child)) and child.pid is not None:
                    self._report(child, f"gave no sign of life for {SILENT_S:g} s; killing it")
                    child.pulse = Pulse(LOOK_S, SILENT_S)
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)

    async def _end(self, child: Child, most_s: float) -> None:
        """Send SIGTERM, wait, then kill the whole process group, so that processes which the program started end too."""
        process = child.process
        # An ended process was reaped, and another one may have its number by now.
        if process is None or process.returncode is not None:
            return
        patience_s = min(child.program.patience_s, most_s)
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), None if patience_s == math.inf else patience_s)
        if process.returncode is None:
            self._say(f"✗ {child.program.name} did not stop within {patience_s:g} s; killed")
        _kill_group(process.pid)
        await process.wait()

    async def _housekeep(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            self._reap_orphans()
            for child in self._children.values():
                if log := self._log(child.program):
                    logs.rotate(log)

    def _reap_orphans(self) -> None:
        """Reap ended processes that were inherited; asyncio waits for its own."""
        ours = {child.pid for child in self._children.values()}
        if self._fork_server:
            ours.add(self._fork_server.pid)
        with contextlib.suppress(ChildProcessError):
            while not self._starting:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None or ended.si_pid in ours:
                    return
                os.waitpid(ended.si_pid, 0)


def die_with(parent: int, orphaned: signal.Signals = signal.SIGKILL) -> Callable[[], None] | None:
    """Return what a child calls before exec: it requests a signal at its parent's death, once for each of its threads."""
    if _prctl is None:
        return None

    def request_signal() -> None:
        _prctl(PR_SET_PDEATHSIG, int(orphaned), 0, 0, 0)
        # The parent may have died before the request was made.
        if os.getppid() != parent:
            os._exit(1)

    return request_signal


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _open_signs(child: Child) -> tuple[int, ...]:
    """Open the pipe for the signs of life of a program about to start; return the program's end of it, if it gives any."""
    _close_signs(child)
    child.pulse = Pulse(LOOK_S, SILENT_S)
    if not child.program.gives_signs:
        return ()
    child.signs, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    return (theirs,)


def _close_signs(child: Child) -> None:
    if child.signs >= 0:
        os.close(child.signs)
        child.signs = -1


def _has_signs(child: Child) -> bool:
    """Return whether there was a sign of life, or an answer to the probe, since the last call."""
    answered, child.answered = child.answered, False
    with contextlib.suppress(BlockingIOError):
        return answered or (child.signs >= 0 and bool(os.read(child.signs, 4096)))
    return answered


async def _probe_forever(child: Child, probe: Callable[[], None]) -> None:
    while True:
        # A program counts as silent only after its first answer, so that first one is looked for more often.
        pause_s = LOOK_S
        with contextlib.suppress(OSError, RedisError):
            await asyncio.to_thread(probe)
            child.answered, pause_s = True, ASK_EVERY_S
        await asyncio.sleep(pause_s)


def _kill_group(group: int) -> None:
    """Kill what is left of a program's process group.

    Without a child of ours in it the group is gone, and another one may have its number by now.
    """
    if _prctl is None or any(_group_of(pid) == group for pid in _child_pids()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _group_of(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


def _kill_orphans(spared: Callable[[], Collection[int]]) -> None:
    """Kill inherited processes until none is left; the children of each are inherited in turn."""
    deadline = time.monotonic() + 1
    while (children := _child_pids()) and time.monotonic() < deadline:
        pids = set(children).difference(spared())  # computed after the listing, so that every child listed is on file
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _child_pids() -> list[int]:
    # asyncio waits for each program in a thread that ends with it.
    return tree.children(os.getpid())
