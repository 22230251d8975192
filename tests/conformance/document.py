"""The page docs/conformance-jobs.md, and what is wrong with the items and marks that it is made from."""

from __future__ import annotations

import re
from typing import NamedTuple

HEAD = """\
# Conformance of jobs

What Volcano's Job is to the people who use it, item by item: fields, phases, events, actions, admission, plugins.
The numbers are the sections of the reference that this project was built from; it describes Volcano of August 2026.
Where we do otherwise, the third column leads to the line that says how. The last one names the tests that show it.

`make conformance` writes this page from `tests/conformance/reference/` and from the markers of the tests.

"""
AS_VOLCANO = "as Volcano"
_ROW = re.compile(r"\| ([^|]+) \|")


class Mark(NamedTuple):
    """A test that is marked as showing an item."""

    item: str
    test: str  # path::name


def topics(differences):
    """Return the topics of docs/differences.md, each with the link to its table."""
    found, anchor, is_body = {}, "", False
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


def problems(sections, marks, topics):
    """Say what is wrong: items that nothing shows, marks of no item, topics that are no line."""
    items = _items(sections)
    shown = {mark.item for mark in marks}
    found = [f"{mark.test} shows {mark.item}, which is no item." for mark in marks if mark.item not in items]
    for name, item in items.items():
        if not item.missing and name not in shown:
            found.append(
                f"{name} ({item.title}) has no test; mark one with @pytest.mark.shows, or say why it is not done."
            )
        if item.missing and name in shown:
            found.append(f"{name} ({item.title}) is listed as not done, and a test shows it.")
        if item.differs and item.differs not in topics:
            found.append(
                f"{name} differs as {item.differs!r} says, which is no topic of docs/differences.md."
            )
    return found


def text(sections, marks, topics):
    """Return the page."""
    tests = {}
    for mark in marks:
        tests.setdefault(mark.item, []).append(mark.test)
    items = _items(sections).values()
    numbers = (
        f"{len(items)} items: {sum(not (each.differs or each.missing) for each in items)} as in Volcano, "
        f"{sum(bool(each.differs) for each in items)} that differ, "
        f"{sum(bool(each.missing) for each in items)} that are not done. {len({mark.test for mark in marks})} tests.\n"
    )
    return HEAD + numbers + "".join(_section(each, tests, topics) for each in sections)


def _items(sections):
    return {name: item for section in sections for name, item in section.ids().items()}


def _section(section, tests, topics):
    lines = [
        f"\n## {section.number} {section.title}\n",
        "| Item | What Volcano does | Here | Shown by |",
        "|---|---|---|---|",
    ]
    for name, item in section.ids().items():
        key = name.partition("/")[2]
        shown = "<br>".join(f"`{_escaped(test)}`" for test in tests.get(name, ()))
        lines.append(f"| {_escaped(key)} | {_escaped(item.title)} | {_here(item, topics)} | {shown or '–'} |")
    return "\n".join(lines) + "\n"


def _here(item, topics):
    if item.missing:
        return f"not done: {_escaped(item.missing)}"
    if item.differs:
        return f"differs: [{item.differs}]({topics[item.differs]})"
    return AS_VOLCANO


def _escaped(text):
    return text.replace("|", "\\|")
