"""What a job's status says, field by field (reference: volcano-job §1.5)."""

from __future__ import annotations

import pytest

from cluster.store import Create, Delete, Patch, store
from jobs.controller.commands import to_job
from kube import meta
from kube.kinds.batch import Action
from kube.resources import CLAIMS, COMMANDS, JOBS, PODS
from tests.jobs.control import CLAIM, admit, become, job, state, submit, task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]


def started(controller, **spec):
    """A running job whose pods end only when their node says so."""
    submit(controller, job(**spec))
    run(controller)


def run(controller):
    admit(controller)
    for pod in store.find(PODS):
        if not pod.object["spec"].get("nodeName"):
            store.write(Patch(PODS, "default", pod.name, {"spec": {"nodeName": "n1"}}, "binding"))
    become(controller, "Running")


def command(controller, action):
    uid = store.get(JOBS, "default", "demo").uid
    store.write(Create(COMMANDS, to_job("default", "demo", uid, action)))
    controller.settle()


def ended(controller):
    """Do what a node does with pods that are to end."""
    for pod in store.find(PODS):
        if pod.object["metadata"].get("deletionTimestamp"):
            store.write(Delete(PODS, "default", pod.name, grace=0))
    controller.settle()


def seconds_until_now():
    """How long the job took from its creation to its phase, as the status writes it."""
    stored = store.get(JOBS, "default", "demo").object
    since, until = (
        meta.parse_time(text)
        for text in (stored["metadata"]["creationTimestamp"], stored["status"]["state"]["lastTransitionTime"])
    )
    return (until - since) // 1000


@pytest.mark.shows("1.5/taskStatusCount", "1.5/pending, running, succeeded, failed, unknown")
def test_pods_are_counted_by_phase_in_all_and_of_each_task(controller):
    submit(controller, job(tasks=[task("ps", 1), task("worker", 4)], minAvailable=1))
    admit(controller)
    for name, phase in {
        "ps-0": "Running",
        "worker-0": "Succeeded",
        "worker-1": "Failed",
        "worker-2": "Unknown",
    }.items():
        become(controller, phase, f"demo-{name}")
    found = state()
    assert found["taskStatusCount"] == {
        "ps": {"phase": {"Running": 1}},
        "worker": {"phase": {"Failed": 1, "Pending": 1, "Succeeded": 1, "Unknown": 1}},
    }
    assert {name: found[name] for name in ("pending", "running", "succeeded", "failed", "unknown")} == dict.fromkeys(
        ("pending", "running", "succeeded", "failed", "unknown"), 1
    )  # fmt: skip


@pytest.mark.shows("1.5/terminating", "2.2/5")
def test_pods_that_end_are_counted_as_terminating_and_nowhere_else(controller):
    started(controller)
    command(controller, Action.ABORT_JOB)
    found = state()
    assert (found["terminating"], found.get("running", 0), "taskStatusCount" in found) == (2, 0, False)


@pytest.mark.shows("1.5/minAvailable")
def test_minimum_is_that_of_the_spec_and_follows_it(controller):
    submit(controller, job(replicas=3))
    assert state()["minAvailable"] == 3
    admit(controller)
    store.write(Patch(JOBS, "default", "demo", {"spec": {"minAvailable": 1}}))
    controller.settle()
    assert state()["minAvailable"] == 1


@pytest.mark.shows("1.5/version", "1.5/retryCount", "2.2/2", "2.3/version", "10/Q-6", "10/Q-10")
def test_version_grows_when_all_pods_end_and_retries_with_each_restart(controller):
    started(controller)
    seen = []
    for action in (Action.RESTART_POD, Action.RESTART_JOB, Action.ABORT_JOB):
        command(controller, action)
        seen.append((state().get("version", 0), state().get("retryCount", 0)))
        ended(controller)
        run(controller)
    assert seen == [(0, 1), (1, 2), (2, 2)]


@pytest.mark.shows("1.5/runningDuration", "2.2/9")
@pytest.mark.parametrize(
    ("action", "phase"),
    [(Action.ABORT_JOB, "Aborted"), (Action.TERMINATE_JOB, "Terminated"), (Action.COMPLETE_JOB, "Completed")],
)
def test_a_job_took_as_long_as_until_its_last_pod_ended(controller, moved_clock, action, phase):
    started(controller)
    moved_clock.move(60)
    command(controller, action)
    moved_clock.move(30)
    ended(controller)
    assert state()["state"]["phase"] == phase
    assert (seconds_until_now(), state()["runningDuration"]) == (90, "1m30s")


@pytest.mark.shows("1.5/runningDuration")
def test_a_job_that_runs_again_has_taken_no_time_yet(controller, moved_clock):
    started(controller)
    moved_clock.move(60)
    command(controller, Action.RESTART_JOB)
    ended(controller)
    run(controller)
    assert "runningDuration" not in state()
    moved_clock.move(60)
    become(controller, "Succeeded", code=0)
    assert (seconds_until_now(), state()["runningDuration"]) == (120, "2m0s")


@pytest.mark.shows("1.5/controlledResources", "4.3/noted", "4.3/made")
def test_status_lists_the_claims_that_the_job_names_and_those_it_makes(controller):
    volumes = [
        {"mountPath": "/a", "volumeClaim": CLAIM},
        {"mountPath": "/b", "volumeClaimName": "data"},
        {"mountPath": "/c"},
    ]
    submit(controller, job(volumes=volumes))
    (made,) = store.find(CLAIMS)
    assert made.object["metadata"]["ownerReferences"][0]["uid"] == store.get(JOBS, "default", "demo").uid
    assert made.object["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert state()["controlledResources"] == {f"volume-pvc-{made.name}": made.name, "volume-pvc-data": "data"}


@pytest.mark.shows("1.5/conditions", "2.2/8")
def test_each_phase_has_one_condition_and_the_latest_is_the_last(controller, moved_clock):
    started(controller)
    moved_clock.move(60)
    command(controller, Action.RESTART_JOB)
    ended(controller)
    found = state()["conditions"]
    assert [each["status"] for each in found] == ["Running", "Restarting", "Pending"]
    assert found[-1]["lastTransitionTime"] == state()["state"]["lastTransitionTime"]
    assert found[0]["lastTransitionTime"] < found[-1]["lastTransitionTime"]


@pytest.mark.shows("4.3/restart", "2.2/12")
def test_claims_outlive_a_restart_and_are_made_once(controller):
    started(controller, volumes=[{"mountPath": "/a", "volumeClaim": CLAIM}])
    before = [each.uid for each in store.find(CLAIMS)]
    command(controller, Action.RESTART_JOB)
    ended(controller)
    run(controller)
    assert [each.uid for each in store.find(CLAIMS)] == before
    assert state()["state"]["phase"] == "Running"
