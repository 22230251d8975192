"""What happens inside one step of a process: others come between, it dies, the database refuses."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import OperationalError, connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.story import Ask, Run

WRITING = ("INSERT", "UPDATE", "DELETE")
ERRORS = {"full": "database or disk is full", "locked": "database is locked"}


class Killed(BaseException):
    """The process is dead: nothing that it would have done is done."""


class Step:
    """One step of a process, statement by statement."""

    def __init__(self, move: Run | Ask, between: Callable[[Run | Ask], None]) -> None:
        self.move = move
        self.left = {"outside": move.at, "reads": move.at, "writes": move.at}
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
        if self._between is not None and _is_outside() and self._is_it("outside"):
            between, self._between = self._between, None
            between(self.move)
        return execute(sql, params, many, context)

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
        self._between = between

    @contextmanager
    def take(self, move: Run | Ask) -> Iterator[None]:
        """Let happen inside the block what a move says."""
        step = Step(move, self._between)
        self.taken.append(step)
        # Only its own statements count: those of who comes between are not its.
        wrappers, connection.execute_wrappers = connection.execute_wrappers, []
        if move.between or move.fails or move.dies in ("reads", "writes"):
            connection.execute_wrappers = [step]
        try:
            yield
        finally:
            self.taken.pop()
            connection.execute_wrappers = wrappers

    def takes(self, process: str) -> bool:
        """Whether a process is in the middle of a step."""
        return any(getattr(step.move, "process", "server") == process for step in self.taken)

    def committed(self, touched: frozenset[str], revision: int) -> None:
        """Note that the step has committed: a listener of the store, before those who tell others."""
        if self.taken and self.taken[-1].move.dies == "committed":
            raise Killed
