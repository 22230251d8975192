"""Live pages in a real browser: what changes appears, what is lost is said, what the reader does is kept."""

import asyncio
import contextlib
import socket
import threading

import pytest
from playwright.sync_api import expect

from cluster.runtime.retries import REPORTED_AFTER, Retries
from cluster.store import Create, Delete, Group, store
from dashboard.live import hub
from kube.errors import Forbidden
from kube.resources import COMMANDS, EVENTS, JOBS, NAMESPACES, NODES
from proof.harness.proxy import CuttingProxy
from proof.harness.waiting import HANG_S
from tests.browser.journey import Window
from tests.browser.test_pages import keeps_nobody_out_and_fits
from tests.dashboard.pages.conftest import job, node, pod, put, queue, reader, set_phase
from tests.dashboard.pages.test_reserved_room import keep
from tests.tables import cases

PHONE = {"width": 390, "height": 800}


@pytest.fixture
def admin(transactional_db):
    """An administrator of a small cluster."""
    put(
        node("one"), node("two"), queue("root", parent=""), queue("default"), queue("below", parent="default"),
        job("train"), pod("train-0"),
    )  # fmt: skip
    return reader("admin", "superuser")


@pytest.fixture
def live_tab(admin, open_tab):
    """Open a page, and wait until it is live."""

    def open_(address, **options):
        tab = open_tab(admin, address, **options)
        Window(tab).sees("live")
        return tab

    return open_


def fits(tab):
    return tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_change_appears_without_reload(live_tab):
    tab = live_tab("/queues/default/")
    Window(tab).sees("#table-rows .phase = Running")
    set_phase("train", "Failed")
    Window(tab).goes("→ #table-rows .phase = Failed; #table-chips: Failed 1")
    put(job("second"))
    Window(tab).sees("#table-rows tr × 2")
    store.write(Delete(JOBS, "team-a", "train", grace=0))
    Window(tab).sees("#table-rows tr × 1")
    assert tab.errors == []


def test_a_list_that_is_swapped_in_and_was_rendered_before_the_last_change_gets_it(live_tab):
    tab = live_tab("/queues/default/")
    old = tab.evaluate("document.querySelector('#table-rows').outerHTML")
    put(job("second"))
    Window(tab).sees("#table-rows tr × 2")
    tab.evaluate("html => { document.querySelector('#table-rows').outerHTML = html; }", old)
    Window(tab).sees("#table-rows tr × 2")
    assert tab.errors == []


def test_room_that_is_kept_appears_without_reload_and_goes_when_it_is_released(live_tab):
    tab, other = live_tab("/"), live_tab("/nodes/one/")
    Window(tab).sees("#overview-room is hidden")
    Window(other).sees("#node-use without kept")
    keep(queue="default", places=((("one", 1), ("two", 2)),))
    Window(other).goes("→ #node-room: 1 CPU, 2 GiB memory; #node-use: 1 of the rest kept")
    Window(tab).goes("""
        → #overview-room: 3 CPU, 6 GiB memory on one, two
        click button Release…; click button Release the room → #toasts: The room that was kept for big is given back.
        → #overview-room is hidden
    """)
    Window(other).sees("#node-room is hidden")
    assert tab.errors == other.errors == []


def test_on_a_phone_room_is_released_below_the_words_that_say_whose_it_is(admin, open_tab):
    keep(places=(tuple((f"a-node-with-a-long-name-{number}", 1) for number in range(6)),))
    tab = open_tab(admin, "/", viewport=PHONE)
    words, button = (tab.locator(f"#overview-room li > {each}").bounding_box() for each in (".grow", ".button"))
    assert words["y"] + words["height"] <= button["y"]
    assert fits(tab)


def test_on_a_phone_a_queue_is_as_far_in_as_it_is_deep(admin, open_tab):
    put(queue("beside"), queue("deepest", parent="below"))
    tab = open_tab(admin, "/queues/", viewport=PHONE)
    places = {each.inner_text(): each.bounding_box()["x"] for each in tab.locator("#table-rows th a").all()}
    assert places["default"] == places["beside"] < places["below"] < places["deepest"]
    assert fits(tab)


def test_what_the_reader_does_is_kept_while_the_page_changes(live_tab):
    put(*(job(f"j{number:02}") for number in range(40)))
    tab = live_tab("/queues/default/?sort=name")
    tab.locator("#table-rows tr:nth-child(30) a").focus()
    name = tab.evaluate("document.activeElement.closest('tr').id")
    top = tab.evaluate("scrollY")
    set_phase("j01", "Failed")
    put(job("a-first"))
    Window(tab).sees("#table-rows tr × 42")
    assert tab.evaluate("document.activeElement.closest('tr')?.id") == name
    assert abs(tab.evaluate("scrollY") - top) < 60
    Window(tab).goes("""
        open /queues/default/?per=25; click thead >> link Job → at **sort=**
        click link Later page → at **page=2**; #table-rows tr × 17
    """)


def test_the_page_says_stale_while_the_server_is_away_and_then_equals_a_fresh_load(live_tab, site):
    tab = live_tab("/nodes/")
    site.stop()
    Window(tab).sees("#live: stale since")
    store.write(Delete(NODES, "", "two"))
    put(node("three"))
    site.start()
    Window(tab).sees("live")
    rows = tab.locator("#table-rows tr th").all_inner_texts()
    summary = tab.locator("#nodes-summary").inner_text()
    tab.reload()
    assert rows == tab.locator("#table-rows tr th").all_inner_texts() == ["one", "three"]
    assert summary == tab.locator("#nodes-summary").inner_text()


def test_the_page_does_not_say_live_before_it_has_what_it_missed(live_tab, site, monkeypatch):
    tab = live_tab("/nodes/")
    site.stop()
    Window(tab).sees("#live: stale since")
    called, released = threading.Event(), threading.Event()
    join = hub.Hub.join

    async def held(*arguments):
        called.set()
        await asyncio.to_thread(released.wait, HANG_S)
        return await join(*arguments)

    monkeypatch.setattr(hub.Hub, "join", held)
    site.start()
    assert called.wait(HANG_S)
    text = tab.locator("#live").inner_text()
    released.set()
    assert text != "live"
    Window(tab).sees("live")


def test_a_tab_that_was_offline_catches_up_and_logging_out_elsewhere_is_said(live_tab, admin):
    tab = live_tab("/nodes/")
    tab.evaluate("window.dispatchEvent(new Event('offline'))")
    tab.context.set_offline(True)
    put(node("three"))
    tab.context.set_offline(False)
    tab.evaluate("window.dispatchEvent(new Event('online'))")
    Window(tab).goes("→ #table-rows tr × 3; live")
    admin.logout()
    Window(tab).sees("#live = logged out")


@pytest.mark.parametrize("address", ["/", "/nodes/", "/nodes/one/", "/queues/", "/queues/default/", "/events/"])
def test_a_page_reads_right_without_script(admin, open_tab, address):
    tab = open_tab(admin, address, java_script_enabled=False)
    Window(tab).goes("→ h1 is visible; #live is hidden")
    assert all(moment.endswith("UTC") for moment in tab.locator("time").all_inner_texts())


def test_the_filter_narrows_while_typing_and_the_url_holds_the_view(live_tab):
    tab = live_tab("/nodes/")
    tab.keyboard.press("/")
    tab.keyboard.insert_text("tw")  # two keys are two steps of the history where a moment passes between them
    Window(tab).goes("→ #table-rows tr × 1; at **/nodes/?q=tw")
    put(node("twin"), node("other"))
    Window(tab).goes("→ #table-rows tr × 2\nback → at **/nodes/; #table-rows tr × 4\nopen /audit/ → #live: as of")
    assert tab.errors == []


def test_the_time_of_what_appears_is_shown_like_the_others_at_once(live_tab):
    tab = live_tab("/")
    put(job("broken", "Failed", message="Exit code 3."))
    since = tab.locator("#overview-attention li time")
    since.wait_for()
    assert "UTC" not in since.text_content()


def test_a_table_can_be_walked_filtered_and_opened_by_keys(admin, open_tab):
    tab = open_tab(admin, "/nodes/")
    Window(tab).goes("""
        press j j k j Enter → at **/nodes/two/
        back; press /; type two → #table-rows tr × 1
        press Escape j Enter → at **/nodes/two/
    """)
    for keys, address in (("go", "/"), ("gq", "/queues/"), ("gn", "/nodes/")):
        tab.wait_for_load_state()  # from then on it hears keys
        tab.keyboard.type(keys)
        expect(tab).to_have_url(address)
    tab.wait_for_load_state()
    Window(tab).goes("""
        press ? → #help is visible
        press Escape → #help is hidden
        press c → at **/jobs/new/
        open /jobs/; press Tab → link Skip to the content is focused
        press Enter → #content is focused
    """)


def test_the_theme_is_chosen_and_remembered_without_flash(admin, open_tab):
    tab = open_tab(admin, "/nodes/", color_scheme="light")
    Window(tab).goes("click [popovertarget=reader]; click #reader button[value=dark] → html has data-theme dark")
    assert 'data-theme="dark"' in tab.request.get(tab.url).text()
    tab.reload()
    ground = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(14, 18, 23)"


def test_a_queue_is_closed_after_the_dialog_said_what_it_stops(live_tab):
    tab = live_tab("/queues/default/")
    Window(tab).goes("click button Close… → #close-queue: 1 running and 0 waiting jobs")
    set_phase("train", "Pending")
    Window(tab).goes("""
        → #close-queue: 0 running and 1 waiting jobs
        click #close-queue >> button Close the queue → .toast: takes no new jobs; button Open is visible
    """)


@pytest.mark.parametrize("address", ["/", "/nodes/"])
def test_a_node_that_is_away_keeps_nobody_out(admin, open_tab, axe, address):
    """Every page of a cluster whose nodes are well: tests/browser/test_pages.py."""
    put(node("away", ready=False))
    keeps_nobody_out_and_fits(open_tab(admin, address, bypass_csp=True, reduced_motion="reduce"), axe)


def test_a_button_that_takes_the_place_of_another_does_what_it_says(live_tab):
    store.write(Create(NAMESPACES, {"metadata": {"name": "team-a"}, "status": {"phase": "Active"}}))
    tab = live_tab("/jobs/team-a/train/")
    Window(tab).goes("click button Suspend; click button Let it go on")
    set_phase("train", "Aborted")
    Window(tab).goes("click button Resume; click dialog >> button Resume → #job-asked: Resume: under way")
    assert [stored.object["action"] for stored in store.find(COMMANDS)] == ["ResumeJob"]
    set_phase("train", "Restarting")
    Window(tab).goes("→ button Resume × 0\nclick button Delete → #delete is visible")
    assert tab.errors == []


QUOTA = (
    'pods "a-training-with-a-long-name-worker-0" is forbidden: exceeded quota: team, requested: requests.cpu=4,'
    " used: requests.cpu=18, limited: requests.cpu=20"
)


def test_a_refusal_fits_the_window_keeps_nobody_out_and_goes_when_it_is_over(live_tab, axe):
    (job_,) = put(job("demo", "Pending"))
    retries = Retries("jobs", "jobs/0", "default")
    for second in range(REPORTED_AFTER):
        retries.timers([Group([], "team-a/demo")], [Forbidden(QUOTA)], 1_780_000_000_000 + second * 1000)
    tab = live_tab("/jobs/team-a/demo/", bypass_csp=True, reduced_motion="reduce")
    Window(tab).goes("→ #refusals .notice: What this Job needs next is refused; #refusals .notice: exceeded quota")
    keeps_nobody_out_and_fits(tab, axe)
    assert tab.errors == []
    retries.timers([Group([], "team-a/demo")], [[]], 1_780_000_000_000)
    about = {"apiVersion": JOBS.api_version, "kind": "Job", "namespace": "team-a", "name": "demo", "uid": job_.uid}
    store.write(Create(EVENTS, {"metadata": {"name": "e", "namespace": "team-a"}, "involvedObject": about}))
    Window(tab).goes("→ #refusals .notice × 0")


class Proxy(CuttingProxy):
    """Hands on requests with the host as it came, `$http_host` of nginx, or without its port, `$host`."""

    def __init__(self, port, *, keeps_port):
        super().__init__(port)
        self.keeps_port = keeps_port

    def _pump(self, source, target, answers):
        named, port = f"Host: 127.0.0.1:{self.port}".encode(), f":{self.port}".encode()
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data if self.keeps_port else data.replace(named, named.removesuffix(port)))
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@cases("keeps_port, says", {"$http_host": (True, "live"), "$host": (False, "refused: the proxy changes Host")})
def test_a_proxy_that_changes_the_host_is_told(admin, open_tab, site, keeps_port, says):
    with Proxy(site.port, keeps_port=keeps_port) as proxy:
        tab = open_tab(admin, f"http://127.0.0.1:{proxy.port}/queues/")
        expect(tab.locator("#live")).to_have_text(says)
