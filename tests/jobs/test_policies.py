"""Which policy answers what happened (reference: volcano-job §3.4), and what waits until it is due (§3.5)."""

from __future__ import annotations

import msgspec
import pytest

from jobs.controller import answers, asked, facts
from jobs.controller.asked import Asked
from jobs.controller.pod_events import Happening
from jobs.controller.requests import Request, Target
from kube.kinds.batch import Action, JobEvent
from tests.jobs.builders import defaulted, job, task

NOW = 1_767_225_600_000
UID = "5a1f7f2e-0000-4000-8000-000000000001"
FAILED, EVICTED, PENDING = JobEvent.POD_FAILED, JobEvent.POD_EVICTED, JobEvent.POD_PENDING
COMPLETED, RESTARTED, UNKNOWN = JobEvent.TASK_COMPLETED, JobEvent.TASK_FAILED, JobEvent.UNKNOWN


def policy(action="RestartJob", *events, code=None, timeout=None):
    written = {"action": action}
    if events:
        written |= {"event": events[0], "events": list(events[1:])}
    if code is not None:
        written["exitCode"] = code
    return written | ({"timeout": timeout} if timeout else {})


def read(*policies, of_task=(), phase="Running", replicas=2, task_fields=None, **status):
    """A job with a task `main`, its policies and the task's."""
    fields = {"policies": list(of_task), **(task_fields or {})}
    obj = defaulted(job(task("main", replicas, **fields), policies=list(policies)))
    obj["metadata"] |= {"uid": UID, "creationTimestamp": "2026-01-01T00:00:00Z"}
    obj["status"] = {"state": {"phase": phase}, **status}
    return facts.read_job(msgspec.json.encode(obj))


def pod(index=0, phase="Running", *, code=None, restarts=0, version=0, marked=False, made=None):
    notes = {facts.TASK_SPEC: "main", facts.TASK_INDEX: str(index), facts.JOB_VERSION: str(version)}
    if marked:
        notes[facts.OUT_OF_SYNC] = "true"
    owner = {"kind": "Job", "name": "demo", "uid": UID, "controller": True}
    container = {"name": "main", "restartCount": restarts}
    if code is not None:
        container["state"] = {"terminated": {"exitCode": code}}
    body = {
        "metadata": {
            "name": f"demo-main-{index}",
            "annotations": notes,
            "ownerReferences": [owner],
            "creationTimestamp": made or "2026-01-01T00:00:00Z",
        },
        "status": {"phase": phase, "containerStatuses": [container]},
    }
    return facts.read_pod(msgspec.json.encode(body))[1]


def test_constants_agree():
    assert facts.read_job(read().body).created == NOW


CHOICES = [
    # policies of the task, of the job, what happened, exit code, the action
    pytest.param(
        [],
        [policy("AbortJob", FAILED)],
        FAILED,
        1,
        "AbortJob",
        id="job's",
        marks=pytest.mark.shows("1.1/policies", "3.4/6"),
    ),
    pytest.param(
        [policy("RestartPod", FAILED)],
        [policy("AbortJob", FAILED)],
        FAILED,
        1,
        "RestartPod",
        id="task's go before the job's",
        marks=pytest.mark.shows("1.2/policies", "3.4/5", "3.4/6"),
    ),
    pytest.param(
        [policy("RestartPod", EVICTED)],
        [policy("AbortJob", FAILED)],
        FAILED,
        1,
        "AbortJob",
        id="task's do not switch the job's off",
        marks=pytest.mark.shows("3.4/6"),
    ),
    pytest.param(
        [],
        [policy("AbortJob", EVICTED, FAILED)],
        FAILED,
        1,
        "AbortJob",
        id="one of several",
        marks=pytest.mark.shows("1.3/events", "1.3/event"),
    ),
    pytest.param(
        [],
        [policy("AbortJob", "*")],
        EVICTED,
        None,
        "AbortJob",
        id="* is an eviction",
        marks=pytest.mark.shows("3.1/*", "3.4/5a"),
    ),
    pytest.param(
        [], [policy("AbortJob", "*")], UNKNOWN, None, "AbortJob", id="* is Unknown", marks=pytest.mark.shows("3.1/*")
    ),
    pytest.param(
        [],
        [policy("AbortJob", "*")],
        COMPLETED,
        None,
        "AbortJob",
        id="* is a task's completion",
        marks=pytest.mark.shows("3.1/*"),
    ),
    pytest.param(
        [],
        [policy("AbortJob", "*")],
        RESTARTED,
        None,
        "AbortJob",
        id="* is a task's failure",
        marks=pytest.mark.shows("3.1/*"),
    ),
    pytest.param(
        [],
        [policy("AbortJob", "*")],
        JobEvent.POD_RUNNING,
        None,
        None,
        id="* is nothing internal",
        marks=pytest.mark.shows("3.1/*", "3.4/2", "3.3/pod runs"),
    ),
    pytest.param(
        [],
        [policy("AbortJob", "*")],
        PENDING,
        None,
        None,
        id="* is no Pending at once",
        marks=pytest.mark.shows("3.1/*", "3.4/5a"),
    ),
    pytest.param(
        [], [policy("AbortJob", "*", timeout="1m")], PENDING, None, "AbortJob", id="* is Pending after a while"
    ),
    pytest.param(
        [],
        [policy("AbortJob", PENDING)],
        PENDING,
        None,
        None,
        id="Pending needs a timeout",
        marks=pytest.mark.shows("3.1/PodPending", "3.4/5a"),
    ),
    pytest.param(
        [], [policy("AbortJob", PENDING, timeout="1m")], PENDING, None, "AbortJob", id="Pending after a while"
    ),
    pytest.param(
        [], [policy("RestartJob", code=3)], FAILED, 3, "RestartJob", id="exit code", marks=pytest.mark.shows("3.4/5b")
    ),
    pytest.param(
        [],
        [policy("RestartJob", code=3)],
        FAILED,
        4,
        None,
        id="another exit code",
        marks=pytest.mark.shows("3.4/5b", "3.4/7"),
    ),
    pytest.param(
        [],
        [policy("RestartJob", code=3)],
        EVICTED,
        3,
        None,
        id="exit code of a pod that goes",
        marks=pytest.mark.shows("3.4/5b"),
    ),
    pytest.param(
        [],
        [policy("AbortJob", FAILED), policy("RestartJob", code=3)],
        FAILED,
        3,
        "AbortJob",
        id="first in the list",
        marks=pytest.mark.shows("3.4/5"),
    ),
    pytest.param(
        [],
        [policy("RestartJob", code=3), policy("AbortJob", FAILED)],
        FAILED,
        3,
        "RestartJob",
        id="exit code that is first in the list",
        marks=pytest.mark.shows("3.4/5"),
    ),
    pytest.param(
        [policy("RestartPod", "*")],
        [policy("AbortJob", UNKNOWN)],
        UNKNOWN,
        None,
        "AbortJob",
        id="no task",
        marks=pytest.mark.shows("3.1/Unknown", "3.3/group Unknown"),
    ),
]


@pytest.mark.shows("3.4/5")
@pytest.mark.parametrize(("of_task", "of_job", "event", "code", "action"), CHOICES)
def test_policy_that_answers(of_task, of_job, event, code, action):
    found = read(*of_job, of_task=of_task).policy_for(
        event, "" if event is UNKNOWN else "main", [] if code is None else [code]
    )
    assert (found and found.action) == action


@pytest.mark.parametrize(
    "bad",
    [
        {"action": "Explode", "event": "PodFailed"},
        {"action": "AbortJob", "event": "Earthquake"},
        {"action": "AbortJob", "event": "PodFailed", "timeout": "soon"},
    ],
    ids=["action", "event", "timeout"],
)
def test_stored_policy_that_cannot_be_read_answers_nothing(bad):
    assert read(bad, policy("AbortJob", "PodEvicted")).answered == {EVICTED}


def answer(job_, *happenings, pods=None, known=(), now=NOW):
    found = answers.to_pods(job_, pods or [each.pod for each in happenings], known, happenings, now)
    return [(each.action, each.pod if each.action is Action.RESTART_POD else "") for each in found.asked]


def failed(index=0, code=1, **fields):
    return Happening(FAILED, pod(index, "Failed", code=code, **fields))


ANSWERS = [
    pytest.param(read(policy("RestartJob", FAILED)), [failed()], ["RestartJob"], id="failed"),
    pytest.param(
        read(policy("RestartJob", FAILED)), [failed(0), failed(1)], ["RestartJob"], id="two failed: one restart"
    ),
    pytest.param(
        read(policy("RestartPod", FAILED)),
        [failed(0), failed(1), failed(1)],
        ["RestartPod", "RestartPod"],
        id="two failed: both restarted, once each",
    ),
    pytest.param(
        read(policy("RestartJob", FAILED), version=2),
        [failed(version=1)],
        [],
        id="of a run that was ended",
        marks=pytest.mark.shows("3.4/4"),
    ),
    pytest.param(read(policy("RestartJob", FAILED), version=2), [failed(version=2)], ["RestartJob"], id="of this run"),
    pytest.param(read(policy("RestartJob", FAILED), phase="Aborting"), [failed()], [], id="job that ends"),
    pytest.param(read(policy("RestartJob", FAILED), phase="Completed"), [failed()], [], id="job that is over"),
    pytest.param(
        read(policy("RestartJob", FAILED), phase="Restarting"), [failed()], ["RestartJob"], id="restarts already"
    ),
    pytest.param(
        read(policy("AbortJob", FAILED), policy("RestartJob", EVICTED)),
        [failed(0), Happening(EVICTED, pod(0))],
        ["AbortJob", "RestartJob"],
        id="failed, then evicted: both, in their order",
        marks=pytest.mark.shows("10/Q-18"),
    ),
]


@pytest.mark.parametrize(("job_", "happenings", "actions"), ANSWERS)
def test_what_is_asked_of_the_job(job_, happenings, actions):
    assert [action for action, _ in answer(job_, *happenings)] == actions


TASKS = [
    # the task's pods as they are now, whether the task completed
    pytest.param([pod(0, "Succeeded"), pod(1, "Succeeded")], True, id="all succeeded"),
    pytest.param([pod(0, "Succeeded"), pod(1)], False, id="one runs"),
    pytest.param([pod(0, "Succeeded"), pod(1, "Failed")], False, id="one failed"),
    pytest.param([pod(0, "Succeeded"), pod(1, "Succeeded", marked=True)], False, id="one is being ended"),
    pytest.param([pod(0, "Succeeded")], False, id="one is not there"),
]


@pytest.mark.shows("3.3/pod succeeded")
@pytest.mark.parametrize(("pods", "is_completed"), TASKS)
def test_task_that_completed(pods, is_completed):
    happened = Happening(COMPLETED, pods[0])
    assert bool(answer(read(policy("CompleteJob", COMPLETED)), happened, pods=pods)) is is_completed


@pytest.mark.shows("3.3/pod restarted")
@pytest.mark.parametrize(
    ("retries", "restarts", "is_failed"),
    [
        pytest.param(3, (1, 1), False, id="too few"),
        pytest.param(3, (1, 2), True, id="together enough"),
        pytest.param(0, (1, 2), True, id="0 is 3"),
        pytest.param(1, (1, 0), True, id="one is enough"),
        pytest.param(-1, (99, 99), False, id="never"),
    ],
)
def test_task_that_failed(retries, restarts, is_failed):
    # Admission makes 3 of 0; what was stored otherwise is read the same.
    pods = [pod(index, restarts=number) for index, number in enumerate(restarts)]
    job_ = read(policy("AbortJob", RESTARTED))
    job_.task_retries["main"] = retries
    assert bool(answer(job_, Happening(RESTARTED, pods[0]), pods=pods)) is is_failed


def waiting(action="RestartJob", event=FAILED, name="demo-main-0", delay_s=60, **fields):
    fields = {"uid": UID, "why": "", **fields}
    delay = delay_s * 1000
    return Asked(action=Action(action), event=event, due=NOW + delay, delay_ms=delay, task="main", pod=name, **fields)


LATER = [
    # what waits, what comes, what waits then
    pytest.param([], [waiting()], [("RestartJob", 60)], id="waits", marks=pytest.mark.shows("3.5/place")),
    pytest.param(
        [waiting(delay_s=30)],
        [waiting()],
        [("RestartJob", 30)],
        id="the first of two stays",
        marks=pytest.mark.shows("3.5/place"),
    ),
    pytest.param(
        [waiting()],
        [waiting("AbortJob", delay_s=90)],
        [("AbortJob", 90)],
        id="another takes the pod's place",
        marks=pytest.mark.shows("3.5/another action"),
    ),
    pytest.param(
        [waiting()],
        [waiting(name="demo-main-1", delay_s=90)],
        [("RestartJob", 60), ("RestartJob", 90)],
        id="each pod has a place",
        marks=pytest.mark.shows("3.5/place"),
    ),
    pytest.param([waiting()], [waiting(delay_s=0)], [("RestartJob", 60), ("RestartJob", 0)], id="at once, too"),
]


@pytest.mark.parametrize(("known", "new", "left"), LATER)
def test_what_waits(known, new, left):
    for each in new:
        known = asked.add(known, each)
    assert [(each.action, each.delay_ms // 1000) for each in known] == left


@pytest.mark.shows("3.5/runs again")
@pytest.mark.parametrize(
    ("event", "name", "is_called_off"),
    [
        pytest.param(FAILED, "demo-main-0", True, id="failed"),
        pytest.param(EVICTED, "demo-main-0", True, id="evicted"),
        pytest.param(FAILED, "demo-main-1", False, id="another pod"),
        pytest.param(
            COMPLETED, "demo-main-0", False, id="task completed", marks=pytest.mark.shows("3.5/not called off")
        ),
    ],
)
def test_what_waits_is_called_off_when_the_pod_runs_again(event, name, is_called_off):
    known = (waiting(event=event, name=name),)
    found = answers.to_pods(read(), [], known, [Happening(JobEvent.POD_RUNNING, pod(0))], NOW)
    assert (found.asked == ()) is is_called_off


def request(action, task_="", name="", partition=None):
    return Request(action=Action(action), why="", target=Target(task_, name, partition))


SCOPES = [
    # what was carried out, what waits, whether that is called off
    pytest.param(request("RestartJob"), waiting("AbortJob"), True, id="job: job"),
    pytest.param(request("AbortJob"), waiting("RestartPod"), False, id="job: pod"),
    pytest.param(request("SyncJob"), waiting("AbortJob"), False, id="nothing"),
    pytest.param(request("RestartPod", "main", "demo-main-0"), waiting("RestartPod"), True, id="pod: the same"),
    pytest.param(request("RestartPod", "main", "demo-main-1"), waiting("RestartPod"), False, id="pod: another"),
    pytest.param(request("RestartTask", "main"), waiting("RestartTask"), True, id="task: the same"),
    pytest.param(request("RestartTask", "other"), waiting("RestartTask"), False, id="task: another"),
    pytest.param(request("RestartTask", "main"), waiting("RestartPod"), False, id="task: a pod of it"),
    pytest.param(
        request("RestartPartition", "main", "demo-main-1", 1),
        waiting("RestartPartition", partition=1),
        True,
        id="partition: the same",
    ),
    pytest.param(
        request("RestartPartition", "main", "demo-main-1", 1),
        waiting("RestartPartition", partition=0),
        False,
        id="partition: another",
        marks=pytest.mark.shows("3.5/partition"),
    ),
    pytest.param(
        request("RestartPartition", "other", "demo-other-1", 0),
        waiting("RestartPartition", partition=0),
        False,
        id="partition: of another task",
        marks=pytest.mark.shows("3.5/partition"),
    ),
]


@pytest.mark.shows("3.5/carried out")
@pytest.mark.parametrize(("done", "left", "is_called_off"), SCOPES)
def test_what_waits_for_the_same_part_is_called_off(done, left, is_called_off):
    assert (asked.after([left], [done]) == ()) is is_called_off


@pytest.mark.parametrize(
    ("job_", "is_left"),
    [
        pytest.param(read(), True, id="runs"),
        pytest.param(read(version=1), False, id="all pods were ended since"),
        pytest.param(read(phase="Terminating"), False, id="ends"),
    ],
)
def test_what_concerns_the_job_still(job_, is_left):
    assert (asked.current((waiting(),), job_) != ()) is is_left


@pytest.mark.shows("3.4/3")
def test_what_was_asked_of_an_earlier_job_of_the_name_is_nothing_to_this_one():
    assert asked.current((waiting(uid="another"),), read()) == ()


def test_all_that_is_asked_is_read_back_from_the_timer():
    known = (waiting("RestartPartition", partition=0, why="It failed."), waiting(delay_s=0, version=3))
    (timer,) = asked.timers("default/demo", known, NOW)
    assert asked.read(msgspec.json.decode(msgspec.json.encode(timer), type=type(timer))) == known


OVERDUE = [
    # when the pod was made and what it is, what is asked, when to look again (seconds after NOW)
    pytest.param([pod(phase="Pending")], 60, ["RestartJob"], None, id="for a minute"),
    pytest.param([pod(phase="Pending")], 59, [], 60, id="not yet"),
    pytest.param([pod(phase="Running")], 60, [], None, id="runs"),
    pytest.param([pod(phase="Pending", marked=True)], 60, [], None, id="is being ended"),
    pytest.param([pod(0, "Pending"), pod(1, "Pending")], 60, ["RestartJob"], None, id="two: asked once"),
    pytest.param(
        [pod(0, "Pending"), pod(1, "Pending", made="2026-01-01T00:00:30Z")],
        60,
        ["RestartJob"],
        90,
        id="one, and another later",
    ),
]


@pytest.mark.shows("3.1/PodPending", "3.3/pod added", "3.5/not pending", "10/Q-2")
@pytest.mark.parametrize(("pods", "after_s", "actions", "look_s"), OVERDUE)
def test_pods_that_are_pending_for_too_long(pods, after_s, actions, look_s):
    found = answers.to_pending(read(policy("RestartJob", PENDING, timeout="1m")), pods, NOW + after_s * 1000)
    assert [each.action for each in found.asked] == actions
    assert found.next == (None if look_s is None else NOW + look_s * 1000)


WORDS = [
    pytest.param(
        failed(code=3).event,
        failed(code=3).pod,
        policy("RestartJob", FAILED),
        "PodFailed: demo-main-0 exited with code 3. The policy for it is RestartJob.",
        id="failed",
    ),
    pytest.param(
        EVICTED,
        pod(),
        policy("AbortJob", EVICTED, timeout="90s"),
        "PodEvicted: demo-main-0 was deleted, and not by the job controller. "
        "The policy for it is AbortJob after 1m30s.",
        id="evicted, later",
    ),
    pytest.param(
        COMPLETED,
        pod(phase="Succeeded"),
        policy("CompleteJob", COMPLETED),
        "TaskCompleted: all pods of task main succeeded. The policy for it is CompleteJob.",
        id="completed",
    ),
]


@pytest.mark.shows("3.5/told")
@pytest.mark.parametrize(("event", "of", "by", "words"), WORDS)
def test_people_are_told_why(event, of, by, words):
    found = answers.to_pods(read(by, replicas=1), [of], (), [Happening(event, of)], NOW)
    assert [each.why for each in found.asked] == [words]
