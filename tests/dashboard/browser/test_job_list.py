"""The list of jobs in a real browser: two lines a job on a phone, filters that are folded away, jobs that are done quiet."""

import pytest
from playwright.sync_api import expect

from cluster.store import Patch, store
from kube.resources import JOBS
from tests.browser.journey import Window
from tests.dashboard.pages.conftest import reader
from tests.jobs.pages import world

HIGHEST = 6_500  # px of fifty jobs
CAUSES = {"groups": [{"exitCodes": [137], "pods": [{"name": "a-worker-0", "task": "worker"}]}]}
LOOKS = (
    ("Completed", "", {"succeeded": 4}),
    ("Running", "", {"running": 4}),
    ("Failed", "3 of 4 pods succeeded and 1 failed; minAvailable is 4.", {"failed": 1, "causes": CAUSES}),
    ("Pending", "2 of 4 pods fit now: each needs 4 CPU, and node-17 has 2 free. 0 of 4 pods are running.", {}),
    ("Terminating", "4 pods have to end.", {"running": 4}),
)  # fmt: skip


@pytest.fixture
def tab(transactional_db, open_tab):
    world.base()
    for number in range(50):
        phase, message, counts = LOOKS[number % len(LOOKS)]
        name = f"a-training-with-a-long-name-{number:02}"
        world.make(name, phase, began=world.START, message=message, counts=counts)
    return open_tab(reader("admin", "superuser"), "/jobs/")


@pytest.mark.parametrize("width", [360, 390])
def test_fifty_jobs_are_two_lines_each_on_a_phone(tab, width):
    tab.set_viewport_size({"width": width, "height": 800})
    expect(tab.locator("#table-rows tr")).to_have_count(50)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("document.documentElement.scrollHeight") <= HIGHEST
    first, second = (tab.locator(f"#table-rows tr:nth-child({n})").bounding_box()["height"] for n in (1, 3))
    assert first == second < 80
    failed = tab.locator("#table-rows tr", has_text="Failed").first
    name, phase, cause = failed.locator("th"), failed.locator(".phase"), failed.locator("td:last-child")
    assert abs(name.bounding_box()["y"] - phase.bounding_box()["y"]) < 12
    assert cause.bounding_box()["y"] > name.bounding_box()["y"] + 12
    expect(cause).to_contain_text("exit 137")


def test_filters_that_are_folded_away_say_how_many_are_set(tab):
    name = "a-training-with-a-long-name-02"
    store.write(Patch(JOBS, "default", name, {"status": {"exitCodes": [137]}}, "status"))
    Window(tab).goes("""
        → #filters-more b is hidden
        click #filters-more summary; fill field Exit code = 137; press Enter
        → #table-rows tr × 1; #filters-more b = 1 set
        → at **exit=137**
        fill field Exit code = x; press Enter → .table-notes: write a number from 1 to 255
        reload → #table-rows tr × 50
    """)
    assert tab.errors == []


def test_a_click_that_leaves_the_field_is_not_undone_by_its_text(tab):
    """What is shown is not asked for again: the answers to that and to the click could come in either order."""
    urls = []
    tab.on("request", lambda request: urls.append(request.url) if "q=name" in request.url else None)
    Window(tab).goes("focus field Find; type name → at **q=name*\nclick thead >> link Job → at **sort=name*")
    assert ["sort=name" in url for url in urls] == [False, True]
    assert tab.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_done_is_quieter_than_what_failed(tab, scheme):
    tab.emulate_media(color_scheme=scheme)

    def colour(phase):
        cell = tab.locator("#table-rows tr", has_text=phase).first.locator("td:nth-last-child(6)")
        return cell.evaluate("(cell) => getComputedStyle(cell).color")

    soft = tab.locator("#table-chips .soft").evaluate("(each) => getComputedStyle(each).color")
    assert colour("Completed") == soft != colour("Failed")
