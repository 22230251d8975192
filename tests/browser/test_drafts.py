"""What is written and not submitted: it outlives a server that is away, a closed tab, the back button, a refusal."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from proof.pictures.world import TUNING, write
from proof.systems.system import System
from proof.systems.work import Person, job, shell
from tests.browser.test_journeys import yaml_of

pytestmark = pytest.mark.system

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: NAME
  namespace: default
spec:
  queue: batch
  tasks:
  - name: main
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: busybox, command: ["true"]}  # as it was typed
"""


def written(name):
    return JOB.replace("NAME", name)


def begin(page, name):
    """Write a job and wait until the browser has it."""
    page.goto("/jobs/new/")
    write(page, written(name))
    expect(page.locator("#editor[data-draft-kept]")).to_be_visible()


def offers(page):
    return page.locator(".draft-notice", has_text="did not submit")


def test_a_job_outlives_a_server_that_is_away_and_a_tab_that_is_closed(tmp_path, enter):
    own = System(tmp_path / "data")
    text = written("kept").replace("queue: batch", "queue: default")
    with own:
        with Person(own):  # who leaves the cookies with the system
            page = enter(own)
        page.goto("/jobs/new/")
        write(page, text)
        own.stop()
        page.get_by_role("button", name="Submit the job").click()
        expect(page.get_by_role("alert")).to_contain_text("The server does not answer, so nothing was submitted")
        expect(page.get_by_role("alert")).to_be_in_viewport()
        assert yaml_of(page) == text
        own.start()
        expect(page.locator(".draft-notice")).to_contain_text("The server answers again")
        page.close()
        page = page.context.new_page()
        page.goto("/jobs/new/?sample=primes")
        expect(offers(page)).to_contain_text("You began “kept”")
        page.get_by_role("button", name="Go on with it").click()
        page.wait_for_url("**/jobs/new/")
        expect(page.locator(".draft-notice")).to_contain_text("is back; it was not submitted")
        assert yaml_of(page) == text
        expect(page.locator(".cm-content")).to_contain_text("# as it was typed")
        page.get_by_role("button", name="Submit the job").click()
        page.wait_for_url("**/jobs/default/kept/")
        page.goto("/jobs/new/")
        expect(page.get_by_role("button", name="Submit the job")).to_be_visible()
        expect(page.locator("[data-part=verdict]")).to_contain_text("would be accepted")
        assert not offers(page).count()
        assert page.evaluate("localStorage.length") == 0


def test_the_back_button_brings_back_what_was_written(page):
    begin(page, "behind")
    page.get_by_role("link", name="Queues").click()
    page.wait_for_url("**/queues/")
    page.go_back()
    expect(page.locator(".draft-notice")).to_contain_text("is back")
    assert yaml_of(page) == written("behind")
    page.reload()
    assert yaml_of(page) == written("behind")
    page.get_by_role("button", name="Begin anew").click()
    expect(page.locator(".draft-notice")).to_have_count(0)
    expect(page.locator(".cm-content")).to_contain_text("my-job")
    assert page.evaluate("localStorage.length") == 0


def test_two_tabs_have_two_drafts_and_one_is_offered_once_its_tab_is_closed(enter):
    first = enter()
    begin(first, "first")
    second = first.context.new_page()
    begin(second, "second")
    third = first.context.new_page()
    third.goto("/jobs/new/")
    expect(third.locator("[data-part=verdict]")).to_contain_text("would be accepted")
    assert not offers(third).count()
    second.close()
    expect(offers(third)).to_have_count(1)
    expect(offers(third)).to_contain_text("second")
    third.get_by_role("button", name="Discard").click()
    expect(offers(third)).to_have_count(0)
    first.close()
    expect(offers(third)).to_contain_text("first")
    third.reload()
    expect(offers(third)).to_contain_text("first")


def test_what_was_refused_is_one_draft_until_it_is_accepted(page):
    page.goto("/jobs/new/")
    write(page, written("refused").replace("replicas: 1", "replicas: -1"))
    page.get_by_role("button", name="Submit the job").click()
    # The answer has the number of its draft; the page before it is refused by its own check, too.
    expect(page.locator('#editor:not([data-draft-id=""])')).to_be_visible()
    expect(page.locator("[data-part=says]")).to_have_attribute("data-state", "refused")
    write(page, written("refused"))
    expect(page.locator("[data-part=verdict]")).to_contain_text("would be accepted")
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url("**/jobs/default/refused/")
    assert page.evaluate("localStorage.length") == 0


def test_the_values_of_a_sweep_come_back_with_its_yaml(page):
    page.goto("/sweeps/-/new/")
    write(page, TUNING.replace("name: tuning", "name: later"))
    page.get_by_role("textbox", name="size", exact=True).fill("3, 4, 5")
    page.get_by_role("textbox", name="rate", exact=True).fill("0.1, 0.2")
    expect(page.locator("#sweep-preview")).to_contain_text("6 jobs would be made.")
    page.get_by_role("link", name="Queues").click()
    page.wait_for_url("**/queues/")
    page.go_back()
    expect(page.locator("#sweep-preview")).to_contain_text("6 jobs would be made.")
    expect(page.get_by_role("textbox", name="size", exact=True)).to_have_value("3, 4, 5")
    expect(page.locator(".cm-content")).to_contain_text("name: later")


def test_a_changed_field_of_an_edit_comes_back_for_the_same_job_only(page, person, watcher):
    for name in ("edited-later", "edited-never"):
        person.create(job(name, shell("sleep 600", terminationGracePeriodSeconds=0)))
        watcher.reaches(name, "Running")
    page.goto("/jobs/default/edited-later/edit/")
    field = page.get_by_label("Labels", exact=False)
    field.fill("team: vision")
    page.get_by_role("link", name="Queues").click()
    page.wait_for_url("**/queues/")
    page.goto("/jobs/default/edited-never/edit/")
    expect(field).not_to_have_value("team: vision")
    page.goto("/jobs/default/edited-later/edit/")
    page.get_by_role("button", name="Go on with it").click()
    expect(field).to_have_value("team: vision")
    page.get_by_role("button", name="Show what changes").click()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/jobs/default/edited-later/")
    assert page.evaluate("localStorage.length") == 0


def test_logging_out_says_that_drafts_go_and_another_reader_never_sees_them(enter, person, system):
    answer = person.post(
        "/access/users/", name="dora", password="correct-horse-battery", namespace="*", role="submitter"
    )
    assert answer.status_code == 302, answer.text[-2000:]
    page = enter(cookies={})

    def log_in():
        page.goto("/jobs/new/")
        page.get_by_label("Name").fill("dora")
        page.get_by_label("Password", exact=True).fill("correct-horse-battery")
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/jobs/new/")

    log_in()
    begin(page, "secret")
    other = page.context.new_page()
    other.goto("/jobs/")
    asked = []
    other.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    other.get_by_role("button", name="Menu of dora").click()
    other.get_by_role("button", name="Log out").click()
    other.wait_for_url("**/login/**")
    assert asked == ["A draft that is not submitted will be deleted from this browser. Log out?"]
    assert other.evaluate("localStorage.length") == 0
