"""A sweep that is being written: its YAML, and its values in each of the three ways to give them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.sweeps import values
from jobs.sweeps.values import Values

SOURCES = ("grid", "table", "csv")
FEWEST_ROWS = 3  # in the table; a button adds more
MORE_ROWS = 5
MAX_TYPED = 50  # rows of the table; longer tables are given as CSV
_TOKEN = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Draft:
    """A sweep as it was typed; source says which of the three kinds of values is used.

    grid has one text of values for each placeholder, cells the rows of the table, csv the CSV text.
    """

    text: str
    token: str = ""
    source: str = "grid"
    grid: Mapping[str, str] = field(default_factory=dict)
    cells: Sequence[Mapping[str, str]] = ()
    csv: str = ""

    @classmethod
    def read(cls, data: Mapping[str, str]) -> Draft:
        """Read a draft from the fields of its form; missing fields are empty."""
        token, source = data.get("token", ""), data.get("source", "")
        count = min(_number(data.get("rows", "")), MAX_TYPED)
        rows: list[dict[str, str]] = [{} for _ in range(count)]
        grid = {}
        for key, value in data.items():
            kind, _, rest = key.partition("-")
            if kind == "grid":
                grid[rest] = value
            elif kind == "cell":
                number, _, name = rest.partition("-")
                if _number(number) < count and number.isdigit():
                    rows[int(number)][name] = value
        return cls(
            text=data.get("text", "").replace("\r\n", "\n"),
            token=token if _TOKEN.fullmatch(token) else "",
            source=source if source in SOURCES else SOURCES[0],
            grid=grid,
            cells=rows,
            csv=data.get("csv", ""),
        )

    def values(self, names: Sequence[str]) -> Values:
        """Return the values for placeholders; raise ValuesError if they are invalid."""
        if self.source == "csv":
            return values.from_csv(self.csv)
        if self.source == "table":
            return values.from_table(names, [[row.get(name, "") for name in names] for row in self.cells])
        return values.from_grid({name: self.grid.get(name, "") for name in names})

    def fields(self) -> Iterator[tuple[str, str, str]]:
        """Yield each value typed into the grid or the table, as (placeholder, name of the form field, value)."""
        for name, value in self.grid.items():
            yield name, f"grid-{name}", value
        for index, row in enumerate(self.cells):
            for name, value in row.items():
                yield name, f"cell-{index}-{name}", value

    def rows(self, more: int = 0) -> Iterator[Mapping[str, str]]:
        """Yield the rows of the form's table, FEWEST_ROWS to MAX_TYPED; `more` adds empty ones."""
        wanted = min(max(len(self.cells), FEWEST_ROWS) + more, MAX_TYPED)
        for index in range(wanted):
            yield self.cells[index] if index < len(self.cells) else {}


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
