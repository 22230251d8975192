"""A sweep from its YAML to the grid of its outcomes, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from kube.resources import JOBS
from proof.harness.waiting import until
from proof.pictures.world import TUNING, write
from tests.browser.test_journeys import live, stays, unchanged

pytestmark = pytest.mark.system


def fill(page, **grid):
    for name, values in grid.items():
        page.get_by_role("textbox", name=name, exact=True).fill(values)


def outcome(page, row, column):
    """The cell of a grid's row (from 1), by the number of its column (from 1)."""
    return page.locator(f"#table-rows tr:nth-child({row}) td:nth-of-type({column}) a")


def test_values_are_looked_at_while_they_are_typed_and_the_outcomes_come_live(page):
    page.goto("/sweeps/-/new/")
    write(page, TUNING.replace("name: tuning", "name: typed").replace("echo rate", "sleep 1; exit $(({{rate}} - 1)) #"))
    stays(page)
    expect(page.locator("#sweep-preview")).to_contain_text("size has no values")
    fill(page, rate="1, 2", size="3, 4, 4")
    expect(page.locator("#sweep-preview")).to_contain_text("size has the value 4 twice")
    fill(page, size="3, 4, 5")
    expect(page.locator("#sweep-preview")).to_contain_text("6 jobs would be made.")
    assert unchanged(page)
    page.get_by_role("button", name="Make 6 jobs").click()
    page.wait_for_url("**/sweeps/default/typed/")
    live(page)
    stays(page)
    for row in (1, 2, 3):
        expect(outcome(page, row, 1)).to_have_attribute("aria-label", "Completed")
        expect(outcome(page, row, 2)).to_have_attribute("aria-label", "Failed")
    expect(page.locator("#table-chips")).to_contain_text("Completed 3")
    assert unchanged(page)
    outcome(page, 2, 1).click()
    page.wait_for_url("**/jobs/default/typed-2/")


def test_a_filter_turns_the_grid_into_rows_and_back_without_leaving_the_page(page):
    page.goto("/sweeps/default/tuning/")
    live(page)
    stays(page)
    page.get_by_label("rate", exact=True).select_option("2")
    expect(page.locator("#table-rows tr")).to_have_count(3)
    expect(page.locator("#table-rows")).to_contain_text("tuning-6")
    page.get_by_label("rate", exact=True).select_option("")
    expect(outcome(page, 3, 2)).to_have_attribute("title", "tuning-6: Completed")
    assert unchanged(page)


def test_the_job_in_the_editor_becomes_a_sweep(page):
    page.goto("/jobs/new/")
    write(page, TUNING.replace("name: tuning", "name: from-editor"))
    page.get_by_role("button", name="Make a sweep of it").click()
    page.wait_for_url("**/sweeps/-/new/")
    expect(page.locator("textarea[name=text]")).to_have_value(TUNING.replace("name: tuning", "name: from-editor"))
    expect(page.get_by_role("textbox", name="size", exact=True)).to_be_visible()


def test_a_sweep_is_made_without_scripts(enter):
    page = enter(java_script_enabled=False)
    page.goto("/sweeps/-/new/")
    page.get_by_label("Job as YAML").fill(TUNING.replace("name: tuning", "name: plain"))
    page.get_by_role("button", name="Look again").last.click()
    expect(page.locator("#sweep-preview")).to_contain_text("size has no values")
    page.get_by_label("Table", exact=True).check()
    page.get_by_label("rate in row 1").fill("1")
    page.get_by_label("size in row 1").fill("2")
    page.get_by_role("button", name="More rows").click()
    expect(page.get_by_label("rate in row 8")).to_be_visible()
    expect(page.locator("#sweep-preview")).to_contain_text("1 job would be made.")
    page.get_by_role("button", name="Make 1 job").click()
    page.wait_for_url("**/sweeps/default/plain/")
    expect(page.locator("#table-rows")).to_contain_text("plain-1")


@pytest.mark.timeout(300)
def test_ten_thousand_jobs_are_made_whole_and_shown_on_one_page(page, person, system):
    values = ", ".join(map(str, range(100)))
    text = TUNING.replace("name: tuning", "name: large").replace("queue: batch", "queue: default")
    held = text.replace(
        "      spec:\n        restart", "      spec:\n        nodeSelector: {kind: none}\n        restart"
    )
    answer = person.post("/sweeps/-/new/", text=held, do="submit", **{"grid-rate": values, "grid-size": values})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/sweeps/default/large/")
    with system.store() as store:
        assert len(store.names(JOBS, text="large-")) == 10_000
    page.goto("/sweeps/default/large/")
    expect(page.locator("#table-rows td a")).to_have_count(10_000)
    uid = page.locator("button[name=uid]").get_attribute("value")
    assert person.post("/sweeps/default/large/delete/", uid=uid).status_code == 302
    with system.store() as store:
        until(lambda: not store.names(JOBS, text="large-"), every_s=0.5, what="the end of its jobs")
