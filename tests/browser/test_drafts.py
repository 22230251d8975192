"""What is written and not submitted: it outlives a server that is away, a closed tab, the back button, a refusal."""

import pytest
from playwright.sync_api import expect

from proof.pictures.world import TUNING, write, yaml_of
from proof.systems.system import System
from proof.systems.work import Person, job, shell
from tests.browser.journey import Window

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
OFFERS = '.draft-notice:has-text("did not submit")'
SUBMITTABLE = "[data-part=verdict]: would be accepted"


def written(name):
    return JOB.replace("NAME", name)


def begin(page, name):
    """Write a job and wait until the browser has it."""
    page.goto("/jobs/new/")
    write(page, written(name))
    Window(page).goes("→ #editor[data-draft-kept] is visible")


def keeps_nothing(page):
    return page.evaluate("localStorage.length") == 0


def test_a_job_outlives_a_server_that_is_away_and_a_tab_that_is_closed(tmp_path, enter):
    own = System(tmp_path / "data")
    text = written("kept").replace("queue: batch", "queue: default")
    with own:
        with Person(own):  # who leaves the cookies with the system
            page = enter(own)
        page.goto("/jobs/new/")
        write(page, text)
        own.stop()
        Window(page).goes("""
            click button Submit the job
            → alert: The server does not answer, so nothing was submitted; alert is in_viewport
        """)
        assert yaml_of(page) == text
        own.start()
        Window(page).goes("→ .draft-notice: The server answers again")
        page.close()
        page = page.context.new_page()
        Window(page).goes(f"""
            open /jobs/new/?sample=primes → {OFFERS}: You began “kept”
            click button Go on with it → at **/jobs/new/; .draft-notice: is back; .draft-notice: it was not submitted
        """)
        assert yaml_of(page) == text
        Window(page).goes(f"""
            → .cm-content: # as it was typed
            click button Submit the job → at **/jobs/default/kept/
            open /jobs/new/ → button Submit the job is visible; {SUBMITTABLE}; {OFFERS} × 0
        """)
        assert keeps_nothing(page)


def test_the_back_button_brings_back_what_was_written(page):
    begin(page, "behind")
    Window(page).goes("click link Queues → at **/queues/\nback → .draft-notice: is back")
    assert yaml_of(page) == written("behind")
    page.reload()
    assert yaml_of(page) == written("behind")
    Window(page).goes("click button Begin anew → .draft-notice × 0; .cm-content: my-job")
    assert keeps_nothing(page)


def test_two_tabs_have_two_drafts_and_one_is_offered_once_its_tab_is_closed(enter):
    first = enter()
    begin(first, "first")
    second, third = first.context.new_page(), first.context.new_page()
    begin(second, "second")
    Window(third).goes(f"open /jobs/new/ → {SUBMITTABLE}; {OFFERS} × 0")
    second.close()
    Window(third).goes(f"→ {OFFERS} × 1; {OFFERS}: second\nclick button Discard → {OFFERS} × 0")
    first.close()
    Window(third).goes(f"→ {OFFERS}: first\nreload → {OFFERS}: first")


def test_what_was_refused_is_one_draft_until_it_is_accepted(page):
    page.goto("/jobs/new/")
    write(page, written("refused").replace("replicas: 1", "replicas: -1"))
    # The answer has the number of its draft; the page before it is refused by its own check, too.
    Window(page).goes("click button Submit the job → #editor:not([data-draft-id='']) is visible; refused")
    write(page, written("refused"))
    Window(page).goes(f"→ {SUBMITTABLE}\nclick button Submit the job → at **/jobs/default/refused/")
    assert keeps_nothing(page)


def test_the_values_of_a_sweep_come_back_with_its_yaml(page):
    page.goto("/sweeps/-/new/")
    write(page, TUNING.replace("name: tuning", "name: later"))
    Window(page).goes("""
        fill textbox "size" = 3, 4, 5; fill textbox "rate" = 0.1, 0.2 → #sweep-preview: 6 jobs would be made.
        click link Queues → at **/queues/
        back → #sweep-preview: 6 jobs would be made.; textbox "size" holds 3, 4, 5; .cm-content: name: later
    """)


def test_a_changed_field_of_an_edit_comes_back_for_the_same_job_only(page, person, watcher):
    for name in ("edited-later", "edited-never"):
        person.create(job(name, shell("sleep 600", terminationGracePeriodSeconds=0)))
        watcher.reaches(name, "Running")
    Window(page).goes("""
        open /jobs/default/edited-later/edit/; fill field Labels = team: vision; click link Queues → at **/queues/
        open /jobs/default/edited-never/edit/
    """)
    expect(page.get_by_label("Labels")).not_to_have_value("team: vision")
    Window(page).goes("""
        open /jobs/default/edited-later/edit/; click button Go on with it → field Labels holds team: vision
        click button Show what changes; click button Save → at **/jobs/default/edited-later/
    """)
    assert keeps_nothing(page)


def test_logging_out_says_that_drafts_go_and_another_reader_never_sees_them(enter, person):
    dora = {"name": "dora", "password": "correct-horse-battery", "namespace": "*", "role": "submitter"}
    answer = person.post("/access/users/", **dora)
    assert answer.status_code == 302, answer.text[-2000:]
    page = enter(cookies={})
    Window(page).goes("""
        open /jobs/new/; fill field Name = dora; fill field "Password" = correct-horse-battery
        click button Log in → at **/jobs/new/
    """)
    begin(page, "secret")
    other, messages = page.context.new_page(), []
    other.on("dialog", lambda dialog: (messages.append(dialog.message), dialog.accept()))
    Window(other).goes("open /jobs/; click button Menu of dora; click button Log out → at **/login/**")
    assert messages == ["A draft that is not submitted will be deleted from this browser. Log out?"]
    assert keeps_nothing(other)
