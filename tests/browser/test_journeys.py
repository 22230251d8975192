"""Journeys of people through the product, in a real browser: how to read them, says journey.py."""

import re

import pytest
from playwright.sync_api import expect

from proof.harness.waiting import until
from proof.pictures import world
from proof.pictures.world import write, yaml_of
from proof.systems.parts import stopped
from proof.systems.system import System
from proof.systems.work import held, job, shell
from tests.browser.journey import Window, stays, unchanged
from tests.tables import cases

pytestmark = pytest.mark.system


def test_first_login_by_the_link_and_a_sample_runs_to_its_end_before_the_readers_eyes(tmp_path, enter):
    own = System(tmp_path / "data")
    with own:
        page = enter(own, cookies={})
        page.goto(own.link)
        button = page.get_by_role("button", name="Log in")
        if button.count():
            button.click()
        page.wait_for_url(f"{own.base}/")
        Window(page).goes(
            "→ live; #overview-nodes tbody tr × 1\nclick button Count primes together → at **/jobs/default/primes-*/"
        )
        stays(page)
        Window(page).goes("→ #job-head: Running; #job-head: Completed; #table-rows tr × 4")
        assert unchanged(page)
        Window(page).goes("open / → #overview-jobs: Completed")


def test_form_and_yaml_change_each_other_and_nothing_is_lost(page, watcher):
    Window(page).goes("""
        open /jobs/new/
        fill [data-part=form] >> field "Name" >> nth=0 = from-the-form → yaml: name: from-the-form
    """)
    addition = "\n  unknownToTheForm: # kept\n    deep: [1, 2]"
    text = yaml_of(page).replace("minAvailable: 1", f"minAvailable: 1{addition}")
    write(page, text.replace("name: from-the-form", "name: from-the-text"))
    Window(page).goes("""
        → [data-part=form] >> field "Name" >> nth=0 holds from-the-text
        fill field Replicas = 2 → yaml: replicas: 2; yaml: unknownToTheForm: # kept
        click button Add a task → .task-form × 2
        click .task-form >> nth=1 >> button Remove this task → .task-form × 1
    """)
    write(page, yaml_of(page).replace(addition, ""))
    Window(page).goes("""
        fill field Shell line >> nth=0 = echo written in the form → accepted
        click button Submit the job → at **/jobs/default/from-the-text/; live; #job-head: Completed
    """)
    assert watcher.job("from-the-text")["status"]["succeeded"] == 2


def test_form_asks_for_simulated_nodes(page):
    Window(page).goes("""
        open /jobs/new/; fill field "Name" >> nth=0 = only-time-passes
        click text Nodes, volumes, partitions → field Seconds until a simulated pod ends is hidden
        choose field "Nodes" = true → yaml: ui.volcano.sh/simulated: "true"
        fill field Seconds until a simulated pod ends = 1 → yaml: ui.volcano.sh/duration-seconds: "1"
        → accepted; [data-part=summary]: where nothing is executed
        click button Submit the job
        → at **/jobs/default/only-time-passes/; live; #job-head: Completed; #job-head: simulated
    """)


def test_policies_plugins_and_order_are_written_in_the_form(page, watcher):
    Window(page).goes("""
        open /jobs/new/; fill field "Name" >> nth=0 = guarded-by-form
        click text Policies: what follows >> nth=0; click button "Policy" >> nth=0
        → .policy >> nth=0 >> field When is focused
        choose .policy >> nth=0 >> field When = PodEvicted; click .policy >> nth=0 >> button or when
        choose .policy >> nth=0 >> field or when, 2 = PodPending → .policy >> nth=0: acts only after a timeout
        choose .policy >> nth=0 >> field Then = restart the pod (RestartPod); fill .policy >> nth=0 >> field After = 10m
        → .policy >> nth=0 without acts only after a timeout
        click button "Policy" >> nth=0; choose .policy >> nth=1 >> field When = exitCode
        fill .policy >> nth=1 >> field Exit code = 42; choose .policy >> nth=1 >> field Then = AbortJob
        click text Plugins: what the pods; check field "env"
        click button Add a task; check .task-form >> nth=1 >> field main; fill field Pods that must start together = 2
        → [data-part=says]: The job can never start: task-2 waits for main
        → [data-part=says]: accepted, with one thing to know first; .task-form >> nth=1: set spec.minAvailable to 1
        fill field Pods that must start together = 1 → [data-part=says]: This job would be accepted.
        click button Submit the job → at **/jobs/default/guarded-by-form/; live
        → #job-policies: after 10m, restart the pod, unless the pod runs by then
        → #job-policies: When a pod fails with exit code 42: suspend the job
        → #job-plugins: VC_TASK_INDEX; #job-head: Completed
    """)
    spec = watcher.job("guarded-by-form")["spec"]
    assert spec["policies"] == [
        {"event": "PodEvicted", "events": ["PodPending"], "action": "RestartPod", "timeout": "10m"},
        {"exitCode": 42, "action": "AbortJob"},
    ]
    assert (spec["plugins"], spec["tasks"][1]["dependsOn"]) == ({"env": []}, {"name": ["main"]})


def test_rows_of_policies_and_plugins_follow_the_text_and_a_problem_opens_what_hides_its_field(page):
    page.goto("/jobs/new/")
    write(page, world.GUARDED)
    Window(page).goes("""
        → [data-part=policies] >> nth=0 >> .policy × 2
        click text Policies: what follows >> nth=0 → [data-part=policies] >> nth=0 >> field After >> nth=0 holds 5m
        → [data-part=policies] >> nth=0 >> textbox Exit code holds 300; field "pytorch" is checked
        → field Argument of pytorch 1 holds --master=prep; .task-form >> nth=1 >> field prep is checked
        click [data-part=policies] >> nth=0 >> button Remove this policy >> nth=0
        → [data-part=policies] >> nth=0 >> .policy × 1
        click text Plugins: what the pods; uncheck field "pytorch"
        → yaml without pytorch; yaml: # stays; yaml: exitCode: 300
        open /jobs/new/
    """)
    write(page, world.GUARDED.replace("timeout: 5m", "timeout: soon"))
    Window(page).goes("""
        → refused; .policy >> nth=0 >> field After is visible; .policy >> nth=0 >> field After has aria-invalid true
        → .policy >> nth=0: is not a duration
    """)


def test_a_policy_is_written_with_the_keyboard_alone(page):
    Window(page).goes("""
        open /jobs/new/ → [data-part=form]:not([hidden]) is visible
        focus [data-part=policies] > summary >> nth=0; press Enter Tab Enter → .policy >> field When is focused
        press ArrowDown → yaml: event: PodEvicted
        press Tab Tab ArrowDown → yaml: action: RestartTask
        press Tab; type 30s → yaml: timeout: "30s"
        press Tab Enter → yaml without policies; button "Policy" >> nth=0 is focused
    """)


@cases("old, new, field, words", {
    "negative replicas": ("replicas: 1", "replicas: -2", "Replicas", "greater than or equal to 0"),
    "hostile name": ("name: my-job", 'name: "<script>x"', "Name", "lower"),
    "queue that is not there": ("queue: default", "queue: nowhere", "Queue", "nowhere"),
})  # fmt: skip
def test_problem_is_shown_at_its_field_while_typing(page, old, new, field, words):
    page.goto("/jobs/new/")
    write(page, yaml_of(page).replace(old, new))
    Window(page).sees("refused")
    marked = page.locator("[data-part=form] [aria-invalid=true]").first
    expect(marked).to_be_visible()
    assert field in marked.evaluate("each => each.labels?.[0]?.textContent || each.getAttribute('aria-label')")
    assert words in page.locator("[data-part=findings]").inner_text()
    with page.expect_event("load"):  # a window that is closed while the answer comes is never gone
        page.get_by_role("button", name="Submit the job").click()
    Window(page).sees("[data-part=findings] li >> nth=0 is visible")
    assert page.url.endswith("/jobs/new/")


def test_runs_of_a_job_are_chapters_with_their_own_pods_and_logs(page, person, watcher):
    person.create(job("chapters", shell(world.TICKS, replicas=2, terminationGracePeriodSeconds=0)))
    watcher.reaches("chapters", "Running")
    Window(page).goes("""
        open /jobs/default/chapters/ → live
        click button Suspend → dialog: 2 running pods will be stopped.
        click dialog >> button Suspend → #job-head: Aborted; #job-asked: Suspend: done.
        → #table-rows tr × 2; #table-rows: Stopped
        click button Resume; click dialog >> button Resume → live; #job-runs: Run 2 goes on
        → #job-steps li >> nth=0: Resumed; #timeline .t-running × 2
        click #job-runs >> link Run 1 suspended → #job-steps li >> nth=0: Created; #timeline .t-stopped × 2
        → #timeline [data-wait] >> nth=0 is attached
        click link "chapters-main-1" → [data-part=text]: tick 1; #log-pod holds chapters-main-1
    """)
    person.post("/jobs/default/chapters/delete/")
    until(lambda: watcher.job("chapters") is None)
    Window(page).goes("reload → #job-why: This job was deleted; [data-part=text]: tick 1")


def test_deleted_job_stays_in_the_list_and_its_page_explains_it_and_can_be_run_again(page, person, watcher):
    person.create(job("kept-of", shell("echo the last words; exit 4", name="w"), maxRetry=0))
    watcher.reaches("kept-of", "Failed")
    Window(page).goes("""
        open /jobs/default/kept-of/ → live
        click button Delete >> nth=0; click dialog >> button Delete → at **/jobs/; #table-rows without kept-of
        click link Deleted → #table-rows tr:has-text("kept-of"): exit 4 · w-0
        click link kept-of → #job-why: This job was deleted; #timeline .t-failed × 1
        click link Log of kept-of-w-0 → [data-part=text]: the last words
        click link Run again → at **/jobs/new/**; yaml: exit 4
    """)


def test_two_tabs_on_one_queue_do_not_overwrite_each_other(enter, person):
    person.post("/queues/-/new/", name="shared", weight="1")
    first, second = enter(), enter()
    for page in (first, second):
        page.goto("/queues/shared/edit/")
    Window(first).goes("fill field Weight = 7; click button Save → at **/queues/shared/")
    Window(second).goes("fill field Weight = 9; click button Save")
    expect(second.locator("main")).to_contain_text(re.compile("changed|modified"))
    assert second.url.endswith("/edit/")


def test_a_page_before_a_web_server_that_stood_still_catches_up_and_equals_a_fresh_load(
    enter, person, watcher, system, tmp_path
):
    page = enter()
    page.clock.install()
    Window(page).goes("open /jobs/?q=asleep → live")
    stays(page)
    person.create(job("asleep", held(tmp_path / "out" / "go")))
    with stopped(system, "web"):
        (tmp_path / "out" / "go").touch()
        watcher.reaches("asleep", "Completed")
        # Its time goes on until it says that it hears nothing.
        state = page.locator("#live")
        until(lambda: page.clock.run_for(1_000) or "stale since" in state.inner_text(), what="a stale page")
    Window(page).goes("→ #table-rows tr: Completed; live")
    assert unchanged(page)
    fresh = enter()
    Window(fresh).goes(f"open {page.url} → live")
    assert words(page) == words(fresh)


def words(page):
    """The rows as a reader sees them, but for ages, which go on."""
    return re.sub(r"\d+ ?(ms|s|min|seconds?)( ago)?|(just )?\bnow\b", "T", page.locator("#table-rows").inner_text())


def submit_all(person, watcher, *names):
    """Submit jobs that run until they are ended."""
    for name in names:
        person.create(job(name, shell(world.TICKS, terminationGracePeriodSeconds=0)))
    for name in names:
        watcher.reaches(name, "Running")


def test_ticked_jobs_are_suspended_and_all_that_match_deleted(page, person, watcher):
    submit_all(person, watcher, "crowd-a", "crowd-b", "crowd-c")
    Window(page).goes("""
        open /jobs/?q=crowd → live
        check field Tick crowd-a; check field Tick crowd-b → [data-part=count] = 2
        choose field What to do with them = suspend; click button Go on… → h1 = Suspend 2 of 2 jobs?
        → main: 2 running pods will be stopped.
        click button Suspend 2 jobs → at **/jobs/-/operations/*/
    """)
    stays(page)
    Window(page).goes("""
        → #operation-head: Over: 2 of 2 jobs have a result; #table-rows tr × 2; #table-rows [data-phase=Done] × 2
    """)
    assert unchanged(page)
    assert watcher.phase("crowd-c") == "Running"
    Window(page).goes("""
        open /jobs/; fill field Find = crowd → #table-total = 3
        check field All 3 that match; choose field What to do with them = delete
        click button Go on… → h1 = Delete 3 of 3 jobs?
        click button Delete 3 jobs → #operation-head: Over: 3 of 3 jobs have a result
    """)
    assert watcher.job("crowd-c") is None


def test_what_is_ticked_stays_ticked_while_the_list_changes(page, person, watcher):
    submit_all(person, watcher, "tick-a")
    Window(page).goes("open /jobs/?q=tick- → live\ncheck field Tick tick-a")
    submit_all(person, watcher, "tick-b")
    Window(page).goes("""
        → #table-total = 2
        click button 1 new job – show → #table-rows tr × 2
        → field Tick tick-a is checked; field Tick tick-b is not checked
        click button Tick this page → [data-part=count] = 2
    """)


def test_actions_and_bulk_operations_work_without_scripts(enter, person, watcher):
    submit_all(person, watcher, "plain-a", "plain-b")
    page = enter(java_script_enabled=False)
    Window(page).goes("""
        open /jobs/default/plain-a/; click button Terminate >> nth=0; click button Terminate
        → at **/jobs/default/plain-a/
    """)
    watcher.reaches("plain-a", "Terminated")
    Window(page).goes("""
        reload → #job-asked: Terminate: done.
        open /jobs/?q=plain-; check field Tick plain-b; choose field What to do with them = complete
        click button Go on…; click button Complete 1 job
    """)
    watcher.reaches("plain-b", "Completed")
