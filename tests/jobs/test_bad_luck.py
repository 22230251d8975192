"""Each piece of bad luck that a job may have, on its own; several at once are those of `test_lifecycle_machine`."""

import itertools
from contextlib import suppress

import pytest
from django.db import connection

from cluster.store import Create, Delete, Patch, sql, store
from jobs.controller import facts
from jobs.controller.expectations import PendingWrites
from kube.resources import JOBS, PODS
from tests.builders import pod
from tests.jobs.control import Controller, messages, report, task, uids
from tests.jobs.made import Doom, Killed
from tests.jobs.story import Story
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)
THREE, ALL = {"replicas": 3}, "main-0 main-1 main-2"
FIVE = {"replicas": 5, "minAvailable": 1}
IN_THREE = (
    "2 pods failed: demo-main-0 exited with code 1, demo-main-1 exited with code 1. "
    "2 pods failed: demo-main-2 exited with code 1, demo-main-3 exited with code 1. 1 pod failed: demo-main-4 exited with code 1."
)
MAIN_1 = "1 pod failed: demo-main-1 exited with code 1."


def on(event, action="RestartJob", **fields):
    return {"policies": [{"event": event, "action": action, **fields}]}


FAILED = on("PodFailed")


@cases("spec, story", {
    # ---- policies that fight
    "restarted for whatever happens it fails with its retries and tells its story": (
        {"replicas": 1, "maxRetry": 2, **on("*")}, """
        rest → phase Running; reasons PodsRunning
        fail main-0 7 → reasons PodFailed ExecuteAction SuccessfulDelete RestartRequested Restarted; executed 1
        rest → phase Running; reasons PodsRunning
        fail main-0 7, rest → phase Failed; reason RetriesUsedUp; conditions Pending Running Restarting Failed
        → says Exit 7 · main-0. The job was restarted once; instead of restart 2 it failed, as maxRetry is 2."""),
    # The second finds the job restarting, which heeds no action (reference: volcano-job §10, Q-13).
    "of policies that ask for opposites at once the first decides": (
        {"tasks": [task("a", **on("PodFailed", "RestartTask")), task("b")], **on("PodFailed", "AbortJob")}, """
        rest, fail, rest → phase Running; retries 1; executed 2"""),
    # ---- what in other phases comes of it: test_lifecycle_machine
    **{
        f"pods that somebody deletes are made again: {how}": (THREE, f"""
        run, bind, succeed main-0 → phase Running
        {how}, rest → phase Running; executed 0; pods {ALL}; anew {ALL}""")
        for how in ("evict", "delete")
    },
    "unless a policy answers it": (THREE | on("PodEvicted", "AbortJob"), """
        run, bind, succeed main-0, evict, rest → phase Aborted; executed 1; pods"""),
    "nodes are lost": (THREE | FAILED, "run, bind, succeed main-0, lose, rest → phase Running; retries 1; running 3"),
    # ---- while every controller is down
    **{
        f"what happens while every controller is down is answered once: {event}": (on(event, **fields), f"""
        {happens}, !wait 300, next, rest, next, rest → phase Running; retries 1; executed 1""")
        for event, happens, fields in (
            ("PodFailed", "run, bind, !fail main-0", {}), ("PodEvicted", "run, bind, !evict main-0", {}),
            ("Unknown", "run, bind, !group Unknown", {}), ("TaskCompleted", "run, bind, !succeed", {}),
            ("TaskFailed", "run, bind, !restarts main-0 3", {}), ("PodPending", "admit", {"timeout": "1m"}),
        )
    },
    "a pod fails and is deleted, the job is scaled, suspended and resumed, and nobody sees any of it": (
        THREE | on("PodFailed"), """
        run, bind, !fail main-0, !evict main-0, !scale 2 2, !command AbortJob ResumeJob, !group Unknown, next, rest → running 2
        → phase Running; pods main-0 main-1; executed 0"""),
    "a group that loses its place while its job is deleted leads to nothing": (
        on("Unknown", timeout="1m"), "run, bind, remove, group Unknown → executed 0"),
    "a delayed action does not reach a later job of the name | 3.5/job deleted + 10/Q-11": (on("PodFailed", timeout="1m"), """
        run, bind, fail main-1, again, run, bind, wait 61 → phase Running; retries 0"""),
    # ---- what happens to pods is told and answered by policies once, whoever dies when (volcano-job §3)
    "all that was missed is told before the job is taken for over": (FIVE | FAILED, """
        run, bind
        batch 2, !succeed main-0 main-1 main-2 main-3, !fail main-4, next → passed Restarting Pending"""),
    **{
        f"an answer whose writes fail is given later: {words} | 3.6/tried again": (FAILED, f"""
        run, bind, !fail main-0, meanwhile evict main-1, step → phase Running
        {goes_on} → passed Restarting Pending; retries 1""")
        for words, goes_on in (("the controller dies", "next"), ("it goes on", "settle"))
    },
    "an answer that was given is not given by the next controller": (on("PodFailed", "RestartPod"), """
        run, bind, !fail main-1, step, next, sweep, run, bind, wait 120, next → phase Running; retries 1"""),
    "an answer waits for the job's last writes": (FAILED, """
        run, bind, owe, fail main-1 → phase Running
        next → phase Restarting; retries 1"""),
    "a Command and a policy at once are both heeded": (FAILED, """
        run, bind, !command AbortJob, fail main-1, sweep → phase Aborted; commands 0"""),
    # ---- what is told of pods
    **{
        f"a failure while no controller runs is told once: {steps}": (FIVE, f"""
        run
        !fail main-1, !evict main-1, {steps} → reasons PodFailed PodEvicted SuccessfulCreate; tells {MAIN_1}""")
        for steps in ("next", "next, next")
    },
    "a failure is told once when the commit of its plan fails": (FIVE, f"""
        run, !fail main-1, crash → reported
        next, settle → reported {MAIN_1}"""),
    "failures that end the job are all told though they were missed in several batches": (FIVE, f"""
        run, batch 2, !fail, next → phase Failed; reported {IN_THREE}"""),
    "a failure is told while the job waits for its writes": (FIVE, f"run, owe, !fail main-1, step → reported {MAIN_1}"),
})  # fmt: skip
def test_story(tell, spec, story):
    tell(spec, story)


@cases("happens, action, anew, version", {
    "by a policy": ("fail main-0", "RestartJob", 2, 1),
    "by a Command": ("command RestartJob", "RestartJob", 2, 1),
    "of a pod": ("fail main-0", "RestartPod", 1, 0),
})  # fmt: skip
def test_restart_is_whole_whenever_the_controller_dies(controller, monkeypatch, happens, action, anew, version):
    policies = {} if "command" in happens else on("PodFailed", action)
    story = Story(controller, monkeypatch, **policies)
    for at in itertools.count():
        story.goes("run, bind → phase Running")
        before, words = uids(), messages("ExecuteAction", "CommandIssued")
        story.does(f"!{happens}")
        doom = Doom(at)
        with suppress(Killed), connection.execute_wrapper(doom):
            story.controller.settle()
        story.controller = Controller()
        story.goes(f"rest → phase Running; retries 1; version {version}")
        assert len([name for name, uid in uids().items() if before[name] != uid]) == anew
        assert [action in each for each in messages("ExecuteAction", "CommandIssued")[len(words) :]] == [True]
        story.does("again")
        if doom.left >= 0:
            break
    assert at > 20, "it died somewhere"


def steps(controller, moved_clock):
    """Say in how many of twenty steps, a moment apart, there was something to do."""
    done = 0
    for _ in range(20):
        moved_clock.move(0.01)
        done += controller.step()
    return done


def fails(controller):
    controller.start(bound=True, **on("PodFailed", timeout="10m"))
    controller.become("Failed", "demo-main-0", code=1)


def test_what_was_asked_of_a_job_that_went_meanwhile_keeps_nobody_busy(controller, moved_clock):
    fails(controller)
    store.write(Delete(JOBS, "default", "demo"))
    following = Controller()
    following.step()
    moved_clock.move(601)
    assert steps(following, moved_clock) < 20
    assert sql.rows("default", "SELECT key FROM cluster_timer WHERE kind = 'asked'") == []


def test_what_is_due_is_asked_for_once_while_its_job_waits_for_its_writes(controller, moved_clock, monkeypatch):
    fails(controller)
    moved_clock.move(599)
    controller.settle()
    monkeypatch.setattr(PendingWrites, "is_seen", lambda self, position: False)
    store.write(Patch(JOBS, "default", "demo", {"spec": {"minAvailable": 1}}))
    controller.settle()
    moved_clock.move(2)
    assert steps(controller, moved_clock) < 20


@pytest.mark.shows("3.3/pods of others")
def test_job_that_cannot_be_read_or_a_pod_of_no_job_keeps_no_failure_of_another_from_being_told(controller):
    controller.start(**FIVE)
    store.write(Create(JOBS, {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"tasks": "no"}}))
    store.write(Create(PODS, pod("bad-0", annotations={facts.JOB_NAME: "bad"})), Create(PODS, pod("lonely")))
    report("Failed", "bad-0", "lonely", "demo-main-1", code=1)
    controller.settle()
    assert messages("PodFailed", "PodEvicted") == [MAIN_1]
