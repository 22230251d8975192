"""The strip that says which cluster the pages show, in a browser: it follows by itself, fits, and keeps nobody out."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from proof.pictures import world
from proof.systems.system import running
from tests.browser.test_pages import keeps_nobody_out_and_fits

pytestmark = [pytest.mark.system, pytest.mark.clusters]


@pytest.fixture
def pair(tmp_path):
    """A cluster, and the system that shows it."""
    with running(tmp_path / "first") as first:
        config = first.kubeconfig(tmp_path / "config")
        with running(tmp_path / "second", VOLCANO_UI_KUBECONFIG=str(config)) as second:
            yield first, second


@pytest.fixture
def page(browser, pair):
    _, second = pair
    second.client().close()
    with world.enter(browser, second, theme="light", reduced_motion="reduce") as context:
        yield context.new_page()


def test_strip_follows_the_cluster_and_fits_the_window(page, axe, pair):
    first, _ = pair
    page.goto("/queues/")
    strip = page.get_by_label("Cluster", exact=True)
    expect(strip).to_have_text(re.compile(r"^volcano-ui-\S+\s+live\s*$"), use_inner_text=True)
    first.stop()
    expect(strip).to_contain_text("away")
    expect(strip).to_contain_text("connection refused")
    keeps_nobody_out_and_fits(page, axe)
    first.start()
    expect(strip.locator("[data-word=live]")).to_be_visible()
