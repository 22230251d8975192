"""The page on which a sweep is written, what is made, and the pages of what came of it."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster.access import SYSTEM
from cluster.models import AuditEntry
from cluster.store import Create, Delete, store
from dashboard.live import topics
from kube.resources import CONFIGMAPS, JOBS, NODES
from tests.dashboard.pages.conftest import Page, page
from tests.jobs.made import end, runner, settle
from tests.jobs.sweeps.conftest import TRAIN, job, kept, made
from tests.scheduler import world as scheduling
from tests.tables import cases

NEW, LIST, DETAIL = "/sweeps/-/new/", "/sweeps/", "/sweeps/default/train/"
TOPIC, HEAD = "sweeps:detail?name=train&namespace=default", "sweeps:head?name=train&namespace=default"
TOKEN = "0123456789abcdef"
GRID = {"source": "grid", "grid-lr": "0.1, 0.2", "grid-batch": "32, 64, 128"}

BEYOND = "lr,batch\n" + "".join(f"1,{number}\n" for number in range(1, 60)) + "1,two\n"
OF_BATCH = TRAIN.replace("replicas: 1", "replicas: {{batch}}")
MUCH = "lr,batch\n" + f"1,{'2' * 4000}\n" * 300
MANY = TRAIN.replace("{{ batch }}", "and {{ batch }}")
ASKING = TRAIN.replace("          env:", "          resources: {requests: {cpu: '{{batch}}'}}\n          env:").replace(
    "replicas: 1", "replicas: {{lr}}"
)
BIG = "This can never start: a pod needs 9 CPU, the largest node that it may use has 8 CPU (large)."


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
    shown = page(sam, f"{NEW}?from=default/train")
    assert "There is a sweep train in default already" in shown.text(id="sweep-preview")
    assert '"0.1","32"' in shown.text(id="sweep-csv")
    # A job of the name refuses the whole.
    store.write(Delete(CONFIGMAPS, "default", "train.sweep"))
    answer = send(sam)
    assert all(words in said(answer) for words in ("Row 1:", "already exists"))
    assert kept() == ([], 6)


@cases("fields, number", {
    "csv": ({"source": "csv", "csv": "lr,batch\n0.1,32\n0.2,64\n"}, 2),
    "csv with a column that no placeholder names": ({"source": "csv", "csv": "lr,batch,seed\n1,2,3\n"}, 1),
    "table": ({"source": "table", "rows": "3", "cell-0-lr": "1", "cell-0-batch": "2"}, 1),
})  # fmt: skip
def test_values_are_given_in_other_ways(sam, fields, number):
    assert ("no placeholder {{seed}}" in said(send(sam, do="check", **fields))) == ("seed" in fields.get("csv", ""))
    assert send(sam, **fields).status_code == 302
    assert kept()[1] == number


def csv(text):
    return {"source": "csv", "csv": text}


@cases("text, fields, code, words", {
    "column": (TRAIN, csv("lr\n1\n"), 422, "there are no values for batch"),
    "names": (TRAIN.replace("name: train", "name: train-{{lr}}"), GRID, 422, "Row 2: the job's name train-0.1"),
    "two documents": (TRAIN + "---\n" + TRAIN, GRID, 400, "Line 23. The text holds 2 objects"),
    "field": (TRAIN.replace("minA", "minB"), GRID, 422, "There is no field spec.minBvailable"),
    "a value of the wrong type": (OF_BATCH, csv("lr,batch\n1,2\n1,two\n1,3\n"), 422, "Row 2: spec.tasks[0].replicas:"),
    "no such queue": (TRAIN.replace("queue: default", "queue: none"), GRID, 422, "none"),
    "a row beyond those that are looked at while typing": (OF_BATCH, csv(BEYOND), 422, "Row 60: spec.tasks[0].replicas"),
    "values that are too much for one object": (MANY, csv(MUCH), 413, "make several sweeps, or shorter values"),
})  # fmt: skip
def test_what_is_wrong_is_told_at_its_place_and_nothing_is_stored_or_lost(sam, text, fields, code, words):
    answer = send(sam, text, **fields)
    assert answer.status_code == code
    assert words in said(answer)
    assert kept() == ([], 0)
    shown = unescape(answer.content.decode())
    assert text in shown.replace("\r\n", "\n")
    assert fields.get("csv", "") in shown


def test_what_is_refused_is_told_before_it_is_submitted(sam):
    assert "make several sweeps, or shorter values" in said(send(sam, MANY, do="check", **csv(MUCH)))
    assert "Row" not in said(send(sam, TRAIN.replace("queue: default", "queue: none"), do="check")), "it is so of all"
    made(sam)
    assert "There is a sweep train in default already" in said(send(sam, do="check"))
    answer = send(sam)
    assert (answer.status_code, "There is a sweep train in default already" in said(answer)) == (409, True)
    assert kept() == (["train.sweep"], 6)


@cases("rows, verdict, told", {
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
def test_jobs_that_could_not_start_are_told_before_they_are_made(sam, rows, verdict, told):
    _, node = scheduling.node("large", cpu="8")
    store.write(Create(NODES, {"apiVersion": "v1", "kind": "Node", **node}))
    text = said(send(sam, ASKING, do="check", **csv(f"lr,batch\n{rows}")))
    assert text.removeprefix("What would be made ").startswith(verdict)
    assert text.count("can never start") == len(told)
    for each in told:
        assert each in text


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


def test_htmx_gets_what_follows_from_the_yaml_and_what_was_written_is_escaped(sam):
    text = sam.post(NEW, {"text": job("a: {{seed}}")}, headers={"HX-Request": "true"}).content.decode()
    assert ('name="grid-seed"' in text, "<html" in text) == (True, False)
    answer = send(sam, "<script>alert(1)</script>", do="check", **csv("</textarea><script>"))
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


def test_what_lies_in_another_namespace_is_not_copied_or_made(sam, stranger):
    made(sam)
    assert stranger.get(f"{NEW}?from=default/train").status_code == 403
    assert send(stranger).status_code == 403
    assert kept()[0] == ["train.sweep"]


# ---- the outcomes: the grid and the rows of one, the list of all, and how they go
def rendered(topic):
    name, params = topics.parse(topic)
    with store.reading():
        return topics.find(name)(topics.TopicRequest(SYSTEM, params))


def cells(shown):
    """The cells of the grid, by the values of their row and column: their names and hues."""
    columns = [head.text for head in shown.all(tag="th", scope="col")][1:]
    found = {}
    for row in shown.one(id="table-rows"):
        head, *rest = row
        for column, cell in zip(columns, rest, strict=True):
            link = cell[0] if len(cell) else None
            shown = link is not None and (link.get("aria-label"), cell.get("data-hue"), link.get("href"))
            found[head.text, column] = shown
    return found


def test_two_values_are_the_axes_of_a_grid_of_words_colours_and_links_and_a_phase_pales_the_others(sam):
    made(sam)
    end("train-1", "Completed")
    end("train-5", "Failed")
    store.write(Delete(JOBS, "default", "train-6"))
    shown = page(sam, DETAIL)
    found = cells(shown)
    assert len(found) == 6
    assert found["32", "0.1"] == ("Completed", "green", "/jobs/default/train-1/")
    assert found["64", "0.2"] == ("Failed", "red", "/jobs/default/train-5/")
    assert (found["128", "0.2"][:2], found["64", "0.1"][:2]) == (("Deleted", "grey"), ("Pending", "amber"))
    assert "All 6 Pending 3 Completed 1 Failed 1 Deleted 1" in shown.text(id="table-chips")
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
    before = rendered(TOPIC)
    end("train-3", "Completed")
    after = rendered(TOPIC)
    assert [part for part in before.order if before.parts[part] != after.parts[part]] == ["grid-2"]
    assert ("jobs.batch.volcano.sh", "default", None, stored.uid) in after.watches
    store.write(Delete(CONFIGMAPS, "default", "train.sweep"))
    assert "was deleted" in rendered(HEAD).parts["sweep-head"]
    assert rendered(TOPIC).parts == {}


def test_the_lists_say_what_became_of_each_and_find_its_jobs(sam):
    assert "There are no sweeps yet" in page(sam, LIST).text(id="table-empty")
    stored = made(sam)
    end("train-1", "Completed")
    shown = page(sam, LIST)
    assert shown.rows() == [f"sweep-{stored.uid}"]
    assert "train default 6 Pending 5 Completed 1 sam" in shown.text(id=f"sweep-{stored.uid}")
    made(sam, TRAIN.replace("name: train", "name: other"))
    shown = page(sam, "/jobs/?namespace=default&sweep=train&sort=name")
    assert (len(shown.rows()), "train-1" in shown.text(id=shown.rows()[0])) == (6, True)
    assert page(sam, "/jobs/?sweep=none").rows() == []


def test_a_sweep_is_deleted_with_its_jobs_unless_it_was_made_anew_since(sam):
    stored = made(sam)
    assert f"{DETAIL}delete/" in page(sam, DETAIL).actions()
    assert sam.post(f"{DETAIL}delete/", {"uid": "another"})["Location"] == DETAIL
    assert kept()[0] == ["train.sweep"]
    links = {link.get("href") for link in page(sam, "/jobs/default/train-1/").one(id="job-head").iter("a")}
    assert DETAIL in links
    assert sam.post(f"{DETAIL}delete/", {"uid": stored.uid})["Location"] == LIST
    settle(runner("garbage"))
    assert kept() == ([], 0)


@pytest.mark.parametrize("size", [3, 60])
def test_a_page_costs_few_queries_however_many_jobs_there_are(sam, size):
    made(sam, lr=",".join(map(str, range(size))), batch="1,2")
    for address, most in ((DETAIL, 5), (LIST, 6)):
        sam.get(address)
        with CaptureQueriesContext(connection) as seen:
            sam.get(address)
        about = [query for query in seen.captured_queries if "cluster_" in query["sql"]]
        assert len(about) <= most, about
