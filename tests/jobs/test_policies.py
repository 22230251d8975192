"""What happens to pods (volcano-job §3.3), which policy answers it (§3.4), and what waits for its time (§3.5)."""

from __future__ import annotations

import msgspec
import pytest

from jobs.controller import answers, asked, facts, pod_events
from jobs.controller.asked import Asked
from jobs.controller.pod_events import Happening
from jobs.controller.requests import Request, Target
from kube.kinds.batch import Action, JobEvent
from tests.jobs.builders import NOW, UID, job, job_fact, pod_fact, task, terminated
from tests.tables import cases

FAILED, EVICTED, PENDING = JobEvent.POD_FAILED, JobEvent.POD_EVICTED, JobEvent.POD_PENDING
COMPLETED, RESTARTED, UNKNOWN = JobEvent.TASK_COMPLETED, JobEvent.TASK_FAILED, JobEvent.UNKNOWN


def policy(action="RestartJob", *events, code=None, timeout=None):
    written = {"event": events[0], "events": [*events[1:]]} if events else {}
    optional = {"exitCode": code, "timeout": timeout}
    return {"action": action, **written} | {key: value for key, value in optional.items() if value is not None}


def read(*policies, of_task=(), phase="Running", replicas=2, **status):
    """A job with a task `main`, its policies and the task's."""
    return job_fact(job(task("main", replicas, policies=[*of_task]), policies=[*policies]), phase=phase, **status)


def pod(index=0, phase="Running", *, code=None, restarts=0, made="2026-01-01T00:00:00Z", **fields):
    state = {} if code is None else {"terminated": {"exitCode": code}}
    statuses = [{"name": "main", "restartCount": restarts, "state": state}]
    return pod_fact("main", index, phase, metadata={"creationTimestamp": made}, containerStatuses=statuses, **fields)


ANY, ON_3 = policy("AbortJob", "*"), policy("RestartJob", code=3)
LOST, RESTARTS_ANY = policy("AbortJob", UNKNOWN), policy("RestartPod", "*")
ABORTS, RESTARTS = policy("AbortJob", FAILED), policy("RestartPod", FAILED)


@pytest.mark.shows("3.4/5")
@cases("of_job, of_task, event, code, action", {
    "job's | 1.1/policies + 3.4/6": ([ABORTS], [], FAILED, 1, "AbortJob"),
    "task's before the job's | 1.2/policies + 3.4/5 + 3.4/6": ([ABORTS], [RESTARTS], FAILED, 1, "RestartPod"),
    "task's does not switch the job's off | 3.4/6": ([ABORTS], [policy("RestartPod", EVICTED)], FAILED, 1, "AbortJob"),
    "one of several | 1.3/events + 1.3/event": ([policy("AbortJob", EVICTED, FAILED)], [], FAILED, 1, "AbortJob"),
    "* is an eviction | 3.1/* + 3.4/5a": ([ANY], [], EVICTED, None, "AbortJob"),
    "* is Unknown | 3.1/*": ([ANY], [], UNKNOWN, None, "AbortJob"),
    "* is a task's completion | 3.1/*": ([ANY], [], COMPLETED, None, "AbortJob"),
    "* is a task's failure | 3.1/*": ([ANY], [], RESTARTED, None, "AbortJob"),
    "* is nothing internal | 3.1/* + 3.4/2 + 3.3/pod runs": ([ANY], [], JobEvent.POD_RUNNING, None, None),
    "* is no Pending at once | 3.1/* + 3.4/5a": ([ANY], [], PENDING, None, None),
    "* is Pending after a while": ([policy("AbortJob", "*", timeout="1m")], [], PENDING, None, "AbortJob"),
    "Pending needs a timeout | 3.1/PodPending + 3.4/5a": ([policy("AbortJob", PENDING)], [], PENDING, None, None),
    "Pending after a while": ([policy("AbortJob", PENDING, timeout="1m")], [], PENDING, None, "AbortJob"),
    "exit code | 3.4/5b": ([ON_3], [], FAILED, 3, "RestartJob"),
    "another exit code | 3.4/5b + 3.4/7": ([ON_3], [], FAILED, 4, None),
    "exit code of a pod that goes | 3.4/5b": ([ON_3], [], EVICTED, 3, None),
    "first in the list | 3.4/5": ([ABORTS, ON_3], [], FAILED, 3, "AbortJob"),
    "exit code that is first in the list | 3.4/5": ([ON_3, ABORTS], [], FAILED, 3, "RestartJob"),
    "no task | 3.1/Unknown + 3.3/group Unknown": ([LOST], [RESTARTS_ANY], UNKNOWN, None, "AbortJob"),
    "unknown action": ([policy("Explode", FAILED)], [], FAILED, 1, None),
    "unknown event": ([policy("AbortJob", "Earthquake")], [], FAILED, 1, None),
    "unreadable timeout": ([policy("AbortJob", FAILED, timeout="soon")], [], FAILED, 1, None),
})  # fmt: skip
def test_policy_that_answers(of_job, of_task, event, code, action):
    task_name = "" if event is UNKNOWN else "main"
    found = read(*of_job, of_task=of_task).policy_for(event, task_name, [] if code is None else [code])
    assert (found and found.action) == action


def answer(job_, *happenings, pods=None, known=()):
    return answers.to_pods(job_, pods or [each.pod for each in happenings], known, happenings, NOW).asked


def failed(index=0, code=1, **fields):
    return Happening(FAILED, pod(index, "Failed", code=code, **fields))


GONE = Happening(EVICTED, pod())
ON_FAILED, BOTH = policy("RestartJob", FAILED), [policy("AbortJob", FAILED), policy("RestartJob", EVICTED)]


@cases("job_, happenings, actions", {
    "failed": (read(ON_FAILED), [failed()], ["RestartJob"]),
    "two failed: one restart": (read(ON_FAILED), [failed(0), failed(1)], ["RestartJob"]),
    "two failed: both, once each": (read(RESTARTS), [failed(0), failed(1), failed(1)], ["RestartPod", "RestartPod"]),
    "of a run that was ended | 3.4/4": (read(ON_FAILED, version=2), [failed(version=1)], []),
    "of this run": (read(ON_FAILED, version=2), [failed(version=2)], ["RestartJob"]),
    "job that ends": (read(ON_FAILED, phase="Aborting"), [failed()], []),
    "job that is over": (read(ON_FAILED, phase="Completed"), [failed()], []),
    "restarts already": (read(ON_FAILED, phase="Restarting"), [failed()], ["RestartJob"]),
    "failed, then evicted: both | 10/Q-18": (read(*BOTH), [failed(), GONE], ["AbortJob", "RestartJob"]),
})  # fmt: skip
def test_what_is_asked_of_the_job(job_, happenings, actions):
    assert [each.action for each in answer(job_, *happenings)] == actions


@pytest.mark.shows("3.3/pod succeeded")
@cases("pods, is_completed", {
    "all succeeded": ([pod(0, "Succeeded"), pod(1, "Succeeded")], True),
    "one runs": ([pod(0, "Succeeded"), pod(1)], False),
    "one failed": ([pod(0, "Succeeded"), pod(1, "Failed")], False),
    "one is being ended": ([pod(0, "Succeeded"), pod(1, "Succeeded", marked=True)], False),
    "one is not there": ([pod(0, "Succeeded")], False),
})  # fmt: skip
def test_task_that_completed(pods, is_completed):
    happened = Happening(COMPLETED, pods[0])
    assert bool(answer(read(policy("CompleteJob", COMPLETED)), happened, pods=pods)) is is_completed


@pytest.mark.shows("3.3/pod restarted")
@cases("retries, restarts, is_failed", {
    "too few": (3, (1, 1), False),
    "together enough": (3, (1, 2), True),
    "0 is 3, which admission writes": (0, (1, 2), True),
    "one is enough": (1, (1, 0), True),
    "never": (-1, (99, 99), False),
})  # fmt: skip
def test_task_that_failed(retries, restarts, is_failed):
    pods = [pod(index, restarts=number) for index, number in enumerate(restarts)]
    job_ = read(policy("AbortJob", RESTARTED))
    job_.task_retries["main"] = retries
    assert bool(answer(job_, Happening(RESTARTED, pods[0]), pods=pods)) is is_failed


def waiting(action="RestartJob", event=FAILED, name="demo-main-0", delay_s=60, **fields):
    fields, delay = {"uid": UID, "why": "", **fields}, delay_s * 1000
    return Asked(action=Action(action), event=event, due=NOW + delay, delay_ms=delay, task="main", pod=name, **fields)


@cases("known, new, left", {
    "waits | 3.5/place": ([], waiting(), [("RestartJob", 60)]),
    "the first of two stays | 3.5/place": ([waiting(delay_s=30)], waiting(), [("RestartJob", 30)]),
    "another takes its place | 3.5/another action": ([waiting()], waiting("AbortJob", delay_s=90), [("AbortJob", 90)]),
    "each pod has a place | 3.5/place": (
        [waiting()], waiting(name="demo-main-1", delay_s=90), [("RestartJob", 60), ("RestartJob", 90)]),
    "at once, too": ([waiting()], waiting(delay_s=0), [("RestartJob", 60), ("RestartJob", 0)]),
})  # fmt: skip
def test_what_waits(known, new, left):
    assert [(each.action, each.delay_ms // 1000) for each in asked.add(known, new)] == left


@pytest.mark.shows("3.5/runs again")
@cases("event, name, is_called_off", {
    "failed": (FAILED, "demo-main-0", True),
    "evicted": (EVICTED, "demo-main-0", True),
    "another pod": (FAILED, "demo-main-1", False),
    "task completed | 3.5/not called off": (COMPLETED, "demo-main-0", False),
})  # fmt: skip
def test_what_waits_is_called_off_when_the_pod_runs_again(event, name, is_called_off):
    found = answer(read(), Happening(JobEvent.POD_RUNNING, pod(0)), known=(waiting(event=event, name=name),))
    assert (found == ()) is is_called_off


SECOND, OTHERS = Target("main", "demo-main-1", 1), Target("other", "demo-other-1", 0)


@pytest.mark.shows("3.5/carried out")
@cases("action, target, left, is_called_off", {
    "job: job": ("RestartJob", Target(), waiting("AbortJob"), True),
    "job: pod": ("AbortJob", Target(), waiting("RestartPod"), False),
    "nothing": ("SyncJob", Target(), waiting("AbortJob"), False),
    "pod: the same": ("RestartPod", Target("main", "demo-main-0"), waiting("RestartPod"), True),
    "pod: another": ("RestartPod", SECOND, waiting("RestartPod"), False),
    "task: the same": ("RestartTask", Target("main"), waiting("RestartTask"), True),
    "task: another": ("RestartTask", Target("other"), waiting("RestartTask"), False),
    "task: a pod of it": ("RestartTask", Target("main"), waiting("RestartPod"), False),
    "partition: the same": ("RestartPartition", SECOND, waiting("RestartPartition", partition=1), True),
    "partition: another | 3.5/partition": ("RestartPartition", SECOND, waiting("RestartPartition", partition=0), False),
    "of another task | 3.5/partition": ("RestartPartition", OTHERS, waiting("RestartPartition", partition=0), False),
})  # fmt: skip
def test_what_waits_for_the_same_part_is_called_off(action, target, left, is_called_off):
    done = Request(action=Action(action), why="", target=target)
    assert (asked.after([left], [done]) == ()) is is_called_off


@cases("job_, of, is_left", {
    "runs": (read(), waiting(), True),
    "all pods were ended since": (read(version=1), waiting(), False),
    "ends": (read(phase="Terminating"), waiting(), False),
    "an earlier job of the name | 3.4/3": (read(), waiting(uid="another"), False),
})  # fmt: skip
def test_what_concerns_the_job_still(job_, of, is_left):
    assert (asked.current((of,), job_) != ()) is is_left


def test_all_that_is_asked_is_read_back_from_the_timer():
    known = (waiting("RestartPartition", partition=0, why="It failed."), waiting(delay_s=0, version=3))
    (timer,) = asked.timers("default/demo", known, NOW)
    assert asked.read(msgspec.json.decode(msgspec.json.encode(timer), type=type(timer))) == known


@pytest.mark.shows("3.1/PodPending", "3.3/pod added", "3.5/not pending", "10/Q-2")
@cases("pods, after_s, actions, look_s", {
    "for a minute": ([pod(phase="Pending")], 60, ["RestartJob"], None),
    "not yet": ([pod(phase="Pending")], 59, [], 60),
    "runs": ([pod(phase="Running")], 60, [], None),
    "is being ended": ([pod(phase="Pending", marked=True)], 60, [], None),
    "two: asked once": ([pod(0, "Pending"), pod(1, "Pending")], 60, ["RestartJob"], None),
    "another later": ([pod(0, "Pending"), pod(1, "Pending", made="2026-01-01T00:00:30Z")], 60, ["RestartJob"], 90),
})  # fmt: skip
def test_pods_that_are_pending_for_too_long(pods, after_s, actions, look_s):
    found = answers.to_pending(read(policy("RestartJob", PENDING, timeout="1m")), pods, NOW + after_s * 1000)
    assert [each.action for each in found.asked] == actions
    words = "PodPending: demo-main-0 was Pending for 1m0s. The policy for it is RestartJob."
    assert all(each.why == words for each in found.asked)
    assert found.next == (None if look_s is None else NOW + look_s * 1000)


@pytest.mark.shows("3.5/told")
@cases("happened, by, words", {
    "failed": (failed(code=3), ON_FAILED,
        "PodFailed: demo-main-0 exited with code 3. The policy for it is RestartJob."),
    "evicted, later": (GONE, policy("AbortJob", EVICTED, timeout="90s"),
        "PodEvicted: demo-main-0 was deleted, and not by the job controller. "
        "The policy for it is AbortJob after 1m30s."),
    "completed": (Happening(COMPLETED, pod(phase="Succeeded")), policy("CompleteJob", COMPLETED),
        "TaskCompleted: all pods of task main succeeded. The policy for it is CompleteJob."),
})  # fmt: skip
def test_people_are_told_why(happened, by, words):
    assert [each.why for each in answer(read(by, replicas=1), happened)] == [words]


# ---- what happened


def started_again(number, phase="Running", field="containerStatuses"):
    return pod_fact(phase=phase, **{field: [{"name": "main", "restartCount": number}]})


RUNS, PENDS, FAILS, ENDS = (pod_fact(phase=phase) for phase in ("Running", "Pending", "Failed", "Succeeded"))
IN_INIT = started_again(2, "Pending", "initContainerStatuses")


@pytest.mark.shows("3.1/PodFailed", "3.1/PodEvicted", "3.3/pod failed", "3.3/pod deleted", "3.3/pod marked")
@cases("before, after, is_gone, expected", {
    "failed": (RUNS, FAILS, False, JobEvent.POD_FAILED),
    "failed before it ran": (PENDS, FAILS, False, JobEvent.POD_FAILED),
    "had failed already": (FAILS, FAILS, False, None),
    "made as failed": (None, FAILS, False, None),
    "ended by the controller": (RUNS, pod_fact(phase="Failed", marked=True), False, None),
    "succeeded": (RUNS, ENDS, False, JobEvent.TASK_COMPLETED),
    "had succeeded already": (ENDS, ENDS, False, None),
    "began to run": (PENDS, RUNS, False, JobEvent.POD_RUNNING),
    "container started again": (RUNS, started_again(1), False, JobEvent.TASK_FAILED),
    "container was started again before": (started_again(1), started_again(1), False, None),
    "init container started again": (PENDS, IN_INIT, False, JobEvent.TASK_FAILED),
    "failed at its last start": (RUNS, started_again(1, "Failed"), False, JobEvent.POD_FAILED),
    "its node does not answer": (RUNS, pod_fact(phase="Unknown"), False, None),
    "deleted": (None, RUNS, True, JobEvent.POD_EVICTED),
    "deleted before it ran": (None, PENDS, True, JobEvent.POD_EVICTED),
    "deleted after its end": (None, ENDS, True, JobEvent.POD_EVICTED),
    "deleted by the controller": (None, pod_fact(marked=True), True, None),
})  # fmt: skip
def test_what_happened_between_two_versions(before, after, is_gone, expected):
    assert pod_events.happened(before, after, is_gone=is_gone) is expected


EXITED = "demo-main-0 exited with code 3"


@cases("event, number, expected", {
    "one failed": ("PodFailed", 1, f"1 pod failed: {EXITED}."),
    "some failed": ("PodFailed", 5, f"5 pods failed: {EXITED}, {EXITED}, {EXITED} and 2 more."),
    "one deleted": ("PodEvicted", 1, "1 pod was deleted, and not by the job controller: demo-main-0."),
    "two deleted": ("PodEvicted", 2, "2 pods were deleted, and not by the job controller: demo-main-0, demo-main-0."),
})  # fmt: skip
def test_what_is_told(event, number, expected):
    failed = pod_fact(phase="Failed", containerStatuses=terminated(3))
    assert pod_events.told(JobEvent(event), [failed] * number) == expected


def test_changes_of_living_pods_are_decoded_only_where_a_policy_answers_them():
    body = msgspec.json.encode({"metadata": {}, "status": {"phase": "Running"}})
    for sought, expected in ((pod_events.TOLD, False), ((JobEvent.TASK_FAILED,), True)):
        marks = pod_events.marks(sought)
        assert pod_events.is_worth_a_look(body, marks, is_gone=False) is expected
    marked = msgspec.json.encode({"metadata": {"annotations": {facts.OUT_OF_SYNC: "true"}}})
    assert not pod_events.is_worth_a_look(marked, marks, is_gone=True)
