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
EVERY, ALIVE = frozenset(PHASES), frozenset({"Pending", "Running"})
# Which phases heed an action (reference: volcano-job §2.6), written down once more.
APPLIES = {
    **dict.fromkeys(("clone", "edit", "delete"), EVERY),
    **dict.fromkeys(("scale", "suspend", "restart", "complete", "terminate"), ALIVE),
    "resume": {"Aborting", "Aborted"},
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


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", [action.name for action in actions.ACTIONS])
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
        "9 running pods will be stopped, and 3 waiting pods will not start. The room is free for others. "
        "Resumed, all 12 pods run from the start."),
    "resume": ("resume", Extent(1, 1), "The one pod runs from the start, once there is room."),
    "restart": ("restart", Extent(1, 2, 1), "1 running pod will be stopped. All 2 pods run again from the start."),
    "the last restart": ("restart", Extent(1, 2, 2, 0, 1),
        "2 running pods will be stopped. It has no restart left: instead of running again it becomes Failed."),
    "restart many": ("restart", Extent(5, 10, 10, 0, 2),
        "10 running pods will be stopped. The pods run again from the start. "
        "2 of the jobs have no restart left: these become Failed instead."),
    "terminate": ("terminate", Extent(1, 4),
        "No pod runs. The job is then Terminated for good; resuming is not possible."),
    "complete two": ("complete", Extent(2, 4, 4),
        "4 running pods will be stopped. The 2 jobs are then Completed for good; resuming is not possible."),
    "delete thousands": ("delete", Extent(5000, 20000, 12),
        "12 running pods will be stopped. 5,000 jobs are removed with their 20,000 pods. "
        "What happened stays for 30 days, what they printed stays for 14 days."),
})  # fmt: skip
def test_the_effect_is_told_in_numbers(name, about, said):
    assert " ".join(actions.effect(actions.BY_NAME[name], about, actions.Kept(30, 14))) == said


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 5)), max_size=20))
def test_the_extent_of_many_is_the_sum_of_each(numbers):
    jobs = [job(replicas=ran + waits, running=ran, pending=waits, retried=retried) for ran, waits, retried in numbers]
    each = [actions.extent([one]) for one in jobs]
    assert actions.extent(jobs) == Extent(*(sum(column) for column in zip(*each, Extent(), strict=True)))


DONE, SKIPPED = Result.DONE, Result.SKIPPED
# What comes of an action by the phase of the job, which was restarted so often; None: nothing yet.
OUTCOMES = {
    ("suspend", 0): {"Running": None, "Aborting": None, "Aborted": DONE, "Completed": SKIPPED},
    ("resume", 0): {"Aborted": None, "Restarting": None, "Pending": DONE},
    ("restart", 1): {"Running": None, "Failed": SKIPPED},
    ("restart", 2): {"Restarting": None, "Pending": DONE, "Completed": DONE},
    ("terminate", 0): {"Terminating": None, "Terminated": DONE},
    ("complete", 0): {"Completed": DONE, "Terminated": SKIPPED},
    ("delete", 0): {"Running": None},
}
NO_RETRY = {"reason": "RetriesUsedUp", "message": "The job was restarted 3 times."}


@cases("name, found, result", {
    **{
        f"{name}: {phase} after {retried} restarts": (name, job(phase, retried=retried), result)
        for (name, retried), results in OUTCOMES.items()
        for phase, result in results.items()
    },
    "suspend: deleted meanwhile": ("suspend", None, Result.GONE),
    "restart: none left": ("restart", job("Failed", retried=3, **NO_RETRY), Result.REFUSED),
    "delete: done": ("delete", None, DONE),
    "scale: two lack": ("scale", job(replicas=5, there=3), None),
    "scale: one too many": ("scale", job(replicas=2, there=3), None),
    "scale: done": ("scale", job(replicas=3, there=3), DONE),
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


def warned(command, phase):
    """What is said of a Command in a cluster with one job, which is in a phase."""

    class Cluster:
        def get(self, resource, namespace, name):
            demo = {"metadata": {"name": "demo", "namespace": "default"}, "status": {"state": {"phase": phase}}}
            return demo if (resource, namespace, name) == (JOBS, "default", "demo") else None

    return command_warnings.warn(command, None, Cluster())


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("action", actions.BY_ORDER.values(), ids=lambda action: action.name)
def test_a_client_is_warned_of_a_command_that_the_page_would_not_offer(action, phase):
    words = f"target: The job demo stays as it is. {actions.problem(action, job(phase))}"
    said = warned(commands.to_job("default", "demo", "", action.order), phase)
    assert said == ([] if phase in APPLIES[action.name] else [words])


@cases("change", {
    "an action of controllers": {"action": "SyncJob"},
    "no action": {"action": ["AbortJob"]},
    "no target": {"target": None},
    "a queue": {"target": {"kind": "Queue", "name": "demo"}},
    "no such job": {"target": {"apiVersion": JOBS.api_version, "kind": "Job", "name": "none"}},
})  # fmt: skip
def test_of_other_commands_nothing_is_said(change):
    assert warned({**commands.to_job("default", "demo", "", Action.ABORT_JOB), **change}, "Completed") == []


def test_what_lasts_too_long_is_told_with_what_the_job_says_of_itself():
    late = actions.overdue(actions.SUSPEND, job("Aborting", message="2 pods have to end."))
    assert late == (Result.TIMED_OUT, "After 30 s it is Aborting. 2 pods have to end.")
    assert "by 2" in actions.overdue(actions.SCALE, job(replicas=5)).why
    assert "being deleted" in actions.overdue(actions.DELETE, job(deleting=True)).why
