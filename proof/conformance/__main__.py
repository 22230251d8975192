"""`python -m proof.conformance`: write docs/conformance-*.md from the items and the tests that show them.

With --check nothing is written, and a page that is stale is an error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from proof.conformance import collecting, document
from proof.conformance.reference import PAGES
from proof.harness.documents import keep

DOCS = Path(__file__).parents[2] / "docs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only fail when a page is out of date")
    is_check = parser.parse_args().check
    topics = document.topics((DOCS / "differences.md").read_text(encoding="utf-8"))
    marks = collecting.marks()
    if problems := document.problems(PAGES, marks, topics):
        sys.exit("\n".join(problems))
    for page in PAGES:
        keep(DOCS / page.file, document.text(page, marks, topics), "make conformance", is_check=is_check)


if __name__ == "__main__":
    main()
