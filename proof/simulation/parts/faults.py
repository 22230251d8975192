"""What happens inside one step of a process: others come between, it dies, the database refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connection

from proof.harness.answers import Killed
from proof.simulation.story import Ask, Run

WRITING = ("INSERT", "UPDATE", "DELETE")
ERRORS = {"full": "database or disk is full", "locked": "database is locked"}


__all__ = ["Killed", "Step", "Steps"]


class Step:
    """One step of a process, statement by statement."""

    def __init__(self, move: Run | Ask, between: Callable[[Run | Ask], None]) -> None:
        self.move = move
        self.left = dict.fromkeys(("outside", "reads", "writes", "asks", "answered"), move.at)
        self._between = between if move.between else None
        self._fails = move.fails

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Run a statement, unless it is the one with which something happens."""
        kind = "writes" if sql.startswith(WRITING) else "reads" if sql.startswith("SELECT") else "controls"
        if self.move.dies == kind and self._is_it(kind):
            raise Killed
        if self._fails and kind == "writes" and self._is_it(kind):
            text = ERRORS[self._fails]
            self._fails = ""  # the next attempt may succeed
            raise OperationalError(text)
        self._let_others()
        return execute(sql, params, many, context)

    def meet(self, kind: str) -> None:
        """Have happen what happens at a request that it "asks", or when one was "answered"."""
        if self.move.dies == kind and self._is_it(kind):
            raise Killed
        if kind == "asks":
            self._let_others()

    def _let_others(self) -> None:
        if self._between is not None and _is_outside() and self._is_it("outside"):
            between, self._between = self._between, None
            between(self.move)

    def _is_it(self, kind: str) -> bool:
        if kind not in self.left:
            return False
        self.left[kind] -= 1
        return self.left[kind] < 0


def _is_outside() -> bool:
    """Whether no transaction is under way, also none that only reads."""
    return not connection.connection.in_transaction


class Steps:
    """The steps that are being taken: of several the first waits for the second, and so on."""

    def __init__(self, between: Callable[[Run | Ask], None]) -> None:
        self.taken: list[Step] = []
        self._is_apart = False  # the API server does something for who takes the step
        self._between = between

    @contextmanager
    def take(self, move: Run | Ask) -> Iterator[None]:
        """Let happen inside the block what a move says."""
        step = Step(move, self._between)
        self.taken.append(step)
        apart, self._is_apart = self._is_apart, False
        # Only its own statements count: those of who comes between are not its.
        wrappers, connection.execute_wrappers = connection.execute_wrappers, []
        if move.between or move.fails or move.dies in ("reads", "writes"):
            connection.execute_wrappers = [step]
        try:
            yield
        finally:
            self.taken.pop()
            self._is_apart = apart
            connection.execute_wrappers = wrappers

    def asks(self) -> None:
        """Note that who takes a step asks the API server now."""
        if self.taken:
            self.taken[-1].meet("asks")

    def answered(self) -> None:
        """Note that it was answered: the request is done, and nobody has heard it yet."""
        if self.taken:
            self.taken[-1].meet("answered")

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Let the API server do something: its statements, and what it commits, are not those of who asks."""
        wrappers, connection.execute_wrappers = connection.execute_wrappers, []
        apart, self._is_apart = self._is_apart, True
        try:
            yield
        finally:
            self._is_apart = apart
            connection.execute_wrappers = wrappers

    def takes(self, process: str) -> bool:
        """Whether a process is in the middle of a step."""
        return any(getattr(step.move, "process", "server") == process for step in self.taken)

    def committed(self, touched: frozenset[str], revision: int) -> None:
        """Note that the step has committed: a listener of the store, before those who tell others."""
        if self.taken and not self._is_apart and self.taken[-1].move.dies == "committed":
            raise Killed
