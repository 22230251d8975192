"""`python -m proof.quality`: write docs/quality-scale.md, and fail where something is lacking without a reason.

With --check nothing is written, and a page that is stale is an error.
"""

from __future__ import annotations

import argparse
import sys
import tomllib

import django

from proof.harness.documents import keep


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="only fail when something is lacking, or the page is out of date"
    )
    is_check = parser.parse_args().check
    django.setup()
    from proof.quality import grid
    from proof.quality.page import text

    entries = tomllib.loads((grid.ROOT / "proof/quality/reasons.toml").read_text(encoding="utf-8"))
    reasons = {
        grid.Gap(table, row, column): reason
        for table, rows in entries.items()
        for row, columns in rows.items()
        for column, reason in columns.items()
    }
    tables = grid.tables()
    if problems := grid.problems(grid.gaps(tables), reasons):
        sys.exit("\n".join(problems))
    keep(grid.ROOT / "docs/quality-scale.md", text(tables, reasons), "make scale", is_check=is_check)


if __name__ == "__main__":
    main()
