"""docs/track-record.md names what exists, and its numbers are those of its rows."""

import ast
import re
import subprocess
from functools import cache
from itertools import product

import pytest
from django.conf import settings

from proof.simulation import stories

ROOT = settings.BASE_DIR
HEAD, TABLES = (ROOT / "docs/track-record.md").read_text().split("\n## The defects\n")
OUTSIDE = {"use", "public report", "review", "comparison"}


def cells(line):
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


ROWS = [cells(line) for line in re.findall(r"^\| (?!what was wrong).*", TABLES, re.MULTILINE)]
TESTS = sorted(set(re.findall(r"`(tests/[^`]+::[^`]+)`", HEAD + TABLES)))


@cache
def functions(path):
    """Return the names of a module's tests, those of classes with the class."""
    found = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        within = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {within + each.name for each in members if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return found


def test_each_row_is_whole():
    assert len(ROWS) > 400
    assert [row for row in ROWS if len(row) != 5 or not all(row)] == []
    assert [row for row in ROWS if not re.fullmatch(r"`[0-9a-f]{8}`|open", row[3])] == []
    assert [row for row in ROWS if not re.fullmatch(r"nothing|(`tests/\S+`°?|story `\S+`)(, |$)+.*", row[4])] == []
    assert [row for row in ROWS if row[3] == "open" and row[4] != "nothing"] == []
    assert len({row[0] for row in ROWS}) == len(ROWS)


def test_each_test_exists():
    assert [name for name in TESTS if name.partition("::")[2] not in functions(name.partition("::")[0])] == []


def test_each_story_is_named_and_exists():
    """Each story has its planted defect, and each planted defect its story: tests/simulation/test_planted.py."""
    _, _, purpose = HEAD.partition("\n## Put back on purpose\n")
    made_up = re.findall(r"`([a-z0-9-]+)`[,.]", purpose)
    met = re.findall(r"story `([a-z0-9-]+)`", TABLES)
    assert sorted(made_up + met) == stories.names()
    assert f"{len(made_up)} more have defects that nobody made" in purpose


def test_numbers_are_those_of_the_rows():
    mended = [row for row in ROWS if row[3] != "open"]
    again = [row for row in mended if row[4] != "nothing"]
    expected = {
        "defects": len(ROWS),
        "mended": len(mended),
        "found and not mended yet": len(ROWS) - len(mended),
        "mended, and found again by a test or a story": len(again),
        "mended, and found again by nothing": len(mended) - len(again),
        "found from outside of our tests, although they passed": sum(row[2] in OUTSIDE for row in ROWS),
        "put back on purpose by a story of the simulation": len(stories.names()),
    }
    counts = dict(re.findall(r"^\| ([^|]+) \| (\d+) \|$", HEAD, re.MULTILINE))
    assert counts == {name: str(number) for name, number in expected.items()}


def test_table_of_finders_and_kinds_counts_the_rows():
    lines = re.search(r"^\| found by \| (.* \|) all \|\n\|.*\n((?:\|.*\n)+)", HEAD, re.MULTILINE)
    kinds = [*cells(lines[1]), "all"]
    table = [line[2:-2].split(" | ") for line in lines[2].splitlines()]
    counts = {(row[0], kind): int(cell or 0) for row in table for kind, cell in zip(kinds, row[1:], strict=True)}
    finders = [row[0] for row in table]
    assert counts == {
        (finder, kind): sum(finder in (row[2], "all") and kind in (row[1], "all") for row in ROWS)
        for finder, kind in product(finders, kinds)
    }
    assert {row[1] for row in ROWS} == {*kinds} - {"all"}
    assert {row[2] for row in ROWS} == {*finders} - {"all"}
    assert {*finders, *kinds} - {"all"} <= set(re.findall(r"^\| ([a-z ]+) \| [A-Za-z]", HEAD, re.MULTILINE))


def test_each_commit_is_in_the_history():
    named = sorted(set(re.findall(r"`([0-9a-f]{8})`", HEAD + TABLES)))
    log = subprocess.run(["git", "log", "--format=%H"], cwd=ROOT, capture_output=True, text=True, check=False)
    commits = {commit[:8] for commit in log.stdout.split()}
    if "dea57bf3" not in commits:
        pytest.skip("the history does not go back to the first commit")
    assert [name for name in named if name not in commits] == []
