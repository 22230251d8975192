"""Live pages in a real browser: what changes appears, what is lost is said, what the reader does is kept."""

from __future__ import annotations

import asyncio
import threading

import pytest
from playwright.sync_api import expect

from cluster.store import Create, Delete, Patch, store
from dashboard.live import hub
from kube.resources import COMMANDS, JOBS, NAMESPACES, NODES
from proof.harness.waiting import HANG_S
from tests.dashboard.pages.conftest import job, node, pod, put, queue, reader
from tests.dashboard.pages.test_kept_room import keep


@pytest.fixture
def admin(transactional_db):
    """An administrator of a small cluster."""
    put(
        node("one"), node("two"), queue("root", parent=""), queue("default"), queue("below", parent="default"),
        job("train"), pod("train-0"),
    )  # fmt: skip
    return reader("admin", "superuser")


def live(tab):
    expect(tab.locator("#live")).to_have_text("live")


def set_phase(name, phase):
    store.write(
        Patch(JOBS, "team-a", name, {"status": {"state": {"phase": phase, "message": f"It is {phase}."}}}, "status")
    )


def test_a_change_appears_without_reload(admin, open_tab):
    tab = open_tab(admin, "/queues/default/")
    live(tab)
    row = tab.locator("#table-rows tr")
    expect(row.locator(".phase")).to_have_text("Running")
    set_phase("train", "Failed")
    expect(row.locator(".phase")).to_have_text("Failed")
    expect(tab.locator("#table-chips")).to_contain_text("Failed 1")
    put(job("second"))
    expect(tab.locator("#table-rows tr")).to_have_count(2)
    store.write(Delete(JOBS, "team-a", "train", grace=0))
    expect(tab.locator("#table-rows tr")).to_have_count(1)
    assert tab.errors == []


def test_room_that_is_kept_appears_without_reload_and_goes_when_it_is_released(admin, open_tab):
    tab, other = open_tab(admin, "/"), open_tab(admin, "/nodes/one/")
    live(tab)
    live(other)
    expect(tab.locator("#overview-room")).to_be_hidden()
    expect(other.locator("#node-use")).not_to_contain_text("kept")
    keep(queue="default", places=((("one", 1), ("two", 2)),))
    expect(tab.locator("#overview-room")).to_contain_text("3 CPU, 6 GiB memory on one, two")
    expect(other.locator("#node-room")).to_contain_text("1 CPU, 2 GiB memory")
    expect(other.locator("#node-use")).to_contain_text("1 of the rest kept")
    tab.get_by_role("button", name="Release…").click()
    tab.get_by_role("button", name="Release the room").click()
    expect(tab.locator("#toasts")).to_contain_text("The room that was kept for big is given back.")
    expect(tab.locator("#overview-room")).to_be_hidden()
    expect(other.locator("#node-room")).to_be_hidden()
    assert tab.errors == other.errors == []


def test_on_a_phone_room_is_released_below_the_words_that_say_whose_it_is(admin, open_tab):
    keep(places=(tuple((f"a-node-with-a-long-name-{number}", 1) for number in range(6)),))
    tab = open_tab(admin, "/", viewport={"width": 390, "height": 800})
    row = tab.locator("#overview-room li")
    words, button = (row.locator(each).bounding_box() for each in ("> .grow", "> .button"))
    assert words["y"] + words["height"] <= button["y"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_on_a_phone_a_queue_is_as_far_in_as_it_is_deep(admin, open_tab):
    put(queue("beside"), queue("deepest", parent="below"))
    tab = open_tab(admin, "/queues/", viewport={"width": 390, "height": 800})
    places = {each.inner_text(): each.bounding_box()["x"] for each in tab.locator("#table-rows th a").all()}
    assert places["default"] == places["beside"] < places["below"] < places["deepest"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_the_reader_does_is_kept_while_the_page_changes(admin, open_tab):
    put(*(job(f"j{number:02}") for number in range(40)))
    tab = open_tab(admin, "/queues/default/?sort=name")
    live(tab)
    tab.locator("#table-rows tr:nth-child(30) a").focus()
    name = tab.evaluate("document.activeElement.closest('tr').id")
    top = tab.evaluate("scrollY")
    set_phase("j01", "Failed")
    put(job("a-first"))
    expect(tab.locator("#table-rows tr")).to_have_count(42)
    assert tab.evaluate("document.activeElement.closest('tr')?.id") == name
    assert abs(tab.evaluate("scrollY") - top) < 60


def test_the_page_says_stale_while_the_server_is_away_and_then_equals_a_fresh_load(admin, site, open_tab):
    tab = open_tab(admin, "/nodes/")
    live(tab)
    site.stop()
    expect(tab.locator("#live")).to_contain_text("stale since")
    store.write(Delete(NODES, "", "two"))
    put(node("three"))
    site.start()
    expect(tab.locator("#live")).to_have_text("live")
    rows = tab.locator("#table-rows tr th").all_inner_texts()
    summary = tab.locator("#nodes-summary").inner_text()
    tab.reload()
    assert rows == tab.locator("#table-rows tr th").all_inner_texts() == ["one", "three"]
    assert summary == tab.locator("#nodes-summary").inner_text()


def test_the_page_does_not_say_live_before_it_has_what_it_missed(admin, site, open_tab, monkeypatch):
    tab = open_tab(admin, "/nodes/")
    live(tab)
    site.stop()
    expect(tab.locator("#live")).to_contain_text("stale since")
    asked, answers = threading.Event(), threading.Event()
    join = hub.Hub.join

    async def held(*arguments):
        asked.set()
        await asyncio.to_thread(answers.wait, HANG_S)
        return await join(*arguments)

    monkeypatch.setattr(hub.Hub, "join", held)
    site.start()
    assert asked.wait(HANG_S)
    said = tab.locator("#live").inner_text()
    answers.set()
    assert said != "live"
    live(tab)


def test_a_tab_that_was_offline_catches_up(admin, open_tab):
    tab = open_tab(admin, "/nodes/")
    live(tab)
    tab.evaluate("window.dispatchEvent(new Event('offline'))")
    tab.context.set_offline(True)
    put(node("three"))
    tab.context.set_offline(False)
    tab.evaluate("window.dispatchEvent(new Event('online'))")
    expect(tab.locator("#table-rows tr")).to_have_count(3)
    live(tab)


def test_logging_out_elsewhere_is_said(admin, open_tab):
    tab = open_tab(admin, "/nodes/")
    live(tab)
    admin.logout()
    expect(tab.locator("#live")).to_have_text("logged out")


def test_a_page_without_live_parts_does_not_call_itself_live(admin, open_tab):
    expect(open_tab(admin, "/audit/").locator("#live")).to_contain_text("as of")


@pytest.mark.parametrize("address", ["/", "/nodes/", "/nodes/one/", "/queues/", "/queues/default/", "/events/"])
def test_a_page_reads_right_without_script(admin, open_tab, address):
    tab = open_tab(admin, address, java_script_enabled=False)
    expect(tab.locator("h1")).to_be_visible()
    for moment in tab.locator("time").all_inner_texts():
        assert moment.endswith("UTC")
    expect(tab.locator("#live")).to_be_hidden()


def test_the_filter_narrows_while_typing_and_the_url_holds_the_view(admin, open_tab):
    tab = open_tab(admin, "/nodes/")
    live(tab)
    tab.keyboard.press("/")
    tab.keyboard.insert_text("tw")  # two keys are two steps of the history where a moment passes between them
    expect(tab.locator("#table-rows tr")).to_have_count(1)
    expect(tab).to_have_url("/nodes/?q=tw")
    put(node("twin"), node("other"))
    expect(tab.locator("#table-rows tr")).to_have_count(2)
    tab.go_back()
    expect(tab).to_have_url("/nodes/")
    expect(tab.locator("#table-rows tr")).to_have_count(4)
    assert tab.errors == []


def test_the_time_of_what_appears_is_shown_like_the_others_at_once(admin, open_tab):
    tab = open_tab(admin, "/")
    live(tab)
    put(job("broken", "Failed", message="Exit code 3."))
    since = tab.locator("#overview-attention li time")
    since.wait_for()
    assert "UTC" not in since.text_content()


def test_a_table_can_be_walked_filtered_and_opened_by_keys(admin, open_tab):
    tab = open_tab(admin, "/nodes/")
    for key in ("j", "j", "k", "j", "Enter"):
        tab.keyboard.press(key)
    expect(tab).to_have_url("/nodes/two/")
    tab.go_back()
    tab.keyboard.press("/")
    tab.keyboard.type("two")
    expect(tab.locator("#table-rows tr")).to_have_count(1)
    for key in ("Escape", "j", "Enter"):
        tab.keyboard.press(key)
    expect(tab).to_have_url("/nodes/two/")
    for keys, address in (("go", "/"), ("gq", "/queues/"), ("gn", "/nodes/")):
        tab.wait_for_load_state()  # from then on it hears keys
        tab.keyboard.type(keys)
        expect(tab).to_have_url(address)
    tab.wait_for_load_state()
    tab.keyboard.press("?")
    expect(tab.locator("#help")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.locator("#help")).to_be_hidden()


def test_the_theme_is_chosen_and_remembered_without_flash(admin, open_tab):
    tab = open_tab(admin, "/nodes/", color_scheme="light")
    tab.click("[popovertarget=reader]")
    tab.click("#reader button[value=dark]")
    expect(tab.locator("html")).to_have_attribute("data-theme", "dark")
    assert 'data-theme="dark"' in tab.request.get(tab.url).text()
    tab.reload()
    ground = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(14, 18, 23)"


def test_a_queue_is_closed_after_the_dialog_said_what_it_stops(admin, open_tab):
    tab = open_tab(admin, "/queues/default/")
    live(tab)
    tab.get_by_role("button", name="Close…").click()
    dialog = tab.locator("#close-queue")
    expect(dialog).to_contain_text("1 running and 0 waiting jobs")
    set_phase("train", "Pending")
    expect(dialog).to_contain_text("0 running and 1 waiting jobs")
    dialog.get_by_role("button", name="Close the queue").click()
    expect(tab.locator(".toast")).to_contain_text("takes no new jobs")
    expect(tab.get_by_role("button", name="Open")).to_be_visible()


@pytest.mark.parametrize("address", ["/", "/nodes/"])
def test_a_node_that_is_away_keeps_nobody_out(admin, open_tab, axe, address):
    """Every page of a cluster whose nodes are well: tests/browser/test_pages.py."""
    put(node("away", ready=False))
    tab = open_tab(admin, address, bypass_csp=True)
    tab.evaluate(axe)
    for theme in ("light", "dark"):
        tab.emulate_media(color_scheme=theme)
        found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        grave = [each for each in found if each["impact"] in ("serious", "critical")]
        assert [(each["id"], [node["html"][:160] for node in each["nodes"]][:4]) for each in grave] == []


def test_a_button_that_takes_the_place_of_another_does_what_it_says(admin, open_tab):
    store.write(Create(NAMESPACES, {"metadata": {"name": "team-a"}, "status": {"phase": "Active"}}))
    tab = open_tab(admin, "/jobs/team-a/train/")
    live(tab)
    tab.get_by_role("button", name="Suspend").click()
    tab.get_by_role("button", name="Let it go on").click()
    set_phase("train", "Aborted")
    tab.get_by_role("button", name="Resume").click()
    tab.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(tab.locator("#job-asked")).to_contain_text("Resume: under way")
    assert [stored.object["action"] for stored in store.find(COMMANDS)] == ["ResumeJob"]
    set_phase("train", "Restarting")
    expect(tab.get_by_role("button", name="Resume")).to_have_count(0)
    tab.get_by_role("button", name="Delete").click()
    expect(tab.locator("#delete")).to_be_visible()
    assert tab.errors == []
