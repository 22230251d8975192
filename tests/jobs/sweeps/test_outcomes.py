"""The outcomes of sweeps: the grid and the rows of one, the list of all, and how they go."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster.access import SYSTEM
from cluster.store import Delete, store
from dashboard.live import topics
from kube.resources import CONFIGMAPS, JOBS
from tests.dashboard.pages.conftest import page
from tests.jobs.made import end, runner, settle
from tests.jobs.sweeps.conftest import TRAIN, kept, made

LIST, DETAIL = "/sweeps/", "/sweeps/default/train/"
TOPIC, HEAD = "sweeps:detail?name=train&namespace=default", "sweeps:head?name=train&namespace=default"


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


def test_two_values_are_the_axes_of_a_grid_of_words_colours_and_links(sam):
    made(sam)
    end("train-1", "Completed")
    end("train-5", "Failed")
    store.write(Delete(JOBS, "default", "train-6"))
    shown = page(sam, DETAIL)
    found = cells(shown)
    assert len(found) == 6
    assert found["32", "0.1"] == ("Completed", "green", "/jobs/default/train-1/")
    assert found["64", "0.2"] == ("Failed", "red", "/jobs/default/train-5/")
    assert found["128", "0.2"][:2] == ("Deleted", "grey")
    assert found["64", "0.1"][:2] == ("Pending", "amber")
    assert "All 6 Pending 3 Completed 1 Failed 1 Deleted 1" in shown.text(id="table-chips")


def test_a_filter_leaves_the_axes_that_still_differ(sam):
    text = TRAIN.replace("queue: default", "queue: default\n  maxRetry: {{retry}}")
    made(sam, text, lr="1,2", batch="3,4", retry="5,6")
    rows = page(sam, DETAIL)
    assert rows.rows() == [f"outcome-{row}" for row in range(8)]
    assert rows.text(id="outcome-1") == "train-2 5 1 4 Pending"
    assert len(cells(page(sam, f"{DETAIL}?value-retry=6"))) == 4
    assert page(sam, f"{DETAIL}?value-retry=6&value-lr=1").rows() == ["outcome-4", "outcome-5"]
    assert "There is no retry “7”" in page(sam, f"{DETAIL}?value-retry=7").text(role="alert")


def test_a_phase_pales_the_other_cells_of_a_grid_and_filters_rows(sam):
    made(sam)
    end("train-2", "Failed")
    shown = page(sam, f"{DETAIL}?phase=Failed")
    assert len([*shown.all(tag="td", data_pale="")]) == 5
    made(sam, TRAIN.replace("name: train", "name: other").replace("{{ batch }}", "1"), lr="1,2,3")
    end("other-3", "Failed")
    assert page(sam, "/sweeps/default/other/?phase=Failed").rows() == ["outcome-2"]


def test_pairs_that_are_not_unique_are_rows(sam):
    made(sam, csv="lr,batch\n1,2\n1,2\n2,3\n")
    assert page(sam, DETAIL).rows() == ["outcome-0", "outcome-1", "outcome-2"]


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


def test_the_list_says_what_became_of_each(sam):
    assert "There are no sweeps yet" in page(sam, LIST).text(id="table-empty")
    stored = made(sam)
    end("train-1", "Completed")
    shown = page(sam, LIST)
    assert shown.rows() == [f"sweep-{stored.uid}"]
    assert "train default 6 Pending 5 Completed 1 sam" in shown.text(id=f"sweep-{stored.uid}")


def test_the_jobs_of_a_sweep_are_found_in_the_list_of_jobs(sam):
    made(sam)
    made(sam, TRAIN.replace("name: train", "name: other"))
    shown = page(sam, "/jobs/?namespace=default&sweep=train&sort=name")
    assert len(shown.rows()) == 6
    assert "train-1" in shown.text(id=shown.rows()[0])
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
