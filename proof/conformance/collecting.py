"""Which tests are marked as showing an item of the reference; they are collected and not run."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from proof.conformance.document import Mark

MARKER = "shows"
# `cases`, `blocks` and `parts` read marks from the ids of rows.
MARKS = re.compile(rf"{MARKER}\(|^@(cases|blocks|parts)\(", re.MULTILINE)
ROOT = Path(__file__).parents[2]


def marks() -> list[Mark]:
    """Return the marks of all tests, in the order of the tests."""
    files = [str(file) for file in sorted(ROOT.glob("tests/**/test_*.py")) if MARKS.search(file.read_text())]
    plugin = _Collected()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        # A file with programs that this machine lacks is skipped by its marks, and collected all the same.
        code = pytest.main(
            ["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir", str(ROOT), *files],
            plugins=[plugin],
        )
    if code:
        raise SystemExit(f"The tests cannot be collected:\n{output.getvalue()}")
    return list(dict.fromkeys(mark for item in plugin.items for mark in of_test(item)))


def of_test(item: pytest.Function) -> Iterator[Mark]:
    """Yield the marks of a test; a row of its table is named where the row itself is marked."""
    path = item.nodeid.partition("::")[0]
    rows = item.callspec.marks if hasattr(item, "callspec") else ()
    for mark in item.iter_markers(MARKER):
        name = item.name if mark in rows else item.originalname
        yield from (Mark(each, f"{path}::{name}") for each in mark.args)


class _Collected:
    """A plugin of pytest that keeps what was collected."""

    def __init__(self) -> None:
        self.items: list[pytest.Function] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # Before others sort them, and leave some out of this run.
        self.items = [item for item in items if isinstance(item, pytest.Function)]
