"""Which cluster the pages show, and the menu of several: both follow by themselves, fit, and keep nobody out."""

import pytest

from proof.pictures import world
from proof.systems.system import running
from tests.browser.journey import Window
from tests.browser.test_drafts import OFFERS, written
from tests.browser.test_pages import WIDTHS, findings, in_dark, keeps_nobody_out_and_fits

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


def choose(here, there):
    return f"click button Cluster {here}; click navigation Clusters >> link {there}"


def test_the_menu_leads_to_the_same_page_of_another_cluster(page):
    Window(page).goes(f"""
        open /c/home/jobs/?namespace=default; {choose("home", "dev")} → at **/c/dev/jobs/?namespace=default
        → field "Cluster" is visible; field "Cluster": dev; live
        click link Queues → at **/c/dev/queues/**
        press g n → at **/c/dev/nodes/**
        open /c/dev/nodes/no-such-node/; {choose("dev", "home")} → at **/c/home/nodes/
    """)


def test_the_menu_works_by_keys_and_without_scripts(pair, browser):
    with world.enter(browser, pair[1], java_script_enabled=False) as context:
        Window(context.new_page()).goes("""
            open /c/home/queues/; focus button Cluster home; press Enter → navigation Clusters >> link dev is visible
            focus navigation Clusters >> link dev; press Enter → at **/c/dev/queues/
        """)


def test_a_draft_is_offered_only_in_its_own_cluster(page):
    page.goto("/c/home/jobs/new/")
    world.write(page, written("half"))
    # It looks for drafts before it is an editor.
    Window(page).goes(f"""
        → #editor[data-draft-kept] is visible
        open /c/dev/jobs/new/ → #editor .cm-editor is visible; {OFFERS} × 0
        open /c/home/jobs/new/ → {OFFERS} is visible
    """)


def test_the_menu_says_that_a_cluster_is_away_and_fits_the_window(page, axe, pair):
    first, _ = pair
    Window(page).goes("""
        open /c/home/queues/ → #live:not([hidden]) is visible
        click button Cluster home → #state-of-cluster-dev: live
    """)
    first.stop()
    Window(page).goes("→ #state-of-cluster-dev: away; #state-of-cluster-dev: since; #state-of-cluster-home: live")
    assert findings(page, axe) == []
    assert in_dark(page, axe) == [], "in the dark theme"
    page.evaluate("document.querySelector('#live span').textContent = 'stale since 12:34:56'")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = Window(page).find("navigation Clusters").bounding_box()
        assert 0 <= box["x"] <= width - box["width"]
    Window(page).goes('open /c/dev/queues/ → field "Cluster": away; link "default" >> nth=0 is visible')
    keeps_nobody_out_and_fits(page, axe)
    first.start()
    Window(page).sees("[data-word=live] >> nth=0 is attached")
