"""A list that is newest first holds still while somebody reads it, and moves without jumps while nobody does."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from cluster import clock
from cluster.store import Delete, Patch, store
from kube.meta import now_text
from kube.resources import JOBS
from tests.dashboard.pages.conftest import job, node, pod, put, queue, reader

SHIFTS = """
window.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifts += entry.value;
}).observe({ type: "layout-shift", buffered: false });
"""
SHIFTED = """async () => {
  await Promise.allSettled(document.getAnimations().map((each) => each.finished));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return shifts;
}"""
MOST_SHIFT = 0.02


@pytest.fixture
def admin(transactional_db):
    return reader("admin", "superuser")


@pytest.fixture
def tab(admin, open_tab):
    """The list of thirty jobs, live, with the pointer outside of it."""
    put(node("one"), queue("root", parent=""), queue("default"), *(job(f"j{n:02}") for n in range(30)))
    tab = open_tab(admin, "/jobs/")
    expect(tab.locator("#live")).to_have_text("live")
    tab.mouse.move(5, 5)
    return tab


def set_phase(name, phase):
    status = {"status": {"state": {"phase": phase, "message": f"It is {phase}."}}}
    store.write(Patch(JOBS, "team-a", name, status, "status"))


def names(tab):
    return tab.locator("#table-rows th a").all_inner_texts()


def held(tab):
    return tab.get_by_role("status").locator("button")


def read(tab):
    """Put the pointer on a row; return the name that is under it."""
    tab.locator("#table-rows tr:nth-child(4) th").hover()
    return under_pointer(tab)


def under_pointer(tab):
    return tab.evaluate("document.querySelector('#table-rows tr:hover th').innerText")


def stays(tab, *places):
    """Load a page again without its scripts: these places are where they were with them."""
    tops = [tab.locator(each).bounding_box()["y"] for each in places]
    tab.route("**/*.js", lambda route: route.abort())
    tab.reload()
    assert [tab.locator(each).bounding_box()["y"] for each in places] == tops


@pytest.mark.parametrize("width", [360, 1280])
def test_a_list_does_not_move_when_its_scripts_come(tab, width):
    tab.set_viewport_size({"width": width, "height": 800})
    expect(tab.get_by_role("button", name="Tick this page")).to_be_visible()
    stays(tab, "#table-rows")


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_the_overview_does_not_move_when_its_scripts_come(admin, open_tab, width):
    """Each sentence fills its line but for the room of a date that the script makes shorter."""
    sentences = [" ".join(["word"] * number) + "." for number in range(8, 32, 4)]
    put(node("one"), *(job(f"j{n}", "Failed", message=each) for n, each in enumerate(sentences)))
    tab = open_tab(admin, "/")
    tab.set_viewport_size({"width": width, "height": 800})
    expect(tab.locator("#overview-attention li time").first).to_have_text(re.compile("ago|now"))
    stays(tab, "#overview-tiles")


def gang(pods):
    """Store a job of one task."""
    kind, made = job("train", "Pending" if pods < 9 else "Running")
    made["spec"] |= {"minAvailable": pods, "tasks": [{"name": "main", "replicas": pods}]}
    return put((kind, made))[0]


def members(made, pods):
    """Return the pods of a job of one task, which run."""
    for number in range(pods):
        kind, member = pod(f"train-main-{number}")
        member["metadata"]["annotations"]["volcano.sh/task-spec"] = "main"
        member["metadata"]["ownerReferences"][0]["uid"] = made.uid
        since = now_text(clock.milliseconds() + 130_000)
        member["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": since}]
        yield kind, member


@pytest.mark.parametrize("width", [390, 1000, 1280])
@pytest.mark.parametrize("pods", [1, 30])
def test_the_page_of_a_job_does_not_move_when_its_scripts_come(admin, open_tab, width, pods):
    """Its steps took minutes, so each has a date and how much later it came; the picture is as high as its room."""
    put(*members(gang(pods), pods))
    tab = open_tab(admin, "/jobs/team-a/train/", viewport={"width": width, "height": 800})
    expect(tab.locator("#timeline .t-pod")).to_have_count(pods)
    expect(tab.locator("#job-head time").first).to_have_text(re.compile("ago|now"))
    stays(tab, "#job-steps", "#job-timeline", "#pods")


@pytest.mark.parametrize("width", [390, 1280])
def test_pods_that_come_do_not_move_what_is_below_the_timeline(admin, open_tab, width):
    made = gang(3)
    tab = open_tab(admin, "/jobs/team-a/train/", viewport={"width": width, "height": 800})
    expect(tab.locator("#live")).to_have_text("live")
    top = tab.locator("#pods").bounding_box()["y"]
    put(*members(made, 3))
    expect(tab.locator("#timeline .t-pod")).to_have_count(3)
    assert tab.locator("#pods").bounding_box()["y"] == top


def test_rows_that_come_while_the_pointer_is_in_the_list_wait_until_they_are_asked_for(tab):
    before, name = names(tab), read(tab)
    put(job("new-1"))
    expect(held(tab)).to_have_text("1 new job – show")
    put(job("new-2"))
    expect(held(tab)).to_have_text("2 new jobs – show")
    set_phase("j05", "Failed")
    expect(tab.locator("#table-rows tr", has_text="j05").locator(".phase")).to_have_text("Failed")
    assert names(tab) == before
    assert under_pointer(tab) == name
    set_phase("new-1", "Failed")
    expect(tab.locator("#table-chips")).to_contain_text("Failed 2")
    held(tab).click()
    expect(held(tab)).to_have_count(0)
    expect(tab.locator("#table-rows tr")).to_have_count(32)
    assert {*names(tab)[:2]} == {"new-1", "new-2"}
    expect(tab.locator("#table-rows tr", has_text="new-1").locator(".phase")).to_have_text("Failed")
    assert tab.errors == []


def test_a_row_that_goes_while_the_list_is_read_turns_quiet_and_pulls_nothing_up(tab):
    before = names(tab)
    read(tab)
    store.write(Delete(JOBS, "team-a", before[1], grace=0))
    expect(tab.locator("#table-rows tr[data-left]")).to_have_count(1)
    assert names(tab) == before
    tab.mouse.move(5, 5)
    expect(tab.locator("#table-rows tr")).to_have_count(29)
    assert tab.locator("[data-left]").count() == 0


@pytest.mark.parametrize("how", ["ticked", "focused", "scrolled"])
def test_a_list_is_read_also_without_the_pointer_in_it(tab, how):
    before = names(tab)
    if how == "ticked":
        tab.locator("#table-rows input").first.check()
        tab.mouse.move(5, 5)
    elif how == "focused":
        tab.locator("#table-rows th a").first.focus()
    else:
        tab.locator("#table-rows tr").last.scroll_into_view_if_needed()
        tab.evaluate("scrollTo(0, document.body.scrollHeight)")
    put(job("new"))
    expect(held(tab)).to_have_text("1 new job – show")
    assert names(tab) == before


def test_with_the_keyboard_the_line_leads_into_the_list(tab):
    tab.locator("#table-rows th a").first.focus()
    put(job("new"))
    held(tab).press("Enter")
    expect(tab.locator("#table-rows tr").first).to_contain_text("new")
    assert tab.evaluate("document.activeElement.innerText") == "new"


def test_a_list_in_another_order_moves_as_its_order_asks(tab):
    tab.goto("/jobs/?sort=name")
    expect(tab.locator("#live")).to_have_text("live")
    read(tab)
    put(job("a-first"))
    expect(tab.locator("#table-rows tr").first).to_contain_text("a-first")


@pytest.mark.parametrize("is_read", [False, True], ids=["outside", "inside"])
def test_a_hundred_jobs_that_come_and_change_shift_nothing(tab, is_read):
    if is_read:
        read(tab)
    tab.evaluate(SHIFTS)
    for number in range(50):
        put(job(f"new-{number:02}"))
        set_phase(f"j{number % 30:02}", ("Failed", "Completed", "Running")[number % 3])
        set_phase(f"new-{number:02}", "Failed")
    if is_read:
        expect(held(tab)).to_contain_text("50 new jobs – show")
    else:
        expect(tab.locator("#table-chips")).to_contain_text("All 80")
        expect(tab.locator("#table-rows tr").first).to_contain_text("new-49")
    assert tab.evaluate(SHIFTED) <= MOST_SHIFT
