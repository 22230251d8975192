"""What happens to pods is told on their job, once, whoever fails when (reference: volcano-job §3.3)."""

from __future__ import annotations

import msgspec
import pytest

from cluster.runtime import consumer
from cluster.store import Create, Delete, Patch, store
from jobs.controller import facts, pod_events
from kube.kinds.batch import JobEvent
from kube.resources import EVENTS, JOBS, PODS
from tests.jobs.control import Controller, admit, become, job, state, submit
from tests.tables import cases


def pod(phase="Running", *, marked=False, **fields):
    notes = {facts.OUT_OF_SYNC: "true"} if marked else {}
    body = {"metadata": {"name": "demo-main-0", "annotations": notes}, "status": {"phase": phase, **fields}}
    return facts.read_pod(msgspec.json.encode(body))[1]


def restarted(number, field="containerStatuses"):
    return {field: [{"name": "main", "restartCount": number}]}


@pytest.mark.shows("3.1/PodFailed", "3.1/PodEvicted", "3.3/pod failed", "3.3/pod deleted", "3.3/pod marked")
@cases("before, after, is_gone, expected", {
    "failed": (pod(), pod("Failed"), False, JobEvent.POD_FAILED),
    "failed before it ran": (pod("Pending"), pod("Failed"), False, JobEvent.POD_FAILED),
    "had failed already": (pod("Failed"), pod("Failed"), False, None),
    "made as failed": (None, pod("Failed"), False, None),
    "ended by the controller": (pod(), pod("Failed", marked=True), False, None),
    "succeeded": (pod(), pod("Succeeded"), False, JobEvent.TASK_COMPLETED),
    "had succeeded already": (pod("Succeeded"), pod("Succeeded"), False, None),
    "began to run": (pod("Pending"), pod(), False, JobEvent.POD_RUNNING),
    "container started again": (pod(), pod(**restarted(1)), False, JobEvent.TASK_FAILED),
    "container was started again before": (pod(**restarted(1)), pod(**restarted(1)), False, None),
    "init container started again": (pod("Pending"), pod("Pending", **restarted(2, "initContainerStatuses")), False,
        JobEvent.TASK_FAILED),
    "failed at its last start": (pod(), pod("Failed", **restarted(1)), False, JobEvent.POD_FAILED),
    "its node does not answer": (pod(), pod("Unknown"), False, None),
    "deleted": (None, pod(), True, JobEvent.POD_EVICTED),
    "deleted before it ran": (None, pod("Pending"), True, JobEvent.POD_EVICTED),
    "deleted after its end": (None, pod("Succeeded"), True, JobEvent.POD_EVICTED),
    "deleted by the controller": (None, pod(marked=True), True, None),
})  # fmt: skip
def test_what_happened_between_two_versions(before, after, is_gone, expected):
    assert pod_events.happened(before, after, is_gone=is_gone) is expected


def code(number):
    return {"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": number}}}]}


@cases("event, number, expected", {
    "one failed": ("PodFailed", 1, "1 pod failed: demo-main-0 exited with code 3."),
    "some failed": ("PodFailed", 5,
        "5 pods failed: " + ", ".join(["demo-main-0 exited with code 3"] * 3) + " and 2 more."),
    "one deleted": ("PodEvicted", 1, "1 pod was deleted, and not by the job controller: demo-main-0."),
    "two deleted": ("PodEvicted", 2, "2 pods were deleted, and not by the job controller: demo-main-0, demo-main-0."),
})  # fmt: skip
def test_what_is_told(event, number, expected):
    assert pod_events.told(JobEvent(event), [pod("Failed", **code(3))] * number) == expected


def test_changes_of_living_pods_are_decoded_only_where_a_policy_answers_them():
    body = msgspec.json.encode({"metadata": {}, "status": {"phase": "Running"}})
    for sought, expected in ((pod_events.TOLD, False), ((JobEvent.TASK_FAILED,), True)):
        marks = pod_events.marks(sought)
        assert pod_events.is_worth_a_look(body, marks, is_gone=False) is expected
    marked = msgspec.json.encode({"metadata": {"annotations": {facts.OUT_OF_SYNC: "true"}}})
    assert not pod_events.is_worth_a_look(marked, marks, is_gone=True)


def told(*reasons):
    reasons = reasons or ("PodFailed", "PodEvicted")
    found = [event.object for event in store.find(EVENTS, order="created")]
    return [(each["reason"], each["message"]) for each in found if each["reason"] in reasons]


def fail(*names, number=1):
    for name in names:
        store.write(Patch(PODS, "default", name, {"status": {"phase": "Failed", **code(number)}}, "status"))


@pytest.fixture
def running(controller):
    submit(controller, job(replicas=5, minAvailable=1))
    admit(controller)
    become(controller, "Running")
    return controller


store_test = pytest.mark.django_db(transaction=True)


@store_test
def test_pods_that_fail_together_are_told_once(running):
    fail("demo-main-1", "demo-main-3", number=2)
    running.settle()
    text = "2 pods failed: demo-main-1 exited with code 2, demo-main-3 exited with code 2."
    assert told() == [("PodFailed", text)]
    store.write(Patch(PODS, "default", "demo-main-1", {"metadata": {"labels": {"a": "b"}}}))
    running.settle()
    assert len(told()) == 1


@store_test
def test_pod_that_somebody_deletes_is_told(running):
    store.write(Delete(PODS, "default", "demo-main-2", grace=0))
    running.settle()
    text = "1 pod was deleted, and not by the job controller: demo-main-2."
    assert told() == [("PodEvicted", text)]


@store_test
@pytest.mark.parametrize("number", [1, 2])
def test_failure_while_no_controller_runs_is_told_once(running, number):
    fail("demo-main-1", number=9)
    store.write(Delete(PODS, "default", "demo-main-1", grace=0))
    for _ in range(number):
        Controller().settle()
    assert [message.split(":")[0] for _, message in told("PodFailed")] == ["1 pod failed"]
    assert len(told("PodEvicted")) == 1


@store_test
def test_failure_is_told_once_when_the_commit_of_its_plan_fails(running, monkeypatch):
    fail("demo-main-1")

    def killed(keys):
        raise RuntimeError("killed within the transaction")

    with monkeypatch.context() as patched:
        patched.setattr(running, "_drop_timers", killed)
        with pytest.raises(RuntimeError):
            running.step()
    assert told() == []
    Controller().settle()
    running.settle()
    assert len(told()) == 1


@store_test
def test_failures_that_end_the_job_are_all_told_though_they_were_missed_in_several_batches(running, monkeypatch):
    monkeypatch.setattr(consumer, "BATCH", 2)
    fail(*(f"demo-main-{number}" for number in range(5)))
    Controller().settle()
    assert state()["state"]["phase"] == "Failed"
    assert sum(int(message.split(" ")[0]) for _, message in told("PodFailed")) == 5


@store_test
def test_failure_is_told_while_the_job_waits_for_its_writes(running):
    running.state.sent["default/demo"] = waiting = consumer_sent()
    fail("demo-main-1")
    running.step()
    assert len(told("PodFailed")) == 1
    assert running.state.sent["default/demo"] is waiting


def consumer_sent():
    from cluster import clock
    from jobs.controller.expectations import Sent

    return Sent(clock.milliseconds(), frozenset({store.revision() + 1000}))


@store_test
def test_pods_that_the_controller_ends_are_not_told(running):
    store.write(Patch(JOBS, "default", "demo", {"spec": {"minSuccess": 1}}))
    become(running, "Succeeded", "demo-main-0", code=0)
    assert state()["state"]["phase"] == "Completed"
    assert told() == []


@store_test
def test_pods_of_a_job_that_is_deleted_are_not_told(running):
    store.write(Patch(JOBS, "default", "demo", {"metadata": {"finalizers": ["example.com/kept"]}}))
    store.write(Delete(JOBS, "default", "demo"))
    for number in range(5):
        store.write(Delete(PODS, "default", f"demo-main-{number}", grace=0))
    running.settle()
    assert told() == []


@store_test
def test_pods_of_a_finished_job_may_go_without_a_word(running):
    become(running, "Succeeded", code=0)
    store.write(Delete(PODS, "default", "demo-main-0"))
    running.settle()
    assert told() == []


@store_test
def test_job_that_cannot_be_read_keeps_no_failure_of_another_from_being_told(running):
    store.write(Create(JOBS, {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"tasks": "no"}}))
    of_bad = {"name": "bad-0", "namespace": "default", "annotations": {facts.JOB_NAME: "bad"}}
    store.write(Create(PODS, {"metadata": of_bad, "spec": {}}))
    fail("bad-0", "demo-main-1")
    running.settle()
    assert len(told()) == 1


@pytest.mark.shows("3.3/pods of others")
@store_test
def test_pod_of_no_job_is_nothing_to_the_controller(running):
    store.write(Create(PODS, {"metadata": {"name": "lonely", "namespace": "default"}, "spec": {}}))
    fail("lonely")
    running.settle()
    assert told() == []
