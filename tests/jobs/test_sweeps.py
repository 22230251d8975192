"""Sweeps: their placeholders, their values, the jobs and the record that are made of both, and their pages."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from cluster import access
from cluster.models import AuditEntry
from cluster.store import Create, Delete, store
from jobs.pages.sweeps import submission
from jobs.sweeps import placeholders, record, values
from jobs.sweeps.draft import Draft
from jobs.sweeps.plan import plan
from jobs.sweeps.values import MAX_PROBLEMS, MAX_ROWS, Values, ValuesError
from kube.indexes import HOLDS_SWEEP
from kube.resources import CONFIGMAPS, JOBS, NODES
from kube.yaml.problem import YamlError
from tests.dashboard.pages.conftest import Page, page, reader
from tests.jobs.made import end, runner, settle
from tests.scheduler import world as scheduling
from tests.tables import cases
from tests.verify import render

TRAIN = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
  namespace: default
spec:
  minAvailable: 1
  queue: default
  tasks:
  - name: main
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: busybox
          command: ["sh", "-c", "echo lr {{lr}}, batch {{ batch }}"]
          env:
          - name: LR
            value: "{{lr}}"
"""
GRID = values.from_grid({"lr": "0.1,0.2", "batch": "32,64"})
SCALARS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
TWO = Values(("lr", "batch"), (("0.1", "32"), ("0.2", "64")))
CELL = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=12)
PRINTABLE = CELL.filter(lambda cell: cell.strip() and cell.isprintable())
TABLE = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[PRINTABLE] * width), min_size=1, max_size=6))
PLACED = TRAIN.replace("namespace: default", "namespace: {{lr}}")
NEW, LIST, DETAIL = "/sweeps/-/new/", "/sweeps/", "/sweeps/default/train/"
TOPIC, HEAD = "sweeps:detail?name=train&namespace=default", "sweeps:head?name=train&namespace=default"
TOKEN = "0123456789abcdef"
SENT = {"source": "grid", "grid-lr": "0.1, 0.2", "grid-batch": "32, 64, 128"}
BEYOND = "lr,batch\n" + "".join(f"1,{number}\n" for number in range(1, 60)) + "1,two\n"
OF_BATCH = TRAIN.replace("replicas: 1", "replicas: {{batch}}")
MUCH = "lr,batch\n" + f"1,{'2' * 4000}\n" * 300
MANY = TRAIN.replace("{{ batch }}", "and {{ batch }}")
ASKING = TRAIN.replace("replicas: 1", "replicas: {{lr}}").replace(
    "          env:", "          resources: {requests: {cpu: '{{batch}}'}}\n          env:")  # fmt: skip
BIG = "This can never start: a pod needs 9 CPU, the largest node that it may use has 8 CPU (large)."


def job(*lines, name="train"):
    """A job whose spec has the given lines besides; what they say need not be a job that would be accepted."""
    head = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata:\n  name: {name}\nspec:\n"
    return head + "".join(f"  {line}\n" for line in (*lines, "queue: default"))


def made(browser, text=TRAIN, csv="", **grid):
    source = "csv" if csv else "grid"
    draft = Draft(text=text, source=source, csv=csv, grid=grid or {"lr": "0.1, 0.2", "batch": "32, 64, 128"})
    return submission.submit(access.for_user(browser.user), draft)


def stored_names():
    """The names of what records sweeps, and how many jobs are stored."""
    return [stored.name for stored in store.find(CONFIGMAPS, phase="sweep")], len(store.find(JOBS))


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


@cases("name, rows, message", {
    "collisions": ("train-{{lr}}", {3: "also that of row 1", 4: "also that of row 2"}, ""),
    "capitals": ("Train-{{batch}}-{{lr}}", {1: "small letters"}, "small letters"),
    "long": (f"{'t' * 60}-{{{{batch}}}}-{{{{lr}}}}", {1: "has 67 characters; 63"}, "63 are allowed"),
})  # fmt: skip
def test_names_that_cannot_be_are_told_by_row(name, rows, message):
    table = values.from_csv("batch,lr\n32,0.1\n64,0.2\n32,0.1\n64,0.2\n") if not message else GRID
    with pytest.raises(ValuesError) as caught:
        planned(TRAIN.replace("name: train", f"name: {name}", 1), table)
    messages = {problem.row: problem.message for problem in caught.value.problems}
    assert all(words in messages[row] for row, words in rows.items())
    assert len(messages) == (len(rows) if not message else 4)


def test_a_record_is_read_as_what_was_written_and_found_by_what_it_holds():
    made = planned(TRAIN)
    written = record.write(made, TRAIN)
    found = record.read(written)
    assert (found.name, found.text, found.values, found.jobs) == ("train", TRAIN, GRID, made.jobs)
    assert CONFIGMAPS.index(written).phase == HOLDS_SWEEP
    for data in ({}, {"values.csv": "a\n1\n", "jobs": "x\ny"}, {"values.csv": '"', "jobs": ""}, None):
        assert record.read({"metadata": {"name": "x.sweep"}, "data": data}) is None
    assert CONFIGMAPS.index({"metadata": {"labels": {"ui.volcano.sh/holds": "bread"}}}).phase == ""


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
    found = placeholders.read(job(line)).render({"x": value})["spec"]["it"]
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


@cases("text, line, message", {
    "in a key": (job("{{x}}: 1"), 6, "The key {{x}} holds a placeholder"),
    "in a key below": (job("a: {b-{{x}}: 1}"), 6, "The key b-{{x}} holds a placeholder"),
    "a quote that is not closed": (job('it: "{{x}}'), 6, "never closed"),
    "a tab": (job("it:\t{{x}}", "\tb: 1"), 7, "tab"),
    "fences": ("```yaml\n" + TRAIN + "```\n", 1, "Markdown"),
    "two documents": (TRAIN + "---\n" + TRAIN, 23, "holds 2 objects: Job train"),
    "a character that is ours": (job("it: \ue000"), 6, "U+E000"),
    "no job": ("kind: {{x}}\n", 1, "apiVersion is missing"),
})  # fmt: skip
def test_what_is_wrong_is_told_with_its_line_and_in_its_own_spelling(text, line, message):
    with pytest.raises(YamlError) as caught:
        placeholders.read(text)
    found = [problem for problem in caught.value.problems if message in problem.message]
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


@cases("make, row, line, column, message", {
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
def test_what_is_wrong_with_values_is_told_by_row_line_and_column(make, row, line, column, message):
    with pytest.raises(ValuesError) as caught:
        make()
    (problem,) = caught.value.problems
    assert (problem.row, problem.line, problem.column) == (row, line, column)
    assert message in problem.message


@cases("make", {
    "csv": lambda number: values.from_csv("a\n" + "1\n" * number),
    "table": lambda number: values.from_table(("a",), [["1"]] * number),
    "grid": lambda number: values.from_grid({"a": ",".join(map(str, range(number)))}),
})  # fmt: skip
def test_a_sweep_has_so_many_rows_and_not_one_more(make):
    assert len(make(MAX_ROWS).rows) == MAX_ROWS
    with pytest.raises(ValuesError, match="a sweep has at most 10,000"):
        make(MAX_ROWS + 1)


def test_a_grid_is_every_combination_unless_there_are_too_many():
    table = values.from_grid({"lr": "0.1, 0.2\n", "name": '"x, y",z,'})
    assert table.rows == (("0.1", "x, y"), ("0.1", "z"), ("0.2", "x, y"), ("0.2", "z"))
    with pytest.raises(ValuesError, match="1,000,000,000,000,000,000 jobs"):
        values.from_grid({name: ",".join(map(str, range(1000))) for name in "abcdef"})


def test_empty_rows_of_a_table_are_left_out_and_no_more_problems_are_told_than_one_can_read():
    assert values.from_table(("a", "b"), [["", ""], ["1", " 2"], ["", ""]]).rows == (("1", "2"),)
    with pytest.raises(ValuesError) as caught:
        values.from_csv("a,b\n" + "1\n" * 500)
    assert len(caught.value.problems) == MAX_PROBLEMS


# ---- the page on which a sweep is written
def send(browser, text=TRAIN, do="submit", **fields):
    return browser.post(NEW, {"text": text, "token": TOKEN, "do": do, **(fields or SENT)})


def preview_text(answer):
    found = re.search(r'<section class="panel" id="sweep-preview".*?</section>', answer.content.decode(), re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", found[0])).split())


def test_a_sweep_is_made_once_and_leads_to_its_outcomes(sam):
    for _ in range(2):
        answer = send(sam)
        assert (answer.status_code, answer["Location"]) == (302, DETAIL)
    assert stored_names() == (["train.sweep"], 6)
    first = store.get(JOBS, "default", "train-1").object
    assert first["metadata"]["annotations"]["value.ui.volcano.sh/batch"] == "32"
    assert first["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] == [{"name": "LR", "value": "0.1"}]
    rows = AuditEntry.objects.filter(actor="sam").order_by("pk").values_list("resource", "name", "count")
    assert list(rows)[:2] == [("configmaps", "train.sweep", 1), ("jobs.batch.volcano.sh", "train-1 … train-6", 6)]
    document = page(sam, f"{NEW}?from=default/train")
    assert "There is a sweep train in default already" in document.text(id="sweep-preview")
    assert '"0.1","32"' in document.text(id="sweep-csv")
    # A job of the name refuses the whole.
    store.write(Delete(CONFIGMAPS, "default", "train.sweep"))
    answer = send(sam)
    assert all(words in preview_text(answer) for words in ("Row 1:", "already exists"))
    assert stored_names() == ([], 6)


@cases("fields, number", {
    "csv": ({"source": "csv", "csv": "lr,batch\n0.1,32\n0.2,64\n"}, 2),
    "csv with a column that no placeholder names": ({"source": "csv", "csv": "lr,batch,seed\n1,2,3\n"}, 1),
    "table": ({"source": "table", "rows": "3", "cell-0-lr": "1", "cell-0-batch": "2"}, 1),
})  # fmt: skip
def test_values_are_given_in_other_ways(sam, fields, number):
    assert ("no placeholder {{seed}}" in preview_text(send(sam, do="check", **fields))) == (
        "seed" in fields.get("csv", "")
    )
    assert send(sam, **fields).status_code == 302
    assert stored_names()[1] == number


def of_csv(text):
    return {"source": "csv", "csv": text}


@cases("text, fields, code, words", {
    "column": (TRAIN, of_csv("lr\n1\n"), 422, "there are no values for batch"),
    "names": (TRAIN.replace("name: train", "name: train-{{lr}}"), SENT, 422, "Row 2: the job's name train-0.1"),
    "two documents": (TRAIN + "---\n" + TRAIN, SENT, 400, "Line 23. The text holds 2 objects"),
    "field": (TRAIN.replace("minA", "minB"), SENT, 422, "There is no field spec.minBvailable"),
    "a value of a wrong type": (OF_BATCH, of_csv("lr,batch\n1,2\n1,two\n1,3\n"), 422, "Row 2: spec.tasks[0].replicas:"),
    "no such queue": (TRAIN.replace("queue: default", "queue: none"), SENT, 422, "none"),
    "a row beyond those looked at while typing": (OF_BATCH, of_csv(BEYOND), 422, "Row 60: spec.tasks[0].replicas"),
    "values that are too much for one object": (MANY, of_csv(MUCH), 413, "make several sweeps, or shorter values"),
})  # fmt: skip
def test_what_is_wrong_is_told_at_its_place_and_nothing_is_stored_or_lost(sam, text, fields, code, words):
    answer = send(sam, text, **fields)
    assert answer.status_code == code
    assert words in preview_text(answer)
    assert stored_names() == ([], 0)
    content = unescape(answer.content.decode())
    assert text in content.replace("\r\n", "\n")
    assert fields.get("csv", "") in content


def test_what_is_refused_is_told_before_it_is_submitted(sam):
    assert "make several sweeps, or shorter values" in preview_text(send(sam, MANY, do="check", **of_csv(MUCH)))
    assert "Row" not in preview_text(send(sam, TRAIN.replace("queue: default", "queue: none"), do="check")), (
        "it is so of all"
    )
    made(sam)
    assert "There is a sweep train in default already" in preview_text(send(sam, do="check"))
    answer = send(sam)
    assert (answer.status_code, "There is a sweep train in default already" in preview_text(answer)) == (409, True)
    assert stored_names() == (["train.sweep"], 6)


@cases("rows, verdict, messages", {
    "all": ("1,9\n1,9\n", "2 jobs would be made, and could not start on the cluster as it is. Line 9", [BIG]),
    "one of them": ("1,1\n1,9\n",
        "2 jobs would be made, and at least 1 of them could not start on the cluster as it is.",
        [f"Row 2: spec.tasks: {BIG} Ask for less in each pod"]),
    "none": ("1,1\n2,8\n", "2 jobs would be made.", []),
    "more than are judged": ("1,9\n" * 21, "21 jobs would be made, and at least 20 of them could not start", [BIG]),
    "more pods than are rehearsed": ("300,1\n1,9\n", "2 jobs would be made.", []),
    "what is refused is told first": ("1,9\n0.5,9\n", "Some of these jobs would be refused, so none would be made.",
        []),
})  # fmt: skip
def test_jobs_that_could_not_start_are_told_before_they_are_made(sam, rows, verdict, messages):
    _, node = scheduling.node("large", cpu="8")
    store.write(Create(NODES, {"apiVersion": "v1", "kind": "Node", **node}))
    text = preview_text(send(sam, ASKING, do="check", **of_csv(f"lr,batch\n{rows}")))
    assert text.removeprefix("What would be made ").startswith(verdict)
    assert text.count("can never start") == len(messages)
    for each in messages:
        assert each in text


@pytest.mark.parametrize(
    "text", [pytest.param(TRAIN + "\t", id="no YAML"), pytest.param(TRAIN.replace("{{lr}}", "{{l}}"), id="a slip")]
)
def test_values_outlive_a_yaml_that_is_half_written(sam, text):
    document = Page(send(sam, text, do="check", rows="3", **{"cell-1-lr": "7"}, **SENT))
    for name, value in (("grid-lr", "0.1, 0.2"), ("grid-batch", "32, 64, 128"), ("cell-1-lr", "7")):
        assert document.one(name=name).get("value") == value
    more = send(sam, do="rows", source="table", rows="3", **{"cell-2-lr": "7"}).content.decode()
    assert more.count('name="cell-7-batch"') == 1
    assert 'name="cell-2-lr" value="7"' in more


def test_htmx_gets_what_follows_from_the_yaml_and_what_was_written_is_escaped(sam):
    text = sam.post(NEW, {"text": job("a: {{seed}}")}, headers={"HX-Request": "true"}).content.decode()
    assert ('name="grid-seed"' in text, "<html" in text) == (True, False)
    answer = send(sam, "<script>alert(1)</script>", do="check", **of_csv("</textarea><script>"))
    assert b"<script>alert" not in answer.content
    assert b"</textarea><script>" not in answer.content


@cases("text, accepted", {
    "in texts": (TRAIN, True),
    "where YAML has none": (job("a: {b: {{lr}}}"), False),
})  # fmt: skip
def test_the_editor_of_one_job_says_what_placeholders_are_for(sam, text, accepted):
    report = sam.post("/jobs/validate/", {"text": text}).json()
    assert report["accepted"] is accepted
    assert [note["message"][:6] for note in report["notes"]] == ["{{lr}}"]
    answer = sam.post("/jobs/new/", {"text": job("a: {b: {{lr}}}"), "token": TOKEN})
    assert "make a sweep of this job" in answer.content.decode()


def test_what_lies_in_another_namespace_is_not_copied_or_made(sam):
    made(sam)
    stranger = reader("olaf", "submitter", "elsewhere")
    assert stranger.get(f"{NEW}?from=default/train").status_code == 403
    assert send(stranger).status_code == 403
    assert stored_names()[0] == ["train.sweep"]


# ---- the outcomes: the grid and the rows of one, the list of all, and how they go
def cells(content):
    """The cells of the grid, by the values of their row and column: their names and hues."""
    columns = [head.text for head in content.all(tag="th", scope="col")][1:]
    found = {}
    for row in content.one(id="table-rows"):
        head, *rest = row
        for column, cell in zip(columns, rest, strict=True):
            link = cell[0] if len(cell) else None
            content = link is not None and (link.get("aria-label"), cell.get("data-hue"), link.get("href"))
            found[head.text, column] = content
    return found


def test_two_values_are_the_axes_of_a_grid_of_words_colours_and_links_and_a_phase_pales_the_others(sam):
    made(sam)
    end("train-1", "Completed")
    end("train-5", "Failed")
    store.write(Delete(JOBS, "default", "train-6"))
    document = page(sam, DETAIL)
    found = cells(document)
    assert len(found) == 6
    assert found["32", "0.1"] == ("Completed", "green", "/jobs/default/train-1/")
    assert found["64", "0.2"] == ("Failed", "red", "/jobs/default/train-5/")
    assert (found["128", "0.2"][:2], found["64", "0.1"][:2]) == (("Deleted", "grey"), ("Pending", "amber"))
    assert "All 6 Pending 3 Completed 1 Failed 1 Deleted 1" in document.text(id="table-chips")
    assert len([*page(sam, f"{DETAIL}?phase=Failed").all(tag="td", data_pale="")]) == 5


def test_a_filter_leaves_the_axes_that_still_differ(sam):
    text = TRAIN.replace("queue: default", "queue: default\n  maxRetry: {{retry}}")
    made(sam, text, lr="1,2", batch="3,4", retry="5,6")
    rows = page(sam, DETAIL)
    assert rows.rows() == [f"outcome-{row}" for row in range(8)]
    assert rows.text(id="outcome-1") == "train-2 5 1 4 Pending"
    assert len(cells(page(sam, f"{DETAIL}?value-retry=6"))) == 4
    assert page(sam, f"{DETAIL}?value-retry=6&value-lr=1").rows() == ["outcome-4", "outcome-5"]
    assert "There is no retry “7”" in page(sam, f"{DETAIL}?value-retry=7").text(role="alert")


def test_one_value_or_pairs_that_are_not_unique_are_rows_which_a_phase_filters(sam):
    made(sam, csv="lr,batch\n1,2\n1,2\n2,3\n")
    assert page(sam, DETAIL).rows() == ["outcome-0", "outcome-1", "outcome-2"]
    made(sam, TRAIN.replace("name: train", "name: other").replace("{{ batch }}", "1"), lr="1,2,3")
    end("other-3", "Failed")
    assert page(sam, "/sweeps/default/other/?phase=Failed").rows() == ["outcome-2"]


def test_a_part_hears_of_its_sweeps_jobs_and_changes_with_their_cell_alone(sam):
    stored = made(sam)
    before = render(access.SYSTEM, TOPIC)
    end("train-3", "Completed")
    after = render(access.SYSTEM, TOPIC)
    assert [part for part in before.order if before.parts[part] != after.parts[part]] == ["grid-2"]
    assert ("jobs.batch.volcano.sh", "default", None, stored.uid) in after.watches
    store.write(Delete(CONFIGMAPS, "default", "train.sweep"))
    assert "was deleted" in render(access.SYSTEM, HEAD).parts["sweep-head"]
    assert render(access.SYSTEM, TOPIC).parts == {}


def test_the_lists_say_what_became_of_each_and_find_its_jobs(sam):
    assert "There are no sweeps yet" in page(sam, LIST).text(id="table-empty")
    stored = made(sam)
    end("train-1", "Completed")
    document = page(sam, LIST)
    assert document.rows() == [f"sweep-{stored.uid}"]
    assert "train default 6 Pending 5 Completed 1 sam" in document.text(id=f"sweep-{stored.uid}")
    made(sam, TRAIN.replace("name: train", "name: other"))
    document = page(sam, "/jobs/?namespace=default&sweep=train&sort=name")
    assert (len(document.rows()), "train-1" in document.text(id=document.rows()[0])) == (6, True)
    assert page(sam, "/jobs/?sweep=none").rows() == []


def test_a_sweep_is_deleted_with_its_jobs_unless_it_was_made_anew_since(sam):
    stored = made(sam)
    assert f"{DETAIL}delete/" in page(sam, DETAIL).actions()
    assert sam.post(f"{DETAIL}delete/", {"uid": "another"})["Location"] == DETAIL
    assert stored_names()[0] == ["train.sweep"]
    links = {link.get("href") for link in page(sam, "/jobs/default/train-1/").one(id="job-head").iter("a")}
    assert DETAIL in links
    assert sam.post(f"{DETAIL}delete/", {"uid": stored.uid})["Location"] == LIST
    settle(runner("garbage"))
    assert stored_names() == ([], 0)


@pytest.mark.parametrize("size", [3, 60])
def test_a_page_costs_few_queries_however_many_jobs_there_are(sam, size):
    made(sam, lr=",".join(map(str, range(size))), batch="1,2")
    for address, most in ((DETAIL, 5), (LIST, 6)):
        sam.get(address)
        with CaptureQueriesContext(connection) as seen:
            sam.get(address)
        about = [query for query in seen.captured_queries if "cluster_" in query["sql"]]
        assert len(about) <= most, about
