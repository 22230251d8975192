"""The page of a job: what leads to a log, what stays in its place, what a picture of a long wait shows."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.journey import Window
from tests.tables import cases

pytestmark = pytest.mark.system

LONG_WAIT = {
    "job": "failed", "zero": 1_780_000_000_000, "needed": 2, "met": 401_000, "lanes": [["Failed", 0, 0], ["main", 2, 2]],
    "bars": [
        [f"failed-main-{index}", 1, 400_000, 400_500, 401_000, 409_000, "succeeded", 0, "n", []] for index in range(2)
    ],
    "marks": [], "waits": [["queue", 0, 400_000], ["gang", 400_000, 400_500], ["starting", 400_500, 401_000]],
}  # fmt: skip
FAILED = "open /jobs/default/failed/ → live"


def draw(page, picture):
    """Have the timeline draw a picture that it is given as the server gives it."""
    page.locator("#timeline").evaluate("(root, text) => { root.dataset.drawn = text; }", json.dumps(picture))


def test_a_failed_job_leads_to_the_log_of_what_failed_and_a_waiting_one_says_why(page):
    Window(page).goes(f"""
        {FAILED}; #job-head .job-causes: exit 3 · broken-0; #table-rows tr >> nth=0: failed-broken-0
        click #job-head .job-causes >> link broken-0 → [data-part=text]: it broke
        {FAILED}; #timeline .t-task >> nth=0 = Failed
        click #timeline .t-pod >> nth=0 → .timeline-chosen: failed-broken-0: failed, exit code 3
        → #timeline .t-pod.t-chosen >> nth=0 is visible
        focus .timeline-box; press ArrowDown → .timeline-chosen: failed-main-0:
        focus .timeline-box; press ArrowUp; click .timeline-chosen >> link Open its log → [data-part=text]: it broke
        open /jobs/default/waiting/ → live; #job-why: a pod needs 640 CPU; #job-head: 0 of 4
    """)


def test_an_evicted_pod_and_the_next_of_its_name_are_chosen_apart(page):
    evicted = "#timeline .t-pod:has(.t-evicted)"
    Window(page).goes(f"open /jobs/default/moved/ → live; {evicted} × 3\nclick {evicted} >> nth=0")
    chosen = page.locator(".timeline-chosen")
    expect(chosen).to_contain_text(re.compile(r"moved-nap-\d: evicted"))
    name = chosen.inner_text().partition(":")[0]
    Window(page).goes(f"""
        → {evicted}.t-chosen × 1
        focus .timeline-box; press ArrowDown → .timeline-chosen: {name}: running; {evicted}.t-chosen × 0
        focus .timeline-box; press ArrowUp → .timeline-chosen: {name}: evicted
        click .timeline-chosen >> link Open its log → at **uid=**
    """)


def test_a_preempted_job_leads_to_who_has_its_room(page):
    Window(page).goes("""
        open /jobs/default/preempted/ → live
        click #timeline .t-evicted >> nth=0 → .timeline-chosen: evicted for job default/urgent
        → #job-why: 2 pods were evicted; #job-why: has a higher priority
    """)
    # Room is kept for it after five minutes.
    expect(page.locator("#job-why")).to_contain_text(re.compile("QueueLimit|Reserved"))
    Window(page).goes("click #job-why >> link default/urgent → #job-head: Running")


def test_nothing_below_the_head_moves_when_a_wait_is_over(page):
    tops = []
    for name in ("sweep", "running"):
        Window(page).goes(f"open /jobs/default/{name}/ → live")
        tops.append(page.locator(".tabs").bounding_box()["y"])
    assert tops[0] == tops[1]
    assert page.locator("#job-timeline").bounding_box()["y"] < 450


def test_a_long_wait_is_folded_and_a_closer_look_leaves_it_out(page):
    Window(page).goes(FAILED)
    draw(page, LONG_WAIT)
    Window(page).sees("#timeline: 6 min 40 s")
    whole, gap, ran = (
        page.locator(each).first.bounding_box()["width"]
        for each in (".timeline-box", "#timeline .t-gap", "#timeline .t-succeeded")
    )
    assert gap < whole / 5 < whole / 2 < ran
    Window(page).goes("""
        click button Closer → #timeline .t-gap × 0; #timeline .t-succeeded >> nth=0 is visible
        click button All of the time → #timeline .t-gap × 1
    """)
    # A wait that is not most of the time is drawn as long as it was.
    draw(page, {**LONG_WAIT, "bars": [[*bar[:5], 4_000_000, *bar[6:]] for bar in LONG_WAIT["bars"]]})
    Window(page).goes("→ #timeline .t-succeeded × 2; #timeline .t-gap × 0")


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
    Window(page).goes(FAILED)
    draw(page, LONG_WAIT)
    click(page, page.locator("#timeline .t-succeeded").first)
    Window(page).sees(".timeline-chosen: failed-main-0")
