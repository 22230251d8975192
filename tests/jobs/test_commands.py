"""Commands to jobs against the real store: each has its effect once, whatever else happens."""

from __future__ import annotations

import pytest

from cluster.store import Create, Delete, Patch, store
from jobs.controller import job_controller, plan
from jobs.controller.commands import to_job
from kube.kinds.batch import Action
from kube.resources import COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS
from proof.modes.mode import others
from tests.jobs.control import Controller, admit, become, job, pods, state, submit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]


def command(action, name="demo", *, uid=None, by="alice", **metadata):
    """Store a Command; by default to the job that has the name now."""
    if uid is None:
        uid = store.get(JOBS, "default", name).uid
    target = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": name, "uid": uid}
    notes = {"ui.volcano.sh/created-by": by} if by else {}
    about = {"generateName": f"{name}-", "namespace": "default", "annotations": notes, **metadata}
    return store.write(Create(COMMANDS, {"metadata": about, "action": action, "target": target}))[0]


def issue(controller, *actions, **fields):
    for action in actions:
        command(action, **fields)
    controller.settle()


def run(controller, replicas=2, **spec):
    """Bring a job to Running."""
    stored = submit(controller, job(replicas=replicas, **spec))
    admit(controller)
    become(controller, "Running")
    assert phase() == "Running"
    return stored


def bind():
    """Give every pod a node, so that it ends only when the node says so."""
    for pod in store.find(PODS):
        store.write(Patch(PODS, "default", pod.name, {"spec": {"nodeName": "n"}}, "binding"))


def ended(controller):
    """Do what a node does with pods that are to end."""
    for pod in store.find(PODS):
        if pod.object["metadata"].get("deletionTimestamp"):
            store.write(Delete(PODS, "default", pod.name, grace=0))
    controller.settle()


def phase(name="demo"):
    return state(name)["state"]["phase"]


def phases(since=0):
    """The phases that the job was in, in their order."""
    found = []
    for change in store.changes(since, [JOBS]):
        reached = change.object.get("status", {}).get("state", {}).get("phase")
        if change.verb != "DELETED" and reached and reached not in found[-1:]:
            found.append(reached)
    return found


def told(reason="CommandIssued"):
    return [e.object["message"] for e in store.find(EVENTS, order="created") if e.object["reason"] == reason]


@pytest.mark.shows("2.2/3", "3.2/AbortJob", "2.8/suspend and resume", "3.7/CommandIssued", "4.4/made")
def test_suspended_job_ends_its_pods_and_keeps_what_ended_already(controller):
    run(controller)
    bind()
    become(controller, "Succeeded", "demo-main-0", code=0)
    issue(controller, "AbortJob")
    assert phase() == "Aborting"
    assert state()["state"]["message"] == "Suspended on request. Waiting for 1 pod to end."
    ended(controller)
    assert phase() == "Aborted"
    assert state()["state"]["message"] == (
        "1 of 2 pods had succeeded when the job was suspended. Resume it to run it from the start."
    )
    assert pods() == ["demo-main-0"]
    assert store.find(POD_GROUPS) == []
    assert store.find(COMMANDS) == []
    assert told() == ["alice asked for AbortJob."]


@pytest.mark.shows("10/Q-7", "10/Q-22", "3.2/ResumeJob", "2.8/suspend and resume")
def test_resumed_job_runs_from_the_start_and_uses_up_no_retry(controller):
    run(controller)
    become(controller, "Succeeded", "demo-main-0", code=0)
    issue(controller, "AbortJob")
    before = store.revision()
    issue(controller, "ResumeJob")
    assert phases(before) == ["Restarting", "Pending"]
    assert state()["state"]["reason"] == "WaitingForQueue"
    assert pods() == []
    admit(controller)
    become(controller, "Running")
    assert phase() == "Running"
    assert "retryCount" not in state()
    become(controller, "Succeeded", code=0)
    assert (phase(), state()["succeeded"]) == ("Completed", 2)


@pytest.mark.parametrize("times", [5])
def test_job_can_be_suspended_and_resumed_more_often_than_it_may_be_retried(controller, times):
    run(controller)
    for _ in range(times):
        issue(controller, "AbortJob", "ResumeJob")
        admit(controller)
        become(controller, "Running")
    assert phase() == "Running"
    assert state()["version"] == times


ENDS = [
    pytest.param("TerminateJob", ["Terminating", "Terminated"], "1 of 2 pods had succeeded when the job was terminated.", id="terminate"),
    pytest.param("CompleteJob", ["Completing", "Completed"], "1 of 2 pods had succeeded when the job was completed on request.", id="complete"),
    pytest.param("AbortJob", ["Aborting", "Aborted"], "1 of 2 pods had succeeded when the job was suspended.", id="abort"),
]  # fmt: skip


@pytest.mark.shows("3.2/TerminateJob", "3.2/CompleteJob", "3.2/AbortJob")
@pytest.mark.parametrize(("action", "way", "message"), ENDS)
def test_job_that_is_stopped(controller, action, way, message):
    run(controller)
    become(controller, "Succeeded", "demo-main-0", code=0)
    before = store.revision()
    issue(controller, action)
    assert phases(before) == way
    assert state()["state"]["message"].startswith(message)
    assert (state()["succeeded"], state().get("running")) == (1, None)
    assert pods() == ["demo-main-0"]


@pytest.mark.parametrize(("action", "way", "message"), ENDS)
def test_job_that_is_stopped_before_it_has_pods(controller, action, way, message):
    submit(controller, job())
    issue(controller, action)
    assert phases() == ["Pending", *way]
    assert "None of 2 pods had ended when" in state()["state"]["message"]
    assert store.find(POD_GROUPS) == []


@pytest.mark.shows("1.1/maxRetry", "2.8/restart")
def test_restarted_job_makes_all_its_pods_again_as_often_as_it_may(controller):
    run(controller)
    before = {pod.uid for pod in store.find(PODS)}
    issue(controller, "RestartJob")
    assert (phase(), state()["retryCount"], state()["version"]) == ("Pending", 1, 1)
    admit(controller)
    become(controller, "Running")
    assert not before & {pod.uid for pod in store.find(PODS)}
    issue(controller, "RestartJob")
    admit(controller)
    become(controller, "Running")
    become(controller, "Failed", "demo-main-1", code=3)
    assert phase() == "Running"
    issue(controller, "RestartJob")
    assert (phase(), state()["retryCount"], state()["failed"]) == ("Failed", 3, 1)
    assert state()["state"]["reason"] == "RetriesUsedUp"
    assert pods() == ["demo-main-1"]  # its log says why
    assert controller.state.entries == {}


def test_restart_of_a_job_larger_than_a_round_leaves_no_pod_of_the_run_before(controller, monkeypatch):
    monkeypatch.setattr(plan, "ROOM", 3)
    monkeypatch.setattr(plan.reconcile, "__kwdefaults__", {"requests": (), "room": 3})
    run(controller, replicas=10, minAvailable=1)
    before = {pod.uid for pod in store.find(PODS)}
    issue(controller, "RestartJob")
    assert pods() == []
    admit(controller)
    become(controller, "Running")
    assert (len(pods()), state()["running"], state()["version"]) == (10, 10, 1)
    assert not before & {pod.uid for pod in store.find(PODS)}
    issue(controller, "AbortJob", "ResumeJob")
    admit(controller)
    assert (len(pods()), phase()) == (10, "Pending")


@pytest.mark.shows("3.4/no target")
@pytest.mark.parametrize("action", ["RestartTask", "RestartPod"])
def test_restart_of_a_part_ends_no_pod_since_a_command_names_none(controller, action):
    run(controller)
    before, found = store.revision(), {pod.uid for pod in store.find(PODS)}
    issue(controller, action)
    assert phases(before) == ["Restarting", "Pending", "Running"]
    assert {pod.uid for pod in store.find(PODS)} == found
    assert state()["retryCount"] == 1
    assert told() == [f"alice asked for {action}, but a Command names no task or pod, so that no pod ends."]


@pytest.mark.shows("3.4/no target")
def test_restart_of_a_partition_does_nothing_since_a_command_names_none(controller):
    run(controller)
    before = store.revision()
    issue(controller, "RestartPartition")
    assert phases(before) == []
    assert store.find(COMMANDS) == []


@pytest.mark.parametrize("action", ["RestartTask", "RestartPartition"])
def test_pod_group_follows_a_job_that_changes_when_a_part_of_it_is_restarted(controller, action):
    run(controller)
    store.write(Patch(JOBS, "default", "demo", {"spec": {"minAvailable": 1}}))
    issue(controller, action)
    assert store.find(POD_GROUPS)[0].object["spec"]["minMember"] == 1


@pytest.mark.shows("2.6/any×unknown action", "6.3/action", "3.4/1")
@pytest.mark.parametrize("action", ["Jump", "", "OpenQueue"])
def test_unknown_action_is_told_and_dropped(controller, action):
    run(controller)
    before = store.revision()
    issue(controller, action)
    assert store.find(COMMANDS) == []
    assert phases(before) == []
    assert told() == [f"alice asked for {action}, which is no action of a job; nothing is done."]
    kinds = {e.object["type"] for e in store.find(EVENTS) if e.object["reason"] == "CommandIssued"}
    assert kinds == {"Warning"}


@pytest.mark.shows("2.1/one job, one worker")
@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        pytest.param(["AbortJob", "ResumeJob"], "Pending", id="suspended and resumed"),
        pytest.param(["AbortJob", "ResumeJob", "AbortJob"], "Pending", id="a restarting job heeds nothing"),
        pytest.param(["AbortJob", "AbortJob"], "Aborted", id="twice the same"),
        pytest.param(["TerminateJob", "ResumeJob"], "Terminated", id="no way back"),
        pytest.param(["AbortJob", "Jump", "ResumeJob"], "Pending", id="an unknown one between"),
        pytest.param(["ResumeJob", "AbortJob"], "Aborted", id="nothing to resume at first"),
    ],
)
def test_burst_of_commands_is_carried_out_in_order(controller, actions, expected):
    run(controller)
    bind()
    issue(controller, *actions)
    ended(controller)
    ended(controller)
    assert phase() == expected
    assert store.find(COMMANDS) == []
    assert len(told()) == len(actions)


def test_command_to_a_job_that_no_controller_has_seen(controller):
    store.write(Create(JOBS, job()))
    issue(controller, "AbortJob")
    assert phases() == ["Pending", "Aborting", "Aborted"]


@pytest.mark.parametrize("action", ["AbortJob", "ResumeJob", "RestartJob"])
def test_command_to_a_finished_job_is_consumed(controller, action):
    run(controller, ttlSecondsAfterFinished=1000)
    become(controller, "Succeeded", code=0)
    assert controller.state.entries == {}
    store.write(Delete(PODS, "default", "demo-main-0"))
    before = state()
    issue(controller, action)
    assert store.find(COMMANDS) == []
    assert told() == [f"alice asked for {action}; a job that is Completed stays so."]
    assert state() == before
    assert (controller.state.entries, controller.state.commands) == ({}, {})


@pytest.mark.shows("6.3/vcctl's")
def test_command_is_the_one_that_vcctl_makes():
    made = to_job("team", "demo", "u1", Action.ABORT_JOB)
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "demo",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert made == {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "demo-abortjob-", "namespace": "team", "ownerReferences": [owner]},
        "action": "AbortJob",
        "target": owner,
    }


@pytest.mark.shows("6.3/target")
@pytest.mark.parametrize(
    ("name", "uid"),
    [
        pytest.param("demo", "another", id="uid of an earlier job"),
        pytest.param("gone", "some", id="no such job"),
        pytest.param("gone", "", id="no such job, no uid"),
    ],
)
def test_command_for_a_job_that_is_gone_is_dropped(controller, name, uid):
    run(controller)
    issue(controller, "AbortJob", name=name, uid=uid)
    assert store.find(COMMANDS) == []
    assert phase() == "Running"
    assert told() == []


def test_command_without_uid_is_for_whoever_has_the_name(controller):
    run(controller)
    issue(controller, "AbortJob", uid="", by="")
    assert phase() == "Aborted"
    assert told() == ["AbortJob was asked for."]


@pytest.mark.shows("6.3/other targets")
def test_command_to_something_else_is_left_alone(controller):
    target = {"apiVersion": "v1", "kind": "Pod", "name": "demo", "uid": "x"}
    about = {"name": "c", "namespace": "default"}
    store.write(Create(COMMANDS, {"metadata": about, "action": "AbortJob", "target": target}))
    run(controller)
    assert [stored.name for stored in store.find(COMMANDS)] == ["c"]


def test_command_that_somebody_takes_back_has_no_effect(controller):
    run(controller)
    taken = command("AbortJob")
    store.write(Delete(COMMANDS, "default", taken.name))
    controller.settle()
    assert phase() == "Running"
    assert told() == []


def test_command_taken_back_while_it_is_planned_has_no_effect(controller, monkeypatch):
    run(controller)
    taken = command("AbortJob")
    original = job_controller.plan.reconcile

    def interrupted(*args, **fields):
        with others():
            if store.find(COMMANDS):
                store.write(Delete(COMMANDS, "default", taken.name))
        return original(*args, **fields)

    monkeypatch.setattr(job_controller.plan, "reconcile", interrupted)
    controller.settle()
    assert phase() == "Running"
    assert told() == []


def test_command_that_cannot_go_at_once_is_carried_out_once(controller):
    run(controller)
    issue(controller, "RestartJob", finalizers=["example.com/kept"])
    admit(controller)
    become(controller, "Running")
    assert len(store.find(COMMANDS)) == 1
    assert (phase(), state()["retryCount"]) == ("Running", 1)
    Controller().settle()
    assert (phase(), state()["retryCount"]) == ("Running", 1)


def test_new_process_carries_out_what_the_last_one_left(controller):
    run(controller)
    command("AbortJob")
    Controller().settle()
    assert phase() == "Aborted"
    command("ResumeJob")
    Controller().settle()
    assert phase() == "Pending"


@pytest.mark.shows("6.3/taken")
def test_commit_that_fails_leaves_command_and_job_as_they_were(controller, monkeypatch):
    run(controller)
    command("AbortJob")
    original = controller._drop_timers

    def killed(keys):
        raise RuntimeError("killed within the transaction")

    monkeypatch.setattr(controller, "_drop_timers", killed)
    with pytest.raises(RuntimeError):
        controller.step()
    assert (phase(), len(store.find(COMMANDS)), told()) == ("Running", 1, [])
    monkeypatch.setattr(controller, "_drop_timers", original)
    controller.settle()
    assert (phase(), len(store.find(COMMANDS)), len(told())) == ("Aborted", 0, 1)


def test_command_to_a_job_that_is_being_deleted_is_consumed(controller):
    run(controller)
    store.write(Patch(JOBS, "default", "demo", {"metadata": {"finalizers": ["example.com/kept"]}}))
    store.write(Delete(JOBS, "default", "demo"))
    issue(controller, "AbortJob")
    assert (phase(), store.find(COMMANDS)) == ("Running", [])
    assert told() == ["alice asked for AbortJob; the job is being deleted, so nothing is done."]


def test_job_deleted_with_its_command_leaves_nothing(controller):
    run(controller)
    command("AbortJob")
    store.write(Delete(JOBS, "default", "demo"))
    controller.settle()
    assert store.find(COMMANDS) == []
    assert (controller.state.entries, controller.state.commands) == ({}, {})


@pytest.mark.embedded  # as many requests would take ten seconds
def test_many_jobs_are_suspended_at_once(controller):
    for number in range(50):
        store.write(Create(JOBS, job(f"job-{number}")))
    controller.settle()
    admit(controller)
    for number in range(50):
        command("AbortJob", f"job-{number}")
    before = store.revision()
    controller.settle()
    assert {phase(f"job-{number}") for number in range(50)} == {"Aborted"}
    assert store.find(COMMANDS) == []
    assert len([c for c in store.changes(before, [COMMANDS]) if c.verb == "DELETED"]) == 50


def test_all_exit_codes_are_listed_once_and_those_of_an_earlier_run_no_more(controller):
    run(controller, replicas=3)
    become(controller, "Failed", "demo-main-1", code=137)
    become(controller, "Failed", "demo-main-2", code=3)
    assert state()["exitCodes"] == [3, 137]
    issue(controller, "RestartJob")
    assert "exitCodes" not in state()
    assert store.find(JOBS, exit_code=137) == []


LACKS = {"waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}}
SAID = 'Cannot start: configmap "c" not found · main-0, main-1.'


def lack(controller, state=LACKS):
    statuses = [{"name": "main", "state": state}]
    for each in store.find(PODS):
        store.write(
            Patch(PODS, "default", each.name, {"status": {"phase": "Pending", "containerStatuses": statuses}}, "status")
        )
    controller.settle()


@pytest.mark.parametrize(
    ("actions", "phases_after", "rest"),
    [
        pytest.param(["RestartJob"], "Failed", "The job was restarted 0 times; instead of restart 1 it failed, as maxRetry is 1.", id="retries used up"),
        pytest.param(["AbortJob"], "Aborted", "Resume it to run it from the start.", id="suspended"),
        pytest.param(["TerminateJob"], "Terminated", "when the job was terminated.", id="terminated"),
    ],
)  # fmt: skip
def test_a_job_that_is_ended_says_what_kept_its_pods_from_running(controller, actions, phases_after, rest):
    """The pods are gone by then, so nobody else knows it."""
    submit(controller, job(replicas=2, maxRetry=1))
    admit(controller)
    lack(controller)
    assert state()["state"]["message"] == f"{SAID} 0 of 2 pods are running; minAvailable is 2."
    issue(controller, *actions)
    assert phase() == phases_after
    assert SAID in state()["state"]["message"]
    assert rest in state()["state"]["message"]


def test_what_kept_pods_from_running_in_an_earlier_run_is_forgotten(controller):
    submit(controller, job(replicas=2))
    admit(controller)
    lack(controller)
    issue(controller, "RestartJob")
    assert state()["keptBefore"] == SAID
    admit(controller)
    become(controller, "Running")
    assert "keptBefore" not in state()
    issue(controller, "AbortJob")
    assert "configmap" not in state()["state"]["message"]
