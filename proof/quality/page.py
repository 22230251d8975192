"""The grid as docs/quality-scale.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proof.quality.grid import Gap, Table

HEAD = """# Quality scale

One row for each kind, page, action and reason, and what each has. `make scale` writes this page and fails where something is
lacking for which `proof/quality/reasons.toml` has no reason, or has one that is not needed any more; `make check` asks the same. So whoever adds one
learns what belongs to it.
"""


def text(tables: Iterable[Table], reasons: Mapping[Gap, str]) -> str:
    """Return the page; every gap has a reason."""
    return "\n".join((HEAD, *(_table(table, reasons) for table in tables)))


def _table(table: Table, reasons: Mapping[Gap, str]) -> str:
    names = [column.name for column in table.columns]
    lines = [f"## {table.title}", ""]
    lines += [f"* **{column.name}**: {column.question}" for column in table.columns]
    lines += ["", f"| {' | '.join(['', *names])} |", f"|{'---|' * (len(names) + 1)}"]
    notes = {reason: number for number, reason in enumerate(dict.fromkeys(_reasons_of(table, reasons)), 1)}
    for row in table.rows:
        cells = []
        for name in names:
            reason = reasons.get(Gap(table.title, row, name))
            cells.append("yes" if reason is None else f"no ({notes[reason]})")
        lines.append(f"| `{row}` | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{number}. {reason}" for reason, number in notes.items()), ""])


def _reasons_of(table: Table, reasons: Mapping[Gap, str]) -> Iterable[str]:
    for row in table.rows:
        for column in table.columns:
            if (reason := reasons.get(Gap(table.title, row, column.name))) is not None:
                yield reason
