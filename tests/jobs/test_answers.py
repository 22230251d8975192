"""What happens to pods is told and answered by policies once, whoever dies when (reference: volcano-job §3)."""

from __future__ import annotations

import pytest

from cluster import clock
from cluster.runtime import consumer
from cluster.store import Create, Delete, sql, store
from jobs.controller import facts
from jobs.controller.expectations import Sent
from kube.resources import COMMANDS, JOBS, PODS
from tests.builders import pod
from tests.jobs.control import Controller, command, messages, phase, pods, remove, report, state

pytestmark = pytest.mark.django_db(transaction=True)


def on(event, action="RestartJob", **fields):
    return {"event": event, "action": action, **fields}


FAILED = on("PodFailed")


def started(controller, *policies, **spec):
    controller.start(bound=True, policies=[*policies], **spec)


def fail(controller, *names, code=1):
    controller.become("Failed", *names, code=code)


def passed():
    """The phases that the job has passed through."""
    return [each["status"] for each in state()["conditions"]]


def test_group_that_loses_its_place_while_its_job_is_deleted_leads_to_nothing(controller):
    started(controller, on("Unknown", timeout="1m"))
    store.write(Delete(JOBS, "default", "demo", propagation="Foreground"))
    controller.group_is("Unknown")
    assert messages("ExecuteAction") == []


# ---- later


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
    following.sweep()
    following.run(bound=True)
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
    controller.sweep()
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
    controller.change(minAvailable=1)
    moved_clock.move(2)
    assert steps(controller, moved_clock) < 20


# ---- events of pods


@pytest.fixture
def running(controller):
    controller.start(replicas=5, minAvailable=1)
    return controller


@pytest.mark.parametrize("number", [1, 2])
def test_failure_while_no_controller_runs_is_told_once(running, number):
    report("Failed", "demo-main-1", code=9)
    remove("demo-main-1")
    for _ in range(number):
        Controller().settle()
    assert [message.split(":")[0] for message in messages("PodFailed")] == ["1 pod failed"]
    assert len(messages("PodEvicted")) == 1


def test_failure_is_told_once_when_the_commit_of_its_plan_fails(running, monkeypatch):
    def killed(keys):
        raise RuntimeError("killed within the transaction")

    report("Failed", "demo-main-1", code=1)
    with monkeypatch.context() as patched:
        patched.setattr(running, "_drop_timers", killed)
        with pytest.raises(RuntimeError):
            running.step()
    assert messages("PodFailed", "PodEvicted") == []
    Controller().settle()
    running.settle()
    assert len(messages("PodFailed", "PodEvicted")) == 1


def test_failures_that_end_the_job_are_all_told_though_they_were_missed_in_several_batches(running, monkeypatch):
    monkeypatch.setattr(consumer, "BATCH", 2)
    report("Failed", *pods(), code=1)
    Controller().settle()
    assert phase() == "Failed"
    assert sum(int(message.split(" ")[0]) for message in messages("PodFailed")) == 5


def test_failure_is_told_while_the_job_waits_for_its_writes(running):
    running.state.sent["default/demo"] = waiting = Sent(clock.milliseconds(), frozenset({store.revision() + 1000}))
    report("Failed", "demo-main-1", code=1)
    running.step()
    assert len(messages("PodFailed", "PodEvicted")) == 1
    assert running.state.sent["default/demo"] is waiting


@pytest.mark.shows("3.3/pods of others")
def test_job_that_cannot_be_read_or_a_pod_of_no_job_keeps_no_failure_of_another_from_being_told(running):
    store.write(Create(JOBS, {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"tasks": "no"}}))
    store.write(Create(PODS, pod("bad-0", annotations={facts.JOB_NAME: "bad"})), Create(PODS, pod("lonely")))
    report("Failed", "bad-0", "lonely", "demo-main-1", code=1)
    running.settle()
    assert messages("PodFailed", "PodEvicted") == ["1 pod failed: demo-main-1 exited with code 1."]
