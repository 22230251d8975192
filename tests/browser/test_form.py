"""Journeys through the form of a job: what it offers, what it writes, and what becomes of it."""

import re

import pytest
from playwright.sync_api import expect

from kube.resources import QUEUES
from proof.harness.waiting import until
from proof.pictures.world import write, yaml_of
from tests.browser.journey import Window
from tests.tables import cases

pytestmark = pytest.mark.system


@pytest.fixture
def form(page):
    """A window with the form of a new job."""
    page.goto("/jobs/new/")
    return page


def tab_to(page, thing, most=90):
    """Press Tab until a thing has the focus, as somebody without a mouse does; return how often."""
    wanted = Window(page).find(thing)
    for presses in range(1, most + 1):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return presses
    raise AssertionError(f"{most} presses of Tab did not lead to {thing}")


def test_tab_leads_through_the_whole_form_and_changes_nothing(form):
    Window(form).sees("accepted")
    before = yaml_of(form)
    tab_to(form, ".cm-content")
    tab_to(form, "button Submit the job")
    form.keyboard.press("Shift+Tab")
    tab_to(form, "button Submit the job")
    assert yaml_of(form) == before


@pytest.mark.parametrize("modifier", ["Control", "Meta"])
def test_a_job_is_written_and_submitted_with_the_keyboard_alone(form, watcher, modifier):
    name = f"by-{modifier.lower()}-enter"
    Window(form).goes("→ accepted\npress Tab Enter")
    assert tab_to(form, "link Skip the form, to the YAML") <= 2
    Window(form).goes("→ link Skip the form, to the YAML is in_viewport\npress Enter")
    assert tab_to(form, "textbox Job as YAML") == 1
    editor = form.get_by_role("textbox", name="Job as YAML")
    expect(editor).to_have_accessible_description(re.compile("Tab leaves the text.* Enter submits the job"))
    Window(form).goes(f"""
        press Control+Home ArrowDown ArrowDown ArrowDown End {" Backspace" * len("my-job")}
        type {name} → yaml: name: {name}; accepted
        press {modifier}+Enter → at **/jobs/default/{name}/
    """)
    assert watcher.job(name)["metadata"]["name"] == name


def test_a_field_of_the_form_submits_it_too(form):
    Window(form).goes("""
        fill field "Name" >> nth=0 = from-a-field; fill field Shell line = true → accepted
        press Control+Enter → at **/jobs/default/from-a-field/
    """)


def test_gang_follows_the_tasks_until_somebody_sets_it(form):
    Window(form).goes("""
        → around Pods that must start together: the only pod
        fill field Replicas = 4; click button Add a task → field Pods that must start together holds 5
        → around Pods that must start together: all 5 pods
        → .task-form >> nth=1 >> field "Name" holds task-2; .task-form >> nth=1 >> field memory request holds 64Mi
        fill field Pods that must start together = 3 → around Pods that must start together: 3 of 5 pods, set by hand
        fill field Replicas >> nth=0 = 5 → around Pods that must start together: 3 of 6 pods, set by hand
        click around Pods that must start together >> button use all → field Pods that must start together holds 6
        → field Pods that must start together is focused
        click .task-form >> nth=1 >> button Remove this task → field Pods that must start together holds 5
        → button Add a task is focused
        fill field Pods that must start together = ; click button Add a task
        → around Pods that must start together: all 6 pods
        → yaml without minAvailable; accepted
    """)


def test_several_containers_of_a_task_share_a_volume(form, watcher):
    Window(form).goes("""
        fill field "Name" >> nth=0 = two-containers → .container × 1; button Remove this container is hidden
        click text Nodes, volumes, partitions; click [data-part=volumes] >> button Volume
        → field Name of the volume is focused
        fill field Name of the volume = shared
        click button Add an init container → group Init container init >> field Name of the container is focused
        fill group Init container init >> field Shell line = echo from the init container > /mnt/shared/word
        click group Init container init >> button Mount
        → group Init container init >> field Volume that is mounted holds shared
        fill group Init container init >> field Directory within the volume = words
        click button "Add a container"; fill group Container sidecar >> field Name of the container = helper
        click group Container helper >> button Port; fill group Container helper >> field Number of the port = 9090
        click group Container helper >> button Variable
        fill group Container helper >> field Name of the variable = WORD
        fill group Container main >> field Shell line = cat /mnt/data/word
        click group Container main >> text Image, directory, environment
        fill group Container main >> field Directory within the volume = words
        check group Container main >> field read only → yaml: readOnly: true; accepted
        click button Submit the job → at **/jobs/default/two-containers/; live; #job-head: Completed
    """)
    spec = watcher.job("two-containers")["spec"]["tasks"][0]["template"]["spec"]
    assert [each["name"] for each in spec["containers"]] == ["main", "helper"]
    mount = {"name": "shared", "mountPath": "/mnt/data", "subPath": "words", "readOnly": True}
    assert spec["containers"][0]["volumeMounts"] == [mount]
    mount = {"name": "shared", "mountPath": "/mnt/shared", "subPath": "words"}
    assert spec["initContainers"][0]["volumeMounts"] == [mount]
    assert spec["containers"][1]["ports"] == [{"containerPort": 9090}]


BARE = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: bare
spec:
  minAvailable: 0
  networkTopology: {}
  tasks:
  - replicas: 3
    minAvailable: 2
    template:
      spec:
        containers:
        - name: main
          image: busybox
          command: ["true"]
"""


def test_what_the_yaml_leaves_out_is_shown_as_it_will_hold(form):
    write(form, BARE)
    Window(form).goes("""
        → accepted
        click text Priority, restarts
        → field "Namespace" >> nth=0 has placeholder default; field "Queue" >> nth=0 has placeholder default
        → field "Restarts until it fails" has placeholder 3
        → field Network topology >> option:checked = must be kept (hard) (default)
        → around Pods that must start together: Counts as 2.; .task-form >> field "Name" has placeholder default0
        fill field Pods that must start together = 3 → accepted; around Pods that must start together without Counts as
    """)
    for label in ("Namespace", "Queue", "Restarts until it fails"):
        expect(form.get_by_label(label, exact=True).first).to_have_value("")


def test_volumes_of_a_job_are_made_named_and_missed(form):
    Window(form).goes("""
        click text Volumes that all pods see; click [data-part=job-volumes] >> button Volume
        fill group Volume of the job >> field Size = 3Gi
        choose group Volume of the job >> field Who may write = ReadWriteMany
        → yaml: storage: 3Gi; accepted
        fill group Volume of the job >> field Size = much
        → refused; group Volume of the job >> field Size has aria-invalid true
        choose group Volume of the job >> field What it is = volumeClaimName
        → group Volume of the job >> field Size is hidden
        → group Volume of the job: names no claim
        fill group Volume of the job >> field Name of the claim = lost
        → group Volume of the job: There is no claim lost in namespace default
        choose group Volume of the job >> field What it is = none
        → group Volume of the job >> field Name of the claim is hidden
        → accepted
        click group Volume of the job >> button Remove this volume → [data-part=job-volumes] >> button Volume is focused
        → yaml without volumes
    """)


def test_partitions_and_the_network_are_set(form):
    Window(form).goes("""
        click text Nodes, volumes, partitions; fill field "Partitions" = 2; fill field Pods of each = 3
        → refused; field Replicas has aria-invalid true
        fill field Replicas = 6 → accepted
        choose field Network of a partition = hard; fill field "Its highest tier" = 1 → yaml: highestTierAllowed: 1
        click text Priority, restarts; choose field Network topology = soft
        fill field Highest tier of the network = 2 → yaml: highestTierAllowed: 2
        fill field "Highest tier, by its name" = rack → refused
        choose field Network topology = hard; fill field Highest tier of the network =
        fill field "Highest tier, by its name" = campus
        → around "Highest tier, by its name": No HyperNode has the tier campus
        fill field "Highest tier, by its name" = rack → around "Highest tier, by its name" without No HyperNode
    """)


def test_queue_is_chosen_by_its_room_and_a_closed_one_says_so(page, person, watcher):
    person.post("/queues/-/new/", name="shut", weight="1")
    person.post("/queues/shut/close/")
    until(lambda: watcher.store.get(QUEUES, "", "shut").object["status"]["state"] == "Closed")
    Window(page).goes("""
        open /jobs/new/ → around "Queue" >> [data-part=description]: CPU free
        click combobox Queue → listbox Queue >> option training: CPU free
        → listbox Queue >> option shut: closed; listbox Queue >> option shut is disabled
    """)
    Window(page).find("listbox Queue >> option shut").click(force=True)
    Window(page).goes("""
        → combobox Queue holds default
        click listbox Queue >> option training → combobox Queue holds training; listbox Queue is hidden
        → yaml: queue: training; accepted
        fill combobox Queue = shut → refused; around "Queue": closed
        fill combobox Queue = nowhere → around "Queue": queue nowhere not found
    """)


def test_namespace_and_priority_are_chosen_with_the_keyboard(form):
    Window(form).goes("""
        fill combobox Queue = ; focus combobox Queue; type trai → listbox Queue >> option × 1
        press ArrowDown Enter → combobox Queue holds training
        press ArrowDown → combobox Queue has aria-expanded true
        press Escape → combobox Queue has aria-expanded false; combobox Queue is focused
        focus combobox Namespace; press ArrowUp Tab → combobox Namespace has aria-expanded false
        → combobox Namespace holds default
        click text Priority, restarts; click combobox Priority class; click listbox Priority class >> option >> nth=0
    """)
    chosen = Window(form).find("combobox Priority class").input_value()
    Window(form).goes(f"""
        → yaml: priorityClassName: {chosen}; around "Priority class" >> [data-part=description]: priority ; accepted
        focus combobox Queue; press ArrowDown ArrowDown
    """)
    active = Window(form).find("combobox Queue").get_attribute("aria-activedescendant")
    assert active in [each.get_attribute("id") for each in Window(form).find("listbox Queue >> option").all()]


def test_what_may_be_chosen_is_told_anew_with_a_check(enter, person):
    page = enter()
    page.clock.install()
    Window(page).goes("open /jobs/new/ → accepted")
    person.post("/queues/-/new/", name="newcomer", weight="1")
    page.clock.fast_forward(11_000)
    page.get_by_role("combobox", name="Queue").fill("newcomer")
    page.clock.fast_forward(1_000)
    Window(page).goes("""
        → around "Queue": CPU free
        click combobox Queue → listbox Queue >> option newcomer is visible
    """)


@cases("failures, comes", {"for-a-moment": (2, True), "for-good": (9, False)})
def test_form_that_cannot_be_loaded_is_loaded_again_or_says_so(enter, failures, comes):
    page, failed = enter(), []

    def fail(route):
        if len(failed) == failures:
            return route.continue_()
        failed.append(route.request.url)
        return route.abort()

    page.clock.install()
    page.route(re.compile(r"/chunks/editor-[A-Z0-9]{8}\.js$"), fail)
    page.goto("/jobs/new/")
    until(lambda: page.clock.run_for(1_000) or len(failed) == min(failures, 5))
    if comes:
        Window(page).goes("→ accepted; alert >> text could not be loaded × 0")
    else:
        Window(page).goes("→ #toasts: Load the page again; textbox Job as YAML is visible")


def test_order_of_the_tasks_is_drawn_while_it_is_chosen(form):
    Window(form).goes("""
        → region Order of the tasks is hidden
        click button Add a task; click button Add a task; check .task-form >> nth=1 >> field main
        check .task-form >> nth=2 >> field main; check .task-form >> nth=2 >> field task-2
        choose .task-form >> nth=2 >> field How many of them = any → region Order of the tasks >> .graph-node × 3
        → region Order of the tasks >> .graph-line × 3
        → region Order of the tasks: main starts first. task-2 waits for main. task-3 waits for main or task-2.
        fill .task-form >> nth=1 >> field "Name" = train
        → region Order of the tasks: task-3 waits for main or train.; accepted
        check .task-form >> nth=0 >> field task-3 → refused; [data-path='spec.tasks'][data-error]: break the circle
        uncheck .task-form >> nth=2 >> field main; uncheck .task-form >> nth=2 >> field train
        uncheck .task-form >> nth=1 >> field main; uncheck .task-form >> nth=0 >> field task-3
        → region Order of the tasks is hidden
    """)


def test_nothing_moves_under_a_pressed_pointer_when_a_verdict_comes(form):
    """The last of three tasks waits no more for the first, and what was wrong goes away while a box is clicked."""
    window, verdicts = Window(form), []
    window.goes("""
        click button Add a task; click button Add a task; check .task-form >> nth=1 >> field main
        check .task-form >> nth=2 >> field task-2; check .task-form >> nth=0 >> field task-3
        → refused; [data-path='spec.tasks'][data-error]: break the circle
    """)
    form.route("**/validate/", lambda route: verdicts.append(route), times=1)
    window.goes("uncheck .task-form >> nth=2 >> field task-2")
    box = window.find(".task-form >> nth=1 >> field main")
    box.hover()
    form.mouse.down()
    at = box.bounding_box()
    until(lambda: form.wait_for_timeout(10) or verdicts)
    with form.expect_response("**/validate/") as comes:
        verdicts[0].continue_()
    comes.value.finished()
    form.evaluate("() => new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)))")
    assert box.bounding_box() == at
    form.mouse.up()
    expect(box).not_to_be_checked()
    window.goes("→ accepted")


def test_a_slip_in_the_text_is_told_with_the_remedy_and_mended(form):
    """Other slips: tests/golden/pages/yaml.txt and editor.txt."""
    before = yaml_of(form)
    write(form, f"```yaml\n{before}```\n")
    Window(form).goes("→ refused; [data-part=findings]: remove the lines that begin with it")
    write(form, before)
    Window(form).goes("→ accepted; field Replicas is enabled")


def test_a_job_begins_with_a_template_that_people_keep(page, watcher):
    Window(page).goes("""
        open /jobs/new/; click link "extract" → at **/jobs/new/?kept=default/extract
        → text From the template extract is visible; accepted
        click button Submit the job → at **/jobs/default/extract/; live; #job-head: Completed
    """)
    assert watcher.job("extract")["spec"]["tasks"][0]["name"] == "main"
