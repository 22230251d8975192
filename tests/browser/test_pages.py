"""Every page: nothing that keeps people out in either theme, nothing wider than the window."""

import pytest
from playwright.sync_api import expect

from proof.pictures import world
from proof.pictures.pages import PAGES, PUBLIC
from proof.pictures.world import write

pytestmark = pytest.mark.system

WIDTHS = (360, 600, 768, 1024, 1280)
JUDGED = ".editor-says[data-state]:not([data-checking])"  # the editor, once it has said what it thinks of the job
BEYOND = """[...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.children.length)
    .map((one) => one.outerHTML.slice(0, 120)).slice(0, 5)"""
SERIOUS = ("serious", "critical")
# Of rules chosen by a tag axe runs also those that it leaves out by itself.
COLOURS = {
    "runOnly": {"type": "tag", "values": ["cat.color"]},
    "rules": {"color-contrast-enhanced": {"enabled": False}},
}


def findings(page, axe, only=None):
    """Run axe in the page, all its rules or only some; return its serious findings with their places."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    options = {"resultTypes": ["violations"], **(only or {})}
    found = page.evaluate("(options) => axe.run(document, options)", options)["violations"]
    return [
        (each["id"], each["help"], [node["target"] for node in each["nodes"]][:5])
        for each in found
        if each["impact"] in SERIOUS
    ]


def in_dark(page, axe):
    """Turn the page dark, and return what axe finds then: a theme changes colours and nothing else."""
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    return findings(page, axe, COLOURS)


def keeps_nobody_out_and_fits(page, axe):
    """Look at a page in both themes and in windows of all widths."""
    assert findings(page, axe) == []
    assert in_dark(page, axe) == [], "in the dark theme"
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        needed = page.evaluate("document.documentElement.scrollWidth")
        assert needed <= width, f"{needed} pixels in a window of {width}: {page.evaluate(BEYOND)}"


def still(page, system, cookies=None):
    """Have a page be in the light theme, and that of a reader who wants no motion, by default the administrator."""
    page.emulate_media(reduced_motion="reduce")
    page.context.clear_cookies()
    page.context.add_cookies(world.cookies_of(system, cookies, theme="light"))


@pytest.mark.parametrize("name", PAGES)
def test_page_keeps_nobody_out_and_fits_the_window(page, system, axe, name):
    still(page, system, cookies={} if name in PUBLIC else None)
    answer = page.goto(PAGES[name])
    assert answer.ok != (name == "not found"), answer.status
    if name not in PUBLIC:
        page.wait_for_selector("#live:not([hidden])")
    if PAGES[name].startswith(PAGES["new job"]):
        # What it says moves the page, and axe takes what is elsewhere by then for the background.
        page.wait_for_selector(JUDGED)
    keeps_nobody_out_and_fits(page, axe)


@pytest.mark.parametrize("text", [world.GUARDED, world.EQUIPPED], ids=["guarded", "equipped"])
def test_form_with_every_part_open_keeps_nobody_out_and_fits_the_window(page, system, axe, text):
    still(page, system)
    page.goto(PAGES["new job"])
    page.wait_for_selector(JUDGED)
    write(page, text)
    expect(page.locator(".editor-says")).to_have_attribute("data-warned", "")
    page.evaluate("for (const each of document.querySelectorAll('.editor details')) each.open = true")
    page.get_by_role("combobox", name="Queue").click()
    keeps_nobody_out_and_fits(page, axe)


def test_a_verdict_can_be_read_while_another_is_awaited(page, system, axe):
    still(page, system)
    page.goto(PAGES["new job"])
    page.wait_for_selector(JUDGED)
    page.route("**/jobs/validate/", lambda route: None)
    page.locator(".cm-content").press_sequentially("# more")
    page.wait_for_selector(".editor-says[data-checking]")
    assert findings(page, axe) == []
    page.unroute_all(behavior="ignoreErrors")


LATE_HTMX = "const soon = setTimeout; globalThis.setTimeout = (what, ms, ...more) => soon(what, ms ?? 1000, ...more)"


@pytest.mark.parametrize("late", ["scripts", "htmx"])
def test_what_is_typed_before_the_scripts_run_is_found(enter, late):
    page = enter()
    typed, held = False, []
    if late == "scripts":
        page.route("**/build/main*.js", lambda route: route.continue_() if typed else held.append(route))
    else:
        page.add_init_script(LATE_HTMX)
    page.goto(PAGES["jobs"], wait_until="commit")
    page.get_by_label("Find").press_sequentially("sweep")
    typed = True
    for route in held:
        route.continue_()
    page.wait_for_url("**q=sweep**")
    expect(page.locator("#table-rows tr")).to_have_count(1)


def test_another_theme_is_there_at_once_for_who_wants_no_motion(page, system):
    still(page, system)
    page.goto(PAGES["overview"])
    ink = "getComputedStyle(document.querySelector('h1')).color"
    light, dark = page.evaluate(f"[{ink}, (document.documentElement.dataset.theme = 'dark', {ink})]")
    assert light != dark
