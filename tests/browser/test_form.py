"""Journeys through the form of a job: what it offers, what it writes, and what becomes of it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from kube.resources import QUEUES
from proof.harness.waiting import until
from proof.pictures.world import write, yaml_of
from tests.tables import cases

pytestmark = pytest.mark.system

ACCEPTED = "This job would be accepted"


@pytest.fixture
def form(page):
    """The form of a new job."""
    page.goto("/jobs/new/")
    return page.locator("[data-part=form]")


def says(page, state="accepted"):
    """Wait until the newest text was checked and judged so."""
    expect(page.locator("[data-part=says]:not([data-checking])")).to_have_attribute("data-state", state)


def submit(page, name):
    says(page)
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url(f"**/jobs/default/{name}/")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    expect(page.locator("#job-head")).to_contain_text("Completed")


def offered(page, name):
    """Return what the list of a combobox offers."""
    return page.get_by_role("listbox", name=name).get_by_role("option")


def tab_to(page, wanted, most=90):
    """Press Tab until an element has the focus, as somebody without a mouse does; return how often."""
    for presses in range(1, most + 1):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return presses
    raise AssertionError(f"{most} presses of Tab did not lead to {wanted}")


def test_tab_leads_through_the_whole_form_and_changes_nothing(page, form):
    says(page)
    before = yaml_of(page)
    tab_to(page, page.locator(".cm-content"))
    tab_to(page, page.get_by_role("button", name="Submit the job"))
    page.keyboard.press("Shift+Tab")
    tab_to(page, page.get_by_role("button", name="Submit the job"))
    assert yaml_of(page) == before


@pytest.mark.parametrize("modifier", ["Control", "Meta"])
def test_a_job_is_written_and_submitted_with_the_keyboard_alone(page, form, watcher, modifier):
    says(page)
    name = f"by-{modifier.lower()}-enter"
    skip = page.get_by_role("link", name="Skip the form, to the YAML")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert tab_to(page, skip) <= 2
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    editor = page.get_by_role("textbox", name="Job as YAML")
    assert tab_to(page, editor) == 1
    expect(editor).to_have_accessible_description(re.compile("Tab leaves the text.* Enter submits the job"))
    page.keyboard.press("Control+Home")
    for key in ("ArrowDown",) * 3 + ("End",) + ("Backspace",) * len("my-job"):
        page.keyboard.press(key)
    page.keyboard.type(name)
    until(lambda: f"name: {name}\n" in yaml_of(page))
    says(page)
    page.keyboard.press(f"{modifier}+Enter")
    page.wait_for_url(f"**/jobs/default/{name}/")
    assert watcher.job(name)["metadata"]["name"] == name


def test_a_field_of_the_form_submits_it_too(page, form):
    form.get_by_label("Name", exact=True).first.fill("from-a-field")
    form.get_by_label("Shell line").fill("true")
    says(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/jobs/default/from-a-field/")


def test_gang_follows_the_tasks_until_somebody_sets_it(page, form):
    together = form.get_by_label("Pods that must start together")
    field = form.locator(".field", has=page.get_by_label("Pods that must start together"))
    expect(field).to_contain_text("the only pod")
    form.get_by_label("Replicas").fill("4")
    form.get_by_role("button", name="Add a task").click()
    expect(together).to_have_value("5")
    expect(field).to_contain_text("all 5 pods")
    added = form.locator(".task-form").nth(1)
    expect(added.get_by_label("Name", exact=True)).to_have_value("task-2")
    expect(added.get_by_label("memory request")).to_have_value("64Mi")
    together.fill("3")
    expect(field).to_contain_text("3 of 5 pods, set by hand")
    form.get_by_label("Replicas").first.fill("5")
    expect(field).to_contain_text("3 of 6 pods, set by hand")
    field.get_by_role("button", name="use all").click()
    expect(together).to_have_value("6")
    expect(together).to_be_focused()
    added.get_by_role("button", name="Remove this task").click()
    expect(together).to_have_value("5")
    expect(form.get_by_role("button", name="Add a task")).to_be_focused()
    together.fill("")
    form.get_by_role("button", name="Add a task").click()
    expect(field).to_contain_text("all 6 pods")
    assert "minAvailable" not in yaml_of(page)
    says(page)


def test_several_containers_of_a_task_share_a_volume(page, form, watcher):
    form.get_by_label("Name", exact=True).first.fill("two-containers")
    expect(form.locator(".container")).to_have_count(1)
    expect(form.get_by_role("button", name="Remove this container")).to_be_hidden()
    form.get_by_text("Nodes, volumes, partitions").click()
    form.locator("[data-part=volumes]").get_by_role("button", name="Volume").click()
    expect(form.get_by_label("Name of the volume")).to_be_focused()
    form.get_by_label("Name of the volume").fill("shared")
    form.get_by_role("button", name="Add an init container").click()
    init = form.get_by_role("group", name="Init container init")
    expect(init.get_by_label("Name of the container")).to_be_focused()
    init.get_by_label("Shell line").fill("echo from the init container > /mnt/shared/word")
    init.get_by_role("button", name="Mount").click()
    expect(init.get_by_label("Volume that is mounted")).to_have_value("shared")
    init.get_by_label("Directory within the volume").fill("words")
    form.get_by_role("button", name="Add a container", exact=True).click()
    other = form.get_by_role("group", name="Container sidecar")
    other.get_by_label("Name of the container").fill("helper")
    other = form.get_by_role("group", name="Container helper")
    other.get_by_role("button", name="Port").click()
    other.get_by_label("Number of the port").fill("9090")
    other.get_by_role("button", name="Variable").click()
    other.get_by_label("Name of the variable").fill("WORD")
    main = form.get_by_role("group", name="Container main")
    main.get_by_label("Shell line").fill("cat /mnt/data/word")
    main.get_by_text("Image, directory, environment").click()
    main.get_by_label("Directory within the volume").fill("words")
    main.get_by_label("read only").check()
    until(lambda: "readOnly: true" in yaml_of(page))
    submit(page, "two-containers")
    spec = watcher.job("two-containers")["spec"]["tasks"][0]["template"]["spec"]
    assert [each["name"] for each in spec["containers"]] == ["main", "helper"]
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": "shared", "mountPath": "/mnt/data", "subPath": "words", "readOnly": True}
    ]
    assert spec["initContainers"][0]["volumeMounts"] == [
        {"name": "shared", "mountPath": "/mnt/shared", "subPath": "words"}
    ]
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


def test_what_the_yaml_leaves_out_is_shown_as_it_will_hold(page, form):
    write(page, BARE)
    says(page)
    form.get_by_text("Priority, restarts").click()
    for label, value in (("Namespace", "default"), ("Queue", "default"), ("Restarts until it fails", "3")):
        shown = form.get_by_label(label, exact=True).first
        expect(shown).to_have_value("")
        expect(shown).to_have_attribute("placeholder", value)
    topology = form.get_by_label("Network topology")
    expect(topology.locator("option:checked")).to_have_text("must be kept (hard) (default)")
    together = form.locator(".field", has=page.get_by_label("Pods that must start together"))
    expect(together).to_contain_text("Counts as 2.")
    expect(form.locator(".task-form").get_by_label("Name", exact=True)).to_have_attribute("placeholder", "default0")
    page.get_by_label("Pods that must start together").fill("3")
    says(page)
    expect(together).not_to_contain_text("Counts as")


def test_a_container_goes_and_takes_nothing_with_it(page, form):
    before = yaml_of(page)
    form.get_by_role("button", name="Add a container", exact=True).click()
    form.get_by_role("button", name="Remove this container").last.click()
    expect(form.locator(".container")).to_have_count(1)
    expect(form.get_by_role("button", name="Add a container", exact=True)).to_be_focused()
    assert yaml_of(page) == before


def test_volumes_of_a_job_are_made_named_and_missed(page, form):
    form.get_by_text("Volumes that all pods see").click()
    form.locator("[data-part=job-volumes]").get_by_role("button", name="Volume").click()
    volume = form.get_by_role("group", name="Volume of the job")
    volume.get_by_label("Size").fill("3Gi")
    volume.get_by_label("Who may write").select_option("ReadWriteMany")
    until(lambda: "storage: 3Gi" in yaml_of(page))
    says(page)
    volume.get_by_label("Size").fill("much")
    says(page, "refused")
    expect(volume.get_by_label("Size")).to_have_attribute("aria-invalid", "true")
    volume.get_by_label("What it is").select_option("volumeClaimName")
    expect(volume.get_by_label("Size")).to_be_hidden()
    expect(volume).to_contain_text("names no claim")
    volume.get_by_label("Name of the claim").fill("lost")
    expect(volume).to_contain_text("There is no claim lost in namespace default")
    volume.get_by_label("What it is").select_option("none")
    expect(volume.get_by_label("Name of the claim")).to_be_hidden()
    says(page)
    volume.get_by_role("button", name="Remove this volume").click()
    expect(form.locator("[data-part=job-volumes]").get_by_role("button", name="Volume")).to_be_focused()
    assert "volumes" not in yaml_of(page)


def test_volumes_of_a_task_are_of_the_kinds_that_a_node_has(page, form):
    form.get_by_text("Nodes, volumes, partitions").click()
    form.locator("[data-part=volumes]").get_by_role("button", name="Volume").click()
    volume = form.get_by_role("group", name="Volume of the task")
    volume.get_by_label("What it is").select_option("configMap")
    volume.get_by_label("Name of the config map").fill("settings")
    until(lambda: "name: settings" in yaml_of(page) or 'name: "settings"' in yaml_of(page))
    volume.get_by_label("What it is").select_option("persistentVolumeClaim")
    volume.get_by_label("Name of the claim").fill("lost")
    expect(volume).to_contain_text("There is no claim lost in namespace default")
    expect(volume.get_by_label("What it is").locator("option")).to_have_text(
        ["An empty directory", "A config map", "A secret", "A volume claim", "A directory of the node"]
    )
    write(page, yaml_of(page).replace("persistentVolumeClaim:", "projected: # "))
    expect(volume.get_by_label("What it is")).to_be_disabled()
    expect(volume).to_contain_text("of the kind projected")


def test_partitions_and_the_network_are_set(page, form):
    form.get_by_text("Nodes, volumes, partitions").click()
    form.get_by_label("Partitions", exact=True).fill("2")
    form.get_by_label("Pods of each").fill("3")
    says(page, "refused")
    expect(form.get_by_label("Replicas")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Replicas").fill("6")
    says(page)
    form.get_by_label("Network of a partition").select_option("hard")
    form.get_by_label("Its highest tier", exact=True).fill("1")
    until(lambda: "highestTierAllowed: 1" in yaml_of(page))
    form.get_by_text("Priority, restarts").click()
    form.get_by_label("Network topology").select_option("soft")
    form.get_by_label("Highest tier of the network").fill("2")
    until(lambda: "highestTierAllowed: 2" in yaml_of(page))
    form.get_by_label("Highest tier, by its name", exact=True).fill("rack")
    says(page, "refused")
    form.get_by_label("Network topology").select_option("hard")
    form.get_by_label("Highest tier of the network").fill("")
    name = form.get_by_label("Highest tier, by its name", exact=True)
    name.fill("campus")
    expect(form.locator(".field", has=page.get_by_label("Highest tier, by its name", exact=True))).to_contain_text(
        "No HyperNode has the tier campus"
    )
    name.fill("rack")
    expect(form.locator(".field", has=page.get_by_label("Highest tier, by its name", exact=True))).not_to_contain_text(
        "No HyperNode"
    )


def test_queue_is_chosen_by_its_room_and_a_closed_one_says_so(page, person, watcher):
    person.post("/queues/-/new/", name="shut", weight="1")
    person.post("/queues/shut/close/")
    until(lambda: watcher.store.get(QUEUES, "", "shut").object["status"]["state"] == "Closed")
    page.goto("/jobs/new/")
    queue = page.get_by_role("combobox", name="Queue")
    field = page.locator(".field", has=page.get_by_role("combobox", name="Queue"))
    expect(field.locator("[data-part=said]")).to_contain_text("CPU free")
    queue.click()
    options = offered(page, "Queue")
    expect(options.filter(has_text="training")).to_contain_text("CPU free")
    shut = options.filter(has_text="shut")
    expect(shut).to_contain_text("closed")
    expect(shut).to_be_disabled()
    shut.click(force=True)
    expect(queue).to_have_value("default")
    options.filter(has_text="training").click()
    expect(queue).to_have_value("training")
    expect(field.get_by_role("listbox")).to_be_hidden()
    assert "queue: training" in yaml_of(page)
    says(page)
    queue.fill("shut")
    says(page, "refused")
    expect(field).to_contain_text("closed")
    queue.fill("nowhere")
    expect(field).to_contain_text("queue nowhere not found")


def test_namespace_and_priority_are_chosen_with_the_keyboard(page, form):
    queue = page.get_by_role("combobox", name="Queue")
    queue.fill("")
    queue.press_sequentially("trai")
    option = offered(page, "Queue")
    expect(option).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(queue).to_have_attribute("aria-activedescendant", option.get_attribute("id"))
    page.keyboard.press("Enter")
    expect(queue).to_have_value("training")
    page.keyboard.press("ArrowDown")
    expect(queue).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(queue).to_have_attribute("aria-expanded", "false")
    expect(queue).to_be_focused()
    namespace = page.get_by_role("combobox", name="Namespace")
    namespace.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    expect(namespace).to_have_attribute("aria-expanded", "false")
    expect(namespace).to_have_value("default")
    form.get_by_text("Priority, restarts").click()
    priority = page.get_by_role("combobox", name="Priority class")
    priority.click()
    offered(page, "Priority class").first.click()
    until(lambda: f"priorityClassName: {priority.input_value()}" in yaml_of(page))
    expect(
        page.locator(".field", has=page.get_by_role("combobox", name="Priority class")).locator("[data-part=said]")
    ).to_contain_text("priority ")
    says(page)


def test_what_may_be_chosen_is_told_anew_with_a_check(enter, person):
    page = enter()
    page.clock.install()
    page.goto("/jobs/new/")
    queue = page.get_by_role("combobox", name="Queue")
    says(page)
    person.post("/queues/-/new/", name="newcomer", weight="1")
    page.clock.fast_forward(11_000)
    queue.fill("newcomer")
    page.clock.fast_forward(1_000)
    expect(page.locator(".field", has=page.get_by_role("combobox", name="Queue"))).to_contain_text("CPU free")
    queue.click()
    expect(offered(page, "Queue").filter(has_text="newcomer")).to_be_visible()


@cases("failures, comes", {
    "for-a-moment": (2, True),
    "for-good": (9, False),
})  # fmt: skip
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
    words = page.get_by_role("alert").filter(has_text="could not be loaded")
    if comes:
        says(page)
        expect(words).to_have_count(0)
    else:
        expect(page.locator("#toasts")).to_contain_text("Load the page again")
        expect(page.get_by_role("textbox", name="Job as YAML")).to_be_visible()


def test_order_of_the_tasks_is_drawn_while_it_is_chosen(page, form):
    graph = form.get_by_role("region", name="Order of the tasks")
    expect(graph).to_be_hidden()
    for _ in range(2):
        form.get_by_role("button", name="Add a task").click()
    second, third = (form.locator(".task-form").nth(at) for at in (1, 2))
    second.get_by_label("main").check()
    third.get_by_label("main").check()
    third.get_by_label("task-2").check()
    third.get_by_label("How many of them").select_option("any")
    expect(graph.locator(".graph-node")).to_have_count(3)
    expect(graph.locator(".graph-line")).to_have_count(3)
    expect(graph).to_contain_text("main starts first. task-2 waits for main. task-3 waits for main or task-2.")
    second.get_by_label("Name", exact=True).fill("train")
    expect(graph).to_contain_text("task-3 waits for main or train.")
    says(page)
    first = form.locator(".task-form").first
    first.get_by_label("task-3").check()
    says(page, "refused")
    expect(form.locator("[data-path='spec.tasks'][data-error]")).to_contain_text("break the circle")
    for name in ("main", "train"):
        third.get_by_label(name).uncheck()
    second.get_by_label("main").uncheck()
    first.get_by_label("task-3").uncheck()
    expect(graph).to_be_hidden()


@cases("change, words", {
    "misspelled": (lambda text: text.replace("replicas:", "replica:"), "replicas is the nearest"),
    "fences": (lambda text: f"```yaml\n{text}```\n", "remove the lines that begin with it"),
    "tab": (lambda text: text.replace("  queue:", "\tqueue:"), "YAML allows only spaces"),
    "two jobs": (lambda text: f"{text}---\n{text}", "The editor takes one; remove the others"),
})  # fmt: skip
def test_a_slip_in_the_text_is_told_with_the_remedy_and_mended(page, form, change, words):
    before = yaml_of(page)
    write(page, change(before))
    says(page, "refused")
    expect(page.locator("[data-part=findings]")).to_contain_text(words)
    write(page, before)
    says(page)
    expect(form.get_by_label("Replicas")).to_be_enabled()


def test_a_job_begins_with_a_template_that_people_keep(page, watcher):
    page.goto("/jobs/new/")
    page.get_by_role("link", name="extract", exact=True).click()
    page.wait_for_url("**/jobs/new/?kept=default/extract")
    expect(page.get_by_text("From the template extract")).to_be_visible()
    submit(page, "extract")
    assert watcher.job("extract")["spec"]["tasks"][0]["name"] == "main"
