"""What each action does in each phase, judged by what is written: the table of volcano-job §2.6, cell by cell."""

from __future__ import annotations

import msgspec
import pytest

from cluster.writes import Delete, Update
from jobs.controller import facts, plan
from jobs.controller.plan import Known, World
from jobs.controller.requests import Request, Target
from kube.kinds.batch import Action
from kube.priorities import PriorityClasses
from kube.resources import POD_GROUPS, PODS
from tests.jobs.builders import defaulted, job, task

NOW = 1_767_225_600_000
UID = "5a1f7f2e-0000-4000-8000-000000000001"
# A job of five pods that needs three; main has partitions of two. It was restarted once, and twice all pods were ended.
PHASES = {"main-0": "Running", "main-1": "Succeeded", "main-2": "Failed", "main-3": "Pending", "other-0": "Running"}  # fmt: skip
RETRIES, VERSION = 1, 2
TARGET = Target(task="main", pod="demo-main-1", partition=0)

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
    **{
        phase: every(ALIVE, True, phase, 0)
        for phase in ("Completing", "Completed", "Terminating", "Terminated", "Failed")
    },
}


def items(phase, action):
    """The items of the reference that a cell is."""
    is_deaf = phase in ("Restarting", "Completing", "Terminating") and action in WHOLE
    return f"2.6/{phase}×{action}", *(["10/Q-13"] if is_deaf else [])


def known(phase):
    parts = {"totalPartitions": 2, "partitionSize": 2}
    written = defaulted(job(task("main", 4, partitionPolicy=parts), task("other"), minAvailable=3))
    written["metadata"] |= {"uid": UID, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    written["status"] = {"state": {"phase": phase}, "retryCount": RETRIES, "version": VERSION}
    group = {"metadata": {"name": f"demo-{UID}"}, "spec": {}, "status": {"phase": "Running"}}
    pods = [facts.read_pod(msgspec.json.encode(pod(*each)))[1] for each in PHASES.items()]
    return Known(
        facts.read_job(msgspec.json.encode(written)),
        {each.name: each for each in pods},
        facts.read_group(msgspec.json.encode(group)),
        in_step=True,
    )


def pod(name, phase):
    task_name, _, index = name.partition("-")
    notes = {facts.TASK_SPEC: task_name, facts.TASK_INDEX: index, facts.JOB_VERSION: str(VERSION)}
    owner = {"kind": "Job", "name": "demo", "uid": UID, "controller": True}
    about = {"name": f"demo-{name}", "uid": name, "ownerReferences": [owner], "annotations": notes}
    return {"metadata": about, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("phase", "action", "expected"),
    [
        pytest.param(phase, action, expected, id=f"{phase}: {action}", marks=pytest.mark.shows(*items(phase, action)))
        for phase, row in CELLS.items()
        for action, expected in row.items()
    ],
)
def test_action_in_a_phase(phase, action, expected):
    before = known(phase)
    asked = Request(action=Action(action), target=TARGET, why="Somebody asked.")
    writes = plan.reconcile(before, World(PriorityClasses(), {}), NOW, requests=[asked]).writes
    if before.job.is_finished:
        # What is asked of a job that is over is taken, and does nothing; the next round does what any would.
        writes += plan.reconcile(before, World(PriorityClasses(), {}), NOW).writes
    ends = [each for each in writes if isinstance(each, Delete)]
    status = next((each.object["status"] for each in writes if isinstance(each, Update)), before.job.status)
    pods = {each.name.removeprefix("demo-") for each in ends if each.resource == PODS}
    is_whole = any(each.resource == POD_GROUPS for each in ends)
    found = (pods, is_whole, status["state"]["phase"], status["retryCount"] - RETRIES)
    assert found == expected
    assert status["version"] - VERSION == is_whole


def test_every_cell_is_there():
    actions = {str(action) for action in Action} - {"SyncQueue", "OpenQueue", "CloseQueue"}
    assert len(CELLS) == 10
    assert all(set(row) == actions for row in CELLS.values())
