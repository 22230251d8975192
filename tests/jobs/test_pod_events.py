"""What happens to pods is told on their job, once, whoever fails when (reference: volcano-job §3.3)."""

from __future__ import annotations

import msgspec
import pytest

from cluster import clock
from cluster.runtime import consumer
from cluster.store import Create, store
from jobs.controller import facts, pod_events
from jobs.controller.expectations import Sent
from kube.kinds.batch import JobEvent
from kube.resources import JOBS, PODS
from tests.builders import pod
from tests.jobs.builders import pod_fact, terminated
from tests.jobs.control import Controller, messages, phase, pods, remove, report
from tests.tables import cases


def restarted(number, phase="Running", field="containerStatuses"):
    return pod_fact(phase=phase, **{field: [{"name": "main", "restartCount": number}]})


RUNS, PENDS, FAILS, ENDS = (pod_fact(phase=phase) for phase in ("Running", "Pending", "Failed", "Succeeded"))
IN_INIT = restarted(2, "Pending", "initContainerStatuses")


@pytest.mark.shows("3.1/PodFailed", "3.1/PodEvicted", "3.3/pod failed", "3.3/pod deleted", "3.3/pod marked")
@cases("before, after, is_gone, expected", {
    "failed": (RUNS, FAILS, False, JobEvent.POD_FAILED),
    "failed before it ran": (PENDS, FAILS, False, JobEvent.POD_FAILED),
    "had failed already": (FAILS, FAILS, False, None),
    "made as failed": (None, FAILS, False, None),
    "ended by the controller": (RUNS, pod_fact(phase="Failed", marked=True), False, None),
    "succeeded": (RUNS, ENDS, False, JobEvent.TASK_COMPLETED),
    "had succeeded already": (ENDS, ENDS, False, None),
    "began to run": (PENDS, RUNS, False, JobEvent.POD_RUNNING),
    "container started again": (RUNS, restarted(1), False, JobEvent.TASK_FAILED),
    "container was started again before": (restarted(1), restarted(1), False, None),
    "init container started again": (PENDS, IN_INIT, False, JobEvent.TASK_FAILED),
    "failed at its last start": (RUNS, restarted(1, "Failed"), False, JobEvent.POD_FAILED),
    "its node does not answer": (RUNS, pod_fact(phase="Unknown"), False, None),
    "deleted": (None, RUNS, True, JobEvent.POD_EVICTED),
    "deleted before it ran": (None, PENDS, True, JobEvent.POD_EVICTED),
    "deleted after its end": (None, ENDS, True, JobEvent.POD_EVICTED),
    "deleted by the controller": (None, pod_fact(marked=True), True, None),
})  # fmt: skip
def test_what_happened_between_two_versions(before, after, is_gone, expected):
    assert pod_events.happened(before, after, is_gone=is_gone) is expected


EXITED = "demo-main-0 exited with code 3"


@cases("event, number, expected", {
    "one failed": ("PodFailed", 1, f"1 pod failed: {EXITED}."),
    "some failed": ("PodFailed", 5, f"5 pods failed: {EXITED}, {EXITED}, {EXITED} and 2 more."),
    "one deleted": ("PodEvicted", 1, "1 pod was deleted, and not by the job controller: demo-main-0."),
    "two deleted": ("PodEvicted", 2, "2 pods were deleted, and not by the job controller: demo-main-0, demo-main-0."),
})  # fmt: skip
def test_what_is_told(event, number, expected):
    failed = pod_fact(phase="Failed", containerStatuses=terminated(3))
    assert pod_events.told(JobEvent(event), [failed] * number) == expected


def test_changes_of_living_pods_are_decoded_only_where_a_policy_answers_them():
    body = msgspec.json.encode({"metadata": {}, "status": {"phase": "Running"}})
    for sought, expected in ((pod_events.TOLD, False), ((JobEvent.TASK_FAILED,), True)):
        marks = pod_events.marks(sought)
        assert pod_events.is_worth_a_look(body, marks, is_gone=False) is expected
    marked = msgspec.json.encode({"metadata": {"annotations": {facts.OUT_OF_SYNC: "true"}}})
    assert not pod_events.is_worth_a_look(marked, marks, is_gone=True)


# ---- against the real store


@pytest.fixture
def running(transactional_db, controller):
    controller.start(replicas=5, minAvailable=1)
    return controller


def told():
    return messages("PodFailed", "PodEvicted")


def fail(*names, code=1):
    report("Failed", *names, code=code)


@pytest.mark.parametrize("number", [1, 2])
def test_failure_while_no_controller_runs_is_told_once(running, number):
    fail("demo-main-1", code=9)
    remove("demo-main-1")
    for _ in range(number):
        Controller().settle()
    assert [message.split(":")[0] for message in messages("PodFailed")] == ["1 pod failed"]
    assert len(messages("PodEvicted")) == 1


def test_failure_is_told_once_when_the_commit_of_its_plan_fails(running, monkeypatch):
    def killed(keys):
        raise RuntimeError("killed within the transaction")

    fail("demo-main-1")
    with monkeypatch.context() as patched:
        patched.setattr(running, "_drop_timers", killed)
        with pytest.raises(RuntimeError):
            running.step()
    assert told() == []
    Controller().settle()
    running.settle()
    assert len(told()) == 1


def test_failures_that_end_the_job_are_all_told_though_they_were_missed_in_several_batches(running, monkeypatch):
    monkeypatch.setattr(consumer, "BATCH", 2)
    fail(*pods())
    Controller().settle()
    assert phase() == "Failed"
    assert sum(int(message.split(" ")[0]) for message in messages("PodFailed")) == 5


def test_failure_is_told_while_the_job_waits_for_its_writes(running):
    running.state.sent["default/demo"] = waiting = Sent(clock.milliseconds(), frozenset({store.revision() + 1000}))
    fail("demo-main-1")
    running.step()
    assert len(told()) == 1
    assert running.state.sent["default/demo"] is waiting


@pytest.mark.shows("3.3/pods of others")
def test_job_that_cannot_be_read_or_a_pod_of_no_job_keeps_no_failure_of_another_from_being_told(running):
    store.write(Create(JOBS, {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"tasks": "no"}}))
    store.write(Create(PODS, pod("bad-0", annotations={facts.JOB_NAME: "bad"})), Create(PODS, pod("lonely")))
    fail("bad-0", "lonely", "demo-main-1")
    running.settle()
    assert told() == ["1 pod failed: demo-main-1 exited with code 1."]
