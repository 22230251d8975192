"""Sweeps: their placeholders, their values, and the jobs and the record that are made of both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sweeps import placeholders, record, values
from jobs.sweeps.plan import plan
from jobs.sweeps.values import MOST_PROBLEMS, MOST_ROWS, Values, ValuesError
from kube.indexes import HOLDS_SWEEP
from kube.resources import CONFIGMAPS
from kube.yaml.problem import YamlError
from tests.jobs.sweeps.conftest import TRAIN, job
from tests.tables import cases

GRID = values.from_grid({"lr": "0.1,0.2", "batch": "32,64"})
SCALARS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
TWO = Values(("lr", "batch"), (("0.1", "32"), ("0.2", "64")))
CELL = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=12)
PRINTABLE = CELL.filter(lambda cell: cell.strip() and cell.isprintable())
TABLE = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[PRINTABLE] * width), min_size=1, max_size=6))
PLACED = TRAIN.replace("namespace: default", "namespace: {{lr}}")


def planned(text, table=GRID):
    return plan(placeholders.read(text), table)


@cases("text, table, jobs", {
    "as many digits as the last one needs": (TRAIN, GRID, "train-1 train-2 train-3 train-4"),
    "two digits": (TRAIN, values.from_table(("lr", "batch"), [["1", "1"]] * 10),
        " ".join(f"train-{number:02}" for number in range(1, 11))),
    "by their values where the name has placeholders": (
        TRAIN.replace("name: train", "name: train-{{lr}}-{{batch}}"), GRID,
        "train-0.1-32 train-0.1-64 train-0.2-32 train-0.2-64"),
})  # fmt: skip
def test_jobs_are_numbered_or_named(text, table, jobs):
    made = planned(text, table)
    assert (made.name, made.jobs) == ("train", tuple(jobs.split()))


def test_each_job_says_its_sweep_and_its_values_and_keeps_what_its_author_wrote(golden):
    text = TRAIN.replace("  namespace: default\n", "  labels: {team: a}\n  annotations: {note: '{{lr}}'}\n")
    golden("sweep", list(planned(text).objects())[1])
    assert planned(TRAIN, values.from_table(("lr", "batch", "seed"), [["1", "2", "3"]])).unused == ("seed",)


@cases("name, rows, said", {
    "collisions": ("train-{{lr}}", {3: "also that of row 1", 4: "also that of row 2"}, ""),
    "capitals": ("Train-{{batch}}-{{lr}}", {1: "small letters"}, "small letters"),
    "long": (f"{'t' * 60}-{{{{batch}}}}-{{{{lr}}}}", {1: "has 67 characters; 63"}, "63 are allowed"),
})  # fmt: skip
def test_names_that_cannot_be_are_told_by_row(name, rows, said):
    table = values.from_csv("batch,lr\n32,0.1\n64,0.2\n32,0.1\n64,0.2\n") if not said else GRID
    with pytest.raises(ValuesError) as caught:
        planned(TRAIN.replace("name: train", f"name: {name}", 1), table)
    told = {problem.row: problem.message for problem in caught.value.problems}
    assert all(words in told[row] for row, words in rows.items())
    assert len(told) == (len(rows) if not said else 4)


def test_a_record_is_read_as_what_was_written_and_found_by_what_it_holds():
    made = planned(TRAIN)
    written = record.write(made, TRAIN)
    found = record.read(written)
    assert (found.name, found.text, found.values, found.jobs) == ("train", TRAIN, GRID, made.jobs)
    assert found.by_job["train-3"] == 2
    assert CONFIGMAPS.index(written).phase == HOLDS_SWEEP
    for data in ({}, {"values.csv": "a\n1\n", "jobs": "x\ny"}, {"values.csv": '"', "jobs": ""}, None):
        assert record.read({"metadata": {"name": "x.sweep"}, "data": data}) is None
    assert CONFIGMAPS.index({"metadata": {"labels": {"ui.volcano.sh/holds": "bread"}}}).phase == ""


def rendered(line, **values):
    """The value of the field `it` that a line with placeholders sets."""
    return placeholders.read(job(line)).render(values)["spec"]["it"]


@cases("line, value, expected", {
    "a whole scalar is a number": ("it: {{x}}", "3", 3),
    "spaces within the braces": ("it: {{ x }}", "0.5", 0.5),
    "a whole scalar is a truth value": ("it: {{x}}", "true", True),
    "a whole scalar is a text": ("it: {{x}}", "text", "text"),
    "what JSON cannot hold stays text": ("it: {{x}}", ".nan", ".nan"),
    "double quotes make it a text": ('it: "{{x}}"', "3", "3"),
    "single quotes make it a text": ("it: '{{x}}'", "3", "3"),
    "a tag makes it a text": ("it: !!str {{x}}", "3", "3"),
    "within a longer text": ("it: lr-{{x}}", "3", "lr-3"),
    "twice": ("it: '{{x}}{{x}}'", "3", "33"),
    "within a block": ("it: |\n    run {{x}}\n    end", "3", "run 3\nend\n"),
    "a block is a text": ("it: |-\n    {{x}}", "3", "3"),
    "in a list": ("it: [a, {{x}}]", "3", ["a", 3]),
    "in a mapping on one line": ("it: {a: {{x}}}", "3", {"a": 3}),
    "a value that looks like a mapping": ("it: {{x}}", "{a: [1]}", "{a: [1]}"),
    "a value that looks like more lines": ("it: {{x}}", "a\n  b: c", "a\n  b: c"),
    "a value with quotes": ('it: "{{x}}"', 'say "no"', 'say "no"'),
    "a value with a placeholder in it": ("it: '{{x}}'", "# {{x}} &a *a", "# {{x}} &a *a"),
    "a placeholder in a comment is none": ("it: {{x}} # {{y}}", "3", 3),
    "others": ("it: '{{x y}} {{1}} {{}} { {x}} {{x}}'", "3", "{{x y}} {{1}} {{}} { {x}} 3"),
})  # fmt: skip
def test_a_value_is_put_in(line, value, expected):
    found = rendered(line, x=value)
    assert (found, type(found)) == (expected, type(expected))


def shape(node):
    """What is left of an object when its scalars are taken away."""
    if isinstance(node, dict):
        return {key: shape(value) for key, value in node.items()}
    return [shape(value) for value in node] if isinstance(node, list) else None


@given(SCALARS, SCALARS)
def test_no_value_changes_the_structure(lr, batch):
    template = placeholders.read(TRAIN)
    assert template.names == ("lr", "batch")
    job, again = (template.render({"lr": lr, "batch": batch}) for _ in range(2))
    assert job == again, "the template stays as it is"
    assert shape(job) == shape(template.document.object)
    container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["command"][2] == f"echo lr {lr}, batch {batch}"
    assert container["env"] == [{"name": "LR", "value": lr}]


@cases("text, line, said", {
    "in a key": (job("{{x}}: 1"), 6, "The key {{x}} holds a placeholder"),
    "in a key below": (job("a: {b-{{x}}: 1}"), 6, "The key b-{{x}} holds a placeholder"),
    "a quote that is not closed": (job('it: "{{x}}'), 6, "never closed"),
    "a tab": (job("it:\t{{x}}", "\tb: 1"), 7, "tab"),
    "fences": ("```yaml\n" + TRAIN + "```\n", 1, "Markdown"),
    "two documents": (TRAIN + "---\n" + TRAIN, 23, "holds 2 objects: Job train"),
    "a character that is ours": (job("it: \ue000"), 6, "U+E000"),
    "no job": ("kind: {{x}}\n", 1, "apiVersion is missing"),
})  # fmt: skip
def test_what_is_wrong_is_told_with_its_line_and_in_its_own_spelling(text, line, said):
    with pytest.raises(YamlError) as caught:
        placeholders.read(text)
    found = [problem for problem in caught.value.problems if said in problem.message]
    assert [problem.line for problem in found] == [line], caught.value.problems
    assert not any(mark in str(caught.value) for mark in "\ue001\ue002")


def test_the_stem_of_a_name_is_what_is_no_placeholder():
    stems = {
        "train": "train", "train-{{lr}}": "train", "{{lr}}-train": "train", "a-{{lr}}-b.{{batch}}": "a-b",
        "{{lr}}{{batch}}": "", "'{{lr}}'": "",
    }  # fmt: skip
    assert {name: placeholders.read(job("a: {{lr}}", name=name)).stem() for name in stems} == stems


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


@given(TABLE)
def test_what_is_written_as_csv_is_read_as_the_same(rows):
    table = Values(tuple(f"n{number}" for number in range(len(rows[0]))), tuple(rows))
    assert values.from_csv(table.csv()) == table


def csv(text):
    return lambda: values.from_csv(text)


def grid(text):
    return lambda: values.from_grid({"a": text, "b": "1"})


def of(text, table=GRID):
    return lambda: planned(text, table)


@cases("make, row, line, column, said", {
    "nothing": (csv(""), 0, 0, "", "There are no values"),
    "a header alone": (csv("lr,batch\n\n"), 0, 0, "", "There are no rows"),
    "a column without a name": (csv("lr,\n1,2\n"), 0, 0, "", "Column 2 has no name"),
    "a column twice": (csv("lr,lr\n1,2\n"), 0, 0, "lr", "lr stands twice"),
    "a name": (csv("learning rate\n1\n"), 0, 0, "learning rate", "cannot be that of a placeholder"),
    "a missing column": (csv("a,b\n1,2\n3\n"), 2, 3, "", "Row 2 has 1 values for 2 columns (a, b)"),
    "a column too many": (csv("a,b\n1,2\n\n3,4,5\n"), 2, 4, "", "Row 2 has 3 values"),
    "a missing value": (csv("a,b\n1, \n"), 1, 2, "b", "the value of b is missing"),
    "an open quote": (csv('a\n1\n"2\n3\n'), 0, 3, "", "Line 3 cannot be read: a quote is opened"),
    "a quote inside": (csv('a\n"1" 2\n'), 0, 2, "", "something follows a closing quote"),
    "a character": (csv("a\n1\x00\n"), 1, 2, "a", "cannot be printed"),
    "too long": (csv(f"a\n{'1' * 5000}\n"), 1, 2, "a", "has 5,000 characters; 4,096 are allowed"),
    "much too long": (csv(f'a\n"{"1" * 200_000}\n'), 0, 2, "", "a value is too long"),
    "an empty grid": (grid(""), 0, 0, "a", "a has no values"), "a blank grid": (grid(" ,\n"), 0, 0, "a", "a has no values"),
    "a value of a grid twice": (grid("1,2,1"), 0, 0, "a", "a has the value 1 twice"),
    "an open quote in a grid": (grid('"1'), 0, 0, "a", "a: Line 1"),
    "a table": (lambda: values.from_table(("a", "b"), [["1", "2"], ["", "3"]]), 2, 0, "a", ""),
    "a job without placeholders": (of(job("a: 1")), 0, 0, "", "The YAML has no placeholder"),
    "a placeholder without values": (of(TRAIN, values.from_grid({"lr": "1"})), 0, 0, "batch", "there are no values for batch"),
    "a name without a stem": (of(job("a: {{lr}}", name="'{{lr}}'")), 0, 0, "", "named after its jobs"),
    "several namespaces": (of(PLACED), 0, 0, "", "in one namespace"),
})  # fmt: skip
def test_what_is_wrong_with_values_is_told_by_row_line_and_column(make, row, line, column, said):
    with pytest.raises(ValuesError) as caught:
        make()
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


def test_a_grid_is_every_combination_unless_there_are_too_many():
    table = values.from_grid({"lr": "0.1, 0.2\n", "name": '"x, y",z,'})
    assert table.rows == (("0.1", "x, y"), ("0.1", "z"), ("0.2", "x, y"), ("0.2", "z"))
    with pytest.raises(ValuesError, match="1,000,000,000,000,000,000 jobs"):
        values.from_grid({name: ",".join(map(str, range(1000))) for name in "abcdef"})


def test_empty_rows_of_a_table_are_left_out_and_no_more_problems_are_told_than_one_can_read():
    assert values.from_table(("a", "b"), [["", ""], ["1", " 2"], ["", ""]]).rows == (("1", "2"),)
    with pytest.raises(ValuesError) as caught:
        values.from_csv("a,b\n" + "1\n" * 500)
    assert len(caught.value.problems) == MOST_PROBLEMS
