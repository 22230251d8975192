"""The table of actions: where each applies, what it says it will do, and what it takes for its outcome."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.controller import commands
from jobs.lifecycle.phases import FINISHED, TRANSITIONS
from jobs.pages.reading import Job, JobSpec, JobState, JobStatus, Metadata, TaskCount, TaskSpec
from jobs.rules import actions, command_warnings
from jobs.rules.actions import Extent, Result
from kube.kinds.batch import Action, JobPhase
from kube.resources import JOBS
from tests.tables import cases

PHASES = [str(phase) for phase in JobPhase]
ALIVE = {"Pending", "Running"}
# Which phases heed an action (reference: volcano-job §2.6), written down once more.
APPLIES = {
    "clone": set(PHASES),
    "edit": set(PHASES),
    "scale": ALIVE,
    "suspend": ALIVE,
    "resume": {"Aborting", "Aborted"},
    "restart": ALIVE,
    "complete": ALIVE,
    "terminate": ALIVE,
    "delete": set(PHASES),
}


def job(phase="Running", *, reason="", message="", retried=0, deleting=False, replicas=3, there=3, **status):
    return Job(
        metadata=Metadata(name="demo", deletion_timestamp="2026-01-01T00:00:00Z" if deleting else ""),
        spec=JobSpec(max_retry=3, tasks=[TaskSpec(name="main", replicas=replicas)]),
        status=JobStatus(
            state=JobState(phase=phase, reason=reason, message=message),
            retry_count=retried,
            task_status_count={"main": TaskCount(phase={"Running": there})} if there else {},
            **status,
        ),
    )


def test_the_table_has_a_row_for_each_action():
    assert {action.name for action in actions.ACTIONS} == APPLIES.keys()


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", APPLIES)
def test_an_action_applies_in_the_phases_that_heed_it(name, phase):
    said = actions.problem(actions.BY_NAME[name], job(phase))
    assert (said == "") == (phase in APPLIES[name])
    assert said == "" or said.startswith(f"It is {phase}; only jobs that are ")


@pytest.mark.parametrize("name", APPLIES)
def test_of_a_job_that_is_being_deleted_only_a_copy_can_be_made(name):
    said = actions.problem(actions.BY_NAME[name], job(deleting=True))
    assert said == ("" if name == "clone" else "It is being deleted.")


@pytest.mark.parametrize("name", [action.name for action in actions.CONFIRMED if action.target])
@pytest.mark.parametrize("phase", sorted(ALIVE))
def test_the_phase_that_an_action_leads_to_can_be_reached(name, phase):
    reached, todo = set(), [JobPhase(phase)]
    while todo:
        for following in TRANSITIONS[todo.pop()] - reached:
            reached.add(following)
            todo.append(following)
    assert actions.BY_NAME[name].target in reached


@cases("name, about, said", {
    "suspend one": ("suspend", Extent(1, 12, 9, 3),
        "9 running pods will be stopped, and 3 waiting pods will not start. The room is free for others." " Resumed, all 12 pods run from the start."),
    "resume": ("resume", Extent(1, 1), "The one pod runs from the start, once there is room."),
    "restart": ("restart", Extent(1, 2, 1), "1 running pod will be stopped. All 2 pods run again from the start."),
    "the last restart": ("restart", Extent(1, 2, 2, 0, 1),
        "2 running pods will be stopped. It has no restart left: instead of running again it becomes Failed."),
    "restart many": ("restart", Extent(5, 10, 10, 0, 2),
        "10 running pods will be stopped. The pods run again from the start." " 2 of the jobs have no restart left: these become Failed instead."),
    "terminate": ("terminate", Extent(1, 4),
        "No pod runs. The job is then Terminated for good; resuming is not possible."),
    "complete two": ("complete", Extent(2, 4, 4),
        "4 running pods will be stopped. The 2 jobs are then Completed for good; resuming is not possible."),
    "delete thousands": ("delete", Extent(5000, 20000, 12),
        "12 running pods will be stopped. 5,000 jobs are removed with their 20,000 pods." " What happened stays for 30 days, what they printed stays for 14 days."),
})  # fmt: skip
def test_the_effect_is_told_in_numbers(name, about, said):
    assert " ".join(actions.effect(actions.BY_NAME[name], about, actions.Kept(30, 14))) == said


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 5)), max_size=20))
def test_the_extent_of_many_is_the_sum_of_each(numbers):
    jobs = [
        job(replicas=running + waiting, running=running, pending=waiting, retried=retried)
        for running, waiting, retried in numbers
    ]
    each = [actions.extent([one]) for one in jobs]
    assert actions.extent(jobs) == Extent(*(sum(column) for column in zip(*each, Extent(), strict=True)))


@cases("name, found, result", {
    "suspend: not heard yet": ("suspend", job("Running"), None),
    "suspend: pods end": ("suspend", job("Aborting"), None),
    "suspend: done": ("suspend", job("Aborted"), Result.DONE),
    "suspend: too late": ("suspend", job("Completed"), Result.SKIPPED),
    "suspend: deleted meanwhile": ("suspend", None, Result.GONE),
    "resume: not heard yet": ("resume", job("Aborted"), None),
    "resume: old pods end": ("resume", job("Restarting"), None),
    "resume: waits for its turn": ("resume", job("Pending"), Result.DONE),
    "restart: not heard yet": ("restart", job("Running", retried=1), None),
    "restart: old pods end": ("restart", job("Restarting", retried=2), None),
    "restart: done": ("restart", job("Pending", retried=2), Result.DONE),
    "restart: over already": ("restart", job("Completed", retried=2), Result.DONE),
    "restart: none left": ("restart",
        job("Failed", retried=3, reason="RetriesUsedUp", message="The job was restarted 3 times."), Result.REFUSED),
    "restart: failed before": ("restart", job("Failed", retried=1), Result.SKIPPED),
    "terminate: pods end": ("terminate", job("Terminating"), None),
    "terminate: done": ("terminate", job("Terminated"), Result.DONE),
    "complete: done": ("complete", job("Completed"), Result.DONE),
    "complete: too late": ("complete", job("Terminated"), Result.SKIPPED),
    "delete: still there": ("delete", job("Running"), None),
    "delete: done": ("delete", None, Result.DONE),
    "scale: two lack": ("scale", job(replicas=5, there=3), None),
    "scale: one too many": ("scale", job(replicas=2, there=3), None),
    "scale: done": ("scale", job(replicas=3, there=3), Result.DONE),
    "scale: no pods yet": ("scale", job(replicas=3, there=0), None),
})  # fmt: skip
def test_the_outcome_is_judged_by_the_job_as_it_is(name, found, result):
    verdict = actions.verdict(actions.BY_NAME[name], found, 1)
    assert (verdict and verdict.result) == result
    assert verdict is None or verdict.result is Result.DONE or verdict.why


@pytest.mark.parametrize("phase", sorted(FINISHED))
@pytest.mark.parametrize("name", [action.name for action in actions.CONFIRMED])
def test_an_order_to_a_job_that_is_over_is_never_left_open(name, phase):
    if name != "delete":
        assert actions.verdict(actions.BY_NAME[name], job(phase), 0) is not None


class Cluster:
    """A cluster with one job."""

    def __init__(self, phase):
        self.job = {"metadata": {"name": "demo", "namespace": "default"}, "status": {"state": {"phase": phase}}}

    def get(self, resource, namespace, name):
        return self.job if (resource, namespace, name) == (JOBS, "default", "demo") else None


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("action", actions.BY_ORDER.values(), ids=lambda action: action.name)
def test_a_client_is_warned_of_a_command_that_the_page_would_not_offer(action, phase):
    command = commands.to_job("default", "demo", "", action.order)
    said = command_warnings.warn(command, None, Cluster(phase))
    heeded = phase in APPLIES[action.name]
    assert said == ([] if heeded else [f"target: The job demo stays as it is. {actions.problem(action, job(phase))}"])


@cases("change", {
    "an action of controllers": {"action": "SyncJob"},
    "no action": {"action": ["AbortJob"]},
    "no target": {"target": None},
    "a queue": {"target": {"kind": "Queue", "name": "demo"}},
    "no such job": {"target": {"apiVersion": JOBS.api_version, "kind": "Job", "name": "none"}},
})  # fmt: skip
def test_of_other_commands_nothing_is_said(change):
    command = {**commands.to_job("default", "demo", "", Action.ABORT_JOB), **change}
    assert command_warnings.warn(command, None, Cluster("Completed")) == []


def test_what_lasts_too_long_is_told_with_what_the_job_says_of_itself():
    late = actions.overdue(actions.SUSPEND, job("Aborting", message="2 pods have to end."))
    assert late == (Result.TIMED_OUT, "After 30 s it is Aborting. 2 pods have to end.")
    assert "by 2" in actions.overdue(actions.SCALE, job(replicas=5)).why
    assert "being deleted" in actions.overdue(actions.DELETE, job(deleting=True)).why
