"""Pages of docs/ that programs write."""

from __future__ import annotations

import sys
from pathlib import Path


def keep(page: Path, wanted: str, command: str, *, is_check: bool) -> None:
    """Write a page, or only exit with the command that writes it where it is not as it should be."""
    if not is_check:
        page.write_text(wanted, encoding="utf-8")
    elif not page.exists() or page.read_text(encoding="utf-8") != wanted:
        sys.exit(f"{page.parent.name}/{page.name} is out of date; run {command}.")
