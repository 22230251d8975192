"""A list that is newest first holds still while somebody reads it, and moves without jumps while nobody does."""

import re

import pytest
from playwright.sync_api import expect

from cluster import clock
from cluster.store import Delete, store
from kube.meta import now_text
from kube.resources import JOBS
from tests.browser.journey import Window
from tests.dashboard.pages.conftest import job, node, pod, put, queue, reader, set_phase

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
MAX_SHIFT = 0.02


@pytest.fixture
def admin(transactional_db):
    return reader("admin", "superuser")


@pytest.fixture
def tab(admin, open_tab):
    """The list of thirty jobs, live, with the pointer outside of it."""
    put(node("one"), queue("root", parent=""), queue("default"), *(job(f"j{n:02}") for n in range(30)))
    tab = open_tab(admin, "/jobs/")
    Window(tab).sees("live")
    tab.mouse.move(5, 5)
    return tab


def names(tab):
    return tab.locator("#table-rows th a").all_inner_texts()


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
    Window(tab).sees("button Tick this page is visible")
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
    Window(tab).sees(f"#timeline .t-pod × {pods}")
    expect(tab.locator("#job-head time").first).to_have_text(re.compile("ago|now"))
    stays(tab, "#job-steps", "#job-timeline", "#pods")


@pytest.mark.parametrize("width", [390, 1280])
def test_pods_that_come_do_not_move_what_is_below_the_timeline(admin, open_tab, width):
    made = gang(3)
    tab = open_tab(admin, "/jobs/team-a/train/", viewport={"width": width, "height": 800})
    Window(tab).sees("live")
    top = tab.locator("#pods").bounding_box()["y"]
    put(*members(made, 3))
    Window(tab).sees("#timeline .t-pod × 3")
    assert tab.locator("#pods").bounding_box()["y"] == top


HELD = "status >> button"  # the line that says how many rows wait


def test_rows_that_come_while_the_pointer_is_in_the_list_wait_until_they_are_asked_for(tab):
    before, name = names(tab), read(tab)
    put(job("new-1"))
    Window(tab).sees(f"{HELD} = 1 new job – show")
    put(job("new-2"))
    Window(tab).sees(f"{HELD} = 2 new jobs – show")
    set_phase("j05", "Failed")
    Window(tab).sees('#table-rows tr:has-text("j05") .phase = Failed')
    assert (names(tab), under_pointer(tab)) == (before, name)
    set_phase("new-1", "Failed")
    Window(tab).goes(f"""
        → #table-chips: Failed 2
        click {HELD} → {HELD} × 0; #table-rows tr × 32; #table-rows tr:has-text("new-1") .phase = Failed
    """)
    assert {*names(tab)[:2]} == {"new-1", "new-2"}
    assert tab.errors == []


def test_a_row_that_goes_while_the_list_is_read_turns_quiet_and_pulls_nothing_up(tab):
    before = names(tab)
    read(tab)
    store.write(Delete(JOBS, "team-a", before[1], grace=0))
    Window(tab).sees("#table-rows tr[data-left] × 1")
    assert names(tab) == before
    tab.mouse.move(5, 5)
    Window(tab).goes("→ #table-rows tr × 29; [data-left] × 0")


@pytest.mark.parametrize("how", ["ticked", "focused", "scrolled"])
def test_a_list_is_read_also_without_the_pointer_in_it(tab, how):
    before = names(tab)
    if how == "ticked":
        Window(tab).goes("check #table-rows input >> nth=0")
        tab.mouse.move(5, 5)
    elif how == "focused":
        Window(tab).goes("focus #table-rows th a >> nth=0")
    else:
        tab.locator("#table-rows tr").last.scroll_into_view_if_needed()
        tab.evaluate("scrollTo(0, document.body.scrollHeight)")
    put(job("new"))
    Window(tab).sees(f"{HELD} = 1 new job – show")
    assert names(tab) == before
    if how == "focused":  # with the keyboard the line leads into the list
        Window(tab).goes(f"focus {HELD}; press Enter → #table-rows tr >> nth=0: new")
        assert tab.evaluate("document.activeElement.innerText") == "new"


def test_a_list_in_another_order_moves_as_its_order_asks(tab):
    Window(tab).goes("open /jobs/?sort=name → live")
    read(tab)
    put(job("a-first"))
    Window(tab).sees("#table-rows tr >> nth=0: a-first")


@pytest.mark.parametrize("is_read", [False, True], ids=["outside", "inside"])
def test_a_hundred_jobs_that_come_and_change_shift_nothing(tab, is_read):
    if is_read:
        read(tab)
    tab.evaluate(SHIFTS)
    for number in range(50):
        put(job(f"new-{number:02}"))
        set_phase(f"j{number % 30:02}", ("Failed", "Completed", "Running")[number % 3])
        set_phase(f"new-{number:02}", "Failed")
    Window(tab).goes(
        f"→ {HELD}: 50 new jobs – show" if is_read else "→ #table-chips: All 80; #table-rows tr >> nth=0: new-49"
    )
    assert tab.evaluate(SHIFTED) <= MAX_SHIFT
