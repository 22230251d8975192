"""What the form of a job offers to choose from."""

from __future__ import annotations

import pytest

from cluster import access
from cluster.rules import intake
from cluster.store import Create, Patch, store
from dashboard import cluster_usage
from jobs.editor import choices
from jobs.editor.samples import SAMPLES
from kube.resources import NAMESPACES, PRIORITY_CLASSES
from tests.dashboard.pages.conftest import node, put, queue
from tests.jobs.pages import world
from tests.tables import cases

GOOD = SAMPLES["primes"].yaml


@pytest.fixture(autouse=True)
def _picture():
    cluster_usage.forget()
    yield
    cluster_usage.forget()


def offered(user, path):
    return {each["value"]: each for each in choices.of(access.for_user(user))[path]}


@cases("role, namespace, names", {
    "submitter": ("submitter", "default", ["default"]), "everywhere": ("submitter", "*", ["default", "other"]),
    "viewer": ("viewer", "*", []), "no role": ("", "", []),
})  # fmt: skip
def test_namespaces_are_those_where_the_reader_may_submit(cluster, person, role, namespace, names):
    user = person("dave", role, namespace)
    assert list(offered(user, "metadata.namespace")) == names
    if not role:
        assert set(map(tuple, choices.of(access.for_user(user)).values())) == {()}


def test_a_namespace_that_goes_is_not_to_be_chosen(cluster, person):
    store.write(Patch(NAMESPACES, "", "default", {"status": {"phase": "Terminating"}}, "status"))
    found = offered(person("dave", namespace="*"), "metadata.namespace")
    assert [(name, each["refusal"]) for name, each in found.items()] == [("other", ""), ("default", "being deleted")]


def test_queues_are_offered_with_their_room_and_the_others_with_the_reason_for_which_they_are_refused(client, alice):
    put(
        node("one"),
        queue("root", parent=""),
        queue("team"),
        queue("sub", parent="team"),
        queue("a-old", state="Closed"),
    )
    world.make("waits", queue="sub")
    world.make("hidden", queue="sub", namespace="other")
    found = offered(alice, "spec.queue")
    assert [(name, each["refusal"]) for name, each in found.items()] == [
        ("default", ""), ("sub", ""), ("a-old", "closed"), ("team", "has queues below it"),
    ]  # fmt: skip
    assert found["sub"]["said"] == "8 of 8 CPU free · 1 job waits"
    for name, each in found.items():
        report = client.post("/jobs/validate/", {"text": GOOD.replace("queue: default", f"queue: {name}")}).json()
        assert [cause["field"] for cause in report["causes"]] == ([intake.FIELD] if each["refusal"] else [])


def test_priority_classes_are_offered_with_what_they_mean(alice):
    for name, value, description in (("low", -5, ""), ("urgent", 1_000_000, "Before all others.")):
        obj = {"metadata": {"name": name}, "value": value, "description": description}
        store.write(Create(PRIORITY_CLASSES, obj))
    found = offered(alice, "spec.priorityClassName")
    assert [(name, each["said"]) for name, each in found.items()] == [
        ("urgent", "priority 1,000,000 · Before all others."), ("low", "priority -5"),
    ]  # fmt: skip


def test_the_page_brings_the_choices_and_the_check_brings_them_again_when_asked(client, alice):
    assert client.get("/jobs/new/").context["choices"] == choices.of(access.for_user(alice))
    put(queue("later"))
    assert "choices" not in client.post("/jobs/validate/", {"text": GOOD}).json()
    again = client.post("/jobs/validate/", {"text": GOOD, "choices": "1"}).json()["choices"]
    assert "later" in [each["value"] for each in again["spec.queue"]]


def test_a_hostile_description_stays_text(client, alice):
    store.write(Create(PRIORITY_CLASSES, {"metadata": {"name": "x"}, "value": 1, "description": "</script><b>"}))
    assert "</script><b>" not in client.get("/jobs/new/").content.decode()


@cases("role, directories, is_offered", {
    "a submitter": ("submitter", [], False),
    "a submitter where some directories are open": ("submitter", ["/srv"], True),
    "an administrator of everything": ("administrator", [], True),
})  # fmt: skip
def test_directories_of_the_node_are_offered_to_who_may_mount_one(
    cluster, person, client, settings, role, directories, is_offered
):
    settings.HOST_PATHS = directories
    client.force_login(person("somebody", role, "*"))
    assert ('value="hostPath"' in client.get("/jobs/new/").content.decode()) is is_offered
