"""The values of a sweep: tables, grids and CSV, and what is said of those that are wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sweeps import values
from jobs.sweeps.values import MOST_PROBLEMS, MOST_ROWS, Values, ValuesError
from tests.tables import cases

TWO = Values(("lr", "batch"), (("0.1", "32"), ("0.2", "64")))


@cases("text, expected", {
    "plain": ("lr,batch\n0.1,32\n0.2,64\n", TWO),
    "from a spreadsheet": ("\ufefflr,batch\r\n0.1,32\r\n0.2,64", TWO),
    "blank lines and spaces": ("\n lr , batch\n\n0.1, 32\n ,\n0.2, 64\n\n", TWO),
    "semicolons": ("lr;batch\n0.1;32\n0.2;64\n", TWO),
    "tabs": ("lr\tbatch\n0.1\t32\n0.2\t64\n", TWO),
    "quotes": ('a,b\n"x, ""y""","1\n2"\n', Values(("a", "b"), (('x, "y"', "1\n2"),))),
})  # fmt: skip
def test_csv_is_read(text, expected):
    assert values.from_csv(text) == expected


CELL = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=12)
TABLE = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.tuples(*[CELL.filter(lambda c: c.strip() and c.isprintable())] * width), min_size=1, max_size=6
    )
)


@given(TABLE)
def test_what_is_written_as_csv_is_read_as_the_same(rows):
    table = Values(tuple(f"n{number}" for number in range(len(rows[0]))), tuple(rows))
    assert values.from_csv(table.csv()) == table


@cases("text, row, line, column, said", {
    "nothing": ("", 0, 0, "", "There are no values"),
    "a header alone": ("lr,batch\n\n", 0, 0, "", "There are no rows"),
    "a column without a name": ("lr,\n1,2\n", 0, 0, "", "Column 2 has no name"),
    "a column twice": ("lr,lr\n1,2\n", 0, 0, "lr", "lr stands twice"),
    "a name": ("learning rate\n1\n", 0, 0, "learning rate", "cannot be that of a placeholder"),
    "a missing column": ("a,b\n1,2\n3\n", 2, 3, "", "Row 2 has 1 values for 2 columns (a, b)"),
    "a column too many": ("a,b\n1,2\n\n3,4,5\n", 2, 4, "", "Row 2 has 3 values"),
    "a missing value": ("a,b\n1, \n", 1, 2, "b", "the value of b is missing"),
    "an open quote": ('a\n1\n"2\n3\n', 0, 3, "", "Line 3 cannot be read: a quote is opened"),
    "a quote inside": ('a\n"1" 2\n', 0, 2, "", "something follows a closing quote"),
    "a character": ("a\n1\x00\n", 1, 2, "a", "cannot be printed"),
    "too long": (f"a\n{'1' * 5000}\n", 1, 2, "a", "has 5,000 characters; 4,096 are allowed"),
    "much too long": (f'a\n"{"1" * 200_000}\n', 0, 2, "", "a value is too long"),
})  # fmt: skip
def test_csv_that_is_wrong_is_told_by_row_and_column(text, row, line, column, said):
    with pytest.raises(ValuesError) as caught:
        values.from_csv(text)
    (problem,) = caught.value.problems
    assert (problem.row, problem.line, problem.column) == (row, line, column)
    assert said in problem.message


@cases("make", {
    "csv": lambda number: values.from_csv("a\n" + "1\n" * number),
    "table": lambda number: values.from_table(("a",), [["1"]] * number),
    "grid": lambda number: values.from_grid({"a": ",".join(map(str, range(number)))}),
})  # fmt: skip
def test_a_sweep_has_so_many_rows_and_not_one_more(make):
    assert len(make(MOST_ROWS).rows) == MOST_ROWS
    with pytest.raises(ValuesError, match="a sweep has at most 10,000"):
        make(MOST_ROWS + 1)


def test_a_product_that_is_too_large_is_not_made():
    choices = {name: ",".join(map(str, range(1000))) for name in "abcdef"}
    with pytest.raises(ValuesError, match="1,000,000,000,000,000,000 jobs"):
        values.from_grid(choices)


def test_a_grid_is_every_combination():
    table = values.from_grid({"lr": "0.1, 0.2\n", "name": '"x, y",z,'})
    assert table.rows == (("0.1", "x, y"), ("0.1", "z"), ("0.2", "x, y"), ("0.2", "z"))


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "a has no values"), (" ,\n", "a has no values"), ("1,2,1", "a has the value 1 twice"), ('"1', "a: Line 1")],
)
def test_a_grid_that_is_wrong_names_its_placeholder(text, said):
    with pytest.raises(ValuesError, match=said) as caught:
        values.from_grid({"a": text, "b": "1"})
    assert [problem.column for problem in caught.value.problems] == ["a"]


def test_empty_rows_of_a_table_are_left_out_and_half_empty_ones_told():
    assert values.from_table(("a", "b"), [["", ""], ["1", " 2"], ["", ""]]).rows == (("1", "2"),)
    with pytest.raises(ValuesError) as caught:
        values.from_table(("a", "b"), [["1", "2"], ["", "3"]])
    (problem,) = caught.value.problems
    assert (problem.row, problem.column) == (2, "a")


def test_no_more_problems_are_told_than_one_can_read():
    with pytest.raises(ValuesError) as caught:
        values.from_csv("a,b\n" + "1\n" * 500)
    assert len(caught.value.problems) == MOST_PROBLEMS
