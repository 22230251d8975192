"""Editing and scaling a job: the fields that are open, the differences before saving, and two people at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import access, api
from cluster.store import Create, Patch, store
from jobs.models import OperationItem
from jobs.rules import edits
from kube.resources import JOBS, PRIORITY_CLASSES
from tests.jobs.pages import world
from tests.tables import cases

EDIT, SCALE = "/jobs/default/mine/edit/", "/jobs/default/mine/scale/"


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


def test_the_differences_are_shown_before_anything_is_saved(client, job, parse):
    page = client.post(EDIT, filled(client.get(EDIT), **{"Replicas of worker": "6", "Labels": "team: vision"}))
    said = world.words(page, parse, "content")
    assert "Replicas of worker 4 6" in said
    assert "Labels – team: vision" in said
    assert "2 pods more will be started, when there is room." in said
    assert spec()["tasks"][1]["replicas"] == 4
    assert client.post(EDIT, filled(page))["Location"] == "/jobs/default/mine/"
    assert spec()["tasks"][1]["replicas"] == 6
    assert store.get(JOBS, "default", "mine").object["metadata"]["labels"] == {"team": "vision"}


def test_what_is_changed_after_the_differences_were_shown_is_shown_again(client, job, parse):
    page = client.post(EDIT, filled(client.get(EDIT), **{"Replicas of worker": "6"}))
    page = client.post(EDIT, filled(page, **{"Replicas of worker": "7"}))
    assert "Replicas of worker 4 7" in world.words(page, parse, "content")
    assert spec()["tasks"][1]["replicas"] == 4


def test_a_rule_that_is_broken_is_told_at_its_field(client, job, parse):
    page = client.post(EDIT, filled(client.get(EDIT), **{"Pods that must start together": "9"}))
    assert page.status_code == 422
    error = parse(page).find(".//*[@id='id_minAvailable_error']")
    assert "minAvailable" in "".join(error.itertext())
    assert page.context["form"]["minAvailable"].value() == "9"


@cases("field, value", {
    "negative": ("Replicas of worker", "-1"),
    "no number": ("Replicas of worker", "many"),
    "a label without a colon": ("Labels", "team"),
    "a label twice": ("Labels", "a: b\na: c"),
})  # fmt: skip
def test_what_cannot_be_read_stays_in_the_form(client, job, field, value):
    page = client.post(EDIT, filled(client.get(EDIT), **{field: value}))
    assert page.status_code == 422
    assert value in [each.value() for each in page.context["form"]]


def test_of_two_people_who_edit_one_job_the_second_sees_both_versions_and_loses_nothing(client, job, parse):
    opened = client.get(EDIT)
    store.write(Patch(JOBS, "default", "mine", {"spec": {"minAvailable": 4}}))
    page = client.post(EDIT, filled(opened, **{"Pods that must start together": "3", "Replicas of worker": "6"}))
    assert page.status_code == 409
    assert "Pods that must start together 5 4 3" in world.words(page, parse, "content")
    assert "changed this job after you opened it" in world.words(page, parse, "content")
    assert spec()["minAvailable"] == 4
    page = client.post(EDIT, filled(page))
    assert "Replicas of worker 4 6" in world.words(page, parse, "content")
    client.post(EDIT, filled(page))
    assert (spec()["minAvailable"], spec()["tasks"][1]["replicas"]) == (3, 6)


def test_who_changed_it_meanwhile_is_told_by_name_whatever_the_controller_wrote_since(client, job, person, parse):
    opened = client.get(EDIT)
    olga = access.for_user(person("olga", "operator"))
    api.patch(olga, JOBS, "default", "mine", {"spec": {"minAvailable": 4}})
    store.write(Patch(JOBS, "default", "mine", {"status": {"running": 2}}, subresource="status"))
    page = client.post(EDIT, filled(opened, **{"Replicas of worker": "6"}))
    assert "olga changed this job after you opened it" in world.words(page, parse, "content")


def test_what_others_changed_and_the_reader_did_not_touch_is_kept(client, job):
    opened = client.get(EDIT)
    store.write(Patch(JOBS, "default", "mine", {"spec": {"minAvailable": 4}}))
    page = client.post(EDIT, filled(opened, **{"Replicas of worker": "6"}))
    page = client.post(EDIT, filled(page))
    client.post(EDIT, filled(page))
    assert (spec()["minAvailable"], spec()["tasks"][1]["replicas"]) == (4, 6)


def test_a_status_that_is_written_meanwhile_is_no_conflict(client, job):
    shown = client.post(EDIT, filled(client.get(EDIT), **{"Replicas of worker": "6"}))
    store.write(Patch(JOBS, "default", "mine", {"status": {"running": 2}}, subresource="status"))
    assert client.post(EDIT, filled(shown)).status_code == 302
    assert spec()["tasks"][1]["replicas"] == 6


def test_an_edit_of_a_job_that_was_replaced_by_another_is_refused(client, job, parse):
    page = client.post(EDIT, filled(client.get(EDIT), uid="another"))
    assert page.status_code == 409
    assert "Another job has this name by now" in world.words(page, parse, "content")


@cases("field, value", {
    "base is no JSON": ("base", "{"),
    "reviewed is no JSON": ("reviewed", "["),
    "uid is too long": ("uid", "x" * 99),
})  # fmt: skip
def test_a_damaged_form_says_so_and_stores_nothing(client, job, parse, field, value):
    page = client.post(EDIT, filled(client.get(EDIT), **{"Replicas of worker": "6", field: value}))
    assert page.status_code == 422
    assert "The form is damaged" in world.words(page, parse, "content")
    assert store.get(JOBS, "default", "mine").revision == job.revision


@pytest.mark.parametrize("base", ["[]", "7", "null", '{"labels": 3}', '{"tasks.0.replicas": {}}'])
def test_a_base_that_the_job_never_had_changes_nothing(client, job, base):
    client.post(EDIT, filled(client.get(EDIT), base=base))
    assert store.get(JOBS, "default", "mine").revision == job.revision


def test_of_a_job_that_is_over_the_pods_stay_as_they_are(client, alice, parse):
    world.make("mine", "Completed")
    page = client.post(EDIT, filled(client.get(EDIT), **{"Replicas of worker": "6"}))
    assert "The job is Completed: its pods stay as they are." in world.words(page, parse, "content")
    client.post(EDIT, filled(page))
    assert spec()["tasks"][0]["replicas"] == 6
    assert not OperationItem.objects.exists()


def test_pods_that_are_added_and_removed_are_told_apart():
    before = {"tasks.0.replicas": 4, "tasks.1.replicas": 1}
    said = edits.effect(before, {"tasks.0.replicas": 1, "tasks.1.replicas": 2})
    assert said == "1 pod more will be started, when there is room. 3 pods will be removed."


def test_nothing_changed_is_nothing_written(client, job):
    assert client.post(EDIT, filled(client.get(EDIT))).status_code == 302
    assert store.get(JOBS, "default", "mine").revision == job.revision


def test_the_priority_class_may_change(client, job):
    store.write(Create(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 7}))
    saved(client, EDIT, **{"Priority class": "urgent"})
    assert spec()["priorityClassName"] == "urgent"


def test_scaling_up_leaves_the_minimum_unless_it_is_to_follow(client, job):
    saved(client, SCALE, **{"Replicas of worker": "6"})
    assert (spec()["minAvailable"], spec()["tasks"][1]["minAvailable"]) == (5, 4)
    saved(client, SCALE, **{"Replicas of worker": "8"}, follow="on")
    assert (spec()["minAvailable"], spec()["tasks"][1]["minAvailable"]) == (7, 6)


def test_scaling_below_the_minimum_is_refused_until_it_follows(client, job, parse):
    page = client.post(SCALE, filled(client.get(SCALE), **{"Replicas of worker": "2"}))
    assert page.status_code == 422
    saved(client, SCALE, **{"Replicas of worker": "2"}, follow="on")
    assert (spec()["minAvailable"], spec()["tasks"][1]["replicas"]) == (3, 2)


def test_the_page_follows_a_scaling_until_the_pods_are_there(client, job, parse):
    saved(client, SCALE, **{"Replicas of worker": "6"})
    assert "Scale: under way." in world.words(client.get("/jobs/default/mine/"), parse, "job-asked")
    counts = {"driver": {"phase": {"Running": 1}}, "worker": {"phase": {"Running": 4, "Pending": 2}}}
    store.write(Patch(JOBS, "default", "mine", {"status": {"taskStatusCount": counts}}, subresource="status"))
    assert "Scale: done." in world.words(client.get("/jobs/default/mine/"), parse, "job-asked")
    assert OperationItem.objects.count() == 1


def test_a_job_that_is_over_is_not_scaled(client, alice):
    world.make("mine", "Completed")
    assert client.get(SCALE).status_code == 409


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
