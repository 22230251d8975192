"""Journeys through the logs of many pods, in a real browser over real processes."""

import os
import re
import signal

import pytest
from playwright.sync_api import expect

from proof.systems.work import job, shell
from tests.browser.journey import Window, stays, unchanged

pytestmark = pytest.mark.system

# Each pod says with each tick which of its task it is.
TALK = "i=0; while :; do i=$((i+1)); echo tick $i of $VC_TASK_INDEX; sleep 0.2; done"
# Whether so many lines are on the page or have left it.
COUNTED = """total => {
  const [kept, , left] = document.querySelector("[data-part=count]").textContent.replaceAll(",", "").match(/\\d+/g);
  return Number(kept) + Number(left ?? 0) === total;
}"""
FREE = {"terminationGracePeriodSeconds": 0, "cpu": "10m"}
LOG = "[data-part=text]"


@pytest.fixture
def talk(person, watcher):
    """Submit a job whose pods print what a script says, and wait until it comes to a phase; return its page of logs."""

    def begin(name, replicas=3, script=TALK, sees=None, phase="Running"):
        tasks = shell(script, sees=sees, name="worker", replicas=replicas, **FREE)
        person.create(job(name, tasks, plugins={"env": []}))
        watcher.reaches(name, phase)
        return f"/jobs/default/{name}/?tab=logs&pod=task/worker"

    return begin


def texts(page):
    return page.locator(LOG).inner_text()


def kill_web(page, system):
    """Kill the web server, and wait until the page is live again, which its next socket tells."""
    (web,) = [pid for pid, line in system.processes().items() if "volcano_ui.web" in line]
    with page.expect_websocket(lambda socket: "/live/" in socket.url):
        os.kill(web, signal.SIGKILL)
    Window(page).sees("live")


def test_pods_of_a_task_are_followed_together_in_the_order_of_time(page, talk):
    talk("together")
    late, chosen = [], False
    page.route("**/build/main*.js", lambda route: route.continue_() if chosen else late.append(route))
    page.goto("/jobs/default/together/?tab=logs&pod=together-worker-0", wait_until="commit")
    page.locator("#log-pod").select_option(label="task worker · all 3 pods")
    chosen = True
    for route in late:
        route.continue_()
    Window(page).sees("at **pod=task%2Fworker**")
    for number in range(3):
        Window(page).goes(f'→ .log-pod:has-text("worker-{number}") >> nth=0 is visible; {LOG}: tick 9 of {number}')
    Window(page).sees("[data-part=count]: lines of 3 pods")
    times = page.locator(".log-at").all_inner_texts()
    assert times == sorted(times)
    assert len({each.get_attribute("data-hue") for each in page.locator(".log-chip").all()}) == 3


def test_a_pod_that_is_restarted_goes_on_with_its_next_attempt_and_nothing_begins_anew(page, person, watcher, tmp_path):
    go = tmp_path / "out" / "go"
    broken = f"echo attempt begins; until [ -e {go} ]; do sleep 0.05; done; rm {go}; echo it broke; exit 1"
    tasks = [
        shell(broken, sees=go.parent, name="fragile", restartPolicy="OnFailure", **FREE),
        shell(TALK, name="worker", replicas=1, **FREE),
    ]
    person.create(job("fragile", *tasks, plugins={"env": []}))
    watcher.reaches("fragile", "Running")
    Window(page).goes(f"open /jobs/default/fragile/?tab=logs&pod=* → {LOG}: attempt begins; {LOG}: tick 3 of 0")
    stays(page)
    go.touch()
    Window(page).goes(f"""
        → {LOG}: it broke; {LOG}: — fragile-0: attempt 1 —; .log-line:has-text("attempt begins") × 2
    """)
    assert unchanged(page)
    assert texts(page).count("tick 1 of 0") == 1


def test_lines_are_found_across_pods_and_others_hidden_while_more_come(page, talk):
    Window(page).goes(f"""
        open {talk("search")} → {LOG}: tick 5 of 1
        fill field Find in the log = TICK 5 of → [data-part=found] = 3 found; .log-line >> nth=0: tick 1
        check field Only matching lines → .log-line × 3
        fill field Find in the log = 9 of 2 → {LOG}: tick 19 of 2
    """)
    assert set(re.findall(r"of (\d)", texts(page))) == {"2"}
    assert page.evaluate("[...CSS.highlights.get('log-found')].length") >= 2
    Window(page).goes("focus field Find in the log; press Enter")
    assert page.evaluate("[...CSS.highlights.get('log-chosen')].length") == 1
    Window(page).goes("""
        uncheck field Only matching lines; fill field Find in the log =
        click button worker-2 → button worker-2 has aria-pressed false
    """)
    assert "of 2" not in texts(page)
    Window(page).goes(f"→ {LOG}: of 1\nclick button Show all → {LOG}: of 2")


def test_a_link_to_a_line_shows_it_to_somebody_else_also_far_before_the_end(page, enter, talk):
    script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo number $i; done; sleep 3600"
    Window(page).goes(f"""
        open {talk("linked", 2, script)} → {LOG}: number 20000
        click button Show the beginning → .log-line >> nth=0 >> text "number 1" is visible
    """)
    page.locator(LOG).evaluate("box => { box.scrollTop = 0; }")
    Window(page).goes(f"focus {LOG}; press Tab ArrowDown ArrowDown ArrowDown")
    chosen = page.locator(".log-line:focus-within").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator(".log-line[aria-current]")).to_have_text(chosen)
    Window(page).goes("→ at **line=**; button Copy link to the line is visible")
    other = enter()
    other.goto(page.url)
    expect(other.locator(".log-line[aria-current]")).to_have_text(chosen)
    Window(other).goes(f"""
        → .log-line[aria-current] is in_viewport; [data-part=note]: Lines after these are not shown.
        click button Show the end → {LOG}: number 20000
    """)
    assert "line=" not in other.url


def test_lines_that_leave_the_page_are_counted_and_none_is_missing(page, talk, tmp_path):
    go = tmp_path / "out" / "go"
    script = f"echo ready; until [ -e {go} ]; do sleep 0.05; done; seq -f 'number %g' 20000; echo all; sleep 3600"
    Window(page).goes(f'open {talk("many-lines", 2, script, sees=go.parent)} → .log-line:has-text("ready") × 2')
    go.touch()
    page.wait_for_function(COUNTED, arg=2 * (1 + 20_000 + 1))
    Window(page).sees("[data-part=count]: older ones left the page")


def test_after_a_broken_connection_no_line_is_missing_and_none_is_there_twice(page, talk, system):
    Window(page).goes(f"open {talk('broken-line')} → {LOG}: tick 5 of 1")
    kill_web(page, system)
    seen = max(map(int, re.findall(r"tick (\d+) of 1", texts(page))))
    Window(page).sees(f"{LOG}: tick {seen + 5} of 1")
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


def test_a_bar_is_one_line_that_changes_with_colours_links_and_what_it_said_before(page, talk, system, tmp_path):
    go = tmp_path / "out" / "go"
    talk("bar", 1, TERMINAL.format(go=go), sees=go.parent)
    Window(page).goes("open /jobs/default/bar/?tab=logs → .log-line >> nth=1: epoch 1:")
    bar, last = (page.locator(".log-line").nth(number) for number in (1, 2))

    def changes():
        expect(bar).not_to_have_text(bar.inner_text())
        Window(page).sees(".log-line × 2")

    changes()
    changes()
    assert bar.locator("[data-words]").inner_text().count("epoch") == 1
    assert bar.locator(".log-ink-green").inner_text() == "epoch 1:"
    # A row is as high as a line of a block without elements, and the sign before it stands apart.
    assert {each.bounding_box()["height"] for each in page.locator(".log-line").all()} == {18}
    assert page.locator(".log-at").first.evaluate("each => parseFloat(getComputedStyle(each).paddingRight)") > 6
    page.get_by_label("Find in the log").fill("1: ")  # over two looks, and whatever number follows
    Window(page).sees("[data-part=found] = 1 found")
    assert page.evaluate("String([...CSS.highlights.get('log-found')].map((each) => each.endOffset))") == "1"
    page.get_by_label("Find in the log").fill("")
    kill_web(page, system)
    changes()
    go.touch()
    Window(page).goes("→ .log-line >> nth=1: epoch 1: over; .log-line × 3")
    assert bar.locator(".log-ink-red.log-bold").inner_text() == "over"
    assert last.locator("[data-words]").inner_text() == "see https://example.com/docs. <b>javascript:alert(1)</b>"
    links = {(each.get_attribute("href"), each.get_attribute("rel")) for each in last.get_by_role("link").all()}
    assert links == {("https://example.com/docs", "noopener noreferrer")}
    with page.context.expect_page() as opened:
        bar.get_by_role("link", name=re.compile(r"^\d+ earlier states$")).click()
    lines = opened.value.locator("body").inner_text().splitlines()
    assert (lines[0], lines[-1]) == ("epoch 1: 1 of many", "epoch 1: over")
