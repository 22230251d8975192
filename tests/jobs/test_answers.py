"""Policies act, once for each thing that happened, whoever dies when (reference: volcano-job §3)."""

from __future__ import annotations

import pytest

from cluster import clock
from cluster.runtime import consumer
from cluster.store import Create, Delete, Patch, sql, store
from jobs.controller.commands import to_job
from jobs.controller.expectations import Sent
from kube.kinds.batch import Action
from kube.resources import COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS
from tests.jobs.control import Controller, admit, become, job, pods, state, submit, task
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)
FAILED = {"action": "RestartJob", "event": "PodFailed"}


def started(controller, *policies, replicas=2, **spec):
    submit(controller, job(replicas=replicas, policies=list(policies), **spec))
    run(controller)
    return controller


def run(controller):
    """Have pods made, bound and started: a pod on a node ends only when the node says so."""
    admit(controller)
    for pod in store.find(PODS):
        if not pod.object["spec"].get("nodeName"):
            store.write(Patch(PODS, "default", pod.name, {"spec": {"nodeName": "n1"}}, "binding"))
    become(controller, "Running")


def fail(*names, code=1):
    for name in names:
        status = {"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": code}}}]}
        store.write(Patch(PODS, "default", name, {"status": {"phase": "Failed", **status}}, "status"))


def swept(controller):
    """Let the pods that are being deleted go, until nothing changes."""
    while going := [p for p in store.find(PODS) if p.object["metadata"].get("deletionTimestamp")]:
        for each in going:
            store.write(Delete(PODS, each.namespace, each.name, grace=0))
        controller.settle()


def again(controller):
    """Bring a job that restarts back to Running."""
    swept(controller)
    run(controller)


def phase():
    return state()["state"]["phase"]


def passed():
    """The phases that the job has passed through."""
    return [each["status"] for each in state()["conditions"]]


def uids():
    return {pod.name: pod.uid for pod in store.find(PODS)}


def executed():
    found = [event.object for event in store.find(EVENTS, order="created")]
    return [each["message"] for each in found if each["reason"] == "ExecuteAction"]


@pytest.mark.shows("2.8/restart", "3.1/PodFailed", "3.2/RestartJob", "3.7/ExecuteAction", "1.3/action")
def test_failed_pod_restarts_the_job(controller):
    started(controller, FAILED)
    fail("demo-main-1", code=3)
    controller.settle()
    assert (phase(), state()["retryCount"], state()["version"]) == ("Restarting", 1, 1)
    assert executed() == ["PodFailed: demo-main-1 exited with code 3. The policy for it is RestartJob."]
    again(controller)
    assert (phase(), pods()) == ("Running", ["demo-main-0", "demo-main-1"])


@pytest.mark.shows("1.1/maxRetry", "2.2/3 last retry")
def test_job_that_fails_again_and_again_ends_with_its_retries(controller):
    started(controller, {"action": "RestartJob", "event": "*"}, maxRetry=2)
    for _ in range(2):
        assert phase() == "Running"
        fail("demo-main-0")
        controller.settle()
        swept(controller)
        if phase() != "Failed":
            run(controller)
    assert (phase(), state()["retryCount"], state()["state"]["reason"]) == ("Failed", 2, "RetriesUsedUp")
    assert len(executed()) == 2
    assert "demo-main-0" in pods(), "the last attempt's pods stay for their logs"


@pytest.mark.parametrize(
    ("action", "expected"), [("AbortJob", "Aborting"), ("TerminateJob", "Terminating"), ("CompleteJob", "Completing")]
)
def test_failed_pod_ends_the_job(controller, action, expected):
    started(controller, {"action": action, "event": "PodFailed"})
    fail("demo-main-0")
    controller.settle()
    assert phase() == expected
    swept(controller)
    assert phase() == {"Aborting": "Aborted", "Terminating": "Terminated", "Completing": "Completed"}[expected]


@pytest.mark.shows("10/Q-14")
def test_policy_goes_before_what_would_come_of_it_by_itself(controller):
    # All pods have ended, so that the job would be Failed (reference: volcano-job §10, Q-14).
    started(controller, FAILED)
    fail("demo-main-0", "demo-main-1")
    controller.settle()
    assert passed() == ["Running", "Restarting", "Pending"]


@pytest.mark.shows("1.3/exitCode", "3.2/RestartPod", "2.8/restart of a pod", "10/Q-6")
def test_exit_code_restarts_the_pod_alone(controller):
    started(controller, {"action": "RestartPod", "exitCode": 3}, replicas=3)
    fail("demo-main-1", code=3)
    controller.settle()
    assert pods() == ["demo-main-0", "demo-main-1", "demo-main-2"]
    swept(controller)
    assert [p.object["status"].get("phase") for p in store.find(PODS)] == ["Running", "Pending", "Running"]
    assert state()["retryCount"] == 1


def test_pods_that_fail_at_once_are_restarted_together(controller):
    started(controller, {"action": "RestartPod", "event": "PodFailed"}, replicas=4)
    fail("demo-main-1", "demo-main-3")
    controller.settle()
    assert state()["retryCount"] == 1
    assert len(executed()) == 2


@pytest.mark.shows("3.2/RestartTask", "3.4/target")
def test_task_of_the_pod_is_restarted(controller):
    policies = [{"action": "RestartTask", "event": "PodFailed"}]
    started(controller, tasks=[task("ps", 1), task("worker", 3, policies=policies)])
    before = uids()
    fail("demo-worker-0")
    controller.settle()
    again(controller)
    assert [name for name, uid in uids().items() if before[name] == uid] == ["demo-ps-0"]


@pytest.mark.shows("3.2/RestartPartition", "3.4/target", "1.2/partitionPolicy.partitionSize")
def test_partition_of_the_pod_is_restarted(controller):
    parts = {"totalPartitions": 2, "partitionSize": 2}
    fields = {"partitionPolicy": parts, "policies": [{"action": "RestartPartition", "event": "PodFailed"}]}
    started(controller, tasks=[task("main", 4, **fields)])
    before = uids()
    fail("demo-main-2")
    controller.settle()
    again(controller)
    assert [name for name, uid in uids().items() if before[name] == uid] == ["demo-main-0", "demo-main-1"]


@pytest.mark.shows("3.1/TaskCompleted", "3.2/CompleteJob")
def test_task_that_completed_completes_the_job(controller):
    policies = [{"action": "CompleteJob", "event": "TaskCompleted"}]
    started(controller, tasks=[task("master", 1, policies=policies), task("worker", 2)])
    become(controller, "Succeeded", "demo-master-0", code=0)
    assert phase() == "Completing"
    swept(controller)
    assert (phase(), state()["succeeded"]) == ("Completed", 1)


@pytest.mark.shows("3.1/TaskFailed", "1.2/maxRetry", "3.3/pod restarted")
def test_containers_that_are_started_too_often_fail_the_task(controller):
    policies = [{"action": "TerminateJob", "event": "TaskFailed"}]
    started(controller, tasks=[task("main", 2, maxRetry=2, policies=policies)])
    for number, expected in ((1, "Running"), (2, "Terminating")):
        status = {"containerStatuses": [{"name": "main", "restartCount": number}]}
        store.write(Patch(PODS, "default", "demo-main-0", {"status": status}, "status"))
        controller.settle()
        assert phase() == expected


@pytest.mark.shows("3.1/Unknown", "3.3/group Unknown")
def test_group_that_lost_its_place_restarts_the_job(controller):
    started(controller, {"action": "RestartJob", "event": "Unknown"})
    group = store.find(POD_GROUPS)[0]
    store.write(Patch(POD_GROUPS, "default", group.name, {"status": {"phase": "Unknown"}}, "status"))
    controller.settle()
    assert phase() == "Restarting"


def test_group_that_loses_its_place_while_its_job_is_deleted_leads_to_nothing(controller):
    started(controller, {"action": "RestartJob", "event": "Unknown", "timeout": "1m"})
    store.write(Delete(JOBS, "default", "demo", propagation="Foreground"))
    group = store.find(POD_GROUPS)[0]
    store.write(Patch(POD_GROUPS, "default", group.name, {"status": {"phase": "Unknown"}}, "status"))
    controller.settle()
    assert executed() == []


@pytest.mark.shows("10/Q-3", "3.3/pod marked")
def test_pods_that_the_controller_ends_itself_lead_to_nothing(controller):
    started(controller, {"action": "RestartJob", "event": "*"}, replicas=3)
    tasks = store.get(JOBS, "default", "demo").object["spec"]["tasks"]
    small = {"tasks": [{**tasks[0], "replicas": 1, "minAvailable": 1}], "minAvailable": 1}
    store.write(Patch(JOBS, "default", "demo", {"spec": small}))
    controller.settle()
    swept(controller)
    assert (phase(), pods(), executed()) == ("Running", ["demo-main-0"], [])


# ---- later


@pytest.mark.shows("1.3/timeout", "3.5/told", "3.5/due")
def test_delayed_action_waits_and_is_carried_out(controller, moved_clock):
    started(controller, {**FAILED, "timeout": "1m"})
    fail("demo-main-1", code=3)
    moved_clock.move(30)
    controller.settle()
    assert phase() == "Running"
    text = "PodFailed: demo-main-1 exited with code 3. The policy for it is RestartJob after 1m0s."
    assert executed() == [text]
    moved_clock.move(61)
    controller.settle()
    assert (phase(), state()["retryCount"]) == ("Restarting", 1)
    again(controller)
    moved_clock.move(600)
    controller.settle()
    assert (phase(), state()["retryCount"]) == ("Running", 1), "it was carried out once"


@pytest.mark.shows("3.5/due")
def test_delayed_action_outlives_the_controller(controller, moved_clock):
    started(controller, {**FAILED, "timeout": "1m"})
    fail("demo-main-1")
    controller.settle()
    moved_clock.move(61)
    Controller().settle()
    assert phase() == "Restarting"


@pytest.mark.shows("3.5/runs again")
def test_delayed_action_is_called_off_when_the_pod_runs_again(controller, moved_clock):
    started(controller, {"action": "AbortJob", "event": "PodEvicted", "timeout": "1m"})
    store.write(Delete(PODS, "default", "demo-main-1", grace=0))
    controller.settle()
    assert executed() != []
    become(controller, "Running", "demo-main-1")
    moved_clock.move(61)
    controller.settle()
    assert phase() == "Running"


@pytest.mark.shows("3.5/meanwhile", "10/Q-12", "3.1/PodEvicted")
def test_evicted_pod_is_made_again_while_an_action_waits(controller):
    # Reference: volcano-job §10, Q-12.
    started(controller, {"action": "AbortJob", "event": "PodEvicted", "timeout": "1m"})
    store.write(Delete(PODS, "default", "demo-main-1", grace=0))
    controller.settle()
    assert pods() == ["demo-main-0", "demo-main-1"]


@pytest.mark.shows("3.5/job deleted", "10/Q-11")
def test_delayed_action_does_not_reach_a_later_job_of_the_name(controller, moved_clock):
    # Reference: volcano-job §10, Q-11.
    started(controller, {**FAILED, "timeout": "1m"})
    fail("demo-main-1")
    controller.settle()
    store.write(Delete(JOBS, "default", "demo"))
    for each in store.find(PODS):
        store.write(Delete(PODS, "default", each.name, grace=0))
    started(controller, {**FAILED, "timeout": "1h"})
    moved_clock.move(61)
    controller.settle()
    assert (phase(), state().get("retryCount", 0)) == ("Running", 0)


@pytest.mark.shows("3.1/PodPending")
def test_pod_that_is_pending_for_too_long_aborts_the_job(controller, moved_clock):
    submit(controller, job(policies=[{"action": "AbortJob", "event": "PodPending", "timeout": "10m"}]))
    moved_clock.move(3600)
    controller.settle()
    assert phase() == "Pending", "without pods nothing is Pending"
    admit(controller)
    moved_clock.move(599)
    controller.settle()
    assert phase() == "Pending"
    moved_clock.move(2)
    controller.settle()
    assert phase() == "Aborted"
    assert executed() == ["PodPending: demo-main-0 was Pending for 10m0s. The policy for it is AbortJob."]


@pytest.mark.parametrize("action", ["ResumeJob", "RestartPartition"])
def test_answer_that_would_leave_a_pod_waiting_is_not_given_again_and_again(controller, moved_clock, action):
    submit(controller, job(policies=[{"action": action, "event": "PodPending", "timeout": "10m"}]))
    admit(controller)
    for _ in range(3):
        moved_clock.move(601)
        controller.settle()
    assert (phase(), executed()) == ("Pending", [])


@pytest.mark.shows("3.5/not pending", "10/Q-2")
def test_pod_that_began_in_time_is_no_matter(controller, moved_clock):
    started(controller, {"action": "AbortJob", "event": "PodPending", "timeout": "10m"})
    moved_clock.move(3600)
    Controller().settle()
    controller.settle()
    assert phase() == "Running"


# ---- whoever dies when


def test_what_happens_while_no_controller_runs_is_answered_once(controller):
    started(controller, FAILED)
    fail("demo-main-0")
    for _ in range(2):
        Controller().settle()
    assert (phase(), state()["retryCount"], len(executed())) == ("Restarting", 1, 1)


def test_all_that_was_missed_is_told_before_the_job_is_taken_for_over(controller, monkeypatch):
    started(controller, FAILED, replicas=5, minAvailable=1)
    monkeypatch.setattr(consumer, "BATCH", 2)
    become_quietly("Succeeded", *(f"demo-main-{number}" for number in range(4)))
    fail("demo-main-4")
    Controller().settle()
    assert "Restarting" in passed()


def become_quietly(wanted, *names):
    for name in names:
        store.write(Patch(PODS, "default", name, {"status": {"phase": wanted}}, "status"))


@pytest.mark.shows("3.6/tried again")
@cases("dies", {
    "the controller dies": True,
    "it goes on": False,
})  # fmt: skip
def test_answer_whose_writes_fail_is_given_later(controller, monkeypatch, dies):
    started(controller, FAILED)
    fail("demo-main-0")
    plan = controller.consumer.plan

    def overtaken(*args):
        """Somebody deletes a pod between the plan and its writing."""
        planned = plan(*args)
        store.write(Delete(PODS, "default", "demo-main-1", grace=0))
        return planned

    with monkeypatch.context() as patched:
        patched.setattr(controller.consumer, "plan", overtaken)
        controller.step()
    assert phase() == "Running"
    (Controller() if dies else controller).settle()
    assert ("Restarting" in passed(), state()["retryCount"]) == (True, 1)


def test_answer_that_was_given_is_not_given_by_the_next_controller(controller, moved_clock):
    started(controller, {"action": "RestartPod", "event": "PodFailed"})
    fail("demo-main-1")
    controller.step()
    following = Controller()
    following.settle()
    again(following)
    moved_clock.move(120)
    Controller().settle()
    assert (phase(), state()["retryCount"]) == ("Running", 1)


def test_answer_waits_for_the_jobs_last_writes(controller):
    started(controller, FAILED)
    controller.state.sent["default/demo"] = Sent(clock.milliseconds(), frozenset({store.revision() + 1000}))
    fail("demo-main-1")
    controller.settle()
    assert phase() == "Running"
    Controller().settle()
    assert (phase(), state()["retryCount"]) == ("Restarting", 1)


def test_command_and_policy_at_once_are_both_heeded(controller):
    started(controller, FAILED)
    uid = store.get(JOBS, "default", "demo").uid
    store.write(Create(COMMANDS, to_job("default", "demo", uid, Action.ABORT_JOB)))
    fail("demo-main-1")
    controller.settle()
    swept(controller)
    assert (phase(), store.find(COMMANDS)) == ("Aborted", [])


def steps(controller, moved_clock):
    """Say in how many of twenty steps, a moment apart, there was something to do."""
    done = 0
    for _ in range(20):
        moved_clock.move(0.01)
        done += controller.step()
    return done


def test_what_was_asked_of_a_job_that_went_meanwhile_keeps_nobody_busy(controller, moved_clock):
    started(controller, {"action": "RestartJob", "event": "PodFailed", "timeout": "10m"})
    fail("demo-main-0")
    controller.settle()
    store.write(Delete(JOBS, "default", "demo"))
    following = Controller()
    following.step()
    moved_clock.move(601)
    assert steps(following, moved_clock) < 20
    assert sql.rows("default", "SELECT key FROM cluster_timer WHERE kind = 'asked'") == []


def test_what_is_due_is_not_asked_for_again_and_again_while_its_job_waits_for_its_writes(
    controller, moved_clock, monkeypatch
):
    started(controller, {"action": "RestartJob", "event": "PodFailed", "timeout": "10m"})
    fail("demo-main-0")
    controller.settle()
    moved_clock.move(599)
    controller.settle()
    monkeypatch.setattr(Sent, "is_seen", lambda self, position: False)
    store.write(Patch(JOBS, "default", "demo", {"spec": {"minAvailable": 1}}))
    controller.settle()
    moved_clock.move(2)
    assert steps(controller, moved_clock) < 20


def test_job_goes_on_after_an_answer_that_changes_nothing(controller):
    """Only an event tells of it, and the controller does not follow events."""
    started(controller, {"action": "RestartPartition", "event": "PodEvicted"}, minAvailable=1)
    pod = store.find(PODS)[0]
    store.write(Delete(PODS, "default", pod.name))
    controller.settle()
    assert state()["terminating"] == 1
    store.write(Delete(PODS, "default", pod.name, grace=0))
    controller.settle()
    assert "terminating" not in state()
    assert len(pods()) == 2
