"""The pages docs/conformance-*.md, and what is wrong with the items and marks that they are made from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from proof.conformance.items import Item, Page, Section

HEAD = """\
Where we do otherwise, the third column leads to the line that says how. The last one names the tests that show it.

`make conformance` writes this page from `proof/conformance/reference/` and from the markers of the tests.

"""
_ROW = re.compile(r"\| ([^|]+) \|")


class Mark(NamedTuple):
    """A test that is marked as showing an item."""

    item: str
    test: str  # path::name


def topics(differences: str) -> dict[str, str]:
    """Return the topics of docs/differences.md, each with the link to its table."""
    found: dict[str, str] = {}
    anchor, is_body = "", False
    for line in differences.splitlines():
        if line.startswith("## "):
            anchor = line.removeprefix("## ").lower().replace(" ", "-")
        if line.startswith("|---"):
            is_body = True
        elif not line.startswith("|"):
            is_body = False
        elif is_body and (row := _ROW.match(line)):
            found.setdefault(row[1], f"differences.md#{anchor}")
    return found


def problems(pages: Sequence[Page], marks: Sequence[Mark], topics: Mapping[str, str]) -> list[str]:
    """Say what is wrong: sections of one number, items that nothing shows, marks of no item, topics that are no line."""
    items = {name: item for page in pages for name, item in page.ids().items()}
    covered = {mark.item for mark in marks}
    counted = Counter(section.number for page in pages for section in page.sections)
    found = [f"There are {count} sections {number}." for number, count in counted.items() if count > 1]
    found += [f"{mark.test} shows {mark.item}, which is no item." for mark in marks if mark.item not in items]
    for name, item in items.items():
        is_left_out = item.missing or item.decided
        if not is_left_out and name not in covered:
            found.append(
                f"{name} ({item.title}) has no test; mark one with @pytest.mark.shows, or say why it is not done."
            )
        if is_left_out and name in covered:
            found.append(f"{name} ({item.title}) is listed as not done, and a test shows it.")
        if item.differs and item.differs not in topics:
            found.append(f"{name} differs as {item.differs!r} says, which is no topic of docs/differences.md.")
        if item.decided and item.decided not in topics:
            found.append(f"{name} is left out as {item.decided!r} says, which is no topic of docs/differences.md.")
    return found


def text(page: Page, marks: Sequence[Mark], topics: Mapping[str, str]) -> str:
    """Return the text of a page."""
    items = page.ids()
    tests: dict[str, list[str]] = {}
    for mark in marks:
        if mark.item in items:
            tests.setdefault(mark.item, []).append(mark.test)
    numbers = (
        f"{len(items)} items: {sum(not any(each[1:]) for each in items.values())} as described, "
        f"{sum(bool(each.differs) for each in items.values())} that differ, "
        f"{sum(bool(each.decided) for each in items.values())} that are left out on purpose, "
        f"{sum(bool(each.missing) for each in items.values())} that are not done. "
        f"{len({test for some in tests.values() for test in some})} tests.\n"
    )
    return page.head + HEAD + numbers + "".join(_section(each, tests, topics) for each in page.sections)


def _section(section: Section, tests: Mapping[str, Sequence[str]], topics: Mapping[str, str]) -> str:
    column, default = section.wording
    lines = [f"\n## {section.number} {section.title}\n", f"| Item | {column} | Here | Shown by |", "|---|---|---|---|"]
    for name, item in section.ids().items():
        key = name.partition("/")[2]
        cell = "<br>".join(f"`{_escaped(test)}`" for test in tests.get(name, ()))
        lines.append(f"| {_escaped(key)} | {_escaped(item.title)} | {_here(item, default, topics)} | {cell or '–'} |")
    return "\n".join(lines) + "\n"


def _here(item: Item, default: str, topics: Mapping[str, str]) -> str:
    if item.missing:
        return f"not done: {_escaped(item.missing)}"
    if item.decided:
        return f"left out: [{item.decided}]({topics[item.decided]})"
    if item.differs:
        return f"differs: [{item.differs}]({topics[item.differs]})"
    return default


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
