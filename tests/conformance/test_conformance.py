"""A page of conformance is made from items and marks that agree."""

import pytest

from proof.conformance import document
from proof.conformance.document import Mark
from proof.conformance.items import SEED, Page, decided, differs, not_done, section
from proof.harness.documents import keep
from tests.tables import cases

TOPICS = {"Scale-down": "differences.md#jobs", "Nodes": "differences.md#cluster"}
EVENTS = {
    "a": "Something | else",
    "b": differs("Evicts", "Scale-down"),
    "c": not_done("Other", "Nobody asks"),
    "d": decided("Another", "Nodes"),
}
PAGE = Page("page.md", "# Page\n", (section("3", "Events", EVENTS),))
OTHER = Page("other.md", "# Other\n", (section("seed 3", "Asked", {"a": "It is asked"}, SEED),))
MARKS = [
    Mark("3/a", "tests/test_x.py::test_a"),
    Mark("3/a", "tests/test_x.py::test_b[1]"),
    Mark("3/b", "tests/test_y.py::test_c"),
]


def test_the_page_says_what_is_done_and_who_shows_it():
    page = document.text(PAGE, MARKS, TOPICS)
    assert (
        "4 items: 1 as described, 1 that differ, 1 that are left out on purpose, 1 that are not done. 3 tests." in page
    )
    assert page.splitlines()[-4:] == [
        "| a | Something \\| else | as Volcano | `tests/test_x.py::test_a`<br>`tests/test_x.py::test_b[1]` |",
        "| b | Evicts | differs: [Scale-down](differences.md#jobs) | `tests/test_y.py::test_c` |",
        "| c | Other | not done: Nobody asks | – |",
        "| d | Another | left out: [Nodes](differences.md#cluster) | – |",
    ]


@cases("marks, topics, problem", {
    "nothing": (MARKS, TOPICS, None),
    "an item without a test": (MARKS[:2], TOPICS, "3/b (Evicts) has no test"),
    "a mark of no item": ([*MARKS, Mark("3/x", "t")], TOPICS, "t shows 3/x, which is no item"),
    "done all the same": ([*MARKS, Mark("3/c", "t")], TOPICS, "3/c (Other) is listed as not done"),
    "done, and left out": ([*MARKS, Mark("3/d", "t")], TOPICS, "3/d (Another) is listed as not done"),
    "a line that is not there": (MARKS, {"Nodes": ""}, "3/b differs as 'Scale-down' says, which is no topic"),
    "a reason that is not there": (MARKS, {"Scale-down": ""}, "3/d is left out as 'Nodes' says, which is no topic"),
})  # fmt: skip
def test_what_does_not_agree_is_a_problem(marks, topics, problem):
    found = document.problems((PAGE,), marks, topics)
    assert len(found) == (problem is not None)
    assert all(each.startswith(problem) for each in found)


def test_a_page_has_its_own_items_alone_and_speaks_of_its_source():
    page = document.text(OTHER, [*MARKS, Mark("seed 3/a", "t")], TOPICS)
    assert (
        "1 items: 1 as described, 0 that differ, 0 that are left out on purpose, 0 that are not done. 1 tests." in page
    )
    assert page.splitlines()[-3:] == [
        "| Item | What the document asks for | Here | Shown by |",
        "|---|---|---|---|",
        "| a | It is asked | as asked | `t` |",
    ]


def test_two_sections_of_one_number_are_a_problem():
    found = document.problems((PAGE, PAGE._replace(file="again.md")), MARKS, TOPICS)
    assert found == ["There are 2 sections 3."]


def test_topics_are_the_first_column_of_every_table():
    text = (
        "# T\n\n## Cron jobs\n\n| Topic | V |\n|---|---|\n| `x` left out | y |\n\n## Jobs\n\n| Topic |\n|---|\n| Z |\n"
    )
    assert document.topics(text) == {"`x` left out": "differences.md#cron-jobs", "Z": "differences.md#jobs"}


def test_a_stale_page_is_said_and_written(tmp_path):
    page = tmp_path / "page.md"
    for stale in (None, "old"):
        if stale:
            page.write_text(stale)
        with pytest.raises(SystemExit, match=r"page\.md is out of date; run make conformance\."):
            keep(page, "new", "make conformance", is_check=True)
    keep(page, "new", "make conformance", is_check=False)
    keep(page, "new", "make conformance", is_check=True)
