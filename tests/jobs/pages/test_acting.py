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
