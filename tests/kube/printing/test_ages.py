from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import printing
from kube.printing import ages
from tests.kube.printing.cases import DAY, HOUR, MINUTE, NOW, SECOND, ago
from tests.tables import cases

YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-3 * SECOND, "<invalid>"), (-2 * SECOND, "<invalid>"), (-1999, "0s"), (-1, "0s"), (0, "0s"), (999, "0s"),
        (SECOND, "1s"), (2 * MINUTE - 1, "119s"), (2 * MINUTE, "2m"), (2 * MINUTE + SECOND, "2m1s"),
        (10 * MINUTE - 1, "9m59s"), (10 * MINUTE, "10m"), (10 * MINUTE + 5 * SECOND, "10m"), (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"), (3 * HOUR + MINUTE, "3h1m"), (8 * HOUR - 1, "7h59m"), (8 * HOUR, "8h"), (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"), (2 * DAY + HOUR, "2d1h"), (8 * DAY - 1, "7d23h"), (8 * DAY, "8d"), (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"), (2 * YEAR + DAY, "2y1d"), (8 * YEAR - 1, "7y364d"), (8 * YEAR, "8y"), (20 * YEAR, "20y"),
    ],
)  # fmt: skip
def test_human_duration(ms, text):
    assert printing.human_duration(ms) == text


@given(st.integers())
def test_every_duration_is_short(ms):
    assert 0 < len(printing.human_duration(min(ms, 200 * YEAR))) <= len("<invalid>")


@cases("value, text", {
    "a time": (ago(3 * MINUTE), "3m"),
    "a fraction of a second": ("2026-03-01T11:59:00.500000Z", "59s"),
    "another zone": ("2026-03-01T12:59:00+01:00", "60s"),
    "none": (None, "<unknown>"),
    "empty": ("", "<unknown>"),
    "no time": ("yesterday", "<unknown>"),
    "a number": (7, "<unknown>"),
})  # fmt: skip
def test_age(value, text):
    assert ages.age(value, NOW) == text
