"""The jobs of a sweep: their names and marks, and the record that is kept of them."""

from __future__ import annotations

import pytest

from jobs.sweeps import placeholders, record, values
from jobs.sweeps.plan import plan
from jobs.sweeps.values import ValuesError
from kube.indexes import HOLDS_SWEEP
from kube.resources import CONFIGMAPS
from tests.jobs.sweeps.texts import TRAIN, job
from tests.tables import cases

GRID = values.from_grid({"lr": "0.1,0.2", "batch": "32,64"})


def planned(text, table=GRID):
    return plan(placeholders.read(text), table)


def test_jobs_are_numbered_with_as_many_digits_as_the_last_one_needs():
    assert planned(TRAIN).jobs == ("train-1", "train-2", "train-3", "train-4")
    table = values.from_table(("lr", "batch"), [["1", "1"]] * 10)
    assert planned(TRAIN, table).jobs[::9] == ("train-01", "train-10")


def test_jobs_are_named_by_their_values_where_the_name_has_placeholders():
    made = planned(TRAIN.replace("name: train", "name: train-{{lr}}-{{batch}}"))
    assert made.name == "train"
    assert made.jobs == ("train-0.1-32", "train-0.1-64", "train-0.2-32", "train-0.2-64")


def test_each_job_says_its_sweep_and_its_values_and_keeps_what_its_author_wrote():
    text = TRAIN.replace("  namespace: default\n", "  labels: {team: a}\n  annotations: {note: '{{lr}}'}\n")
    second = list(planned(text).objects())[1]
    assert second["metadata"] == {
        "name": "train-2",
        "namespace": "default",
        "labels": {"team": "a", "ui.volcano.sh/sweep": "train"},
        "annotations": {"note": "0.1", "value.ui.volcano.sh/lr": "0.1", "value.ui.volcano.sh/batch": "64"},
    }
    container = second["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["command"][2] == "echo lr 0.1, batch 64"


def test_a_column_that_is_not_used_is_told():
    table = values.from_table(("lr", "batch", "seed"), [["1", "2", "3"]])
    assert planned(TRAIN, table).unused == ("seed",)


@cases("text, table, row, column, said", {
    "no placeholder": (job("a: 1"), GRID, 0, "", "The YAML has no placeholder"),
    "missing": (TRAIN, values.from_grid({"lr": "1"}), 0, "batch", "there are no values for batch"),
    "no stem": (job("a: {{lr}}", name="'{{lr}}'"), GRID, 0, "", "named after its jobs"),
    "namespace": (TRAIN.replace("namespace: default", "namespace: {{lr}}"), GRID, 0, "", "in one namespace"),
})  # fmt: skip
def test_what_is_no_sweep_is_told(text, table, row, column, said):
    with pytest.raises(ValuesError) as caught:
        planned(text, table)
    (problem,) = caught.value.problems
    assert (problem.row, problem.column) == (row, column)
    assert said in problem.message


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


@pytest.mark.parametrize("data", [{}, {"values.csv": "a\n1\n", "jobs": "x\ny"}, {"values.csv": '"', "jobs": ""}, None])
def test_what_is_no_record_is_none(data):
    assert record.read({"metadata": {"name": "x.sweep"}, "data": data}) is None


def test_other_config_maps_hold_nothing_of_ours():
    assert CONFIGMAPS.index({"metadata": {"labels": {"ui.volcano.sh/holds": "bread"}}}).phase == ""
