"""One installation in several systems: `up --only web` and `up --only works` on one PostgreSQL and one Redis."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from proof.harness import services
from proof.harness.halting import halt
from proof.harness.waiting import HANG_S, until
from proof.systems.system import System

WORKS = {"mirror", "beat", "controllers", "jobs", "scheduler"}


class Installation:
    """Starts systems that share what an installation shares; each has a state directory of its own, as a pod has."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._environment: dict[str, Any] = environment
        self.systems: list[System] = []

    def add(self, only: str) -> System:
        """Return another system, not started yet."""
        data = self._folder / f"{only}-{len(self.systems)}"
        self.systems.append(System(data, VOLCANO_UI_ONLY=only, **self._environment))
        return self.systems[-1]

    def working(self) -> list[System]:
        """Return the systems that run mirror, workers and beat."""
        return [system for system in self.systems if is_alive(system) and system.children().keys() >= WORKS]

    def leader(self) -> System:
        """Return the one system that works, as soon as there is one."""
        (found,) = until(self.working, what="a system that works")
        return found

    def stop(self) -> None:
        for system in self.systems:
            thaw(system)
            system.stop()
        for system in self.systems:
            system.assert_gone()


@contextlib.contextmanager
def installation(folder: Path, postgres_url: str, **environment: str) -> Iterator[Installation]:
    """Have an installation; at its end nothing of it may be left."""
    name = "volcano_ui_parts"
    with services.redis_server() as redis, services.postgres_database(postgres_url, name) as database:
        whole = Installation(
            folder,
            DATABASE_URL=database,
            VOLCANO_UI_REDIS_URL=redis,
            VOLCANO_UI_SECRET_KEY="of all parts",
            **environment,
        )
        try:
            yield whole
        finally:
            whole.stop()


def is_alive(system: System) -> bool:
    return system.process is not None and system.process.poll() is None


def kill(system: System) -> None:
    """Kill a system's `up`, and so all of it."""
    system.up.kill()
    system.up.wait(HANG_S)
    system.assert_gone()


def freeze(system: System) -> None:
    """Stop all processes of a system where they are, as a machine does that is put to sleep."""
    for pid in system.tree():
        os.kill(pid, signal.SIGSTOP)


def thaw(system: System) -> None:
    """Let a system go on."""
    if is_alive(system):
        for pid in system.tree():
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def stopped(system: System, part: str) -> Iterator[None]:
    """A block in which one process of a system is stopped. It is replaced if it stands still for as long as the supervisor allows."""
    pid = system.children()[part]
    try:
        halt(pid, system.state)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def health(system: System) -> tuple[int, dict[str, Any]]:
    """Return what a system tells of its health: the status and the parts, without the version."""
    answer = httpx.get(f"{system.base}/healthz", timeout=HANG_S)
    return answer.status_code, {part: state for part, state in answer.json().items() if part != "version"}
