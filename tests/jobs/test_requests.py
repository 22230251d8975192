"""What a job is asked to do, at the level of one round (reference: volcano-job §2.3, §2.6, §3.4)."""

from __future__ import annotations

import msgspec
import pytest

from cluster.writes import Create, Delete, Patch, Update
from jobs.controller import facts, plan
from jobs.controller.plan import Known, World
from jobs.controller.requests import Request, Target
from kube.kinds.batch import Action
from kube.priorities import PriorityClasses
from kube.resources import EVENTS, POD_GROUPS, PODS
from tests.jobs.builders import defaulted, job, task
from tests.tables import cases

NOW = 1_767_225_600_000
UID = "5a1f7f2e-0000-4000-8000-000000000001"
WORLD = World(PriorityClasses(), {})


def pod(task, index, phase="Running", version=0, **metadata):
    notes = {
        facts.JOB_NAME: "demo",
        facts.TASK_SPEC: task,
        facts.TASK_INDEX: str(index),
        facts.JOB_VERSION: str(version),
    }
    owner = {"kind": "Job", "name": "demo", "uid": UID, "controller": True}
    about = {"name": f"demo-{task}-{index}", "uid": f"{task}{index}", "ownerReferences": [owner], **metadata}
    return {"metadata": {**about, "annotations": notes}, "status": {"phase": phase}}


def running(*pods, phase="Running", **status):
    """A job of two tasks, the second in partitions of two, with these pods or all of them running."""
    parts = {"totalPartitions": 2, "partitionSize": 2}
    written = defaulted(job(task("driver", 2), task("worker", 4, partitionPolicy=parts)))
    written["metadata"] |= {"uid": UID, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    written["status"] = {"state": {"phase": phase}, **status}
    group = {"metadata": {"name": f"demo-{UID}"}, "spec": {}, "status": {"phase": "Running"}}
    made = pods or [pod("driver", i) for i in range(2)] + [pod("worker", i) for i in range(4)]
    read = [facts.read_pod(msgspec.json.encode(each))[1] for each in made]
    return Known(
        facts.read_job(msgspec.json.encode(written)),
        {fact.name: fact for fact in read},
        facts.read_group(msgspec.json.encode(group)),
    )


def asked(action, why="A pod failed.", **target):
    return Request(action=action, target=Target(**target), why=why)


def ended(outcome):
    return [w.name for w in outcome.writes if isinstance(w, Delete) and w.resource == PODS]


def marked(outcome):
    return [w.name for w in outcome.writes if isinstance(w, Patch) and w.resource == PODS]


def status(outcome):
    return next((w.object["status"] for w in outcome.writes if isinstance(w, Update)), None)


def told(outcome):
    made = [w.object for w in outcome.writes if isinstance(w, Create) and w.resource == EVENTS]
    return [(event["reason"], event["message"]) for event in made]


PARTS = [
    pytest.param(asked(Action.RESTART_TASK, task="driver"), ["demo-driver-0", "demo-driver-1"], id="task"),
    pytest.param(asked(Action.RESTART_POD, task="worker", pod="demo-worker-2"), ["demo-worker-2"], id="pod"),
    pytest.param(
        asked(Action.RESTART_PARTITION, task="worker", pod="demo-worker-2", partition=1),
        ["demo-worker-2", "demo-worker-3"],
        id="partition",
    ),
]


@pytest.mark.shows("2.3/pods", "2.3/pod group")
@pytest.mark.parametrize(("request_", "expected"), PARTS)
def test_restart_of_a_part_ends_its_pods_and_keeps_the_group_and_the_others(request_, expected):
    outcome = plan.reconcile(running(), WORLD, NOW, requests=[request_])
    assert ended(outcome) == marked(outcome) == expected
    assert not [w for w in outcome.writes if w.resource == POD_GROUPS]
    after = status(outcome)
    assert (after["state"]["phase"], after["retryCount"]) == ("Restarting", 1)
    assert (after["running"], after["terminating"]) == (6 - len(expected), len(expected))
    assert "version" not in after
    assert ("ExecuteAction", "A pod failed.") in told(outcome)
    assert outcome.waiting == []


@pytest.mark.parametrize(("request_", "expected"), PARTS)
def test_job_that_is_restarting_ends_the_pods_and_uses_up_no_further_retry(request_, expected):
    outcome = plan.reconcile(running(phase="Restarting", retryCount=1), WORLD, NOW, requests=[request_])
    assert ended(outcome) == expected
    assert status(outcome)["retryCount"] == 1


@pytest.mark.shows("2.3/pods")
def test_pods_of_the_part_that_ended_already_go_as_well_to_be_made_again():
    known = running(pod("driver", 0, "Failed"), pod("driver", 1, "Succeeded"), pod("worker", 0))
    outcome = plan.reconcile(known, WORLD, NOW, requests=[asked(Action.RESTART_TASK, task="driver")])
    assert ended(outcome) == ["demo-driver-0", "demo-driver-1"]


@pytest.mark.shows("2.2/3 last retry")
def test_pods_that_ended_stay_for_their_logs_when_no_other_run_follows():
    known = running(pod("driver", 0, "Failed"), pod("driver", 1), retryCount=2)
    outcome = plan.reconcile(known, WORLD, NOW, requests=[asked(Action.RESTART_TASK, task="driver")])
    assert ended(outcome) == ["demo-driver-1"]


@pytest.mark.shows("2.2/3")
def test_pod_that_is_being_deleted_is_not_deleted_once_more():
    known = running(pod("driver", 0, deletionTimestamp="2026-01-01T00:00:00Z"), pod("driver", 1))
    outcome = plan.reconcile(known, WORLD, NOW, requests=[asked(Action.RESTART_TASK, task="driver")])
    assert ended(outcome) == ["demo-driver-1"]


def test_pod_of_somebody_else_with_a_name_of_the_task_is_left_alone():
    stranger = pod("driver", 0)
    stranger["metadata"]["ownerReferences"] = []
    outcome = plan.reconcile(running(stranger), WORLD, NOW, requests=[asked(Action.RESTART_TASK, task="driver")])
    assert ended(outcome) == []


@pytest.mark.shows("2.3/no such partition", "2.3/no such task or pod")
@cases("request_, phase", {
    "task that is not there": (asked(Action.RESTART_TASK, task="none"), "Restarting"),
    "no task": (asked(Action.RESTART_TASK), "Restarting"),
    "no pod": (asked(Action.RESTART_POD), "Restarting"),
    "no partition": (asked(Action.RESTART_PARTITION), None),
    "empty partition": (asked(Action.RESTART_PARTITION, task="worker", partition=7), None),
    "task without partitions": (asked(Action.RESTART_PARTITION, task="driver", partition=0), None),
})  # fmt: skip
def test_part_without_pods_ends_none(request_, phase):
    outcome = plan.reconcile(running(), WORLD, NOW, requests=[request_])
    assert ended(outcome) == []
    after = status(outcome)
    assert (after and after["state"]["phase"]) == phase


def test_parts_are_restarted_together_and_use_up_one_retry():
    parts = [asked(Action.RESTART_POD, pod=f"demo-worker-{n}", why=f"{n} failed.") for n in (0, 3)]
    outcome = plan.reconcile(running(), WORLD, NOW, requests=parts)
    assert ended(outcome) == ["demo-worker-0", "demo-worker-3"]
    assert status(outcome)["retryCount"] == 1
    assert [message for reason, message in told(outcome) if reason == "ExecuteAction"] == ["0 failed.", "3 failed."]


def test_what_is_asked_for_after_an_action_on_the_whole_job_waits():
    abort, restart = asked(Action.ABORT_JOB), asked(Action.RESTART_POD, pod="demo-worker-0")
    outcome = plan.reconcile(running(), WORLD, NOW, requests=[abort, restart, abort])
    assert status(outcome)["state"]["phase"] == "Aborting"
    assert (outcome.waiting, outcome.again) == ([restart, abort], True)


def test_action_on_the_whole_job_waits_for_the_parts_before_it():
    abort, restart = asked(Action.ABORT_JOB), asked(Action.RESTART_POD, pod="demo-worker-0")
    outcome = plan.reconcile(running(), WORLD, NOW, requests=[restart, abort])
    assert ended(outcome) == ["demo-worker-0"]
    assert outcome.waiting == [abort]


def test_the_same_request_twice_is_told_once():
    twice = [asked(Action.RESTART_POD, pod="demo-worker-0")] * 2
    outcome = plan.reconcile(running(), WORLD, NOW, requests=twice)
    assert told(outcome).count(("ExecuteAction", "A pod failed.")) == 1
    assert ended(outcome) == ["demo-worker-0"]


def test_job_that_no_controller_has_seen_is_pending_first():
    known = Known(running(phase="").job)
    outcome = plan.reconcile(known, WORLD, NOW, requests=[asked(Action.ABORT_JOB)])
    assert status(outcome)["state"]["phase"] == "Pending"
    assert len(outcome.waiting) == 1


def test_finished_job_heeds_no_part():
    known = running(phase="Completed")
    outcome = plan.reconcile(known, WORLD, NOW, requests=[asked(Action.RESTART_TASK, task="driver")])
    assert (ended(outcome), status(outcome), outcome.waiting) == ([], None, [])


def test_part_larger_than_a_round_ends_in_several_and_the_phase_changes_with_the_last():
    known, request_ = running(), asked(Action.RESTART_TASK, task="worker")
    first = plan.reconcile(known, WORLD, NOW, requests=[request_], room=3)
    assert ended(first) == ["demo-worker-0", "demo-worker-1", "demo-worker-2"]
    assert status(first)["state"]["phase"] == "Running"
    assert (first.waiting, first.again) == ([request_], True)
    assert "ExecuteAction" not in dict(told(first))
    for name in ended(first):
        del known.pods[name]
    last = plan.reconcile(known, WORLD, NOW, requests=first.waiting, room=3)
    assert ended(last) == ["demo-worker-3"]
    assert (status(last)["state"]["phase"], status(last)["retryCount"], last.waiting) == ("Restarting", 1, [])
