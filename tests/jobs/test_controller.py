"""The job controller against the real store: jobs come to life, end and go."""

from __future__ import annotations

import pytest
from django.db import connection

from cluster import tasks
from cluster.runtime import consumer
from cluster.store import Create, Delete, store
from kube.resources import JOBS, POD_GROUPS, PODS
from tests.builders import pod
from tests.jobs.control import Controller, is_being_deleted, job, messages, phase, pods, remove, report, state, task
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode"), pytest.mark.each_backend]


OUT_OF_MEMORY = {"exitCode": 137, "reason": "OOMKilled", "message": "It used 2 bytes; its limit is 1."}
NO_PROGRAM = {"exitCode": 128, "reason": "StartError", "message": 'exec: "x": no such file or directory'}


@cases("terminated, words", {
    "exit code": ({"exitCode": 3}, "Exit 3 · main-1."),
    "did not start": (NO_PROGRAM, 'Could not start: exec: "x": no such file or directory · main-1.'),
    "memory": (OUT_OF_MEMORY, "Out of memory: It used 2 bytes; its limit is 1 · main-1."),
    "its own message": ({"exitCode": 1, "message": "one\n\ntwo" + "." * 500}, "Exit 1: one two · main-1."),
})  # fmt: skip
def test_failure_names_the_pod_and_why_its_container_ended(controller, terminated, words):
    controller.start()
    controller.become("Succeeded", "demo-main-0", code=0)
    statuses = [{"name": "main", "state": {"terminated": terminated}}]
    controller.become("Failed", "demo-main-1", containerStatuses=statuses)
    assert (phase(), state()["exitCodes"]) == ("Failed", [terminated["exitCode"]])
    assert state()["state"]["message"].startswith(f"{words} ")
    assert [each.name for each in store.find(JOBS, exit_code=terminated["exitCode"])] == ["demo"]


@pytest.mark.shows("3.7/SuccessfulCreate, SuccessfulDelete")
def test_events_tell_the_story_once_for_all_pods(controller):
    controller.start(replicas=30)
    controller.become("Succeeded")
    created, running, completed = messages()
    assert (created, completed) == ("Created 30 pods.", "Completed: All 30 pods succeeded.")
    assert running.startswith("Running: ")


@pytest.mark.embedded  # as many requests would take half a minute
def test_many_pods_are_made_in_rounds(controller):
    controller.submit(job(replicas=2500))
    controller.admit()
    assert (len(pods()), state()["pending"]) == (2500, 2500)
    assert messages() == [f"Created {number} of 2500 pods." for number in (1000, 1000, 500)]


@pytest.mark.shows("2.4/7 surplus", "2.4/9", "2.8/scale", "10/Q-3", "2.2/4",
                   "4.1/annotation volcano.sh/controller-out-of-sync")  # fmt: skip
def test_replicas_that_are_lowered_delete_marked_pods_with_the_highest_index_and_raised_ones_make_more(controller):
    controller.start(replicas=4, minAvailable=1)
    before = store.revision()
    controller.resize(2, minAvailable=1)
    assert (pods(), state()["running"]) == (["demo-main-0", "demo-main-1"], 2)
    gone = [c for c in store.changes(before, [PODS]) if c.verb == "DELETED"]
    marks = [c.object["metadata"]["annotations"]["volcano.sh/controller-out-of-sync"] for c in gone]
    assert marks == ["true", "true"]
    assert store.find(POD_GROUPS)[0].object["spec"]["minTaskMember"] == {"main": 1}
    controller.resize(3)
    assert pods() == ["demo-main-0", "demo-main-1", "demo-main-2"]


@pytest.mark.shows("1.2/dependsOn.name", "2.4/8 dependsOn", "4.2/pod group", "4.2/ready")
def test_a_task_waits_for_the_minimum_of_another(controller):
    first = task("first", 3, minAvailable=2)
    controller.submit(job(tasks=[first, task("then", 1, dependsOn={"name": ["first"]})], minAvailable=2))
    assert store.find(POD_GROUPS)[0].object["spec"]["minTaskMember"] == {"first": 2, "then": 1}
    controller.admit()
    controller.become("Succeeded", "demo-first-0", code=0)
    assert pods() == ["demo-first-0", "demo-first-1", "demo-first-2"]
    controller.become("Succeeded", "demo-first-1", code=0)
    assert pods()[-1] == "demo-then-0"


@cases("counted", {"uncounted": "", "counted": "1 of 2 pods exist; waiting for the others to be created."})
def test_tasks_that_must_start_together_and_wait_for_each_other_are_named_whatever_the_scheduler_counts(
    controller, counted
):
    tasks = [task("first", 1), task("second", 1, dependsOn={"name": ["first"]})]
    controller.submit(job(tasks=tasks, minAvailable=2))
    controller.admit()
    condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughTasks", "message": counted}
    controller.group_is("Inqueue", *[condition] * bool(counted))
    assert pods() == ["demo-first-0"]
    assert state()["state"]["reason"] == "TaskDeadlock"
    assert state()["state"]["message"] == (
        "This can never start: second waits for first, and nothing starts without second, as minAvailable 2 needs them "
        "at the same time; set minAvailable to 1. 0 of 2 pods are running; minAvailable is 2."
    )


def test_tasks_that_wait_for_others_are_named_and_what_to_do_when_their_turn_never_comes(controller):
    waiting = {"name": ["first", "other"], "iteration": "any"}
    tasks = [task("first", 1), task("other", 0), task("second", 1, dependsOn=waiting)]
    controller.submit(job(tasks=[{**each, "minAvailable": 1} for each in tasks], minAvailable=1))
    controller.admit()
    words = "Task second waits for first or other."
    assert state()["state"]["reason"] == "WaitingForTasks"
    assert state()["state"]["message"] == f"0 of 2 pods are running; minAvailable is 1. {words}"
    controller.become("Failed", "demo-first-0", code=1)
    assert state()["state"]["message"] == (
        f"0 of 2 pods are running, 1 failed; minAvailable is 1. {words} "
        "No pod is left that could become ready: restart the job, or terminate it."
    )


@cases(
    "replicas, reason",
    {"no replicas": (0, "NoReplicas"), "minimum 0 | 2.5/Pending, minAvailable 0": (2, "PodsRunning")},
)
def test_job_that_needs_no_pod_runs_before_its_group_is_let_in(controller, replicas, reason):
    controller.submit(job(tasks=[task("main", replicas, minAvailable=0)], minAvailable=0))
    assert [c["status"] for c in state()["conditions"]] == ["Pending", "Running"]
    assert (state()["state"]["reason"], pods()) == (reason, [])


@pytest.mark.shows("2.1/leftover pods")
def test_name_held_by_a_stranger_is_waited_for(controller):
    store.write(Create(PODS, pod("demo-main-0", nodeName="n")))
    controller.submit(job())
    controller.admit()
    assert pods() == ["demo-main-0", "demo-main-1"]
    assert (state()["pending"], state()["state"]["reason"]) == (1, "NamesTaken")
    remove("demo-main-0")
    controller.settle()
    assert (pods(), state()["pending"]) == (["demo-main-0", "demo-main-1"], 2)


def test_new_process_goes_on_where_the_last_one_stopped(controller):
    controller.submit(job())
    controller.admit()
    controller.become("Running", "demo-main-0")
    report("Running", "demo-main-1")
    Controller().settle()
    assert phase() == "Running"


@pytest.mark.shows("1.1/ttlSecondsAfterFinished", "6.2/0")
def test_finished_job_is_deleted_after_its_time(controller):
    controller.start(replicas=1, ttlSecondsAfterFinished=0)
    controller.become("Succeeded")
    assert store.get(JOBS, "default", "demo").object["metadata"]["finalizers"] == ["foregroundDeletion"]


@pytest.mark.shows("6.2/since", "6.2/how")
def test_later_job_of_a_name_has_its_own_time(controller, moved_clock):
    controller.start(replicas=1, ttlSecondsAfterFinished=100)
    controller.become("Succeeded")
    store.write(Delete(PODS, "default", "demo-main-0", grace=0), Delete(JOBS, "default", "demo"))
    controller.settle()
    moved_clock.move(60)
    controller.start(replicas=1, ttlSecondsAfterFinished=100)
    controller.become("Succeeded")
    for seconds, is_over in ((50, False), (51, True)):
        moved_clock.move(seconds)
        controller.settle()
        assert is_being_deleted() is is_over


def test_what_is_left_of_a_finished_job_outlives_the_controller(controller, moved_clock):
    controller.submit(job(replicas=1, ttlSecondsAfterFinished=30))
    controller.admit()
    report("Succeeded")
    while phase() != "Completed":
        controller.step()
    successor = Controller()
    successor.settle()
    moved_clock.move(61)
    successor.settle()
    assert is_being_deleted()


@cases("change", {
    "unreadable": lambda bad: bad | {"spec": {"tasks": "no"}},
    "unreadable quantity": lambda bad: bad["spec"]["tasks"][0]["template"]["spec"]["containers"][0].update(
        resources={"requests": {"cpu": "x"}}),
})  # fmt: skip
def test_job_that_cannot_be_planned_does_not_stop_the_others(controller, change):
    bad = job("bad")
    store.write(Create(JOBS, change(bad) or bad))
    controller.submit(job())
    assert phase() == "Pending"
    Controller().settle()


@pytest.mark.shows("3.6/tried again", "2.4/8 errors", "2.2/6")
def test_a_full_disk_puts_the_controller_off_and_loses_nothing(
    request, controller, caplog, monkeypatch, redis_url, settings
):
    store.write(*(Create(JOBS, job(f"job-{number}")) for number in range(30)))
    request.getfixturevalue("full_disk")
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
