"""Time that goes on only when somebody lets it, and an event loop that lives in it."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

from proof.simulation.parts import strands

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH_US = 1_767_225_600_000_000  # 2026-01-01


class VirtualClock:
    """The clock of a world: `cluster.clock.Clock`. The wall clock may be set, the monotonic one only goes on."""

    def __init__(self) -> None:
        self._elapsed_us = self._latest_us = 0
        self._wall_us = EPOCH_US

    def microseconds(self) -> int:
        return self._wall_us + self._elapsed_us

    def monotonic(self) -> float:
        return self._elapsed_us / 1e6

    def sleep(self, seconds: float) -> None:
        """Let the strand that asks rest: others let the time pass."""
        strands.sleep(seconds)

    def go_on(self, microseconds: int) -> None:
        """Let time pass."""
        self._elapsed_us += microseconds

    def set_wall(self, by_us: int) -> None:
        """Set the wall clock forward or back."""
        self._latest_us = max(self._latest_us, self.microseconds())
        self._wall_us += by_us

    @property
    def is_at_its_latest(self) -> bool:
        """Whether the wall clock shows no time that it has shown before."""
        return self.microseconds() >= self._latest_us


class _Idle(selectors.SelectSelector):
    """Never waits: when the loop would, it has nothing more to do at this moment, and stops."""

    loop: VirtualLoop
    waits_s: float | None = None

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            self.waits_s = timeout
            self.loop.stop()
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a virtual clock. What is given to threads is done at once, in the loop's own."""

    def __init__(self, clock: VirtualClock) -> None:
        self._virtual = clock
        self._idle = _Idle()
        self._idle.loop = self
        self._due: float | None = None
        self._died: BaseException | None = None
        super().__init__(self._idle)

    @property
    def due(self) -> float | None:
        """The monotonic second at which something is to be done; None: at no time."""
        # What others do to it, as a nudge does, is to be handled at once. asyncio does not say what is ready.
        return self.time() if self._ready else self._due  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._virtual.monotonic()

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        asyncio._set_running_loop(None)  # a thread has none, and Django asks
        try:
            future.set_result(func(*args))
        except BaseException as error:
            future.set_exception(error)
            if not isinstance(error, Exception):
                self._died = error
        finally:
            asyncio._set_running_loop(self)
        return future

    def turn(self) -> None:
        """Do all that is to be done at this moment; raise what kills the process."""
        self._idle.waits_s = None
        self.run_forever()
        waits = self._idle.waits_s
        self._due = None if waits is None else self.time() + waits
        if self._died is not None:
            died, self._died = self._died, None
            raise died

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that needs no waiting."""
        task = self.create_task(work)
        self.turn()
        if not task.done():
            task.cancel()
            self.turn()
            raise AssertionError(f"{work} waits for something")
        return task.result()

    def end(self) -> None:
        """End as the process dies: nothing goes on."""
        for task in asyncio.all_tasks(self):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            self.turn()
        self.close()
