"""What a cluster refuses, on the page of a job in a real browser: it fits, keeps nobody out, and goes when it is over."""

from __future__ import annotations

import pytest

from cluster.runtime.retries import TOLD_AFTER, Retries
from cluster.store import Create, Group, store
from kube.errors import Forbidden
from kube.resources import EVENTS, JOBS
from tests.browser.journey import Window
from tests.dashboard.pages.conftest import reader
from tests.jobs.pages import world

WORDS = (
    'pods "a-training-with-a-long-name-worker-0" is forbidden: exceeded quota: team, requested: requests.cpu=4,'
    " used: requests.cpu=18, limited: requests.cpu=20"
)


@pytest.fixture
def kept():
    return Retries("jobs", "jobs/0", "default")


@pytest.fixture
def tab(transactional_db, kept, open_tab):
    world.base()
    world.make("demo", "Pending", began=world.START)
    for second in range(TOLD_AFTER):
        kept.timers([Group([], "default/demo")], [Forbidden(WORDS)], world.START + second * 1000)
    return open_tab(reader("admin", "superuser"), "/jobs/default/demo/")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_refusal_fits_the_window_and_keeps_nobody_out(tab, axe, width, theme):
    tab.emulate_media(color_scheme=theme)
    tab.set_viewport_size({"width": width, "height": 800})
    Window(tab).goes("→ #refusals .notice: What this Job needs next is refused; #refusals .notice: exceeded quota")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.evaluate(axe)
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [each["id"] for each in found] == []
    assert tab.errors == []


def test_a_refusal_goes_when_it_is_over(tab, kept):
    Window(tab).sees("#refusals .notice × 1")
    kept.timers([Group([], "default/demo")], [[]], world.START)
    job = store.find(JOBS, name="demo")[0]
    about = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "namespace": "default", "name": "demo"}
    event = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": {**about, "uid": job.uid}}
    store.write(Create(EVENTS, event))
    Window(tab).sees("#refusals .notice × 0")
