"""A test as a table: a row is a line, and its id says in words what it is about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

GOLDEN = Path(__file__).parent / "golden"


def cases(names, rows):
    """Run a test once for each row: `@cases("spec, field", {"an unknown queue | 3.1/queue": ({"queue": "x"}, "spec.queue")})`.

    names: the parameters, as pytest's `parametrize` takes them in a text. Rows of several are tuples; of one, the value itself.
    After a `|` an id names items of the reference that the row shows (`pytest.mark.shows`, see `proof.conformance`).
    """
    several, parameters = "," in names, []
    for words, row in rows.items():
        name, _, items = words.partition(" | ")
        marks = [pytest.mark.shows(*items.split(" + "))] if items else []
        parameters.append(pytest.param(*(row if several else (row,)), id=name, marks=marks))
    return pytest.mark.parametrize(names, parameters)


class Line(NamedTuple):
    """A line of a text: in words what it shows, if it says so, what is given, and what comes of it."""

    words: str
    given: str
    expected: str


class Part(NamedTuple):
    """A part of a text of `tests/golden`."""

    title: str
    lines: list[Line]

    def check(self, answer):
        """Compare what comes of each line: a text as it stands, anything else as YAML; `''` is a text without anything."""
        wrong = []
        for words, given, expected in self.lines:
            found = answer(given)
            if found != (expected if found and isinstance(found, str) else yaml.safe_load(expected)):
                wrong.append(f"{words} | {given} → {found!r}")
        assert not wrong, "\n".join(wrong)


def parts(name, *titles):
    """Run a test once for each part of `tests/golden/{name}.txt`, or those of some titles, as its parameter `part`.

    A part begins with `== its title`, which may name items after a `|` as the rows of `cases` do. Its lines are
    `what it shows | what is given → what comes of it`. A line that is indented goes on with the one before it.
    """
    found = {words: part for words, part in _parts(name).items() if not titles or part.title in titles}
    assert len(found) >= len(titles), f"{name} has no part of one of {titles}"
    return cases("part", found)


def lines(name, title):
    """Return the lines of a part."""
    return next(part.lines for part in _parts(name).values() if part.title == title)


def _parts(name):
    found = {}
    for text in re.split(r"^== ", (GOLDEN / f"{name}.txt").read_text(), flags=re.MULTILINE)[1:]:
        words, *rest = re.sub(r"\n +", " ", text.strip()).splitlines()
        assert words not in found, f"two parts of {name} are called {words}"
        found[words] = Part(words.partition(" | ")[0], [_line(each) for each in rest])
    return found


def _line(text):
    before, _, expected = text.partition(" → ")
    words, _, given = before.rpartition(" | ")
    return Line(words, given, expected)


def at(value, path):
    """Return what is at a path: names, in brackets where they have dots, numbers of items, and `*` for all items."""
    steps = [found[0] or found[1] for found in re.findall(r"\[([^\]]+)\]|([^.\[]+)", path)]
    for number, step in enumerate(steps):
        if step == "*":
            rest = "".join(f"[{each}]" for each in steps[number + 1 :])
            return [at(each, rest) for each in value or ()]
        if isinstance(value, list):
            value = value[int(step)]
        else:
            value = (value or {}).get(step)
    return value
