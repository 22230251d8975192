"""The outcomes of a sweep's jobs: filtering them, and laying them out as a grid of two values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.lifecycle.phases import DELETED
from jobs.sweeps.record import Record

PENDING = "Pending"
SPARSEST = 4  # most cells of a grid for each job; above that, a list is better


@dataclass(frozen=True, slots=True)
class Grid:
    """Jobs laid out by two columns: their names, their values down and across, and the sweep's row of each cell."""

    down: str
    across: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The phase of the job of each row of a sweep; Deleted if the job no longer exists."""

    record: Record
    phases: tuple[str, ...]

    @classmethod
    def of(cls, record: Record, phases: Mapping[str, str]) -> Outcomes:
        """Return a sweep's outcomes from the phases of its jobs by name; a job whose phase is still "" is Pending."""
        return cls(record, tuple((phases[job] or PENDING) if job in phases else DELETED for job in record.jobs))

    def chosen(self, values: Mapping[str, str], text: str = "") -> list[int]:
        """Return the rows with these values whose job's name contains text; "" matches all."""
        table = self.record.values
        wanted = [(table.names.index(name), value) for name, value in values.items()]
        return [
            row
            for row, cells in enumerate(table.rows)
            if all(cells[column] == value for column, value in wanted) and text in self.record.jobs[row]
        ]

    def counts(self, rows: Sequence[int]) -> Mapping[str, int]:
        """Return how many of the rows' jobs are in each phase."""
        return Counter(self.phases[row] for row in rows)


def distinct(record: Record, rows: Sequence[int]) -> dict[str, tuple[str, ...]]:
    """Return the distinct values of rows by column name, in order of appearance."""
    table = record.values
    return {
        name: tuple(dict.fromkeys(table.rows[row][column] for row in rows)) for column, name in enumerate(table.names)
    }


def grid(record: Record, rows: Sequence[int]) -> Grid | None:
    """Return the grid of rows; None unless exactly two columns vary, each pair is one job's, and it is not too sparse.

    The column with fewer values goes across.
    """
    found = distinct(record, rows)
    varying = [name for name, choices in found.items() if len(choices) > 1]
    if len(varying) != 2:
        return None
    down, across = sorted(varying, key=lambda name: -len(found[name]))
    table = record.values
    first, second = table.names.index(down), table.names.index(across)
    cells = {(table.rows[row][first], table.rows[row][second]): row for row in rows}
    if len(cells) < len(rows) or len(found[down]) * len(found[across]) > SPARSEST * len(rows):
        return None
    return Grid(down, across, found[down], found[across], cells)
