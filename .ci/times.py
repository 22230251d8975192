"""What the tests of a run took, from what tests/record.py has written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

PHASES = ("setup", "call", "teardown")


@dataclass
class Record:
    """The tests of one pytest, its exit status, and the seed of its random order and numbers.

    Without an exit status it did not get to its end.
    """

    tests: list[dict[str, Any]] = field(default_factory=list)
    exit: int | None = None
    seed: int | None = None

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [test for test in self.tests if test["outcome"] in ("failed", "error")]

    def counts(self) -> tuple[int, int, int]:
        """Return how many passed, failed and were skipped."""
        passed, skipped = (sum(test["outcome"] == each for test in self.tests) for each in ("passed", "skipped"))
        return passed, len(self.failed), skipped


def read(file: Path) -> Record:
    """Return what a pytest has recorded; nothing where it has not begun."""
    record = Record()
    for line in file.read_text().splitlines() if file.exists() else ():
        entry = json.loads(line)
        if "exit" in entry:
            record.exit, record.seed = entry["exit"], entry["seed"]
        else:
            record.tests.append(entry)
    return record


class Entry(NamedTuple):
    """A row of times.md."""

    seconds: float
    what: str
    of: str
    remark: str


def slowest(tests: Iterable[dict[str, Any]]) -> list[Entry]:
    """Return the phases of tests, and those of each fixture taken together, slowest first."""
    entries = []
    fixtures: dict[tuple[str, str, str], tuple[float, int, str]] = {}
    for test in tests:
        entries += [Entry(test[phase], phase, test["test"], "") for phase in PHASES if test[phase]]
        for name, scope, phase, seconds in test["fixtures"]:
            total, times, first = fixtures.get((name, scope, phase), (0.0, 0, test["test"]))
            fixtures[name, scope, phase] = (total + seconds, times + 1, first)
    for (name, scope, phase), (total, times, first) in fixtures.items():
        remark = f"{scope}, {times} in all, the first with {first}"
        entries.append(Entry(total, f"{phase} of fixture", name, remark))
    return sorted(entries, reverse=True)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown that can be read as it is, with fractions to one place."""
    cells = [list(heads), *([cell(value) for value in row] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(heads))]
    widths[-1] = len(heads[-1])  # nothing stands behind it
    cells.insert(1, ["-" * width for width in widths])
    lines = (" | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(f"| {line} |" for line in lines)


def cell(value: object) -> str:
    return (f"{value:.1f}" if isinstance(value, float) else str(value)).replace("|", "\\|")
