"""Policies act, once for each thing that happened, whoever dies when (reference: volcano-job §3)."""

from __future__ import annotations

import pytest

from cluster import clock
from cluster.runtime import consumer
from cluster.store import Delete, sql, store
from jobs.controller.expectations import Sent
from kube.resources import COMMANDS, JOBS
from tests.jobs.control import Controller, command, messages, phase, pods, remove, report, state

pytestmark = pytest.mark.django_db(transaction=True)


def on(event, action="RestartJob", **fields):
    return {"event": event, "action": action, **fields}


FAILED = on("PodFailed")


def started(controller, *policies, **spec):
    controller.start(bound=True, policies=[*policies], **spec)


def fail(controller, *names, code=1):
    controller.become("Failed", *names, code=code)


def again(controller):
    """Bring a job that restarts back to Running."""
    controller.sweep()
    controller.run(bound=True)


def passed():
    """The phases that the job has passed through."""
    return [each["status"] for each in state()["conditions"]]


def executed():
    return messages("ExecuteAction")


def test_group_that_loses_its_place_while_its_job_is_deleted_leads_to_nothing(controller):
    started(controller, on("Unknown", timeout="1m"))
    store.write(Delete(JOBS, "default", "demo", propagation="Foreground"))
    controller.group_is("Unknown")
    assert executed() == []


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
