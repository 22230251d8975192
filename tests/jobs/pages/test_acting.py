"""What is done to one job from its page, edits and scaling included, and what the page tells of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import access, api
from cluster.store import Create, Patch, store
from jobs.controller import commands
from jobs.models import OperationItem
from jobs.rules import edits
from jobs.rules.actions import TIME_LIMIT_MS
from kube.kinds.batch import Action
from kube.resources import COMMANDS, JOBS, PRIORITY_CLASSES
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage
from tests.tables import cases

NOT_NOW = "It is Completed; only jobs that are Pending or Running can be suspended."


def becomes(name, phase, message=""):
    status = world.status(phase, now=world.START, message=message)
    store.write(Patch(JOBS, "default", name, {"status": status}, subresource="status"))


@pytest.fixture
def act(client, alice, parse):
    """Do something to a job, and return what the page to which that leads says first."""

    def act(job, verb, uid=None):
        answer = client.post(f"/jobs/default/{job.name}/{verb}/", {"uid": uid or job.uid}, follow=True)
        return world.words(answer, parse, "toasts")

    return act


def asked(client, name="mine"):
    """What the page of a job tells of what was asked."""
    return JobPage(client, name).text("job-asked")


@pytest.mark.parametrize("name", ["suspend", "restart", "complete", "terminate", "delete"])
def test_an_action_is_asked_back_with_its_effect(client, alice, name):
    world.make("mine", "Running", counts={"running": 3, "pending": 1})
    said = "3 running pods will be stopped, and 1 waiting pod will not start."
    assert said in JobPage(client, "mine", f"{name}/").text("content")
    assert said in JobPage(client, "mine").text(name)


def test_an_action_that_does_not_apply_says_why_and_does_nothing(client, act):
    job, said = world.make("mine", "Completed"), []
    page = JobPage(client, "mine", "suspend/")
    assert NOT_NOW in page.text("content")
    assert page.tree.findall(".//main//button") == []
    assert "It is Completed" in act(job, "suspend"), "by a page that is out of date"
    assert store.find(COMMANDS) == []
    command = commands.to_job(job.namespace, job.name, job.uid, Action.ABORT_JOB)
    api.create(access.SYSTEM, COMMANDS, command, warn=said.append)
    assert said == [f"target: The job mine stays as it is. {NOT_NOW}"], "who uses the API is warned"


@pytest.mark.parametrize("name", ["suspend", "delete"])
def test_a_job_that_took_the_name_of_the_one_that_was_looked_at_is_left_alone(act, name):
    assert "another job has this name by now" in act(world.make("mine", "Running"), name, "another")
    assert store.find(COMMANDS) == []
    assert store.find(JOBS, name="mine")


def test_the_page_tells_of_an_action_until_the_job_shows_its_outcome(client, act):
    act(world.make("mine", "Running"), "suspend")
    assert "Suspend: under way. alice asked for it" in asked(client)
    becomes("mine", "Aborting")
    assert "under way" in asked(client)
    becomes("mine", "Aborted")
    assert "Suspend: done." in asked(client)
    OperationItem.objects.update(asked=1, settled=1)
    assert asked(client) == "", "it is forgotten after some minutes"


@cases("phase, message, earlier, said", {
    "it came too late": ("Completed", "", 0, "Suspend: skipped."),
    "half a minute": ("Aborting", "2 pods have to end.", TIME_LIMIT_MS,
        "Suspend: timed out. alice asked for it"),
    "what is the matter": ("Aborting", "2 pods have to end.", TIME_LIMIT_MS,
        "After 30 s it is Aborting. 2 pods have to end."),
})  # fmt: skip
def test_an_action_without_effect_is_told_so(client, act, phase, message, earlier, said):
    act(world.make("mine", "Running"), "suspend")
    becomes("mine", phase, message)
    OperationItem.objects.update(asked=OperationItem.objects.get().asked - earlier)
    assert said in asked(client)


def test_what_was_refused_is_told_to_who_asked_and_to_nobody_else(client, act):
    assert "forbidden" in act(world.make("other", "Running", owner="bob"), "suspend")
    assert asked(client, "other") == ""


def test_a_job_that_waits_for_its_pods_is_not_told_to_be_gone(act):
    waits = world.make("mine", "Running", finalizers=["example.com/wait"])
    assert "Job mine is being deleted" in act(waits, "delete")
    assert "Job other is deleted" in act(world.make("other", "Running"), "delete")


EDIT, SCALE = "/jobs/default/mine/edit/", "/jobs/default/mine/scale/"
SIX = {"Replicas of worker": "6"}


@pytest.fixture
def job(alice):
    return world.make("mine", "Running", tasks=(("driver", 1), ("worker", 4)), minimum=5)


def filled(page, **changes):
    """What a browser would send of the form on a page, with changes by label."""
    form = page.context["form"]
    values = {bound.html_name: bound.value() for bound in form}
    values = {name: "" if value is None else value for name, value in values.items()}
    for name in ("base", "reviewed"):
        values[name] = (
            form.fields[name].prepare_value(values[name]) if not isinstance(values[name], str) else values[name]
        )
    values = {name: value for name, value in values.items() if value is not False}
    for label, value in changes.items():
        name = next((each.html_name for each in form if each.label == label), label)
        values[name] = value
    return values


def spec(name="mine"):
    return store.get(JOBS, "default", name).object["spec"]


def saved(client, address, **changes):
    """Fill in a form, look at the differences and save."""
    shown = client.post(address, filled(client.get(address), **changes))
    return client.post(address, filled(shown))


def review(client, opened=None, **changes):
    """Fill in a form and look at the differences."""
    return client.post(EDIT, filled(opened or client.get(EDIT), **changes))


def content(parse, page):
    return world.words(page, parse, "content")


def test_the_differences_are_shown_before_anything_is_saved(client, job, parse):
    page = review(client, **SIX, Labels="team: vision")
    for said in ("Replicas of worker 4 6", "Labels – team: vision", "2 pods more will be started, when there is room."):
        assert said in content(parse, page)
    page = review(client, page, **{"Replicas of worker": "7"})
    assert "Replicas of worker 4 7" in content(parse, page), "what is changed since is shown again"
    assert spec()["tasks"][1]["replicas"] == 4
    # A status that is written meanwhile is no conflict.
    store.write(Patch(JOBS, "default", "mine", {"status": {"running": 2}}, subresource="status"))
    assert review(client, page)["Location"] == "/jobs/default/mine/"
    assert spec()["tasks"][1]["replicas"] == 7
    assert store.get(JOBS, "default", "mine").object["metadata"]["labels"] == {"team": "vision"}


def test_a_rule_that_is_broken_is_told_at_its_field(client, job, parse):
    page = review(client, **{"Pods that must start together": "9"})
    assert page.status_code == 422
    assert "minAvailable" in "".join(parse(page).find(".//*[@id='id_minAvailable_error']").itertext())
    assert page.context["form"]["minAvailable"].value() == "9"


@cases("field, value", {
    "negative": ("Replicas of worker", "-1"), "no number": ("Replicas of worker", "many"),
    "a label without a colon": ("Labels", "team"), "a label twice": ("Labels", "a: b\na: c"),
})  # fmt: skip
def test_what_cannot_be_read_stays_in_the_form(client, job, field, value):
    page = review(client, **{field: value})
    assert page.status_code == 422
    assert value in [each.value() for each in page.context["form"]]


def test_of_two_people_who_edit_one_job_the_second_sees_both_versions_and_loses_nothing(client, job, person, parse):
    opened = client.get(EDIT)
    api.patch(access.for_user(person("olga", "operator")), JOBS, "default", "mine", {"spec": {"minAvailable": 4}})
    store.write(Patch(JOBS, "default", "mine", {"status": {"running": 2}}, subresource="status"))
    page = review(client, opened, **{"Pods that must start together": "3"}, **SIX)
    assert page.status_code == 409
    assert "Pods that must start together 5 4 3" in content(parse, page)
    assert "olga changed this job after you opened it" in content(parse, page)
    assert spec()["minAvailable"] == 4
    page = review(client, page)
    assert "Replicas of worker 4 6" in content(parse, page)
    review(client, page)
    assert (spec()["minAvailable"], spec()["tasks"][1]["replicas"]) == (3, 6)


def test_what_others_changed_and_the_reader_did_not_touch_is_kept(client, job):
    opened = client.get(EDIT)
    store.write(Patch(JOBS, "default", "mine", {"spec": {"minAvailable": 4}}))
    review(client, review(client, review(client, opened, **SIX)))
    assert (spec()["minAvailable"], spec()["tasks"][1]["replicas"]) == (4, 6)


@cases("changes, status, said", {
    "of a job that was replaced": ({"uid": "another"}, 409, "Another job has this name by now"),
    "base is no JSON": ({"base": "{", **SIX}, 422, "The form is damaged"),
    "reviewed is no JSON": ({"reviewed": "[", **SIX}, 422, "The form is damaged"),
    "uid is too long": ({"uid": "x" * 99, **SIX}, 422, "The form is damaged"),
    "nothing is changed": ({}, 302, ""),
    **{f"the job never had {base}": ({"base": base}, None, "")
       for base in ("[]", "7", "null", '{"labels": 3}', '{"tasks.0.replicas": {}}')},
})  # fmt: skip
def test_a_form_that_is_damaged_or_changes_nothing_stores_nothing(client, job, parse, changes, status, said):
    page = review(client, **changes)
    assert status in (None, page.status_code)
    assert not said or said in content(parse, page)
    assert store.get(JOBS, "default", "mine").revision == job.revision


def test_of_a_job_that_is_over_the_pods_stay_as_they_are(client, alice, parse):
    world.make("mine", "Completed")
    assert client.get(SCALE).status_code == 409
    page = review(client, **SIX)
    assert "The job is Completed: its pods stay as they are." in content(parse, page)
    review(client, page)
    assert spec()["tasks"][0]["replicas"] == 6
    assert not OperationItem.objects.exists()


def test_pods_that_are_added_and_removed_are_told_apart():
    before = {"tasks.0.replicas": 4, "tasks.1.replicas": 1}
    said = edits.effect(before, {"tasks.0.replicas": 1, "tasks.1.replicas": 2})
    assert said == "1 pod more will be started, when there is room. 3 pods will be removed."


def test_the_priority_class_may_change(client, job):
    store.write(Create(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 7}))
    saved(client, EDIT, **{"Priority class": "urgent"})
    assert spec()["priorityClassName"] == "urgent"


def test_minimums_stay_when_a_job_is_scaled_unless_they_are_to_follow(client, job):
    def scaled(replicas, **follow):
        saved(client, SCALE, **{"Replicas of worker": replicas}, **follow)
        return spec()["minAvailable"], spec()["tasks"][1]["minAvailable"]

    assert scaled("6") == (5, 4)
    assert scaled("8", follow="on") == (7, 6)
    refused = client.post(SCALE, filled(client.get(SCALE), **{"Replicas of worker": "2"}))
    assert refused.status_code == 422, "below the minimum"
    assert scaled("2", follow="on") == (1, 0)


def test_the_page_follows_a_scaling_until_the_pods_are_there(client, job, parse):
    saved(client, SCALE, **SIX)
    assert "Scale: under way." in world.words(client.get("/jobs/default/mine/"), parse, "job-asked")
    counts = {"driver": {"phase": {"Running": 1}}, "worker": {"phase": {"Running": 4, "Pending": 2}}}
    store.write(Patch(JOBS, "default", "mine", {"status": {"taskStatusCount": counts}}, subresource="status"))
    assert "Scale: done." in world.words(client.get("/jobs/default/mine/"), parse, "job-asked")
    assert OperationItem.objects.count() == 1


@pytest.mark.parametrize("address", [EDIT, SCALE])
def test_a_job_of_somebody_else_is_not_changed(client, alice, address):
    world.make("mine", "Running", owner="bob")
    assert client.get(address).status_code == 403
    assert client.post(address, {"minAvailable": 1}).status_code == 403
    assert b"Edit" not in client.get("/jobs/default/mine/").content


numbers = st.fixed_dictionaries(
    {
        "minAvailable": st.integers(0, 9),
        "tasks.0.replicas": st.integers(0, 9),
        "tasks.0.minAvailable": st.integers(0, 9),
    }
)


@given(numbers, numbers, numbers)
def test_a_merge_has_what_was_typed_and_else_what_is_now(base, typed, now):
    merged = edits.merge(base, typed, now)
    for name in now:
        assert merged[name] == (now[name] if typed[name] == base[name] else typed[name])


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_minimums_that_follow_are_never_more_than_there_is(minimum, replicas, wanted):
    before = {"minAvailable": minimum, "tasks.0.replicas": max(replicas, minimum), "tasks.0.minAvailable": minimum}
    moved = edits.with_minimums(before, {**before, "tasks.0.replicas": wanted})
    assert 0 <= moved["tasks.0.minAvailable"] <= max(wanted, minimum)
    assert moved["minAvailable"] == moved["tasks.0.minAvailable"]


def test_writing_what_was_read_changes_nothing():
    job = world.job_object("mine")
    assert edits.write(job, edits.read(job)) == job
