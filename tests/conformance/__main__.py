"""`python -m tests.conformance`: write docs/conformance-jobs.md from the items and the tests that show them.

With --check nothing is written, and a document that is stale is an error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conformance import collecting, document
from tests.conformance.reference import SECTIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "conformance-jobs.md"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only fail when the document is out of date")
    is_check = parser.parse_args().check
    topics = document.topics((DOCS / "differences.md").read_text(encoding="utf-8"))
    marks = collecting.marks()
    if problems := document.problems(SECTIONS, marks, topics):
        sys.exit("\n".join(problems))
    wanted = document.text(SECTIONS, marks, topics)
    if not is_check:
        PAGE.write_text(wanted, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted:
        sys.exit("docs/conformance-jobs.md is out of date; run make conformance.")


if __name__ == "__main__":
    main()
