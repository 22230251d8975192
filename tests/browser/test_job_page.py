"""The page of a job: what leads to a log, what stays in its place, what a picture of a long wait shows."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.tables import cases

pytestmark = pytest.mark.system

LONG_WAIT = {
    "job": "failed",
    "zero": 1_780_000_000_000,
    "needed": 2,
    "met": 401_000,
    "lanes": [["Failed", 0, 0], ["main", 2, 2]],
    "bars": [
        [f"failed-main-{index}", 1, 400_000, 400_500, 401_000, 409_000, "succeeded", 0, "n", []] for index in range(2)
    ],
    "marks": [],
    "waits": [["queue", 0, 400_000], ["gang", 400_000, 400_500], ["starting", 400_500, 401_000]],
}


def open_job(page, name, query=""):
    page.goto(f"/jobs/default/{name}/{query}")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    return page


def draw(page, picture):
    """Have the timeline draw a picture that it is given as the server gives it."""
    page.locator("#timeline").evaluate("(root, text) => { root.dataset.drawn = text; }", json.dumps(picture))


def test_a_failed_job_leads_to_the_log_of_what_failed(page):
    cause = open_job(page, "failed").locator("#job-head .job-causes")
    expect(cause).to_contain_text("exit 3 · broken-0")
    expect(page.locator("#table-rows tr").first).to_contain_text("failed-broken-0")
    cause.get_by_role("link", name="broken-0").click()
    expect(page.locator("[data-part=text]")).to_contain_text("it broke")


def test_a_bar_chooses_its_pod_and_leads_to_its_log(page):
    bars = open_job(page, "failed").locator("#timeline .t-pod")
    expect(page.locator("#timeline .t-task").first).to_have_text("Failed")
    bars.first.click()
    chosen = page.locator(".timeline-chosen")
    expect(chosen).to_contain_text("failed-broken-0: failed, exit code 3")
    expect(bars.first).to_have_class(re.compile("t-chosen"))
    page.locator(".timeline-box").press("ArrowDown")
    expect(chosen).to_contain_text("failed-main-0:")
    page.locator(".timeline-box").press("ArrowUp")
    chosen.get_by_role("link", name="Open its log").click()
    expect(page.locator("[data-part=text]")).to_contain_text("it broke")


def test_an_evicted_pod_and_the_next_of_its_name_are_chosen_apart(page):
    bars = open_job(page, "moved").locator("#timeline .t-pod")
    evicted = bars.filter(has=page.locator(".t-evicted"))
    expect(evicted).to_have_count(3)
    chosen, box = page.locator(".timeline-chosen"), page.locator(".timeline-box")
    evicted.first.click()
    expect(chosen).to_contain_text(re.compile(r"moved-nap-\d: evicted"))
    expect(evicted.first).to_have_class(re.compile("t-chosen"))
    name = chosen.inner_text().partition(":")[0]
    box.press("ArrowDown")
    expect(chosen).to_contain_text(f"{name}: running")
    expect(evicted.first).not_to_have_class(re.compile("t-chosen"))
    box.press("ArrowUp")
    expect(chosen).to_contain_text(f"{name}: evicted")
    chosen.get_by_role("link", name="Open its log").click()
    page.wait_for_url("**uid=**")


def test_a_preempted_job_leads_to_who_has_its_room(page):
    why = open_job(page, "preempted").locator("#job-why")
    page.locator("#timeline .t-evicted").first.click()
    expect(page.locator(".timeline-chosen")).to_contain_text("evicted for job default/urgent")
    expect(why).to_contain_text("2 pods were evicted")
    expect(why).to_contain_text("has a higher priority")
    expect(why).to_contain_text(re.compile("QueueLimit|Reserved"))  # room is kept for it after five minutes
    why.get_by_role("link", name="default/urgent").click()
    expect(page.locator("#job-head")).to_contain_text("Running")


def test_nothing_below_the_head_moves_when_a_wait_is_over(page):
    tops = [open_job(page, name).locator(".tabs").bounding_box()["y"] for name in ("sweep", "running")]
    assert tops[0] == tops[1]
    assert open_job(page, "running").locator("#job-timeline").bounding_box()["y"] < 450


def test_a_long_wait_is_folded_and_a_closer_look_leaves_it_out(page):
    open_job(page, "failed")
    draw(page, LONG_WAIT)
    gap, ran = page.locator("#timeline .t-gap"), page.locator("#timeline .t-succeeded")
    expect(page.locator("#timeline")).to_contain_text("6 min 40 s")
    whole = page.locator(".timeline-box").bounding_box()["width"]
    assert gap.bounding_box()["width"] < whole / 5
    assert ran.first.bounding_box()["width"] > whole / 2
    page.get_by_role("button", name="Closer").click()
    expect(gap).to_have_count(0)
    expect(ran.first).to_be_visible()
    page.get_by_role("button", name="All of the time").click()
    expect(gap).to_have_count(1)
    # A wait that is not most of the time is drawn as long as it was.
    draw(page, {**LONG_WAIT, "bars": [[*bar[:5], 4_000_000, *bar[6:]] for bar in LONG_WAIT["bars"]]})
    expect(ran).to_have_count(2)
    expect(gap).to_have_count(0)


def click_at_a_mark(page, bar):
    draw(page, {**LONG_WAIT, "marks": [[405_000, "Restarted by admin"]]})
    middle = float(bar.get_attribute("x")) + float(bar.get_attribute("width")) / 2
    assert float(page.locator("#timeline .t-mark").get_attribute("x1")) == pytest.approx(middle, abs=1)
    bar.click()


def click_while_it_is_drawn_anew(page, bar):
    bar.hover()
    page.mouse.down()
    draw(page, {**LONG_WAIT, "met": 401_500})
    page.mouse.up()


@cases("click", {
    "where a line crosses it": click_at_a_mark,
    "without a pointer": lambda page, bar: bar.dispatch_event("click"),
    "while it is drawn anew": click_while_it_is_drawn_anew,
})  # fmt: skip
def test_a_bar_is_chosen_however_it_is_clicked(page, click):
    open_job(page, "failed")
    draw(page, LONG_WAIT)
    click(page, page.locator("#timeline .t-succeeded").first)
    expect(page.locator(".timeline-chosen")).to_contain_text("failed-main-0")
