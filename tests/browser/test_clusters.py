"""The menu of several clusters, in a browser: it leads to the same page, follows by itself, fits, and keeps nobody out."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from proof.pictures import world
from proof.systems.system import running
from tests.browser.test_drafts import offers, written
from tests.browser.test_pages import WIDTHS, findings, in_dark

pytestmark = [pytest.mark.system, pytest.mark.clusters]


@pytest.fixture(scope="module")
def pair(tmp_path_factory, django_db_blocker):
    """A cluster, and a system that shows it beside its own."""
    folder = tmp_path_factory.mktemp("clusters")
    with django_db_blocker.unblock(), running(folder / "first") as first:
        config = first.kubeconfig(folder / "config")
        with running(folder / "second", VOLCANO_UI_CLUSTERS=f"home=embedded,dev={config}") as second:
            second.client().close()
            yield first, second


@pytest.fixture
def page(enter, pair):
    return enter(pair[1], theme="light", reduced_motion="reduce")


def choose(page, here, there):
    page.get_by_role("button", name=f"Cluster {here}; choose another").click()
    page.get_by_role("navigation", name="Clusters").get_by_role("link", name=there).click()


def test_the_menu_leads_to_the_same_page_of_another_cluster(page):
    page.goto("/c/home/jobs/?namespace=default")
    choose(page, "home", "dev")
    page.wait_for_url("**/c/dev/jobs/?namespace=default")
    expect(page.get_by_label("Cluster", exact=True)).to_contain_text("dev")
    expect(page.locator("#live")).to_have_text(re.compile("live", re.IGNORECASE))
    page.get_by_role("link", name="Queues").click()
    page.wait_for_url("**/c/dev/queues/**")
    page.keyboard.press("g")
    page.keyboard.press("n")
    page.wait_for_url("**/c/dev/nodes/**")
    page.goto("/c/dev/nodes/no-such-node/")
    choose(page, "dev", "home")
    page.wait_for_url("**/c/home/nodes/")


def test_the_menu_works_by_keys_and_without_scripts(pair, browser):
    with world.enter(browser, pair[1], java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/c/home/queues/")
        page.get_by_role("button", name="Cluster home; choose another").press("Enter")
        link = page.get_by_role("navigation", name="Clusters").get_by_role("link", name="dev")
        expect(link).to_be_visible()
        link.press("Enter")
        page.wait_for_url("**/c/dev/queues/")


def test_a_draft_is_offered_only_in_its_own_cluster(page):
    page.goto("/c/home/jobs/new/")
    world.write(page, written("half"))
    expect(page.locator("#editor[data-draft-kept]")).to_be_visible()
    page.goto("/c/dev/jobs/new/")
    # It looks for drafts before it is an editor.
    expect(page.locator("#editor .cm-editor")).to_be_visible()
    expect(offers(page)).to_have_count(0)
    page.goto("/c/home/jobs/new/")
    expect(offers(page)).to_be_visible()


def test_the_menu_says_that_a_cluster_is_away_and_fits_the_window(page, axe, pair):
    first, _ = pair
    page.goto("/c/home/queues/")
    page.wait_for_selector("#live:not([hidden])")
    page.get_by_role("button", name="Cluster home; choose another").click()
    dev = page.locator("#state-of-cluster-dev")
    expect(dev).to_contain_text("live")
    first.stop()
    expect(dev).to_contain_text("away")
    expect(dev).to_contain_text("since")
    expect(page.locator("#state-of-cluster-home")).to_contain_text("live")
    assert findings(page, axe) == []
    assert in_dark(page, axe) == [], "in the dark theme"
    page.evaluate("document.querySelector('#live span').textContent = 'stale since 12:34:56'")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.get_by_role("navigation", name="Clusters").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    page.goto("/c/dev/queues/")
    expect(page.get_by_label("Cluster", exact=True)).to_contain_text("away")
    expect(page.get_by_role("link", name="default", exact=True).first).to_be_visible()
    first.start()
    expect(page.locator("[data-word=live]").first).to_be_attached()
