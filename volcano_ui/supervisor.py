"""Keeping child processes alive, and ending every one of them.

Each program runs in a session of its own, writes to its own log file, or to where the supervisor writes, and is started again when it
ends by itself. Nothing may outlive the supervisor:

* Linux tells a program when its supervisor dies, however that happens (PR_SET_PDEATHSIG).
* What a program leaves behind becomes a child of the supervisor (PR_SET_CHILD_SUBREAPER), which
  reaps it when it ends and kills it at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from node.shim import tree
from volcano_ui import logs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# Looked up before any fork: a child must not import or allocate between fork and exec.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 10.0
# A program that lived this long, which is longer than any of them takes to start, was well; its next
# failure is its first.
WELL_AFTER_S = 5.0
HOUSEKEEPING_S = 5.0


@dataclass(frozen=True)
class Program:
    """What to run, and how it wants to be stopped.

    `stage` orders the end: lower stages are told to stop and awaited first, each program for
    `patience_s`. `orphaned` is the signal it gets when the supervisor was killed.
    """

    name: str
    command: list[str]
    stage: int = 1
    patience_s: float = 2.0
    orphaned: signal.Signals = signal.SIGKILL
    descriptors: tuple[int, ...] = ()
    before: Callable[[], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)  # beside the supervisor's


@dataclass
class Child:
    """A program that is running, or about to run again."""

    program: Program
    process: asyncio.subprocess.Process | None = None
    keeper: asyncio.Task[None] | None = None
    failures: int = 0
    started: float = field(default=0.0)

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self.process.pid if self.process and self.process.returncode is None else None


class Supervisor:
    """Starts programs, restarts those that end, stops all of them. Used from one event loop.

    Without a folder for logs programs write to where this process does; each is told its name in `logs.PROGRAM`, to say it there.
    """

    def __init__(
        self, *, logs: Path | None, cwd: Path, environment: dict[str, str], say: Callable[[str], None]
    ) -> None:
        self._logs = logs
        self._cwd = cwd
        self._environment = environment
        self._say = say
        self._children: dict[str, Child] = {}
        self._stopping = False
        self._starting = 0
        self._housekeeper: asyncio.Task[None] | None = None
        if _prctl:
            _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    async def start(self, program: Program) -> None:
        """Run program and keep it running until `stop`."""
        if self._housekeeper is None:
            self._housekeeper = asyncio.create_task(self._keep_house())
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
                preexec_fn=_die_with(os.getpid(), signal.SIGKILL),
            )
            try:
                return await process.wait()
            finally:
                _kill_group(process.pid)
        finally:
            self._starting -= 1

    async def end(self, programs: Collection[Program]) -> None:
        """End some programs, stage by stage, and keep the others running."""
        children = [child for child in self._children.values() if child.program in programs]
        for child in children:
            if child.keeper:
                child.keeper.cancel()
        for stage in sorted({child.program.stage for child in children}):
            await asyncio.gather(*(self._end(child) for child in children if child.program.stage == stage))
        for child in children:
            del self._children[child.program.name]

    async def stop(self) -> None:
        """End every program, stage by stage, and whatever they left behind."""
        self._stopping = True
        await self.end([child.program for child in self._children.values()])
        if self._housekeeper:
            self._housekeeper.cancel()
        _kill_orphans()

    async def _keep(self, child: Child) -> None:
        while child.process:
            code = await child.process.wait()
            if self._stopping:
                return
            _kill_group(child.process.pid)
            well = time.monotonic() - child.started > WELL_AFTER_S
            child.failures = 1 if well else child.failures + 1
            wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (child.failures - 1))
            self._report(child, code, wait)
            await asyncio.sleep(wait)
            await self._spawn(child)

    def _report(self, child: Child, code: int, wait: float) -> None:
        line = f"✗ {child.program.name} {self._epitaph(child, code)}; starting it again in {wait:g} s"
        if log := self._log(child.program):
            with log.open("a") as stream:
                stream.write(f"{line}\n")
        self._say(line)

    def _epitaph(self, child: Child, code: int) -> str:
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
        self._starting += 1
        try:
            log = self._log(program)
            with log.open("ab") if log else contextlib.nullcontext() as output:
                child.process = await asyncio.create_subprocess_exec(
                    *program.command,
                    cwd=self._cwd,
                    env={**self._environment, logs.PROGRAM: program.name, **program.environment},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    pass_fds=program.descriptors,
                    preexec_fn=_die_with(os.getpid(), program.orphaned),
                )
        finally:
            self._starting -= 1

    async def _end(self, child: Child) -> None:
        """Ask politely, wait, then kill the whole group: what it started in its group goes as well."""
        process = child.process
        # What has ended was reaped, and its number may be somebody else's by now.
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), child.program.patience_s)
        if process.returncode is None:
            self._say(f"✗ {child.program.name} did not stop within {child.program.patience_s:g} s; killed")
        _kill_group(process.pid)
        await process.wait()

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            self._reap_orphans()
            for child in self._children.values():
                if log := self._log(child.program):
                    logs.rotate(log)

    def _reap_orphans(self) -> None:
        """Take the exit status of ended processes that were inherited; asyncio waits for its own."""
        ours = {child.pid for child in self._children.values()}
        with contextlib.suppress(ChildProcessError):
            while not self._starting:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None or ended.si_pid in ours:
                    return
                os.waitpid(ended.si_pid, 0)


def _die_with(parent: int, orphaned: signal.Signals) -> Callable[[], None] | None:
    """Return what a child does before exec: ask for a signal at its parent's death."""
    if _prctl is None:
        return None

    def ask() -> None:
        _prctl(PR_SET_PDEATHSIG, int(orphaned), 0, 0, 0)
        # The parent may have died before the request was made.
        if os.getppid() != parent:
            os._exit(1)

    return ask


def _kill_group(group: int) -> None:
    """Kill what is left of a program's group.

    Without anybody of ours in it the group is gone, and its number may be somebody else's by now.
    """
    if _prctl is None or any(_group_of(pid) == group for pid in _own_children()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _group_of(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


def _kill_orphans() -> None:
    """Kill inherited processes until none is left; the children of each are inherited in turn."""
    deadline = time.monotonic() + 1
    while (pids := _own_children()) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _own_children() -> list[int]:
    # asyncio waits for each program in a thread that ends with it.
    return tree.children(os.getpid())
