from __future__ import annotations

import html5lib
import pytest

from dashboard.parts import svg, usage_bar


@pytest.mark.parametrize(
    ("used", "capacity", "width", "level"),
    [(0, 8, "0%", "normal"), (4, 8, "50%", "normal"), (7, 8, "87.5%", "high"), (8, 8, "100%", "high"),
     (9, 8, "100%", "over"), (5, 0, "0%", "normal"), (-1, 8, "0%", "normal")],
)  # fmt: skip
def test_a_bar_shows_used_of_capacity(used, capacity, width, level):
    assert f'data-level="{level}" width="{width}"' in svg.bar(used, capacity, "words")


def test_a_label_cannot_break_out():
    drawn = svg.bar(1, 2, '"><script>alert(1)</script>')
    tree = html5lib.parseFragment(drawn, namespaceHTMLElements=False)
    assert not [e for e in tree.iter() if e.tag == "script"]


def test_shares_lie_side_by_side_and_marks_cross_them_where_they_are():
    drawn = svg.stack([svg.Share(3, "green", "ready"), svg.Share(0, "amber", "odd"), svg.Share(1, "red", "not ready")])
    assert 'x="0%" width="75%"' in drawn
    assert 'x="75%" width="25%"' in drawn
    assert 'aria-label="3 ready, 1 not ready"' in drawn
    drawn = svg.stack([svg.Share(5, "blue", "used")], 10, "used", marks=[2, 99])
    assert 'class="bar-mark" x1="20%" x2="20%"' in drawn
    assert 'x1="100%"' in drawn


@pytest.mark.parametrize("values", [[], [0], [0, 0], [1, 2, 3]])
def test_a_sparkline_is_drawn_for_any_values(values):
    assert svg.sparkline(values, "x").startswith("<svg")


def test_use_is_said_without_the_name_that_stands_beside_it():
    rows = usage_bar.table({"cpu": 1500, "nvidia.com/gpu": 1}, {"cpu": 8000, "memory": 2**34, "nvidia.com/gpu": 8})
    assert [(row.title, row.text) for row in rows] == [
        ("CPU", "1.5 of 8"), ("Memory", "0 bytes of 16 GiB"), ("nvidia.com/gpu", "1 of 8"),
    ]  # fmt: skip
