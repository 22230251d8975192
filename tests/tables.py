"""A test as a table: a row is a line, and its id says in words what it is about."""

from __future__ import annotations

import pytest


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
