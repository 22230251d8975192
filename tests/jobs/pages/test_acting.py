"""What is done to one job from its page, edits and scaling included, and what the page tells of it."""

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
from tests.jobs.pages.job_page import JobPage, tree_of, words_of
from tests.tables import cases

NOT_NOW = "It is Completed; only jobs that are Pending or Running can be suspended."
PAGE, EDIT, SCALE = "/jobs/default/mine/", "/jobs/default/mine/edit/", "/jobs/default/mine/scale/"
SIX, TOGETHER = {"Replicas of worker": "6"}, "Pods that must start together"
NUMBERS = ("minAvailable", "tasks.0.replicas", "tasks.0.minAvailable")
COUNTS = st.fixed_dictionaries(dict.fromkeys(NUMBERS, st.integers(0, 9)))


@pytest.fixture
def act(client, alice):
    """Do something to a job, and return what the page to which that leads says first."""

    def act(job, verb, uid=None):
        answer = client.post(f"/jobs/default/{job.name}/{verb}/", {"uid": uid or job.uid}, follow=True)
        return words_of(answer, "toasts")

    return act


@pytest.mark.parametrize("name", ["suspend", "restart", "complete", "terminate", "delete"])
def test_an_action_is_asked_back_with_its_effect(client, alice, reads, name):
    world.make("mine", "Running", counts={"running": 3, "pending": 1})
    reads(client, f"{PAGE}{name}/ content", f"{PAGE} {name}")


def test_an_action_that_does_not_apply_says_why_and_does_nothing(client, act):
    job, warnings = world.make("mine", "Completed"), []
    page = JobPage(client, "mine", "suspend/")
    assert NOT_NOW in page.text("content")
    assert page.tree.findall(".//main//button") == []
    assert "It is Completed" in act(job, "suspend"), "by a page that is out of date"
    assert store.find(COMMANDS) == []
    command = commands.to_job(job.namespace, job.name, job.uid, Action.ABORT_JOB)
    api.create(access.SYSTEM, COMMANDS, command, warn=warnings.append)
    assert warnings == [f"target: The job mine stays as it is. {NOT_NOW}"], "who uses the API is warned"


@pytest.mark.parametrize("name", ["suspend", "delete"])
def test_a_job_that_took_the_name_of_the_one_that_was_looked_at_is_left_alone(act, name):
    assert "another job has this name by now" in act(world.make("mine", "Running"), name, "another")
    assert (store.find(COMMANDS), len(store.find(JOBS, name="mine"))) == ([], 1)


def test_the_page_tells_of_an_action_until_the_job_shows_its_outcome(client, act, reads, person):
    act(world.make("mine", "Running"), "suspend")
    for phase in ("Running", "Aborting", "Aborted"):
        world.becomes("mine", phase)
        reads(client, f"{PAGE} job-asked")
    OperationItem.objects.update(asked=1, settled=1)
    assert JobPage(client, "mine").text("job-asked") == "", "it is forgotten after some minutes"


@cases("phase, message, earlier", {
    "it came too late": ("Completed", "", 0),
    "half a minute": ("Aborting", "2 pods have to end.", TIME_LIMIT_MS),
})  # fmt: skip
def test_an_action_without_effect_is_told_so(client, act, reads, phase, message, earlier):
    act(world.make("mine", "Running"), "suspend")
    world.becomes("mine", phase, message)
    OperationItem.objects.update(asked=OperationItem.objects.get().asked - earlier)
    reads(client, f"{PAGE} job-asked")


def test_what_was_refused_is_told_to_who_asked_and_to_nobody_else(client, act):
    assert "forbidden" in act(world.make("mine", "Running", owner="bob"), "suspend")
    assert JobPage(client, "mine").text("job-asked") == ""
    for address in (EDIT, SCALE):
        assert [client.get(address).status_code, client.post(address, {"minAvailable": 1}).status_code] == [403, 403]
    assert b"Edit" not in client.get(PAGE).content


def test_a_job_that_waits_for_its_pods_is_not_told_to_be_gone(act):
    waits = world.make("mine", "Running", finalizers=["example.com/wait"])
    assert "Job mine is being deleted" in act(waits, "delete")
    assert "Job other is deleted" in act(world.make("other", "Running"), "delete")


@pytest.fixture
def job(alice):
    return world.make("mine", "Running", tasks=(("driver", 1), ("worker", 4)), minimum=5)


def filled(page, **changes):
    """What a browser would send of the form on a page, with changes by label."""
    form = page.context["form"]
    values = {bound.html_name: bound.value() for bound in form}
    for name in ("base", "reviewed"):
        if not isinstance(values[name], str):
            values[name] = form.fields[name].prepare_value(values[name])
    values = {name: "" if value is None else value for name, value in values.items() if value is not False}
    names = {each.label: each.html_name for each in form}
    return values | {names.get(label, label): value for label, value in changes.items()}


def spec(name="mine"):
    return store.get(JOBS, "default", name).object["spec"]


def numbers():
    """How many pods of the second task are wanted, how many at least, and how many of all must start together."""
    return spec()["tasks"][1]["replicas"], spec()["tasks"][1]["minAvailable"], spec()["minAvailable"]


def saved(client, address, **changes):
    """Fill in a form, look at the differences and save."""
    response = client.post(address, filled(client.get(address), **changes))
    return client.post(address, filled(response))


def review(client, opened=None, **changes):
    return client.post(EDIT, filled(opened or client.get(EDIT), **changes))


def test_the_differences_are_shown_before_anything_is_saved(client, job, reads):
    page = review(client, **SIX, Labels="team: vision")
    reads(page, "content")
    page = review(client, page, **{"Replicas of worker": "7"})
    reads(page, "content")  # what is changed since is shown again
    assert numbers()[0] == 4
    # A status that is written meanwhile is no conflict.
    store.write(Patch(JOBS, "default", "mine", {"status": {"running": 2}}, subresource="status"))
    assert review(client, page)["Location"] == PAGE
    assert numbers()[0] == 7
    assert store.get(JOBS, "default", "mine").object["metadata"]["labels"] == {"team": "vision"}


@cases("field, value, message", {
    "a broken rule": (TOGETHER, "9", "minAvailable"),
    "negative": ("Replicas of worker", "-1", ""), "no number": ("Replicas of worker", "many", ""),
    "a label without a colon": ("Labels", "team", ""), "a label twice": ("Labels", "a: b\na: c", ""),
})  # fmt: skip
def test_what_is_wrong_is_told_at_its_field_and_stays_in_the_form(client, job, field, value, message):
    page = review(client, **{field: value})
    assert page.status_code == 422
    assert value in [each.value() for each in page.context["form"]]
    errors = tree_of(page).xpath("//*[contains(@id, '_error')]")
    assert message in " ".join(each.text_content() for each in errors)


def test_of_two_people_who_edit_one_job_the_second_sees_both_versions_and_loses_nothing(client, job, person, reads):
    opened = client.get(EDIT)
    api.patch(access.for_user(person("olga", "operator")), JOBS, "default", "mine", {"spec": {"minAvailable": 4}})
    store.write(Patch(JOBS, "default", "mine", {"status": {"running": 2}}, subresource="status"))
    page = review(client, opened, **{TOGETHER: "3"}, **SIX)
    assert (page.status_code, spec()["minAvailable"]) == (409, 4)
    reads(page, "content")
    page = review(client, page)
    reads(page, "content")
    review(client, page)
    assert (spec()["minAvailable"], numbers()[0]) == (3, 6)


@cases("changes, status, message", {
    "of a job that was replaced": ({"uid": "another"}, 409, "Another job has this name by now"),
    "base is no JSON": ({"base": "{", **SIX}, 422, "The form is damaged"),
    "reviewed is no JSON": ({"reviewed": "[", **SIX}, 422, "The form is damaged"),
    "uid is too long": ({"uid": "x" * 99, **SIX}, 422, "The form is damaged"),
    "nothing is changed": ({}, 302, ""),
    **{f"the job never had {base}": ({"base": base}, None, "")
       for base in ("[]", "7", "null", '{"labels": 3}', '{"tasks.0.replicas": {}}')},
})  # fmt: skip
def test_a_form_that_is_damaged_or_changes_nothing_stores_nothing(client, job, changes, status, message):
    page = review(client, **changes)
    assert status in (None, page.status_code)
    assert not message or message in words_of(page, "content")
    assert store.get(JOBS, "default", "mine").revision == job.revision


def test_of_a_job_that_is_over_the_pods_stay_as_they_are(client, alice):
    world.make("mine", "Completed")
    assert client.get(SCALE).status_code == 409
    page = review(client, **SIX)
    assert "The job is Completed: its pods stay as they are." in words_of(page, "content")
    review(client, page)
    assert (spec()["tasks"][0]["replicas"], OperationItem.objects.exists()) == (6, False)


def test_pods_that_are_added_and_removed_are_told_apart():
    before = {"tasks.0.replicas": 4, "tasks.1.replicas": 1}
    effect = edits.effect(before, {"tasks.0.replicas": 1, "tasks.1.replicas": 2})
    assert effect == "1 pod more will be started, when there is room. 3 pods will be removed."


def test_the_priority_class_may_change(client, job):
    store.write(Create(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 7}))
    saved(client, EDIT, **{"Priority class": "urgent"})
    assert spec()["priorityClassName"] == "urgent"


def test_minimums_stay_when_a_job_is_scaled_unless_they_are_to_follow(client, job):
    for replicas, follow, found in (
        (6, {}, (6, 4, 5)),
        (8, {"follow": "on"}, (8, 6, 7)),
        (2, {"follow": "on"}, (2, 0, 1)),
    ):
        if replicas == 2:  # below the minimum
            assert client.post(SCALE, filled(client.get(SCALE), **{"Replicas of worker": "2"})).status_code == 422
        saved(client, SCALE, **{"Replicas of worker": str(replicas)}, **follow)
        assert numbers() == found


def test_the_page_follows_a_scaling_until_the_pods_are_there(client, job, reads):
    saved(client, SCALE, **SIX)
    reads(client, f"{PAGE} job-asked")
    counts = {"driver": {"phase": {"Running": 1}}, "worker": {"phase": {"Running": 4, "Pending": 2}}}
    store.write(Patch(JOBS, "default", "mine", {"status": {"taskStatusCount": counts}}, subresource="status"))
    reads(client, f"{PAGE} job-asked")
    assert OperationItem.objects.count() == 1


@given(COUNTS, COUNTS, COUNTS)
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
