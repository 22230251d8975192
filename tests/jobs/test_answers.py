"""Policies act, once for each thing that happened, whoever dies when (reference: volcano-job §3)."""

from __future__ import annotations

import pytest

from cluster import clock
from cluster.runtime import consumer
from cluster.store import Delete, sql, store
from jobs.controller.expectations import Sent
from kube.resources import COMMANDS, JOBS, PODS
from tests.jobs.control import (
    Controller,
    admit,
    become,
    change,
    command,
    group_is,
    job,
    messages,
    phase,
    pods,
    remove,
    report,
    resize,
    run,
    start,
    state,
    submit,
    sweep,
    task,
    uids,
)
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)


def on(event, action="RestartJob", **fields):
    return {"event": event, "action": action, **fields}


FAILED = on("PodFailed")


def started(controller, *policies, **spec):
    start(controller, bound=True, policies=[*policies], **spec)


def fail(controller, *names, code=1):
    become(controller, "Failed", *names, code=code)


def again(controller):
    """Bring a job that restarts back to Running."""
    sweep(controller)
    run(controller, bound=True)


def passed():
    """The phases that the job has passed through."""
    return [each["status"] for each in state()["conditions"]]


def executed():
    return messages("ExecuteAction")


@pytest.mark.shows("2.8/restart", "3.1/PodFailed", "3.2/RestartJob", "3.7/ExecuteAction", "1.3/action")
def test_failed_pod_restarts_the_job(controller):
    started(controller, FAILED)
    fail(controller, "demo-main-1", code=3)
    assert (phase(), state()["retryCount"], state()["version"]) == ("Restarting", 1, 1)
    assert executed() == ["PodFailed: demo-main-1 exited with code 3. The policy for it is RestartJob."]
    again(controller)
    assert (phase(), pods()) == ("Running", ["demo-main-0", "demo-main-1"])


@pytest.mark.shows("1.1/maxRetry", "2.2/3 last retry")
def test_job_that_fails_again_and_again_ends_with_its_retries(controller):
    started(controller, on("*"), maxRetry=2)
    fail(controller, "demo-main-0")
    again(controller)
    assert phase() == "Running"
    fail(controller, "demo-main-0")
    sweep(controller)
    assert (phase(), state()["retryCount"], state()["state"]["reason"]) == ("Failed", 2, "RetriesUsedUp")
    assert len(executed()) == 2
    assert "demo-main-0" in pods(), "the last attempt's pods stay for their logs"


@cases("action, way", {
    "suspended": ("AbortJob", ["Aborting", "Aborted"]),
    "terminated": ("TerminateJob", ["Terminating", "Terminated"]),
    "completed": ("CompleteJob", ["Completing", "Completed"]),
})  # fmt: skip
def test_failed_pod_ends_the_job(controller, action, way):
    started(controller, on("PodFailed", action))
    fail(controller, "demo-main-0")
    sweep(controller)
    assert passed()[-2:] == way


@pytest.mark.shows("10/Q-14")
def test_policy_goes_before_what_would_come_of_it_by_itself(controller):
    # All pods have ended, so that the job would be Failed (reference: volcano-job §10, Q-14).
    start(controller, policies=[FAILED])
    fail(controller)
    assert passed() == ["Running", "Restarting", "Pending"]


@pytest.mark.shows("1.3/exitCode", "3.2/RestartPod", "2.8/restart of a pod", "10/Q-6")
def test_exit_code_restarts_the_pods_that_failed_with_it_alone(controller):
    started(controller, {"action": "RestartPod", "exitCode": 3}, replicas=4)
    report("Failed", "demo-main-1", "demo-main-3", code=3)
    controller.settle()
    assert (len(pods()), state()["retryCount"], len(executed())) == (4, 1, 2)
    sweep(controller)
    assert [p.object["status"].get("phase") for p in store.find(PODS)] == ["Running", "Pending", "Running", "Pending"]
    assert state()["retryCount"] == 1


IN_PARTS = {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}


@cases("tasks, failed, restarted", {
    "the task of the pod | 3.2/RestartTask + 3.4/target": (
        [task("ps", 1), task("worker", 2, policies=[on("PodFailed", "RestartTask")])], "demo-worker-0",
        ["demo-worker-0", "demo-worker-1"]),
    "its partition | 3.2/RestartPartition + 3.4/target + 1.2/partitionPolicy.partitionSize": (
        [task("main", 4, policies=[on("PodFailed", "RestartPartition")], **IN_PARTS)], "demo-main-2",
        ["demo-main-2", "demo-main-3"]),
})  # fmt: skip
def test_part_of_the_pod_is_restarted(controller, tasks, failed, restarted):
    started(controller, tasks=tasks)
    before = uids()
    fail(controller, failed)
    again(controller)
    assert [name for name, uid in uids().items() if before[name] != uid] == restarted


@pytest.mark.shows("3.1/TaskCompleted", "3.2/CompleteJob")
def test_task_that_completed_completes_the_job(controller):
    started(controller, tasks=[task("master", 1, policies=[on("TaskCompleted", "CompleteJob")]), task("worker", 2)])
    become(controller, "Succeeded", "demo-master-0", code=0)
    assert phase() == "Completing"
    sweep(controller)
    assert (phase(), state()["succeeded"]) == ("Completed", 1)


@pytest.mark.shows("3.1/TaskFailed", "1.2/maxRetry", "3.3/pod restarted")
def test_containers_that_are_started_too_often_fail_the_task(controller):
    started(controller, tasks=[task("main", 2, maxRetry=2, policies=[on("TaskFailed", "TerminateJob")])])
    for number, expected in ((1, "Running"), (2, "Terminating")):
        become(controller, "Running", "demo-main-0", containerStatuses=[{"name": "main", "restartCount": number}])
        assert phase() == expected


def test_group_that_loses_its_place_while_its_job_is_deleted_leads_to_nothing(controller):
    started(controller, on("Unknown", timeout="1m"))
    store.write(Delete(JOBS, "default", "demo", propagation="Foreground"))
    group_is(controller, "Unknown")
    assert executed() == []


@pytest.mark.shows("10/Q-3", "3.3/pod marked", "3.1/Unknown", "3.3/group Unknown")
def test_pods_that_the_controller_ends_itself_lead_to_nothing_and_a_lost_place_to_a_restart(controller):
    started(controller, on("*"), replicas=3)
    resize(1, minAvailable=1)
    controller.settle()
    sweep(controller)
    assert (phase(), pods(), executed()) == ("Running", ["demo-main-0"], [])
    group_is(controller, "Unknown")
    assert phase() == "Restarting"


# ---- later


@pytest.mark.parametrize("successor", [False, True], ids=["the same controller", "the next one"])
@pytest.mark.shows("1.3/timeout", "3.5/told", "3.5/due")
def test_delayed_action_waits_and_is_carried_out_once(controller, moved_clock, successor):
    started(controller, {**FAILED, "timeout": "1m"})
    fail(controller, "demo-main-1", code=3)
    moved_clock.move(30)
    controller.settle()
    assert phase() == "Running"
    assert executed() == ["PodFailed: demo-main-1 exited with code 3. The policy for it is RestartJob after 1m0s."]
    moved_clock.move(61)
    controller = Controller() if successor else controller
    controller.settle()
    assert (phase(), state()["retryCount"]) == ("Restarting", 1)
    again(controller)
    moved_clock.move(600)
    controller.settle()
    assert (phase(), state()["retryCount"]) == ("Running", 1)


@pytest.mark.shows("3.5/runs again", "3.5/meanwhile", "10/Q-12", "3.1/PodEvicted")
def test_evicted_pod_is_made_again_while_an_action_waits_which_its_running_calls_off(controller, moved_clock):
    started(controller, on("PodEvicted", "AbortJob", timeout="1m"))
    remove("demo-main-1")
    controller.settle()
    assert (len(executed()), pods()) == (1, ["demo-main-0", "demo-main-1"])
    become(controller, "Running", "demo-main-1")
    moved_clock.move(61)
    controller.settle()
    assert phase() == "Running"


@pytest.mark.shows("3.5/job deleted", "10/Q-11")
def test_delayed_action_does_not_reach_a_later_job_of_the_name(controller, moved_clock):
    started(controller, {**FAILED, "timeout": "1m"})
    fail(controller, "demo-main-1")
    store.write(Delete(JOBS, "default", "demo"))
    remove(*pods())
    started(controller, {**FAILED, "timeout": "1h"})
    moved_clock.move(61)
    controller.settle()
    assert (phase(), state().get("retryCount", 0)) == ("Running", 0)


@pytest.mark.shows("3.1/PodPending")
def test_pod_that_is_pending_for_too_long_aborts_the_job(controller, moved_clock):
    submit(controller, job(policies=[on("PodPending", "AbortJob", timeout="10m")]))
    moved_clock.move(3600)
    controller.settle()
    assert phase() == "Pending", "without pods nothing is Pending"
    admit(controller)
    for seconds, expected in ((599, "Pending"), (2, "Aborted")):
        moved_clock.move(seconds)
        controller.settle()
        assert phase() == expected
    assert executed() == ["PodPending: demo-main-0 was Pending for 10m0s. The policy for it is AbortJob."]


@pytest.mark.parametrize("action", ["ResumeJob", "RestartPartition"])
def test_answer_that_would_leave_a_pod_waiting_is_not_given_again_and_again(controller, moved_clock, action):
    submit(controller, job(policies=[on("PodPending", action, timeout="10m")]))
    admit(controller)
    for _ in range(3):
        moved_clock.move(601)
        controller.settle()
    assert (phase(), executed()) == ("Pending", [])


@pytest.mark.shows("3.5/not pending", "10/Q-2")
def test_pod_that_began_in_time_is_no_matter(controller, moved_clock):
    started(controller, on("PodPending", "AbortJob", timeout="10m"))
    moved_clock.move(3600)
    Controller().settle()
    controller.settle()
    assert phase() == "Running"


# ---- whoever dies when


def test_all_that_was_missed_is_told_before_the_job_is_taken_for_over(controller, monkeypatch):
    started(controller, FAILED, replicas=5, minAvailable=1)
    monkeypatch.setattr(consumer, "BATCH", 2)
    report("Succeeded", *(f"demo-main-{number}" for number in range(4)))
    report("Failed", "demo-main-4", code=1)
    Controller().settle()
    assert "Restarting" in passed()


@pytest.mark.shows("3.6/tried again")
@pytest.mark.parametrize("dies", [True, False], ids=["the controller dies", "it goes on"])
def test_answer_whose_writes_fail_is_given_later(controller, monkeypatch, dies):
    started(controller, FAILED)
    report("Failed", "demo-main-0", code=1)
    plan = controller.consumer.plan

    def overtaken(*args):
        """Somebody deletes a pod between the plan and its writing."""
        planned = plan(*args)
        remove("demo-main-1")
        return planned

    with monkeypatch.context() as patched:
        patched.setattr(controller.consumer, "plan", overtaken)
        controller.step()
    assert phase() == "Running"
    (Controller() if dies else controller).settle()
    assert ("Restarting" in passed(), state()["retryCount"]) == (True, 1)


def test_answer_that_was_given_is_not_given_by_the_next_controller(controller, moved_clock):
    started(controller, on("PodFailed", "RestartPod"))
    report("Failed", "demo-main-1", code=1)
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
    fail(controller, "demo-main-1")
    assert phase() == "Running"
    Controller().settle()
    assert (phase(), state()["retryCount"]) == ("Restarting", 1)


def test_command_and_policy_at_once_are_both_heeded(controller):
    started(controller, FAILED)
    command("AbortJob")
    fail(controller, "demo-main-1")
    sweep(controller)
    assert (phase(), store.find(COMMANDS)) == ("Aborted", [])


def steps(controller, moved_clock):
    """Say in how many of twenty steps, a moment apart, there was something to do."""
    done = 0
    for _ in range(20):
        moved_clock.move(0.01)
        done += controller.step()
    return done


def test_what_was_asked_of_a_job_that_went_meanwhile_keeps_nobody_busy(controller, moved_clock):
    started(controller, {**FAILED, "timeout": "10m"})
    fail(controller, "demo-main-0")
    store.write(Delete(JOBS, "default", "demo"))
    following = Controller()
    following.step()
    moved_clock.move(601)
    assert steps(following, moved_clock) < 20
    assert sql.rows("default", "SELECT key FROM cluster_timer WHERE kind = 'asked'") == []


def test_what_is_due_is_not_asked_for_again_and_again_while_its_job_waits_for_its_writes(
    controller, moved_clock, monkeypatch
):
    started(controller, {**FAILED, "timeout": "10m"})
    fail(controller, "demo-main-0")
    moved_clock.move(599)
    controller.settle()
    monkeypatch.setattr(Sent, "is_seen", lambda self, position: False)
    change(controller, minAvailable=1)
    moved_clock.move(2)
    assert steps(controller, moved_clock) < 20


def test_job_goes_on_after_an_answer_that_changes_nothing(controller):
    """Only an event tells of it, and the controller does not follow events."""
    started(controller, on("PodEvicted", "RestartPartition"), minAvailable=1)
    store.write(Delete(PODS, "default", "demo-main-0"))
    controller.settle()
    assert state()["terminating"] == 1
    remove("demo-main-0")
    controller.settle()
    assert ("terminating" in state(), len(pods())) == (False, 2)
