"""What is done to one job from its page, and what the page tells of it."""

from __future__ import annotations

import pytest

from cluster import access, api
from cluster.store import Patch, store
from jobs.controller import commands
from jobs.models import OperationItem
from jobs.rules.actions import TIME_LIMIT_MS
from kube.kinds.batch import Action
from kube.resources import COMMANDS, JOBS
from tests.jobs.pages import world


def becomes(name, phase, message=""):
    status = world.status(phase, now=world.START, message=message)
    store.write(Patch(JOBS, "default", name, {"status": status}, subresource="status"))


@pytest.mark.parametrize("name", ["suspend", "restart", "complete", "terminate", "delete"])
def test_an_action_is_asked_back_with_its_effect(client, alice, parse, name):
    world.make("mine", "Running", counts={"running": 3, "pending": 1})
    said = "3 running pods will be stopped, and 1 waiting pod will not start."
    assert said in world.words(client.get(f"/jobs/default/mine/{name}/"), parse, "content")
    dialog = world.words(client.get("/jobs/default/mine/"), parse, name)
    assert said in dialog


def test_an_action_that_does_not_apply_says_why_and_offers_nothing(client, alice, parse):
    world.make("mine", "Completed")
    page = client.get("/jobs/default/mine/suspend/")
    assert "It is Completed; only jobs that are Pending or Running can be suspended." in world.words(
        page, parse, "content"
    )
    assert [*parse(page).findall(".//main//button")] == []


def test_a_button_of_a_page_that_is_out_of_date_does_nothing_and_says_why(client, alice, parse):
    job = world.make("mine", "Completed")
    answer = client.post("/jobs/default/mine/suspend/", {"uid": job.uid}, follow=True)
    assert "It is Completed" in world.words(answer, parse, "toasts")
    assert store.find(COMMANDS) == []


@pytest.mark.parametrize("name", ["suspend", "delete"])
def test_a_job_that_took_the_name_of_the_one_that_was_looked_at_is_left_alone(client, alice, parse, name):
    world.make("mine", "Running")
    answer = client.post(f"/jobs/default/mine/{name}/", {"uid": "another"}, follow=True)
    assert "another job has this name by now" in world.words(answer, parse, "toasts")
    assert store.find(COMMANDS) == []
    assert store.find(JOBS, name="mine")


def test_the_page_tells_of_an_action_until_the_job_shows_its_outcome(client, alice, parse):
    job = world.make("mine", "Running")
    client.post("/jobs/default/mine/suspend/", {"uid": job.uid})
    assert "Suspend: under way. alice asked for it" in world.words(
        client.get("/jobs/default/mine/"), parse, "job-asked"
    )
    becomes("mine", "Aborting")
    assert "under way" in world.words(client.get("/jobs/default/mine/"), parse, "job-asked")
    becomes("mine", "Aborted")
    assert "Suspend: done." in world.words(client.get("/jobs/default/mine/"), parse, "job-asked")


def test_an_action_that_came_too_late_is_told_so(client, alice, parse):
    job = world.make("mine", "Running")
    client.post("/jobs/default/mine/terminate/", {"uid": job.uid})
    becomes("mine", "Completed")
    assert "Terminate: skipped." in world.words(client.get("/jobs/default/mine/"), parse, "job-asked")


def test_after_half_a_minute_the_page_says_what_is_the_matter(client, alice, parse):
    job = world.make("mine", "Running")
    client.post("/jobs/default/mine/suspend/", {"uid": job.uid})
    becomes("mine", "Aborting", message="2 pods have to end.")
    item = OperationItem.objects.get()
    OperationItem.objects.update(asked=item.asked - TIME_LIMIT_MS)
    said = world.words(client.get("/jobs/default/mine/"), parse, "job-asked")
    assert "Suspend: timed out." in said
    assert "After 30 s it is Aborting. 2 pods have to end." in said


def test_an_outcome_is_forgotten_after_some_minutes(client, alice, parse):
    job = world.make("mine", "Running")
    client.post("/jobs/default/mine/suspend/", {"uid": job.uid})
    OperationItem.objects.update(asked=1, settled=1)
    assert world.words(client.get("/jobs/default/mine/"), parse, "job-asked") == ""


def test_what_was_refused_is_told_to_who_asked_and_to_nobody_else(client, alice, parse):
    job = world.make("other", "Running", owner="bob")
    answer = client.post("/jobs/default/other/suspend/", {"uid": job.uid}, follow=True)
    assert "forbidden" in world.words(answer, parse, "toasts")
    assert world.words(answer, parse, "job-asked") == ""


def test_a_client_is_warned_of_a_command_that_is_not_heeded(alice):
    job = world.make("mine", "Completed")
    said = []
    command = commands.to_job(job.namespace, job.name, job.uid, Action.ABORT_JOB)
    api.create(access.for_user(alice), COMMANDS, command, warn=said.append)
    assert said == [
        "target: The job mine stays as it is. It is Completed; only jobs that are Pending or Running can be suspended."
    ]


def test_a_job_that_waits_for_its_pods_is_not_told_to_be_gone(client, alice, parse):
    job = world.make("mine", "Running", finalizers=["example.com/wait"])
    answer = client.post("/jobs/default/mine/delete/", {"uid": job.uid}, follow=True)
    assert "Job mine is being deleted" in world.words(answer, parse, "toasts")
    job = world.make("other", "Running")
    answer = client.post("/jobs/default/other/delete/", {"uid": job.uid}, follow=True)
    assert "Job other is deleted" in world.words(answer, parse, "toasts")
