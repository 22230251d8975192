"""A sweep from its YAML to the grid of its outcomes, in a real browser."""

import pytest
from playwright.sync_api import expect

from kube.resources import JOBS
from proof.harness.waiting import until
from proof.pictures.world import TUNING, write
from tests.browser.journey import Window, stays, unchanged

pytestmark = pytest.mark.system


def outcome(row, column):
    """The cell of a grid's row (from 1), by the number of its column (from 1)."""
    return f"#table-rows tr:nth-child({row}) td:nth-of-type({column}) a"


def test_values_are_looked_at_while_they_are_typed_and_the_outcomes_come_live(page):
    page.goto("/sweeps/-/new/")
    write(page, TUNING.replace("name: tuning", "name: typed").replace("echo rate", "sleep 1; exit $(({{rate}} - 1)) #"))
    stays(page)
    Window(page).goes("""
        → #sweep-preview: size has no values
        fill textbox "rate" = 1, 2; fill textbox "size" = 3, 4, 4 → #sweep-preview: size has the value 4 twice
        fill textbox "size" = 3, 4, 5 → #sweep-preview: 6 jobs would be made.
    """)
    assert unchanged(page)
    Window(page).goes("click button Make 6 jobs → at **/sweeps/default/typed/; live")
    stays(page)
    for row in (1, 2, 3):
        Window(page).goes(f"→ {outcome(row, 1)} has aria-label Completed; {outcome(row, 2)} has aria-label Failed")
    Window(page).goes("→ #table-chips: Completed 3")
    assert unchanged(page)
    Window(page).goes(f"click {outcome(2, 1)} → at **/jobs/default/typed-2/")


def test_a_filter_turns_the_grid_into_rows_and_back_without_leaving_the_page(page):
    Window(page).goes("open /sweeps/default/tuning/ → live")
    stays(page)
    Window(page).goes(f"""
        choose field "rate" = 2 → #table-rows tr × 3; #table-rows: tuning-6
        choose field "rate" = → {outcome(3, 2)} has title tuning-6: Completed
    """)
    assert unchanged(page)


def test_the_job_in_the_editor_becomes_a_sweep(page):
    text = TUNING.replace("name: tuning", "name: from-editor")
    page.goto("/jobs/new/")
    write(page, text)
    Window(page).goes("click button Make a sweep of it → at **/sweeps/-/new/")
    expect(page.locator("textarea[name=text]")).to_have_value(text)
    Window(page).goes('→ textbox "size" is visible')


def test_a_sweep_is_made_without_scripts(enter):
    page = enter(java_script_enabled=False)
    page.goto("/sweeps/-/new/")
    page.get_by_label("Job as YAML").fill(TUNING.replace("name: tuning", "name: plain"))
    Window(page).goes("""
        click button Look again >> nth=-1 → #sweep-preview: size has no values
        check field "Table"; fill field rate in row 1 = 1; fill field size in row 1 = 2
        click button More rows → field rate in row 8 is visible; #sweep-preview: 1 job would be made.
        click button Make 1 job → at **/sweeps/default/plain/; #table-rows: plain-1
    """)


def test_two_thousand_jobs_are_made_whole_and_shown_on_one_page(page, person, system):
    rates, sizes = (", ".join(map(str, range(number))) for number in (40, 50))
    text = TUNING.replace("name: tuning", "name: large").replace("queue: batch", "queue: default")
    held = text.replace(
        "      spec:\n        restart", "      spec:\n        nodeSelector: {kind: none}\n        restart"
    )
    answer = person.post("/sweeps/-/new/", text=held, do="submit", **{"grid-rate": rates, "grid-size": sizes})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/sweeps/default/large/")
    with system.store() as store:
        assert len(store.names(JOBS, text="large-")) == 2000
    Window(page).goes("open /sweeps/default/large/ → #table-rows td a × 2000")
    uid = page.locator("button[name=uid]").get_attribute("value")
    assert person.post("/sweeps/default/large/delete/", uid=uid).status_code == 302
    with system.store() as store:
        until(lambda: not store.names(JOBS, text="large-"), every_s=0.5, what="the end of its jobs")
