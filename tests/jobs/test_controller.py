"""The job controller against the real store: jobs come to life, end and go."""

from __future__ import annotations

import pytest
from django.db import connection

from cluster import tasks
from cluster.runtime import consumer, registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Patch, store
from jobs.controller.job_controller import JobConsumer
from kube.resources import CLAIMS, JOBS, POD_GROUPS, PODS
from tests.jobs.control import CLAIM, Controller, admit, become, job, messages, pods, state, submit, task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode"), pytest.mark.each_backend]


@pytest.mark.shows(
    "2.4/5",
    "2.4/4a",
    "2.4/4b-d",
    "4.4/made",
    "1.5/state.reason, state.message",
    "scheduler 10.1/21",
    "scheduler 10.2/8",
)
def test_job_waits_for_its_group_before_it_has_pods(controller):
    submit(controller, job())
    assert len(store.find(POD_GROUPS)) == 1
    assert pods() == []
    assert state()["state"]["phase"] == "Pending"
    assert state()["state"]["reason"] == "WaitingForQueue"


@pytest.mark.shows(
    "2.8/normal life",
    "1.5/state.phase",
    "2.4/7 absent",
    "2.2/12",
    "10/Q-1",
    "1.5/taskStatusCount after a kill",
    "2.2/7",
)
def test_job_lives_from_pending_to_completed(controller):
    submit(controller, job())
    admit(controller)
    assert pods() == ["demo-main-0", "demo-main-1"]
    assert state()["pending"] == 2
    become(controller, "Running", "demo-main-0")
    assert state()["state"]["message"] == "1 of 2 pods is running, 1 pending; minAvailable is 2."
    become(controller, "Running", "demo-main-1")
    assert state()["state"]["phase"] == "Running"
    become(controller, "Succeeded", code=0)
    ended = state()
    assert (ended["state"]["phase"], ended["succeeded"]) == ("Completed", 2)
    assert ended["state"]["message"] == "All 2 pods succeeded."
    assert [c["status"] for c in ended["conditions"]] == ["Pending", "Running", "Completed"]
    assert store.find(POD_GROUPS) == []
    assert pods() == ["demo-main-0", "demo-main-1"]
    assert controller.state.entries == {}


def test_failure_names_the_pod_and_its_exit_code(controller):
    submit(controller, job())
    admit(controller)
    become(controller, "Running")
    become(controller, "Failed", "demo-main-1", code=3)
    become(controller, "Succeeded", "demo-main-0", code=0)
    assert state()["state"]["phase"] == "Failed"
    assert state()["state"]["message"].startswith("Exit 3 · main-1. ")
    assert state()["exitCodes"] == [3]
    assert [each.name for each in store.find(JOBS, exit_code=3)] == ["demo"]


@pytest.mark.parametrize(
    ("terminated", "said"),
    [
        pytest.param(
            {"exitCode": 128, "reason": "StartError", "message": 'exec: "x": no such file or directory'},
            'Could not start: exec: "x": no such file or directory · main-1.',
            id="did not start",
        ),
        pytest.param(
            {"exitCode": 137, "reason": "OOMKilled", "message": "It used 2 bytes; its limit is 1."},
            "Out of memory: It used 2 bytes; its limit is 1 · main-1.",
            id="memory",
        ),
        pytest.param(
            {"exitCode": 1, "reason": "Error", "message": "one\n\ntwo" + "." * 500},
            "Exit 1: one two · main-1.",
            id="its own message",
        ),
    ],
)
def test_failure_says_why_the_container_ended(controller, terminated, said):
    submit(controller, job())
    admit(controller)
    become(controller, "Succeeded", "demo-main-0", code=0)
    status = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": terminated}}]}
    store.write(Patch(PODS, "default", "demo-main-1", {"status": status}, subresource="status"))
    controller.settle()
    assert state()["state"]["message"].startswith(f"{said} ")


@pytest.mark.shows("3.7/SuccessfulCreate, SuccessfulDelete")
def test_events_tell_the_story_once_for_all_pods(controller):
    submit(controller, job(replicas=30))
    admit(controller)
    become(controller, "Running")
    become(controller, "Succeeded")
    story = messages()
    assert story[0] == "Created 30 pods."
    assert story[1].startswith("Running: ")
    assert story[2] == "Completed: All 30 pods succeeded."
    assert len(story) == 3


@pytest.mark.embedded  # as many requests would take half a minute
def test_many_pods_are_made_in_rounds(controller):
    submit(controller, job(replicas=2500))
    admit(controller)
    assert len(pods()) == 2500
    assert state()["pending"] == 2500
    assert messages() == ["Created 1000 of 2500 pods.", "Created 1000 of 2500 pods.", "Created 500 of 2500 pods."]


@pytest.mark.shows(
    "2.4/7 surplus", "2.4/9", "2.8/scale", "10/Q-3", "2.2/4", "4.1/annotation volcano.sh/controller-out-of-sync"
)
def test_lowered_replicas_delete_marked_pods_with_the_highest_index(controller):
    submit(controller, job(replicas=4, minAvailable=1))
    admit(controller)
    become(controller, "Running")
    changed = store.get(JOBS, "default", "demo").object["spec"]["tasks"]
    smaller = [{**changed[0], "replicas": 2, "minAvailable": 1}]
    before = store.revision()
    store.write(Patch(JOBS, "default", "demo", {"spec": {"tasks": smaller}}))
    controller.settle()
    assert pods() == ["demo-main-0", "demo-main-1"]
    gone = [c for c in store.changes(before, [PODS]) if c.verb == "DELETED"]
    marks = [c.object["metadata"]["annotations"]["volcano.sh/controller-out-of-sync"] for c in gone]
    assert marks == ["true", "true"]
    assert state()["running"] == 2
    assert store.find(POD_GROUPS)[0].object["spec"]["minTaskMember"] == {"main": 1}


@pytest.mark.shows("2.8/scale")
def test_raised_replicas_make_more_pods(controller):
    submit(controller, job(replicas=1))
    admit(controller)
    tasks = store.get(JOBS, "default", "demo").object["spec"]["tasks"]
    store.write(Patch(JOBS, "default", "demo", {"spec": {"tasks": [{**tasks[0], "replicas": 3}]}}))
    controller.settle()
    assert pods() == ["demo-main-0", "demo-main-1", "demo-main-2"]


@pytest.mark.shows("1.1/minSuccess", "2.2/3")
def test_enough_successes_end_the_pods_that_still_run(controller):
    submit(controller, job(replicas=3, minSuccess=1))
    admit(controller)
    become(controller, "Running")
    become(controller, "Succeeded", "demo-main-1")
    assert state()["state"]["phase"] == "Completed"
    assert state()["version"] == 1
    assert pods() == ["demo-main-1"]
    assert state()["succeeded"] == 1
    assert "terminating" not in state()


@pytest.mark.shows("2.4/7 absent")
def test_deleted_pod_is_made_again(controller):
    submit(controller, job())
    admit(controller)
    uid = store.get(PODS, "default", "demo-main-0").uid
    store.write(Delete(PODS, "default", "demo-main-0"))
    controller.settle()
    assert store.get(PODS, "default", "demo-main-0").uid != uid


@pytest.mark.shows("1.2/dependsOn.name", "2.4/8 dependsOn", "4.2/pod group")
def test_task_waits_for_the_one_it_depends_on(controller):
    tasks = [task("first", 1), task("second", 1, dependsOn={"name": ["first"]}, minAvailable=0)]
    submit(controller, job(tasks=tasks, minAvailable=1))
    admit(controller)
    assert pods() == ["demo-first-0"]
    become(controller, "Succeeded", "demo-first-0")
    assert pods() == ["demo-first-0", "demo-second-0"]


@pytest.mark.parametrize("told", ["", "1 of 2 pods exist; waiting for the others to be created."])
def test_tasks_that_must_start_together_and_wait_for_each_other_are_named_whatever_the_scheduler_counts(
    controller, told
):
    tasks = [task("first", 1), task("second", 1, dependsOn={"name": ["first"]})]
    submit(controller, job(tasks=tasks, minAvailable=2))
    admit(controller)
    (group,) = store.find(POD_GROUPS)
    condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughTasks", "message": told}
    store.write(Patch(POD_GROUPS, group.namespace, group.name, {"status": {"conditions": [condition] * bool(told)}}))
    controller.settle()
    assert pods() == ["demo-first-0"]
    assert state()["state"]["reason"] == "TaskDeadlock"
    assert state()["state"]["message"] == (
        "This can never start: second waits for first, and nothing starts without second, as minAvailable 2 needs them "
        "at the same time; set minAvailable to 1. 0 of 2 pods are running; minAvailable is 2."
    )


def test_tasks_that_wait_for_others_are_named_and_what_to_do_when_their_turn_never_comes(controller):
    waiting = {"name": ["first", "other"], "iteration": "any"}
    tasks = [task("first", 1), task("other", 0), task("second", 1, dependsOn=waiting)]
    submit(controller, job(tasks=[{**each, "minAvailable": 1} for each in tasks], minAvailable=1))
    admit(controller)
    told = "Task second waits for first or other."
    assert state()["state"]["reason"] == "WaitingForTasks"
    assert state()["state"]["message"] == f"0 of 2 pods are running; minAvailable is 1. {told}"
    become(controller, "Failed", "demo-first-0", code=1)
    assert state()["state"]["message"] == (
        f"0 of 2 pods are running, 1 failed; minAvailable is 1. {told} "
        "No pod is left that could become ready: restart the job, or terminate it."
    )


def test_job_that_needs_no_pod_runs_before_its_group_is_let_in(controller):
    submit(controller, job(tasks=[task("main", 0)]))
    assert [c["status"] for c in state()["conditions"]] == ["Pending", "Running"]
    assert state()["state"]["reason"] == "NoReplicas"


@pytest.mark.shows("2.1/leftover pods")
def test_name_held_by_a_stranger_is_waited_for(controller):
    stranger = {"metadata": {"name": "demo-main-0", "namespace": "default"}, "spec": {"nodeName": "n"}}
    store.write(Create(PODS, stranger))
    submit(controller, job())
    admit(controller)
    assert pods() == ["demo-main-0", "demo-main-1"]
    assert state()["pending"] == 1
    assert state()["state"]["reason"] == "NamesTaken"
    store.write(Delete(PODS, "default", "demo-main-0", grace=0))
    controller.settle()
    assert pods() == ["demo-main-0", "demo-main-1"]
    assert state()["pending"] == 2


def test_new_process_goes_on_where_the_last_one_stopped(controller):
    submit(controller, job())
    admit(controller)
    become(controller, "Running", "demo-main-0")
    store.write(Patch(PODS, "default", "demo-main-1", {"status": {"phase": "Running"}}, "status"))
    Controller().settle()
    assert state()["state"]["phase"] == "Running"


@pytest.mark.shows("1.1/ttlSecondsAfterFinished", "6.2/0")
def test_finished_job_is_deleted_after_its_time(controller):
    submit(controller, job(replicas=1, ttlSecondsAfterFinished=0))
    admit(controller)
    become(controller, "Running")
    become(controller, "Succeeded")
    metadata = store.get(JOBS, "default", "demo").object["metadata"]
    assert metadata["finalizers"] == ["foregroundDeletion"]


def finish(controller):
    submit(controller, job(replicas=1, ttlSecondsAfterFinished=100))
    admit(controller)
    become(controller, "Succeeded")


@pytest.mark.shows("6.2/since", "6.2/how")
def test_later_job_of_a_name_has_its_own_time(controller, moved_clock):
    finish(controller)
    store.write(Delete(PODS, "default", "demo-main-0", grace=0), Delete(JOBS, "default", "demo"))
    controller.settle()
    moved_clock.move(60)
    finish(controller)
    moved_clock.move(50)
    controller.settle()
    assert "deletionTimestamp" not in store.get(JOBS, "default", "demo").object["metadata"]
    moved_clock.move(51)
    controller.settle()
    assert "deletionTimestamp" in store.get(JOBS, "default", "demo").object["metadata"]


def test_what_is_left_of_a_finished_job_outlives_the_controller(controller, moved_clock):
    submit(controller, job(replicas=1, ttlSecondsAfterFinished=30))
    admit(controller)
    store.write(Patch(PODS, "default", "demo-main-0", {"status": {"phase": "Succeeded"}}, "status"))
    while state()["state"]["phase"] != "Completed":
        controller.step()
    successor = Controller()
    successor.settle()
    moved_clock.move(61)
    successor.settle()
    assert "deletionTimestamp" in store.get(JOBS, "default", "demo").object["metadata"]


@pytest.mark.shows("9.1/3", "1.4/a claim", "4.3/named", "3.7/PVCError", "7.3/15 no claim")
def test_volume_without_claim_is_an_empty_directory_and_an_event_says_so(controller):
    volumes = [{"mountPath": "/a"}, {"mountPath": "/b", "volumeClaimName": "none"}]
    submit(controller, job(replicas=1, volumes=volumes))
    admit(controller)
    found = store.get(PODS, "default", "demo-main-0").object["spec"]["volumes"]
    assert [volume["emptyDir"] for volume in found] == [{}, {}]
    assert any("There is no claim none" in message for message in messages())


@pytest.mark.shows("1.4/volumeClaim", "4.3/made")
def test_described_claim_is_made_and_mounted(controller):
    submit(controller, job(replicas=1, volumes=[{"mountPath": "/a", "volumeClaim": CLAIM}]))
    admit(controller)
    claim = store.find(CLAIMS)[0]
    source = store.get(PODS, "default", "demo-main-0").object["spec"]["volumes"][0]["persistentVolumeClaim"]
    assert source == {"claimName": claim.name}
    assert store.get(JOBS, "default", "demo").object["spec"]["volumes"][0]["volumeClaimName"] == claim.name


@pytest.mark.shows("2.4/10")
def test_plan_is_settled_when_asked_again(controller):
    submit(controller, job())
    admit(controller)
    become(controller, "Running")
    before = store.revision()
    Controller().settle()
    assert store.revision() == before


def test_unreadable_job_does_not_stop_the_others(controller):
    store.write(Create(JOBS, {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"tasks": "no"}}))
    submit(controller, job())
    assert state()["state"]["phase"] == "Pending"


def test_job_that_cannot_be_planned_does_not_stop_the_others(controller):
    poison = job("bad")
    poison["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "x"}}
    store.write(Create(JOBS, poison))
    submit(controller, job())
    assert state()["state"]["phase"] == "Pending"
    Controller().settle()


@pytest.fixture
def waiting_jobs(controller):
    for number in range(30):
        store.write(Create(JOBS, job(f"job-{number}")))


@pytest.mark.shows("3.6/tried again", "2.4/8 errors", "2.2/6")
def test_a_full_disk_puts_the_controller_off_and_loses_nothing(
    waiting_jobs, full_disk, caplog, monkeypatch, redis_url, settings
):
    settings.REDIS_URL = redis_url
    monkeypatch.setattr(consumer, "_runners", {})
    tasks.consume("jobs", 0)
    assert "database or disk is full" in caplog.text
    assert not [record for record in caplog.records if record.exc_info]
    assert store.find(POD_GROUPS) == []
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA max_page_count = 1073741823")
    tasks.consume("jobs", 0)
    assert len(store.find(POD_GROUPS)) == 30


@pytest.mark.shows("2.1/one job, one worker")
@pytest.mark.parametrize("shards", [2, 3])
def test_every_job_belongs_to_one_shard(controller, monkeypatch, shards):
    registration = registry.Registration(
        "jobs", "jobs.controller.job_controller.JobConsumer", registry.get("jobs").resources, shards=shards
    )
    monkeypatch.setitem(registry._registrations, "jobs", registration)
    runners = [Runner(registration, shard, JobConsumer()) for shard in range(shards)]
    for number in range(10):
        store.write(Create(JOBS, job(f"job-{number}")))
    for runner in runners:
        while runner.step():
            pass
    assert len(store.find(POD_GROUPS)) == 10
    assert sum(len(runner.state.entries) for runner in runners) == 10
