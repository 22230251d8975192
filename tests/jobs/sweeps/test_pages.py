"""The page on which a sweep is written: what it says before, and what is made."""

from __future__ import annotations

import re
from html import unescape

import pytest

from cluster.models import AuditEntry
from cluster.store import Create, Delete, store
from kube.resources import CONFIGMAPS, JOBS, NODES
from tests.dashboard.pages.conftest import Page, page
from tests.jobs.sweeps.conftest import TRAIN, job, kept, made
from tests.scheduler import world as scheduling
from tests.tables import cases

NEW, DETAIL = "/sweeps/-/new/", "/sweeps/default/train/"
TOKEN = "0123456789abcdef"
GRID = {"source": "grid", "grid-lr": "0.1, 0.2", "grid-batch": "32, 64, 128"}

BEYOND = "lr,batch\n" + "".join(f"1,{number}\n" for number in range(1, 60)) + "1,two\n"


def send(browser, text=TRAIN, do="submit", **fields):
    return browser.post(NEW, {"text": text, "token": TOKEN, "do": do, **(fields or GRID)})


def said(answer):
    """What the page says of the draft."""
    found = re.search(r'<section class="panel" id="sweep-preview".*?</section>', answer.content.decode(), re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", found[0])).split())


def test_the_page_begins_with_a_sweep_that_would_be_made(sam):
    shown = page(sam, NEW)
    assert "15 jobs would be made." in shown.text(id="sweep-preview")
    assert shown.one(name="grid-rate").get("value") == "0.001, 0.01, 0.1, 1, 4"


def test_a_sweep_is_made_once_and_leads_to_its_outcomes(sam):
    for _ in range(2):
        answer = send(sam)
        assert (answer.status_code, answer["Location"]) == (302, DETAIL)
    assert kept() == (["train.sweep"], 6)
    first = store.get(JOBS, "default", "train-1").object
    assert first["metadata"]["annotations"]["value.ui.volcano.sh/batch"] == "32"
    assert first["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] == [{"name": "LR", "value": "0.1"}]
    rows = AuditEntry.objects.filter(actor="sam").order_by("pk").values_list("resource", "name", "count")
    assert list(rows)[:2] == [("configmaps", "train.sweep", 1), ("jobs.batch.volcano.sh", "train-1 … train-6", 6)]


@cases("fields, number", {
    "csv": ({"source": "csv", "csv": "lr,batch\n0.1,32\n0.2,64\n"}, 2),
    "table": ({"source": "table", "rows": "3", "cell-0-lr": "1", "cell-0-batch": "2"}, 1),
    "grid": (GRID, 6),
})  # fmt: skip
def test_values_are_given_in_three_ways(sam, fields, number):
    assert send(sam, **fields).status_code == 302
    assert kept()[1] == number


@cases("text, fields, code, words", {
    "column": (TRAIN, {"source": "csv", "csv": "lr\n1\n"}, 422, "there are no values for batch"),
    "names": (TRAIN.replace("name: train", "name: train-{{lr}}"), GRID, 422, "Row 2: the job's name train-0.1"),
    "two documents": (TRAIN + "---\n" + TRAIN, GRID, 400, "Line 23. The text holds 2 objects"),
    "field": (TRAIN.replace("minA", "minB"), GRID, 422, "There is no field spec.minBvailable"),
    "a value of the wrong type": (TRAIN.replace("replicas: 1", "replicas: {{batch}}"),
        {"source": "csv", "csv": "lr,batch\n1,2\n1,two\n1,3\n"}, 422, "Row 2: spec.tasks[0].replicas:"),
    "no such queue": (TRAIN.replace("queue: default", "queue: none"), GRID, 422, "none"),
    "a row beyond those that are looked at while typing": (TRAIN.replace("replicas: 1", "replicas: {{batch}}"),
        {"source": "csv", "csv": BEYOND}, 422, "Row 60: spec.tasks[0].replicas"),
})  # fmt: skip
def test_what_is_wrong_is_told_at_its_place_and_nothing_is_stored_or_lost(sam, text, fields, code, words):
    answer = send(sam, text, **fields)
    assert answer.status_code == code
    assert words in said(answer)
    assert kept() == ([], 0)
    shown = unescape(answer.content.decode())
    assert text in shown.replace("\r\n", "\n")
    assert fields.get("csv", "") in shown


MUCH = "lr,batch\n" + f"1,{'2' * 4000}\n" * 300
MANY = TRAIN.replace("{{ batch }}", "and {{ batch }}")


@cases("text, fields, code, words", {
    "a name that is taken": (TRAIN, GRID, 409, "There is a sweep train in default already"),
    "values that are too much for one object": (MANY, {"source": "csv", "csv": MUCH}, 413,
        "make several sweeps, or shorter values"),
})  # fmt: skip
def test_what_is_refused_is_told_before_and_when_it_is_submitted(sam, text, fields, code, words):
    if code == 409:
        made(sam)
    before = kept()
    assert words in said(send(sam, text, do="check", **fields))
    answer = send(sam, text, **fields)
    assert answer.status_code == code
    assert words in said(answer)
    assert kept() == before


def test_a_job_of_that_name_refuses_the_whole_sweep(sam):
    send(sam)
    store.write(Delete(CONFIGMAPS, "default", "train.sweep"))
    answer = send(sam)
    assert "Row 1:" in said(answer)
    assert "already exists" in said(answer)
    assert kept() == ([], 6)


ASKING = TRAIN.replace("          env:", "          resources: {requests: {cpu: '{{batch}}'}}\n          env:").replace(
    "replicas: 1", "replicas: {{lr}}"
)
BIG = "This can never start: a pod needs 9 CPU, the largest node that it may use has 8 CPU (large)."


@cases("csv, verdict, told", {
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
def test_jobs_that_could_not_start_are_told_before_they_are_made(sam, csv, verdict, told):
    _, node = scheduling.node("large", cpu="8")
    store.write(Create(NODES, {"apiVersion": "v1", "kind": "Node", **node}))
    fields = {"source": "csv", "csv": f"lr,batch\n{csv}"}
    text = said(send(sam, ASKING, do="check", **fields))
    assert text.removeprefix("What would be made ").startswith(verdict)
    assert text.count("can never start") == len(told)
    for each in told:
        assert each in text


def test_what_is_wrong_with_all_rows_is_told_once_and_a_column_without_a_placeholder_is_harmless(sam):
    assert "Row" not in said(send(sam, TRAIN.replace("queue: default", "queue: none"), do="check"))
    fields = {"source": "csv", "csv": "lr,batch,seed\n1,2,3\n"}
    assert "no placeholder {{seed}}" in said(send(sam, do="check", **fields))
    assert send(sam, **fields).status_code == 302


@pytest.mark.parametrize(
    "text", [pytest.param(TRAIN + "\t", id="no YAML"), pytest.param(TRAIN.replace("{{lr}}", "{{l}}"), id="a slip")]
)
def test_values_outlive_a_yaml_that_is_half_written(sam, text):
    shown = Page(send(sam, text, do="check", rows="3", **{"cell-1-lr": "7"}, **GRID))
    for name, value in (("grid-lr", "0.1, 0.2"), ("grid-batch", "32, 64, 128"), ("cell-1-lr", "7")):
        assert shown.one(name=name).get("value") == value
    more = send(sam, do="rows", source="table", rows="3", **{"cell-2-lr": "7"}).content.decode()
    assert more.count('name="cell-7-batch"') == 1
    assert 'name="cell-2-lr" value="7"' in more


def test_htmx_gets_what_follows_from_the_yaml(sam):
    answer = sam.post(NEW, {"text": job("a: {{seed}}")}, headers={"HX-Request": "true"})
    text = answer.content.decode()
    assert 'name="grid-seed"' in text
    assert "<html" not in text


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


def test_what_was_written_is_escaped(sam):
    answer = send(sam, "<script>alert(1)</script>", do="check", source="csv", csv="</textarea><script>")
    assert b"<script>alert" not in answer.content
    assert b"</textarea><script>" not in answer.content


def test_another_is_made_from_one_that_is_there(sam):
    made(sam)
    shown = page(sam, f"{NEW}?from=default/train")
    assert "There is a sweep train in default already" in shown.text(id="sweep-preview")
    assert '"0.1","32"' in shown.text(id="sweep-csv")


def test_what_lies_in_another_namespace_is_not_copied_or_made(sam, stranger):
    made(sam)
    assert stranger.get(f"{NEW}?from=default/train").status_code == 403
    assert send(stranger).status_code == 403
    assert kept()[0] == ["train.sweep"]
