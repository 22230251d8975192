"""Journeys through the logs of many pods, in a real browser over real processes."""

from __future__ import annotations

import os
import re
import signal
import zipfile

import pytest
from playwright.sync_api import expect

from proof.harness.waiting import until
from proof.systems.work import job, shell

pytestmark = pytest.mark.system

# Each pod says with each tick which of its task it is.
TALK = "i=0; while :; do i=$((i+1)); echo tick $i of $VC_TASK_INDEX; sleep 0.2; done"
# Whether so many lines are on the page or have left it.
COUNTED = """total => {
  const [kept, , left] = document.querySelector("[data-part=count]").textContent.replaceAll(",", "").match(/\\d+/g);
  return Number(kept) + Number(left ?? 0) === total;
}"""
FREE = {"terminationGracePeriodSeconds": 0, "cpu": "10m"}


def talkers(name, replicas=3, script=TALK, sees=None):
    return job(name, shell(script, sees=sees, name="worker", replicas=replicas, **FREE), plugins={"env": []})


def lines(page):
    return page.locator(".log-line")


def texts(page):
    return page.locator("[data-part=text]").inner_text()


def times(page):
    """Return the times of the lines that are drawn, as they stand on the page."""
    return page.locator(".log-at").all_inner_texts()


def test_pods_of_a_task_are_followed_together_in_the_order_of_time(page, person, watcher):
    person.create(talkers("together"))
    watcher.reaches("together", "Running")
    late, chosen = [], False
    page.route("**/build/main*.js", lambda route: route.continue_() if chosen else late.append(route))
    page.goto("/jobs/default/together/?tab=logs&pod=together-worker-0", wait_until="commit")
    page.locator("#log-pod").select_option(label="task worker · all 3 pods")
    chosen = True
    for route in late:
        route.continue_()
    page.wait_for_url("**pod=task%2Fworker**")
    for number in range(3):
        expect(page.locator(".log-pod", has_text=f"worker-{number}").first).to_be_visible()
        expect(page.locator("[data-part=text]")).to_contain_text(f"tick 9 of {number}")
    expect(page.locator("[data-part=count]")).to_contain_text("lines of 3 pods")
    shown = times(page)
    assert shown == sorted(shown)
    hues = {each.get_attribute("data-hue") for each in page.locator(".log-chip").all()}
    assert len(hues) == 3


def test_a_pod_that_is_restarted_goes_on_with_its_next_attempt_and_nothing_begins_anew(page, person, watcher, tmp_path):
    go = tmp_path / "out" / "go"
    broken = f"echo attempt begins; until [ -e {go} ]; do sleep 0.05; done; rm {go}; echo it broke; exit 1"
    tasks = [
        shell(broken, sees=go.parent, name="fragile", restartPolicy="OnFailure", **FREE),
        shell(TALK, name="worker", replicas=1, **FREE),
    ]
    person.create(job("fragile", *tasks, plugins={"env": []}))
    watcher.reaches("fragile", "Running")
    page.goto("/jobs/default/fragile/?tab=logs&pod=*")
    log = page.locator("[data-part=text]")
    expect(log).to_contain_text("attempt begins")
    expect(log).to_contain_text("tick 3 of 0")
    page.evaluate("window.sameDocument = true")
    go.touch()
    expect(log).to_contain_text("it broke")
    expect(log).to_contain_text("— fragile-0: attempt 1 —")
    expect(lines(page).filter(has_text="attempt begins")).to_have_count(2)
    assert page.evaluate("window.sameDocument")
    assert texts(page).count("tick 1 of 0") == 1


def test_lines_are_found_across_pods_and_others_hidden_while_more_come(page, person, watcher):
    person.create(talkers("search"))
    watcher.reaches("search", "Running")
    page.goto("/jobs/default/search/?tab=logs&pod=task/worker")
    log = page.locator("[data-part=text]")
    expect(log).to_contain_text("tick 5 of 1")
    page.get_by_label("Find in the log").fill("TICK 5 of")
    expect(page.locator("[data-part=found]")).to_have_text("3 found")
    expect(lines(page).first).to_contain_text("tick 1")
    page.get_by_label("Only matching lines").check()
    expect(lines(page)).to_have_count(3)
    page.get_by_label("Find in the log").fill("9 of 2")
    expect(log).to_contain_text("tick 19 of 2")
    assert set(re.findall(r"of (\d)", texts(page))) == {"2"}
    assert page.evaluate("[...CSS.highlights.get('log-found')].length") >= 2
    page.get_by_label("Find in the log").press("Enter")
    assert page.evaluate("[...CSS.highlights.get('log-chosen')].length") == 1
    page.get_by_label("Only matching lines").uncheck()
    page.get_by_label("Find in the log").fill("")
    page.get_by_role("button", name="worker-2").click()
    expect(page.get_by_role("button", name="worker-2")).to_have_attribute("aria-pressed", "false")
    assert "of 2" not in texts(page)
    expect(log).to_contain_text("of 1")
    page.get_by_role("button", name="Show all").click()
    expect(log).to_contain_text("of 2")


def test_a_link_to_a_line_shows_it_to_somebody_else_also_far_before_the_end(page, enter, person, watcher):
    script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo number $i; done; sleep 3600"
    person.create(talkers("linked", 2, script))
    watcher.reaches("linked", "Running")
    page.goto("/jobs/default/linked/?tab=logs&pod=task/worker")
    log = page.locator("[data-part=text]")
    expect(log).to_contain_text("number 20000")
    page.get_by_role("button", name="Show the beginning").click()
    expect(lines(page).first).to_have_text(re.compile(r"number 1$"))
    log.evaluate("box => { box.scrollTop = 0; }")
    log.focus()
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    chosen = page.locator(".log-line:focus-within").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator(".log-line[aria-current]")).to_have_text(chosen)
    expect(page).to_have_url(re.compile("line="))
    expect(page.get_by_role("button", name="Copy link to the line")).to_be_visible()

    other = enter()
    other.goto(page.url)
    marked = other.locator(".log-line[aria-current]")
    expect(marked).to_have_text(chosen)
    expect(marked).to_be_in_viewport()
    expect(other.locator("[data-part=note]")).to_contain_text("Lines after these are not shown.")
    other.get_by_role("button", name="Show the end").click()
    expect(other.locator("[data-part=text]")).to_contain_text("number 20000")
    assert "line=" not in other.url


def test_all_logs_are_downloaded_in_one_archive(page, person, watcher):
    person.create(talkers("archive", 2, "echo words of $VC_TASK_INDEX"))
    watcher.reaches("archive", "Completed")
    page.goto("/jobs/default/archive/?tab=logs&pod=task/worker")
    with page.expect_download() as download:
        page.locator("#log").get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "archive-worker-logs.zip"
    with zipfile.ZipFile(download.value.path()) as archive:
        found = sorted(archive.read(name).decode() for name in archive.namelist())
    assert found == ["words of 0\n", "words of 1\n"]


def test_logs_of_a_deleted_job_are_shown_together_and_opened_where_several_failed(page, person, watcher):
    person.create(talkers("buried", 2, "echo last words of $VC_TASK_INDEX; exit 4"))
    watcher.reaches("buried", "Failed")
    person.post("/jobs/default/buried/delete/")
    until(lambda: watcher.job("buried") is None)
    page.goto("/jobs/default/buried/?tab=logs")
    expect(page.locator("#log-pod")).to_have_value("task/worker")
    log = page.locator("[data-part=text]")
    for number in range(2):
        expect(log).to_contain_text(f"last words of {number}")
    expect(page.locator("[data-part=count]")).to_have_text("2 lines of 2 pods")


def test_without_scripts_the_end_of_all_logs_is_shown_merged(enter, person, watcher):
    person.create(talkers("plain", 2, "echo words of $VC_TASK_INDEX"))
    watcher.reaches("plain", "Completed")
    page = enter(java_script_enabled=False)
    page.goto("/jobs/default/plain/?tab=logs&pod=task/worker")
    for number in range(2):
        expect(page.locator("[data-part=first]")).to_contain_text(f"plain-worker-{number}  words of {number}")


def test_lines_that_leave_the_page_are_counted_and_none_is_missing(page, person, watcher, tmp_path):
    go = tmp_path / "out" / "go"
    script = f"echo ready; until [ -e {go} ]; do sleep 0.05; done; seq -f 'number %g' 20000; echo all; sleep 3600"
    person.create(talkers("many-lines", 2, script, sees=go.parent))
    watcher.reaches("many-lines", "Running")
    page.goto("/jobs/default/many-lines/?tab=logs&pod=task/worker")
    expect(lines(page).filter(has_text="ready")).to_have_count(2)
    go.touch()
    page.wait_for_function(COUNTED, arg=2 * (1 + 20_000 + 1))
    expect(page.locator("[data-part=count]")).to_contain_text("older ones left the page")


def test_after_a_broken_connection_no_line_is_missing_and_none_is_there_twice(page, person, watcher, system):
    person.create(talkers("broken-line"))
    watcher.reaches("broken-line", "Running")
    page.goto("/jobs/default/broken-line/?tab=logs&pod=task/worker")
    log = page.locator("[data-part=text]")
    expect(log).to_contain_text("tick 5 of 1")
    (web,) = [pid for pid, line in system.processes().items() if "volcano_ui.web" in line]
    # A short interruption is not shown: that there was one is told by the socket that follows.
    with page.expect_websocket(lambda socket: "/live/" in socket.url):
        os.kill(web, signal.SIGKILL)
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    seen = max(map(int, re.findall(r"tick (\d+) of 1", texts(page))))
    expect(log).to_contain_text(f"tick {seen + 5} of 1")
    for number in range(3):
        ticks = list(map(int, re.findall(rf"tick (\d+) of {number}", texts(page))))
        assert ticks == list(range(1, len(ticks) + 1))


# A bar on stderr, then colours, an address that is set in two looks, and what is no link.
TERMINAL = r"""
printf 'start\n'
i=0; while [ ! -e {go} ]; do i=$((i+1)); printf '\r\033[32mepoch 1:\033[0m %d of many' $i >&2; sleep 0.1; done
printf '\r\033[Kepoch 1: \033[1;31mover\033[0m\n' >&2
printf '\033]0;title\007see https://example.com/\033[1mdocs\033[0m. <b>javascript:alert(1)</b>\n'
sleep 3600
"""


def test_a_bar_is_one_line_that_changes_with_colours_links_and_what_it_said_before(
    page, person, watcher, system, tmp_path
):
    go = tmp_path / "out" / "go"
    person.create(talkers("bar", 1, TERMINAL.format(go=go), sees=go.parent))
    watcher.reaches("bar", "Running")
    page.goto("/jobs/default/bar/?tab=logs")
    bar = lines(page).nth(1)
    expect(bar).to_contain_text("epoch 1:")
    for _ in range(2):
        before = bar.inner_text()
        expect(bar).not_to_have_text(before)
    expect(lines(page)).to_have_count(2)
    assert bar.locator("[data-words]").inner_text().count("epoch") == 1
    assert bar.locator(".log-ink-green").inner_text() == "epoch 1:"
    # A row is as high as a line of a block without elements, and the sign before it stands apart.
    assert {each.bounding_box()["height"] for each in lines(page).all()} == {18}
    assert page.locator(".log-at").first.evaluate("each => parseFloat(getComputedStyle(each).paddingRight)") > 6
    page.get_by_label("Find in the log").fill("1: 1")  # over two looks
    expect(page.locator("[data-part=found]")).to_have_text("1 found")
    assert page.evaluate("String([...CSS.highlights.get('log-found')].map((each) => each.endOffset))") == "2"
    page.get_by_label("Find in the log").fill("")

    (web,) = [pid for pid, line in system.processes().items() if "volcano_ui.web" in line]
    with page.expect_websocket(lambda socket: "/live/" in socket.url):
        os.kill(web, signal.SIGKILL)
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    before = bar.inner_text()
    expect(bar).not_to_have_text(before)
    expect(lines(page)).to_have_count(2)
    go.touch()
    expect(bar).to_contain_text("epoch 1: over")
    expect(lines(page)).to_have_count(3)
    assert bar.locator(".log-ink-red.log-bold").inner_text() == "over"
    last = lines(page).nth(2)
    assert last.locator("[data-words]").inner_text() == "see https://example.com/docs. <b>javascript:alert(1)</b>"
    links = last.get_by_role("link").all()
    assert {(each.get_attribute("href"), each.get_attribute("rel")) for each in links} == {
        ("https://example.com/docs", "noopener noreferrer")
    }
    key = re.compile(r"^\d+ earlier states$")
    with page.context.expect_page() as opened:
        bar.get_by_role("link", name=key).click()
    said = opened.value.locator("body").inner_text().splitlines()
    assert said[0] == "epoch 1: 1 of many"
    assert said[-1] == "epoch 1: over"
