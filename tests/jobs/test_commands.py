"""Commands to jobs against the real store: each has its effect once, whatever else happens."""

from __future__ import annotations

import pytest

from cluster.store import Create, Delete, Patch, store
from jobs.controller import job_controller, plan
from jobs.controller.commands import to_job
from kube.kinds.batch import Action
from kube.resources import COMMANDS, EVENTS, JOBS, POD_GROUPS
from proof.modes.mode import others
from tests.jobs.control import Controller, command, job, messages, phase, pods, state, uids
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]


def phases(since=0):
    """The phases that the job was in, in their order."""
    found = []
    for each in store.changes(since, [JOBS]):
        reached = each.object.get("status", {}).get("state", {}).get("phase")
        if each.verb != "DELETED" and reached and reached not in found[-1:]:
            found.append(reached)
    return found


def told():
    return messages("CommandIssued")


def test_restart_of_a_job_larger_than_a_round_leaves_no_pod_of_the_run_before(controller, monkeypatch):
    monkeypatch.setattr(plan, "ROOM", 3)
    monkeypatch.setattr(plan.reconcile, "__kwdefaults__", {"requests": (), "room": 3})
    controller.start(replicas=10, minAvailable=1)
    before = uids()
    controller.issue("RestartJob")
    assert pods() == []
    controller.run()
    assert (len(pods()), state()["running"], state()["version"]) == (10, 10, 1)
    assert not {*before.values()} & {*uids().values()}
    controller.issue("AbortJob", "ResumeJob")
    controller.admit()
    assert (len(pods()), phase()) == (10, "Pending")


NO_PART = "alice asked for {}, but a Command names no task or pod, so that no pod ends."
NO_ACTION = "alice asked for {}, which is no action of a job; nothing is done."
THROUGH = ["Restarting", "Pending", "Running"]


@cases("action, passed, words", {
    "a task | 3.4/no target": ("RestartTask", THROUGH, NO_PART),
    "a pod | 3.4/no target": ("RestartPod", THROUGH, NO_PART),
    "a partition | 3.4/no target": ("RestartPartition", [], NO_PART),
    "an unknown action | 2.6/any×unknown action + 6.3/action + 3.4/1": ("Jump", [], NO_ACTION),
    "no action | 6.3/action": ("", [], NO_ACTION),
    "an action of queues | 6.3/action": ("OpenQueue", [], NO_ACTION),
})  # fmt: skip
def test_command_that_ends_no_pod_is_told_and_consumed(controller, action, passed, words):
    controller.start()
    before, found = store.revision(), uids()
    controller.issue(action)
    assert (phases(before), uids(), store.find(COMMANDS)) == (passed, found, [])
    assert state().get("retryCount", 0) == bool(passed)
    assert told() == [words.format(action)]
    kinds = {e.object["type"] for e in store.find(EVENTS) if e.object["reason"] == "CommandIssued"}
    assert kinds == {"Normal" if action.startswith("Restart") else "Warning"}


@pytest.mark.parametrize("action", ["RestartTask", "RestartPartition"])
def test_pod_group_follows_a_job_that_changes_when_a_part_of_it_is_restarted(controller, action):
    controller.start()
    store.write(Patch(JOBS, "default", "demo", {"spec": {"minAvailable": 1}}))
    controller.issue(action)
    assert store.find(POD_GROUPS)[0].object["spec"]["minMember"] == 1


@pytest.mark.shows("2.1/one job, one worker")
@cases("actions, expected, retries", {
    "suspended and resumed": (["AbortJob", "ResumeJob"], "Pending", 0),
    "a restarting job heeds no suspension": (["AbortJob", "ResumeJob", "AbortJob"], "Pending", 0),
    "a restarting job heeds no end": (["RestartJob", "TerminateJob"], "Pending", 1),
    "twice suspended": (["AbortJob", "AbortJob"], "Aborted", 0),
    "twice restarted": (["RestartJob", "RestartJob"], "Pending", 1),
    "parts together": (["RestartTask", "RestartPod"], "Running", 1),
    "no way back to run": (["TerminateJob", "ResumeJob"], "Terminated", 0),
    "no way back to start": (["TerminateJob", "RestartJob"], "Terminated", 0),
    "the first way to end": (["CompleteJob", "TerminateJob"], "Completed", 0),
    "an unknown one between": (["AbortJob", "Jump", "ResumeJob"], "Pending", 0),
    "nothing to resume at first": (["ResumeJob", "AbortJob"], "Aborted", 0),
})  # fmt: skip
def test_burst_of_commands_is_carried_out_in_order(controller, actions, expected, retries):
    controller.start(bound=True)
    controller.issue(*actions)
    controller.sweep()
    assert (phase(), state().get("retryCount", 0)) == (expected, retries)
    assert (store.find(COMMANDS), len(told())) == ([], len(actions))


@pytest.mark.shows("6.3/vcctl's")
def test_command_is_the_one_that_vcctl_makes():
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "demo", "uid": "u1",
              "controller": True, "blockOwnerDeletion": True}  # fmt: skip
    assert to_job("team", "demo", "u1", Action.ABORT_JOB) == {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "demo-abortjob-", "namespace": "team", "ownerReferences": [target]},
        "action": "AbortJob",
        "target": target,
    }


@cases("name, fields, expected, words", {
    "uid of an earlier job | 6.3/target": ("demo", {"uid": "another"}, "Running", []),
    "no such job | 6.3/target": ("gone", {"uid": "some"}, "Running", []),
    "no such job, no uid | 6.3/target": ("gone", {"uid": ""}, "Running", []),
    "no uid: whoever has the name": ("demo", {"uid": "", "by": ""}, "Aborted", ["AbortJob was asked for."]),
})  # fmt: skip
def test_command_is_for_the_job_of_its_uid(controller, name, fields, expected, words):
    controller.start()
    controller.issue("AbortJob", name=name, **fields)
    assert (store.find(COMMANDS), phase(), told()) == ([], expected, words)


@pytest.mark.shows("6.3/other targets")
def test_command_to_something_else_is_left_alone(controller):
    target = {"apiVersion": "v1", "kind": "Pod", "name": "demo", "uid": "x"}
    about = {"name": "c", "namespace": "default"}
    store.write(Create(COMMANDS, {"metadata": about, "action": "AbortJob", "target": target}))
    controller.start()
    assert [stored.name for stored in store.find(COMMANDS)] == ["c"]


@pytest.mark.parametrize("planned", [False, True], ids=["before it is seen", "while it is planned"])
def test_command_that_somebody_takes_back_has_no_effect(controller, monkeypatch, planned):
    controller.start()
    taken = command("AbortJob")
    reconcile = job_controller.plan.reconcile

    def interrupted(*args, **fields):
        with others():
            if store.find(COMMANDS):
                store.write(Delete(COMMANDS, "default", taken.name))
        return reconcile(*args, **fields)

    if planned:
        monkeypatch.setattr(job_controller.plan, "reconcile", interrupted)
    else:
        store.write(Delete(COMMANDS, "default", taken.name))
    controller.settle()
    assert (phase(), told()) == ("Running", [])


def test_command_that_cannot_go_at_once_is_carried_out_once(controller):
    controller.start()
    controller.issue("RestartJob", finalizers=["example.com/kept"])
    controller.run()
    for each in (controller, Controller()):
        each.settle()
        assert (phase(), state()["retryCount"], len(store.find(COMMANDS))) == ("Running", 1, 1)


@pytest.mark.shows("6.3/taken")
def test_commit_that_fails_leaves_command_and_job_as_they_were(controller, monkeypatch):
    def killed(keys):
        raise RuntimeError("killed within the transaction")

    controller.start()
    command("AbortJob")
    with monkeypatch.context() as patched:
        patched.setattr(controller, "_drop_timers", killed)
        with pytest.raises(RuntimeError):
            controller.step()
    assert (phase(), len(store.find(COMMANDS)), told()) == ("Running", 1, [])
    controller.settle()
    assert (phase(), len(store.find(COMMANDS)), len(told())) == ("Aborted", 0, 1)


def test_command_to_a_job_that_is_being_deleted_is_consumed(controller):
    controller.start()
    store.write(Patch(JOBS, "default", "demo", {"metadata": {"finalizers": ["example.com/kept"]}}))
    store.write(Delete(JOBS, "default", "demo"))
    controller.issue("AbortJob")
    assert (phase(), store.find(COMMANDS)) == ("Running", [])
    assert told() == ["alice asked for AbortJob; the job is being deleted, so nothing is done."]


def test_job_deleted_with_its_command_leaves_nothing(controller):
    controller.start()
    command("AbortJob")
    store.write(Delete(JOBS, "default", "demo"))
    controller.settle()
    assert (store.find(COMMANDS), controller.state.entries, controller.state.commands) == ([], {}, {})


LACK = 'Cannot start: configmap "c" not found · main-0, main-1.'


def lack_a_config_map(controller):
    waiting = {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}
    controller.become("Pending", containerStatuses=[{"name": "main", "state": {"waiting": waiting}}])


@cases("action, expected, rest", {
    "retries used up": (
        "RestartJob", "Failed", "The job was restarted 0 times; instead of restart 1 it failed, as maxRetry is 1."),
    "suspended": ("AbortJob", "Aborted", "Resume it to run it from the start."),
    "terminated": ("TerminateJob", "Terminated", "when the job was terminated."),
})  # fmt: skip
def test_a_job_that_is_ended_says_what_kept_its_pods_from_running(controller, action, expected, rest):
    """The pods are gone by then, so nobody else knows it."""
    controller.submit(job(replicas=2, maxRetry=1))
    controller.admit()
    lack_a_config_map(controller)
    assert state()["state"]["message"] == f"{LACK} 0 of 2 pods are running; minAvailable is 2."
    controller.issue(action)
    assert phase() == expected
    assert all(words in state()["state"]["message"] for words in (LACK, rest))


def test_what_kept_pods_from_running_in_an_earlier_run_is_forgotten(controller):
    controller.submit(job(replicas=2))
    controller.admit()
    lack_a_config_map(controller)
    controller.issue("RestartJob")
    assert state()["keptBefore"] == LACK
    controller.run()
    assert "keptBefore" not in state()
    controller.issue("AbortJob")
    assert "configmap" not in state()["state"]["message"]
