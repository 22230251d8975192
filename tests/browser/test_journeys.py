"""Journeys of people through the product, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from kube.resources import QUEUES
from proof.harness.waiting import until
from proof.pictures import world
from proof.pictures.world import write, yaml_of
from proof.systems.parts import stopped
from proof.systems.seed import TF_JOB
from proof.systems.system import System
from proof.systems.work import Person, held, job, shell
from tests.tables import cases

pytestmark = pytest.mark.system


def live(page):
    """Wait until the page says that it is live."""
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    return page


def stays(page):
    """Mark the page; `unchanged` then tells that it was never loaded again."""
    page.evaluate("window.sameDocument = true")


def unchanged(page):
    return page.evaluate("window.sameDocument === true")


def test_first_login_by_the_link_and_a_sample_runs_to_its_end_before_the_readers_eyes(tmp_path, enter):
    own = System(tmp_path / "data")
    with own:
        page = enter(own, cookies={})
        page.goto(own.link)
        button = page.get_by_role("button", name="Log in")
        if button.count():
            button.click()
        page.wait_for_url(f"{own.base}/")
        live(page)
        expect(page.locator("#overview-nodes tbody tr")).to_have_count(1)
        page.get_by_role("button", name="Count primes together").click()
        page.wait_for_url(re.compile(r"/jobs/default/primes-\w+/"))
        stays(page)
        expect(page.locator("#job-head")).to_contain_text("Running")
        expect(page.locator("#job-head")).to_contain_text("Completed")
        expect(page.locator("#table-rows tr")).to_have_count(4)
        assert unchanged(page)
        page.goto(own.base)
        expect(page.locator("#overview-jobs")).to_contain_text("Completed")


def test_form_and_yaml_change_each_other_and_nothing_is_lost(page, watcher):
    page.goto("/jobs/new/")
    form = page.locator("[data-part=form]")
    form.get_by_label("Name", exact=True).first.fill("from-the-form")
    until(lambda: "name: from-the-form" in yaml_of(page))
    text = yaml_of(page).replace("minAvailable: 1", "minAvailable: 1\n  unknownToTheForm: # kept\n    deep: [1, 2]")
    write(page, text.replace("name: from-the-form", "name: from-the-text"))
    expect(form.get_by_label("Name", exact=True).first).to_have_value("from-the-text")
    form.get_by_label("Replicas").first.fill("2")
    until(lambda: "replicas: 2" in yaml_of(page))
    assert "unknownToTheForm: # kept" in yaml_of(page)
    form.get_by_role("button", name="Add a task").click()
    expect(form.locator(".task-form")).to_have_count(2)
    form.locator(".task-form").nth(1).get_by_role("button", name="Remove this task").click()
    expect(form.locator(".task-form")).to_have_count(1)
    write(page, yaml_of(page).replace("  unknownToTheForm: # kept\n    deep: [1, 2]\n", ""))
    form.get_by_label("Shell line").first.fill("echo written in the form")
    expect(page.locator("[data-part=says]")).to_have_attribute("data-state", "accepted")
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url("**/jobs/default/from-the-text/")
    expect(live(page).locator("#job-head")).to_contain_text("Completed")
    assert watcher.job("from-the-text")["status"]["succeeded"] == 2


def test_form_asks_for_simulated_nodes(page):
    page.goto("/jobs/new/")
    form = page.locator("[data-part=form]")
    form.get_by_label("Name", exact=True).first.fill("only-time-passes")
    form.get_by_text("Nodes, volumes, partitions").click()
    seconds = form.get_by_label("Seconds until a simulated pod ends")
    expect(seconds).to_be_hidden()
    form.get_by_label("Nodes", exact=True).select_option("true")
    until(lambda: 'ui.volcano.sh/simulated: "true"' in yaml_of(page))
    seconds.fill("1")
    until(lambda: 'ui.volcano.sh/duration-seconds: "1"' in yaml_of(page))
    expect(page.locator("[data-part=says]")).to_have_attribute("data-state", "accepted")
    expect(page.locator("[data-part=summary]")).to_contain_text("where nothing is executed")
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url("**/jobs/default/only-time-passes/")
    expect(live(page).locator("#job-head")).to_contain_text("Completed")
    expect(page.locator("#job-head")).to_contain_text("simulated")


def test_policies_plugins_and_order_are_written_in_the_form(page, watcher):
    page.goto("/jobs/new/")
    form, says = page.locator("[data-part=form]"), page.locator("[data-part=says]")
    form.get_by_label("Name", exact=True).first.fill("guarded-by-form")
    form.get_by_text("Policies: what follows").first.click()
    form.get_by_role("button", name="Policy", exact=True).first.click()
    policy = form.locator(".policy").first
    expect(policy.get_by_label("When")).to_be_focused()
    policy.get_by_label("When").select_option("PodEvicted")
    policy.get_by_role("button", name="or when").click()
    policy.get_by_label("or when, 2").select_option("PodPending")
    expect(policy).to_contain_text("acts only after a timeout")
    policy.get_by_label("Then").select_option(label="restart the pod (RestartPod)")
    policy.get_by_label("After").fill("10m")
    expect(policy).not_to_contain_text("acts only after a timeout")
    form.get_by_role("button", name="Policy", exact=True).first.click()
    second = form.locator(".policy").nth(1)
    second.get_by_label("When").select_option("exitCode")
    second.get_by_label("Exit code").fill("42")
    second.get_by_label("Then").select_option("AbortJob")
    form.get_by_text("Plugins: what the pods").click()
    form.get_by_label("env", exact=True).check()
    form.get_by_role("button", name="Add a task").click()
    other = form.locator(".task-form").nth(1)
    other.get_by_label("main").check()
    form.get_by_label("Pods that must start together").fill("2")
    expect(says).to_contain_text("The job can never start: task-2 waits for main")
    expect(says).to_contain_text("accepted, with one thing to know first")
    expect(other).to_contain_text("set spec.minAvailable to 1")
    form.get_by_label("Pods that must start together").fill("1")
    expect(says).to_contain_text("This job would be accepted.")
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url("**/jobs/default/guarded-by-form/")
    panel = live(page).locator("#job-policies")
    expect(panel).to_contain_text("after 10m, restart the pod, unless the pod runs by then")
    expect(panel).to_contain_text("When a pod fails with exit code 42: suspend the job; it can be resumed.")
    expect(page.locator("#job-plugins")).to_contain_text("VC_TASK_INDEX")
    expect(page.locator("#job-head")).to_contain_text("Completed")
    spec = watcher.job("guarded-by-form")["spec"]
    assert spec["policies"] == [
        {"event": "PodEvicted", "events": ["PodPending"], "action": "RestartPod", "timeout": "10m"},
        {"exitCode": 42, "action": "AbortJob"},
    ]
    assert spec["plugins"] == {"env": []}
    assert spec["tasks"][1]["dependsOn"] == {"name": ["main"]}


def test_rows_of_policies_and_plugins_follow_the_text(page):
    page.goto("/jobs/new/")
    write(page, world.GUARDED)
    form = page.locator("[data-part=form]")
    job_rows = form.locator("[data-part=policies]").first
    expect(job_rows.locator(".policy")).to_have_count(2)
    form.get_by_text("Policies: what follows").first.click()
    expect(job_rows.get_by_label("After").first).to_have_value("5m")
    expect(job_rows.get_by_role("textbox", name="Exit code")).to_have_value("300")
    expect(form.get_by_label("pytorch", exact=True)).to_be_checked()
    expect(form.get_by_label("Argument of pytorch 1")).to_have_value("--master=prep")
    expect(form.locator(".task-form").nth(1).get_by_label("prep")).to_be_checked()
    job_rows.get_by_role("button", name="Remove this policy").first.click()
    expect(job_rows.locator(".policy")).to_have_count(1)
    form.get_by_text("Plugins: what the pods").click()
    form.get_by_label("pytorch", exact=True).uncheck()
    until(lambda: "pytorch" not in yaml_of(page))
    assert "# stays" in yaml_of(page)
    assert "exitCode: 300" in yaml_of(page)


def test_a_problem_opens_what_hides_its_field(page):
    page.goto("/jobs/new/")
    write(page, world.GUARDED.replace("timeout: 5m", "timeout: soon"))
    expect(page.locator("[data-part=says]")).to_have_attribute("data-state", "refused")
    after = page.locator("[data-part=form] .policy").first.get_by_label("After")
    expect(after).to_be_visible()
    expect(after).to_have_attribute("aria-invalid", "true")
    expect(page.locator("[data-part=form] .policy").first).to_contain_text("is not a duration")


def test_a_policy_is_written_with_the_keyboard_alone(page):
    page.goto("/jobs/new/")
    page.wait_for_selector("[data-part=form]:not([hidden])")
    page.locator("[data-part=policies] > summary").first.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".policy").get_by_label("When")).to_be_focused()
    page.keyboard.press("ArrowDown")
    until(lambda: "event: PodEvicted" in yaml_of(page))
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    until(lambda: "action: RestartTask" in yaml_of(page))
    page.keyboard.press("Tab")
    page.keyboard.type("30s")
    until(lambda: 'timeout: "30s"' in yaml_of(page))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    until(lambda: "policies" not in yaml_of(page))
    expect(page.get_by_role("button", name="Policy", exact=True).first).to_be_focused()


def test_job_of_the_design_is_pasted_and_submitted_as_it_is_printed(page, watcher):
    page.goto("/jobs/new/")
    write(page, TF_JOB)
    expect(page.locator("[data-part=says]")).to_have_attribute("data-state", "accepted")
    expect(page.locator("[data-part=form] .task-form")).to_have_count(2)
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url("**/jobs/default/tf-job/")
    expect(live(page).locator("#table-rows tr")).to_have_count(6)
    page.get_by_role("button", name="Delete").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/jobs/")
    until(lambda: watcher.job("tf-job") is None)


@cases("old, new, field, words", {
    "negative replicas": ("replicas: 1", "replicas: -2", "Replicas", "greater than or equal to 0"),
    "hostile name": ("name: my-job", 'name: "<script>x"', "Name", "lower"),
    "impossible quantity": ("cpu: 100m", "cpu: lots", "cpu request", "lots"),
    "queue that is not there": ("queue: default", "queue: nowhere", "Queue", "nowhere"),
})  # fmt: skip
def test_problem_is_shown_at_its_field_while_typing(page, old, new, field, words):
    page.goto("/jobs/new/")
    write(page, yaml_of(page).replace(old, new))
    expect(page.locator("[data-part=says]")).to_have_attribute("data-state", "refused")
    marked = page.locator("[data-part=form] [aria-invalid=true]").first
    expect(marked).to_be_visible()
    assert field in marked.evaluate("each => each.labels?.[0]?.textContent || each.getAttribute('aria-label')")
    assert words in page.locator("[data-part=findings]").inner_text()
    with page.expect_event("load"):  # a window that is closed while the answer comes is never gone
        page.get_by_role("button", name="Submit the job").click()
    expect(page.locator("[data-part=findings] li").first).to_be_visible()
    assert page.url.endswith("/jobs/new/")


def test_waiting_job_says_why_and_what_is_missing_in_numbers(page):
    page.goto("/jobs/default/waiting/")
    why = live(page).locator("#job-why")
    expect(why).to_contain_text("a pod needs 640 CPU")
    expect(page.locator("#job-head")).to_contain_text("0 of 4")


def test_log_is_followed_live_and_readable_after_the_pod_is_gone(page, person, watcher):
    person.create(job("talker", shell(world.TICKS, terminationGracePeriodSeconds=0)))
    watcher.reaches("talker", "Running")
    page.goto("/jobs/default/talker/?tab=logs&pod=talker-main-0")
    log = page.locator("[data-part=text]")
    expect(log).to_contain_text("tick 5")
    stays(page)
    seen = max(map(int, re.findall(r"tick (\d+)", log.inner_text())))
    expect(log).to_contain_text(f"tick {seen + 5}")
    assert unchanged(page)
    person.post("/jobs/default/talker/delete/")
    until(lambda: watcher.job("talker") is None)
    expect(log).to_contain_text(f"tick {seen + 5}")
    person.create(job("kept", shell("echo words that stay")))
    watcher.reaches("kept", "Completed")
    page.goto("/jobs/default/kept/?tab=logs&pod=kept-main-0")
    expect(page.locator("#log")).to_contain_text("words that stay")


def test_runs_of_a_job_are_chapters_with_their_own_pods_and_logs(page, person, watcher):
    person.create(job("chapters", shell(world.TICKS, replicas=2, terminationGracePeriodSeconds=0)))
    watcher.reaches("chapters", "Running")
    page.goto("/jobs/default/chapters/")
    live(page)
    stays(page)
    page.get_by_role("button", name="Suspend").click()
    page.get_by_role("dialog").get_by_role("button", name="Suspend").click()
    expect(page.locator("#job-head")).to_contain_text("Aborted")
    expect(page.locator("#table-rows tr")).to_have_count(2)
    expect(page.locator("#table-rows")).to_contain_text("Stopped")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    runs = live(page).locator("#job-runs")
    expect(runs).to_contain_text("Run 2 goes on")
    expect(page.locator("#job-steps li").first).to_contain_text("Resumed")
    expect(page.locator("#timeline .t-running")).to_have_count(2)
    runs.get_by_role("link", name="Run 1 suspended").click()
    expect(page.locator("#job-steps li").first).to_contain_text("Created")
    expect(page.locator("#timeline .t-stopped")).to_have_count(2)
    expect(page.locator("#timeline [data-wait]")).not_to_have_count(0)
    page.get_by_role("link", name="chapters-main-1", exact=True).click()
    expect(page.locator("[data-part=text]")).to_contain_text("tick 1")
    expect(page.locator("#log-pod")).to_have_value("chapters-main-1")
    person.post("/jobs/default/chapters/delete/")
    until(lambda: watcher.job("chapters") is None)
    page.reload()
    expect(page.locator("#job-why")).to_contain_text("This job was deleted")
    expect(page.locator("[data-part=text]")).to_contain_text("tick 1")


def test_deleted_job_stays_in_the_list_and_its_page_explains_it_and_can_be_run_again(page, person, watcher):
    person.create(job("kept-of", shell("echo the last words; exit 4", name="w"), maxRetry=0))
    watcher.reaches("kept-of", "Failed")
    page.goto("/jobs/default/kept-of/")
    live(page).get_by_role("button", name="Delete").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/jobs/")
    expect(page.locator("#table-rows")).not_to_contain_text("kept-of")
    page.get_by_role("link", name=re.compile("Deleted")).click()
    row = page.locator("#table-rows tr", has_text="kept-of")
    expect(row).to_contain_text("exit 4 · w-0")
    row.get_by_role("link", name="kept-of").click()
    expect(page.locator("#job-why")).to_contain_text("This job was deleted")
    expect(page.locator("#timeline .t-failed")).to_have_count(1)
    page.get_by_role("link", name="Log of kept-of-w-0").click()
    expect(page.locator("[data-part=text]")).to_contain_text("the last words")
    page.get_by_role("link", name="Run again").click()
    page.wait_for_url("**/jobs/new/**")
    assert "exit 4" in yaml_of(page)


def test_list_is_filtered_sorted_and_paged_and_the_address_holds_the_view(page, person, watcher, tmp_path):
    for number in range(30):
        person.create(job(f"listed-{number:02}", world.nap(1), queue="batch"))
    page.goto("/jobs/?per=25")
    live(page)
    page.get_by_label("Find").fill("listed-")
    page.wait_for_url("**q=listed-**")
    expect(page.locator("#table-rows tr")).to_have_count(25)
    page.locator("thead").get_by_role("link", name="Job").click()
    page.wait_for_url("**sort=**")
    names = page.locator("#table-rows th a").all_inner_texts()
    assert names == sorted(names) or names == sorted(names, reverse=True)
    page.get_by_role("link", name="Later page").click()
    page.wait_for_url("**page=2**")
    expect(page.locator("#table-rows tr")).to_have_count(5)
    address, shown = page.url, page.locator("#table-rows th a").all_inner_texts()
    page.reload()
    assert page.locator("#table-rows th a").all_inner_texts() == shown
    page.go_back()
    expect(page.locator("#table-rows tr")).to_have_count(25)
    page.goto("/jobs/?q=changes-live")
    live(page)
    stays(page)
    person.create(job("changes-live", held(tmp_path / "out" / "go")))
    row = page.locator("#table-rows tr")
    expect(row).to_contain_text("Running")
    (tmp_path / "out" / "go").touch()
    expect(row).to_contain_text("Completed")
    assert unchanged(page)
    assert "page=2" in address


def test_queue_is_closed_and_opened_and_says_what_that_means(page, person, watcher, tmp_path):
    person.create(job("keeps-running", held(tmp_path / "out" / "go"), queue="batch"))
    watcher.reaches("keeps-running", "Running")
    page.goto("/queues/batch/")
    live(page)
    page.get_by_role("button", name=re.compile("^Close")).first.click()
    confirm(page, "Close")
    expect(page.locator("main")).to_contain_text("Closing")
    refused = person.submit(job("too-late", shell("exit 0"), queue="batch"))
    assert refused.status_code == 422
    (tmp_path / "out" / "go").touch()
    watcher.reaches("keeps-running", "Completed")
    page.get_by_role("button", name=re.compile("^(Open|Reopen)")).first.click()
    confirm(page, "Open")
    until(lambda: watcher.store.get(QUEUES, "", "batch").object["status"]["state"] == "Open")
    expect(page.locator("main")).to_contain_text("Open")


def confirm(page, verb):
    dialog = page.get_by_role("dialog")
    if dialog.count() and dialog.first.is_visible():
        dialog.first.get_by_role("button", name=re.compile(f"^{verb}")).click()


def test_two_tabs_on_one_queue_do_not_overwrite_each_other(enter, person):
    person.post("/queues/-/new/", name="shared", weight="1")
    first, second = enter(), enter()
    for page in (first, second):
        page.goto("/queues/shared/edit/")
    first.get_by_label("Weight").fill("7")
    first.get_by_role("button", name=re.compile("Save")).click()
    first.wait_for_url("**/queues/shared/")
    second.get_by_label("Weight").fill("9")
    second.get_by_role("button", name=re.compile("Save")).click()
    expect(second.locator("main")).to_contain_text(re.compile("changed|modified"))
    assert second.url.endswith("/edit/")


@pytest.mark.parametrize("how", ["offline", "web server stands still"])
def test_laptop_that_was_closed_catches_up_and_equals_a_fresh_load(enter, person, watcher, system, tmp_path, how):
    page = enter()
    page.clock.install()
    name = f"asleep-{how.split()[0]}"
    page.goto(f"/jobs/?q={name}")
    live(page)
    stays(page)
    if how == "offline":
        page.context.set_offline(True)
        page.evaluate("dispatchEvent(new Event('offline'))")
        person.create(job(name, shell("sleep 1")))
        watcher.reaches(name, "Completed")
    else:
        person.create(job(name, held(tmp_path / "out" / "go")))
        with stopped(system, "web"):
            (tmp_path / "out" / "go").touch()
            watcher.reaches(name, "Completed")
            grows_stale(page)
    if how == "offline":
        grows_stale(page)
        page.context.set_offline(False)
    expect(page.locator("#table-rows tr")).to_contain_text("Completed")
    live(page)
    assert unchanged(page)
    fresh = enter()
    fresh.goto(page.url)
    assert words(page) == words(live(fresh))


def grows_stale(page):
    """Let the page's time go on until it says that it hears nothing."""
    state = page.locator("#live")
    until(lambda: page.clock.run_for(1_000) or "stale since" in state.inner_text(), what="a stale page")


def words(page):
    """The rows as a reader sees them, but for ages, which go on."""
    return re.sub(r"\d+ ?(ms|s|min|seconds?)( ago)?|(just )?\bnow\b", "T", page.locator("#table-rows").inner_text())


def test_viewer_sees_and_may_not_and_logging_out_ends_the_sight(enter, person, system):
    with Person(system) as administrator:
        answer = administrator.post(
            "/access/users/", name="vera", password="correct-horse-battery", namespace="*", role="viewer"
        )
        assert answer.status_code == 302, answer.text[-2000:]
    page = enter(cookies={})
    page.goto("/jobs/")
    page.get_by_label("Name").fill("vera")
    page.get_by_label("Password", exact=True).fill("correct-horse-battery")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/jobs/")
    page.goto("/jobs/?q=running")  # other tests may have made more jobs than a page has rows
    expect(page.locator("#table-rows")).to_contain_text("running")
    page.goto("/jobs/default/running/")
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    answer = page.request.post(
        "/jobs/default/running/delete/", headers={"X-CSRFToken": csrf(page, system)}, max_redirects=0
    )
    assert answer.status in (302, 403)
    assert person.get("/jobs/default/running/").status_code == 200
    page.get_by_role("button", name="Menu of vera").click()
    page.get_by_role("button", name="Log out").click()
    page.goto("/jobs/default/running/")
    expect(page.get_by_label("Password", exact=True)).to_be_visible()


def csrf(page, system):
    return next(c["value"] for c in page.context.cookies() if c["name"] == f"volcano_ui_csrf_{system.port}")


def crowd(person, watcher, *names):
    """Submit jobs that run until they are ended."""
    for name in names:
        person.create(job(name, shell(world.TICKS, terminationGracePeriodSeconds=0)))
    for name in names:
        watcher.reaches(name, "Running")


def test_ticked_jobs_are_suspended_and_all_that_match_deleted(page, person, watcher):
    crowd(person, watcher, "crowd-a", "crowd-b", "crowd-c")
    page.goto("/jobs/?q=crowd")
    live(page)
    page.get_by_label("Tick crowd-a").check()
    page.get_by_label("Tick crowd-b").check()
    expect(page.locator("[data-part=count]")).to_have_text("2")
    page.get_by_label("What to do with them").select_option("suspend")
    page.get_by_role("button", name="Go on…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Suspend 2 of 2 jobs?")
    expect(page.locator("main")).to_contain_text("2 running pods will be stopped.")
    page.get_by_role("button", name="Suspend 2 jobs").click()
    page.wait_for_url(re.compile(r"/jobs/-/operations/\d+/$"))
    stays(page)
    expect(page.locator("#operation-head")).to_contain_text("Over: 2 of 2 jobs have a result")
    expect(page.locator("#table-rows tr")).to_have_count(2)
    expect(page.locator("#table-rows [data-phase=Done]")).to_have_count(2)
    assert unchanged(page)
    assert watcher.phase("crowd-c") == "Running"
    page.goto("/jobs/")
    page.get_by_label("Find").fill("crowd")
    expect(page.locator("#table-total")).to_have_text("3")
    page.get_by_label("All 3 that match").check()
    page.get_by_label("What to do with them").select_option("delete")
    page.get_by_role("button", name="Go on…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delete 3 of 3 jobs?")
    page.get_by_role("button", name="Delete 3 jobs").click()
    expect(page.locator("#operation-head")).to_contain_text("Over: 3 of 3 jobs have a result")
    assert watcher.job("crowd-c") is None


def test_what_is_ticked_stays_ticked_while_the_list_changes(page, person, watcher):
    crowd(person, watcher, "tick-a")
    page.goto("/jobs/?q=tick-")
    live(page)
    page.get_by_label("Tick tick-a").check()
    crowd(person, watcher, "tick-b")
    expect(page.locator("#table-total")).to_have_text("2")
    page.get_by_role("button", name="1 new job – show").click()
    expect(page.locator("#table-rows tr")).to_have_count(2)
    expect(page.get_by_label("Tick tick-a")).to_be_checked()
    expect(page.get_by_label("Tick tick-b")).not_to_be_checked()
    page.get_by_role("button", name="Tick this page").click()
    expect(page.locator("[data-part=count]")).to_have_text("2")


def test_an_action_says_before_what_it_does_and_then_what_became_of_it(page, person, watcher):
    crowd(person, watcher, "asked")
    page.goto("/jobs/default/asked/")
    live(page)
    page.get_by_role("button", name="Suspend").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 running pod will be stopped.")
    dialog.get_by_role("button", name="Suspend").click()
    expect(page.locator("#job-asked")).to_contain_text("Suspend: done.")
    expect(page.locator("#job-head")).to_contain_text("Aborted")
    page.get_by_role("button", name="Resume").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator("#job-asked")).to_contain_text("Resume: done.")


def test_actions_and_bulk_operations_work_without_scripts(enter, person, watcher):
    crowd(person, watcher, "plain-a", "plain-b")
    page = enter(java_script_enabled=False)
    page.goto("/jobs/default/plain-a/")
    page.get_by_role("button", name="Terminate").first.click()
    page.get_by_role("button", name="Terminate").click()
    page.wait_for_url("**/jobs/default/plain-a/")
    watcher.reaches("plain-a", "Terminated")
    page.reload()
    expect(page.locator("#job-asked")).to_contain_text("Terminate: done.")
    page.goto("/jobs/?q=plain-")
    page.get_by_label("Tick plain-b").check()
    page.get_by_label("What to do with them").select_option("complete")
    page.get_by_role("button", name="Go on…").click()
    page.get_by_role("button", name="Complete 1 job").click()
    watcher.reaches("plain-b", "Completed")


def test_two_people_edit_one_job_and_none_loses_what_was_typed(enter, person, watcher):
    crowd(person, watcher, "shared")
    first, second = enter(), enter()
    for page in (first, second):
        page.goto("/jobs/default/shared/edit/")
    first.get_by_label("Pods that must start together").fill("0")
    second.get_by_label("Replicas of main").fill("2")
    for name in ("Show what changes", "Save"):
        first.get_by_role("button", name=name).click()
    first.wait_for_url("**/jobs/default/shared/")
    second.get_by_role("button", name="Show what changes").click()
    expect(second.locator("main")).to_contain_text("changed this job after you opened it")
    expect(second.get_by_label("Replicas of main")).to_have_value("2")
    for name in ("Show what changes", "Save"):
        second.get_by_role("button", name=name).click()
    second.wait_for_url("**/jobs/default/shared/")
    expect(second.locator("#job-asked")).to_contain_text("Scale: done.")
    spec = watcher.job("shared")["spec"]
    assert (spec["minAvailable"], spec["tasks"][0]["replicas"]) == (0, 2)


def test_everything_can_be_reached_with_the_keyboard(page):
    page.goto("/")
    live(page)
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs/")
    page.keyboard.press("/")
    page.keyboard.type("sweep")
    page.wait_for_url("**q=sweep**")
    expect(page.locator("#table-rows tr")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/default/sweep/")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()
    page.keyboard.press("c")
    page.wait_for_url("**/jobs/new/")
    page.goto("/jobs/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
