"""What a job is asked to do, in one round, judged by what is written (reference: volcano-job §2.3, §2.6, §3.4)."""

from __future__ import annotations

import pytest

from cluster.writes import Create, Delete, Patch, Update
from jobs.controller import plan
from jobs.controller.plan import Known, World
from jobs.controller.requests import Request, Target
from kube.kinds.batch import Action
from kube.priorities import PriorityClasses
from kube.resources import EVENTS, POD_GROUPS, PODS
from tests.jobs.builders import NOW, group_fact, job, job_fact, pod_fact, task
from tests.tables import cases

WORLD = World(PriorityClasses(), {})
PARTS = {"totalPartitions": 2, "partitionSize": 2}


def known(fact, pods):
    return Known(fact, {each.name: each for each in pods}, group_fact())


def reconcile(before, *requests, **fields):
    return plan.reconcile(before, WORLD, NOW, requests=[*requests], **fields)


def asked(action, why="A pod failed.", **target):
    return Request(action=Action(action), target=Target(**target), why=why)


def ended(writes):
    return [each.name.removeprefix("demo-") for each in writes if isinstance(each, Delete) and each.resource == PODS]


def status(writes):
    return next((each.object["status"] for each in writes if isinstance(each, Update)), None)


# ---- each action in each phase: the table of volcano-job §2.6, cell by cell

# A job of five pods that needs three; main has partitions of two. It was restarted once, and twice all pods were ended.
RETRIES, VERSION = 1, 2
PHASES = {"main-0": "Running", "main-1": "Succeeded", "main-2": "Failed", "main-3": "Pending", "other-0": "Running"}
FIVE = [pod_fact(*name.split("-"), phase, version=VERSION) for name, phase in PHASES.items()]
ALL = set(PHASES)
ALIVE = {"main-0", "main-3", "other-0"}
OF_TASK = {"main-0", "main-1", "main-2", "main-3"}
OF_PARTITION = {"main-0", "main-1"}
OF_POD = {"main-1"}

# action → the pods that end, whether the pod group does and all pods count as ended, the phase, further retries
IN_LINE = ("SyncJob", "EnqueueJob", "ResumeJob")
BEFORE_THE_END = {
    "RestartJob": (ALL, True, "Restarting", 1),
    "RestartTask": (OF_TASK, False, "Restarting", 1),
    "RestartPod": (OF_POD, False, "Restarting", 1),
    "RestartPartition": (OF_PARTITION, False, "Restarting", 1),
    "AbortJob": (ALIVE, True, "Aborting", 0),
    "TerminateJob": (ALIVE, True, "Terminating", 0),
    "CompleteJob": (ALIVE, True, "Completing", 0),
}
WHOLE = ("RestartJob", "AbortJob", "TerminateJob", "CompleteJob", "ResumeJob")


def every(*outcome):
    return dict.fromkeys((*BEFORE_THE_END, *IN_LINE), outcome)


def in_line(*outcome):
    return dict.fromkeys(IN_LINE, outcome)


RESUMED = {"ResumeJob": (ALL, True, "Restarting", 0)}  # put right
CELLS = {
    "Pending": BEFORE_THE_END | in_line(set(), False, "Running", 0),
    "Running": BEFORE_THE_END | in_line(set(), False, "Running", 0),
    "Restarting": {
        **in_line(set(), False, "Pending", 0),
        **dict.fromkeys(WHOLE, (ALL, True, "Restarting", 0)),
        # Of five pods one or two end: the three that the job needs may start. Four: they may not.
        "RestartPod": (OF_POD, False, "Pending", 0),
        "RestartPartition": (OF_PARTITION, False, "Pending", 0),
        "RestartTask": (OF_TASK, False, "Restarting", 0),
    },
    "Aborting": every(ALIVE, True, "Aborting", 0) | RESUMED,
    "Aborted": every(ALIVE, True, "Aborted", 0) | RESUMED,
    **{end: every(ALIVE, True, end, 0) for end in ("Completing", "Completed", "Terminating", "Terminated", "Failed")},
}


def items(phase, action):
    """The items of the reference that a cell is."""
    is_deaf = phase in ("Restarting", "Completing", "Terminating") and action in WHOLE
    return f"2.6/{phase}×{action}" + " + 10/Q-13" * is_deaf


@cases("phase, action, expected", {
    f"{phase}: {action} | {items(phase, action)}": (phase, action, expected)
    for phase, row in CELLS.items()
    for action, expected in row.items()
})  # fmt: skip
def test_action_in_a_phase(phase, action, expected):
    written = job(task("main", 4, partitionPolicy=PARTS), task("other"), minAvailable=3)
    before = known(job_fact(written, phase=phase, retryCount=RETRIES, version=VERSION), FIVE)
    before.in_step = True
    writes = reconcile(before, asked(action, task="main", pod="demo-main-1", partition=0)).writes
    if before.job.is_finished:
        # What is asked of a job that is over is taken, and does nothing; the next round does what any would.
        writes += reconcile(before).writes
    after = status(writes) or before.job.status
    is_whole = any(isinstance(each, Delete) and each.resource == POD_GROUPS for each in writes)
    assert ({*ended(writes)}, is_whole, after["state"]["phase"], after["retryCount"] - RETRIES) == expected
    assert after["version"] - VERSION == is_whole


def test_every_cell_is_there():
    actions = {str(action) for action in Action} - {"SyncQueue", "OpenQueue", "CloseQueue"}
    assert len(CELLS) == 10
    assert all(set(row) == actions for row in CELLS.values())


# ---- parts of a job, and several requests at once


def running(*pods, phase="Running", **fields):
    """A job of two tasks, the second in partitions of two, with these pods or all of them running."""
    written = job(task("driver", 2), task("worker", 4, partitionPolicy=PARTS))
    every_pod = [pod_fact(name, index) for name, number in (("driver", 2), ("worker", 4)) for index in range(number)]
    return known(job_fact(written, phase=phase, **fields), pods or every_pod)


def told(writes):
    made = [each.object for each in writes if isinstance(each, Create) and each.resource == EVENTS]
    return [event["message"] for event in made if event["reason"] == "ExecuteAction"]


DRIVER, WORKER_0 = asked("RestartTask", task="driver"), asked("RestartPod", pod="demo-worker-0")
THIRD = {"task": "worker", "pod": "demo-worker-2"}


@pytest.mark.shows("2.3/pods", "2.3/pod group")
@cases("request_, expected", {
    "task": (DRIVER, ["driver-0", "driver-1"]),
    "pod": (asked("RestartPod", **THIRD), ["worker-2"]),
    "partition": (asked("RestartPartition", **THIRD, partition=1), ["worker-2", "worker-3"]),
})  # fmt: skip
def test_restart_of_a_part_ends_its_pods_and_keeps_the_group_and_the_others(request_, expected):
    outcome = reconcile(running(), request_)
    marked = [each.name.removeprefix("demo-") for each in outcome.writes if isinstance(each, Patch)]
    assert ended(outcome.writes) == marked == expected
    assert not [each for each in outcome.writes if each.resource == POD_GROUPS]
    after = status(outcome.writes)
    assert (after["state"]["phase"], after["retryCount"], after.get("version")) == ("Restarting", 1, None)
    assert (after["running"], after["terminating"]) == (6 - len(expected), len(expected))
    assert (told(outcome.writes), outcome.waiting) == (["A pod failed."], [])


STRANGERS = pod_fact("driver", 0, metadata={"ownerReferences": []})
GOING = pod_fact("driver", 0, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})


@cases("pods, retries, expected", {
    "that ended go as well to be made again | 2.3/pods": (
        [pod_fact("driver", 0, "Failed"), pod_fact("driver", 1, "Succeeded"), pod_fact("worker", 0)], 0,
        ["driver-0", "driver-1"]),
    "that ended stay for their logs when no other run follows | 2.2/3 last retry": (
        [pod_fact("driver", 0, "Failed"), pod_fact("driver", 1)], 2, ["driver-1"]),
    "that are being deleted are not deleted once more | 2.2/3": ([GOING, pod_fact("driver", 1)], 0, ["driver-1"]),
    "of somebody else with a name of the task are left alone": ([STRANGERS], 0, []),
})  # fmt: skip
def test_pods_of_the_part(pods, retries, expected):
    assert ended(reconcile(running(*pods, retryCount=retries), DRIVER).writes) == expected


@pytest.mark.shows("2.3/no such partition", "2.3/no such task or pod")
@cases("request_, phase", {
    "task that is not there": (asked("RestartTask", task="none"), "Restarting"),
    "no task": (asked("RestartTask"), "Restarting"),
    "no pod": (asked("RestartPod"), "Restarting"),
    "no partition": (asked("RestartPartition"), None),
    "empty partition": (asked("RestartPartition", task="worker", partition=7), None),
    "task without partitions": (asked("RestartPartition", task="driver", partition=0), None),
})  # fmt: skip
def test_part_without_pods_ends_none(request_, phase):
    writes = reconcile(running(), request_).writes
    assert ended(writes) == []
    after = status(writes)
    assert (after and after["state"]["phase"]) == phase


ABORT = asked("AbortJob")


@cases("requests, pods, messages, phase, waiting", {
    "parts together use up one retry": (
        [asked("RestartPod", pod=f"demo-worker-{n}", why=f"{n} failed.") for n in (0, 3)], ["worker-0", "worker-3"],
        ["0 failed.", "3 failed."], "Restarting", []),
    "the same twice is told once": ([WORKER_0] * 2, ["worker-0"], ["A pod failed."], "Restarting", []),
    "the whole job after its parts": ([WORKER_0, ABORT], ["worker-0"], ["A pod failed."], "Restarting", [ABORT]),
    "parts after the whole job": (
        [ABORT, WORKER_0, ABORT], [f"driver-{n}" for n in range(2)] + [f"worker-{n}" for n in range(4)],
        ["A pod failed."], "Aborting", [WORKER_0, ABORT]),
})  # fmt: skip
def test_several_requests(requests, pods, messages, phase, waiting):
    outcome = reconcile(running(), *requests)
    assert (ended(outcome.writes), told(outcome.writes)) == (pods, messages)
    after = status(outcome.writes)
    assert (after["state"]["phase"], after.get("retryCount", 0)) == (phase, int(phase == "Restarting"))
    assert (outcome.waiting, outcome.again) == (waiting, True)


def test_job_that_no_controller_has_seen_is_pending_first():
    outcome = reconcile(Known(running(phase="").job), ABORT)
    assert status(outcome.writes)["state"]["phase"] == "Pending"
    assert len(outcome.waiting) == 1


def test_part_larger_than_a_round_ends_in_several_and_the_phase_changes_with_the_last():
    before, request_ = running(), asked("RestartTask", task="worker")
    first = reconcile(before, request_, room=3)
    assert ended(first.writes) == ["worker-0", "worker-1", "worker-2"]
    assert status(first.writes)["state"]["phase"] == "Running"
    assert (first.waiting, first.again, told(first.writes)) == ([request_], True, [])
    for name in ended(first.writes):
        del before.pods[f"demo-{name}"]
    last = reconcile(before, *first.waiting, room=3)
    assert ended(last.writes) == ["worker-3"]
    after = status(last.writes)
    assert (after["state"]["phase"], after["retryCount"], last.waiting) == ("Restarting", 1, [])
