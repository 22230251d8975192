"""The phases of a job: a row for each decision of volcano-job §2.5, and only the moves of §2.7."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.controller.counts import Counts
from jobs.lifecycle import asking, phases
from jobs.lifecycle.causes import Failure
from jobs.lifecycle.phases import FINISHED, TRANSITIONS
from jobs.lifecycle.situation import Situation, Task
from kube.kinds.batch import Action, JobPhase
from tests.tables import cases

P = JobPhase
NAMES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


def counts(terminating=0, **tasks):
    by_phase = {name: dict(zip(NAMES, numbers, strict=False)) for name, numbers in tasks.items()}
    found = Counts(by_phase, terminating=terminating)
    found.sum_up()
    return found


def situation(*tasks, least=None, terminating=0, counted=None, **fields):
    """Tasks are (name, replicas, minimum); counted is task → (pending, running, succeeded, failed)."""
    made = tuple(Task(*each) for each in tasks or [("main", 4, 4)])
    least = sum(task.needed for task in made) if least is None else least
    return Situation(tasks=made, min_available=least, counts=counts(terminating, **(counted or {})), **fields)


def main(*numbers, **fields):
    return situation(counted={"main": numbers}, **fields)


POLICY = "by its policy TaskCompleted → CompleteJob (ps)"
TWO = [("a", 2, 1), ("b", 2, 2)]


@cases("phase, found, following, reason", {
    **{f"{phase}: stays": (phase, main(0, 4), phase, "") for phase in (P.ABORTED, *sorted(FINISHED))},
    "Pending: nothing runs": (P.PENDING, main(4), P.PENDING, "WaitingForPods"),
    "Pending: too few run | 2.5/Pending": (P.PENDING, main(1, 3), P.PENDING, "WaitingForPods"),
    "Pending: enough run | 2.5/Pending": (P.PENDING, main(0, 4), P.RUNNING, "PodsRunning"),
    "Pending: ended pods count | 2.5/Pending": (P.PENDING, main(0, 2, 1, 1), P.RUNNING, "PodsRunning"),
    "Pending: minimum 0 | 2.5/Pending, minAvailable 0": (P.PENDING, main(4, least=0), P.RUNNING, "PodsRunning"),
    "Pending: not admitted": (P.PENDING, main(admitted=False), P.PENDING, "WaitingForQueue"),
    "Pending: unschedulable": (P.PENDING, main(4, waiting="no node."), P.PENDING, "Unschedulable"),
    "Running 1: no replicas | 2.5/Running 1": (P.RUNNING, situation(("main", 0, 0), least=0), P.RUNNING, "NoReplicas"),
    "Running 2: minSuccess | 2.5/Running 2 + 1.1/minSuccess": (P.RUNNING, main(0, 3, 1, min_success=1), P.COMPLETED,
        "MinSuccessReached"),
    "Running 3: a task missed its minimum | 2.5/Running 3": (P.RUNNING,
        situation(*TWO, counted={"a": (0, 0, 2), "b": (0, 0, 1, 1)}), P.FAILED, "TaskMinimumMissed"),
    "Running 3: not asked below the sum of the tasks' minimums | 2.5/Running 3": (P.RUNNING,
        situation(*TWO, least=2, counted={"a": (0, 0, 2), "b": (0, 0, 0, 2)}), P.COMPLETED, "AllPodsEnded"),
    "Running 3: a task without a minimum is not asked | 2.5/Running 3": (P.RUNNING,
        situation(("a", 2, None), least=2, counted={"a": (0, 0, 1, 1)}), P.FAILED, "TooFewSucceeded"),
    "Running 4: minSuccess missed | 2.5/Running 4 + 1.1/minSuccess": (P.RUNNING,
        main(0, 0, 3, 1, least=1, min_success=4), P.FAILED, "MinSuccessMissed"),
    "Running 5: all succeeded | 2.5/Running 5": (P.RUNNING, main(0, 0, 4), P.COMPLETED, "AllPodsEnded"),
    "Running 5: enough succeeded | 2.5/Running 5": (P.RUNNING, main(0, 0, 3, 1, least=3), P.COMPLETED, "AllPodsEnded"),
    "Running 6: too few succeeded | 2.5/Running 6": (P.RUNNING, main(0, 0, 2, 2, least=3), P.FAILED, "TooFewSucceeded"),
    "Running 7: too many pending | 2.5/Running 7": (P.RUNNING, main(2, 2, least=3), P.PENDING, "TooManyPending"),
    "Running 7: all were evicted and none is let in again": (P.RUNNING, main(admitted=False), P.PENDING,
        "TooManyPending"),
    "Running 7: missing pods wait like pending ones": (P.RUNNING, main(0, 2, least=3, admitted=False), P.PENDING,
        "TooManyPending"),
    "Running 7: a missing pod beyond the minimum": (P.RUNNING, main(0, 2, 1, least=3, admitted=False), P.RUNNING,
        "PodsRunning"),
    "Running 7: pods that end are there": (P.RUNNING, main(terminating=4, admitted=False), P.RUNNING, "PodsRunning"),
    "Running 7: missing pods of a group that is let in are about to be made": (P.RUNNING, main(), P.RUNNING,
        "PodsRunning"),
    "Running 8: keep | 2.5/Running 8": (P.RUNNING, main(1, 3, least=3), P.RUNNING, "PodsRunning"),
    "Restarting: no retries left | 2.5/Restarting, no retries": (P.RESTARTING, main(retry_count=3), P.FAILED,
        "RetriesUsedUp"),
    "Restarting: names are free | 2.5/Restarting": (P.RESTARTING, main(retry_count=1), P.PENDING, "Restarted"),
    "Restarting: pods end | 2.5/Restarting": (P.RESTARTING, main(terminating=2, retry_count=1), P.RESTARTING,
        "WaitingForPodsToEnd"),
    "Aborting: pods run | 2.5/Aborting": (P.ABORTING, main(0, 1), P.ABORTING, "WaitingForPodsToEnd"),
    "Aborting: only ended pods | 2.5/Aborting": (P.ABORTING, main(0, 0, 1, 1), P.ABORTED, "Aborted"),
    "Completing: pods end | 2.5/Completing": (P.COMPLETING, main(terminating=1), P.COMPLETING, "WaitingForPodsToEnd"),
    "Completing: done | 2.5/Completing": (P.COMPLETING, main(), P.COMPLETED, "CompletedOnRequest"),
    "Terminating: pods wait | 2.5/Terminating": (P.TERMINATING, main(1), P.TERMINATING, "WaitingForPodsToEnd"),
    "Terminating: done | 2.5/Terminating": (P.TERMINATING, main(), P.TERMINATED, "Terminated"),
})  # fmt: skip
def test_decision(phase, found, following, reason):
    decision = phases.decide(phase, phases.step_for(phase).rules, found)
    assert (decision.phase, decision.reason) == (following, reason)
    assert bool(decision.message) == bool(reason)
    assert not reason or decision.message.endswith(".")


OF_QUEUES = {Action.SYNC_QUEUE, Action.OPEN_QUEUE, Action.CLOSE_QUEUE}


@pytest.mark.shows("3.2/SyncQueue, OpenQueue, CloseQueue", "3.4/1", "6.3/action")
def test_action_of_a_command():
    assert all(phases.action_of(str(action)) is (None if action in OF_QUEUES else action) for action in Action)
    assert [phases.action_of(text) for text in ("", "Jump", "abortjob")] == [None] * 3


def test_pods_that_failed_alike_are_told_once():
    failures = (Failure("x-a-0", "a", (3,)), Failure("x-a-1", "a", (1,)), Failure("x-a-2", "a", (3,)))
    found = situation(("a", 4, 0), least=3, counted={"a": (0, 0, 1, 3)}, failures=failures)
    message = phases.decide(P.RUNNING, phases.step_for(P.RUNNING).rules, found).message
    assert message.startswith("Exit 3 · a-0, a-2; exit 1 · a-1. 1 of 4 pods")


@cases("phase, found, message", {
    "part runs": (P.PENDING, main(2, 2), "2 of 4 pods are running, 2 pending; minAvailable is 4."),
    "one runs": (P.PENDING, main(3, 1), "1 of 4 pods is running, 3 pending; minAvailable is 4."),
    "why it waits": (P.PENDING, main(4, waiting="0/3 nodes have 8 CPU free."),
        "0/3 nodes have 8 CPU free. 0 of 4 pods are running; minAvailable is 4."),
    "the only one waits": (P.PENDING, situation(("a", 1, 1)), "0 of 1 pod is running; minAvailable is 1."),
    "all": (P.RUNNING, main(0, 0, 4), "All 4 pods succeeded."),
    "the only one": (P.RUNNING, situation(("a", 1, 1), counted={"a": (0, 0, 1)}), "The pod succeeded."),
    "failures": (P.RUNNING,
        situation(("a", 4, 0), least=3, counted={"a": (0, 0, 2, 2)}, failures=(Failure("x-a-1", "a", (3,)),)),
        "Exit 3 · a-1 and 1 more. 2 of 4 pods succeeded and 2 failed; minAvailable is 3."),
    "a task's minimum": (P.RUNNING, main(0, 0, 3, 1), "3 of 4 pods of task main succeeded; its minAvailable is 4."),
    "name taken": (P.PENDING, main(2, 1, held=("j-main-0",)),
        "1 of 4 pods is running, 2 pending; minAvailable is 4. "
        "Pod j-main-0 has the name of a pod of this job and belongs to something else; delete it."),
    "resumed": (P.RESTARTING, main(), "Starting again; 0 of 2 restarts are used up."),
    "restarted by a policy": (P.RESTARTING, main(retry_count=1, by=POLICY),
        f"Restarted {POLICY}: 1 of 2 restarts is used up."),
    "restarted by a person": (P.RESTARTING, main(retry_count=1, by="on request"),
        "Restarted on request, which counts as a retry: 1 of 2 restarts is used up."),
    "no restart left": (P.RESTARTING, main(retry_count=1, max_retry=1),
        "The job was restarted 0 times; instead of restart 1 it failed, as maxRetry is 1."),
    "pods of two runs, by a policy": (P.RESTARTING, main(1, terminating=3, by=POLICY),
        f"Restarted {POLICY}. 3 pods have to end before the job starts again."),
    "completes by a policy": (P.COMPLETING, main(1, by=POLICY), f"Completed {POLICY}. Waiting for 1 pod to end."),
    "completed by a policy": (P.COMPLETING, main(0, 0, 1, by=POLICY),
        f"1 of 4 pods had succeeded when the job was completed {POLICY}."),
    "terminated by a policy": (P.TERMINATING, main(0, 0, 1, by=POLICY),
        f"1 of 4 pods had succeeded when the job was terminated {POLICY}."),
    "suspended by a policy": (P.ABORTING, main(by=POLICY),
        f"None of 4 pods had ended when the job was suspended {POLICY}. Resume it to run it from the start."),
    "suspends on request": (P.ABORTING, main(1, by="on request"), "Suspended on request. Waiting for 1 pod to end."),
    "pods of two runs": (P.RESTARTING, main(1, terminating=3), "3 pods have to end before the job starts again."),
    "aborted early": (P.ABORTING, main(),
        "None of 4 pods had ended when the job was suspended. Resume it to run it from the start."),
    "aborted": (P.ABORTING, main(0, 0, 1, 1, failures=(Failure("x-a-1", "a", (3,)),)),
        "1 of 4 pods had succeeded and 1 had failed when the job was suspended. "
        "Resume it to run it from the start. Exit 3 · a-1."),
    "completed on request": (P.COMPLETING, main(0, 0, 1, by="on request"),
        "1 of 4 pods had succeeded when the job was completed on request."),
    "terminated": (P.TERMINATING, main(0, 0, 1), "1 of 4 pods had succeeded when the job was terminated."),
})  # fmt: skip
def test_message_has_the_numbers(phase, found, message):
    assert phases.decide(phase, phases.step_for(phase).rules, found).message == message


BY = ["", "on request", POLICY, "by its policy Unknown → RestartJob", "by its policy exitCode 3 → RestartJob (ps)"]


@pytest.mark.parametrize("phase", sorted(phases.STOPPING))
@pytest.mark.parametrize("by", BY)
def test_who_asked_is_read_from_what_was_said_of_it(phase, by):
    """In each round until the last pod has ended."""
    found = main(2, terminating=2, by=by)
    asks = [(P.RUNNING, action) for action in phases.STEPS[P.RUNNING]]
    for before, action in [(phase, Action.SYNC_JOB), *asks]:
        said = phases.decide(before, phases.step_for(before, action).rules, found)
        if said.phase == phase:
            assert asking.read(said.message) == by


numbers = st.integers(0, 5)
counted = st.dictionaries(st.sampled_from("abc"), st.tuples(*[numbers] * 5), max_size=3)
situations = st.builds(
    Situation,
    tasks=st.lists(st.builds(Task, st.sampled_from("abc"), numbers, st.none() | numbers), max_size=3).map(tuple),
    counts=st.builds(lambda terminating, tasks: counts(terminating, **tasks), numbers, counted),
    min_available=numbers,
    min_success=st.none() | numbers,
    retry_count=numbers,
    max_retry=numbers,
    admitted=st.booleans(),
    waiting=st.sampled_from(["", "no node."]),
)


@pytest.mark.shows("2.7/only these")
@given(st.sampled_from(sorted(P)), st.sampled_from(sorted(Action)), situations)
def test_only_moves_of_the_table_are_made(phase, action, found):
    decision = phases.decide(phase, phases.step_for(phase, action).rules, found)
    assert decision.phase == phase or decision.phase in TRANSITIONS[phase]


@pytest.mark.shows("1.5/state.reason, state.message", "9.1/29")
@given(st.sampled_from(sorted(P)), situations)
def test_every_decision_but_to_stay_is_explained(phase, found):
    decision = phases.decide(phase, phases.step_for(phase).rules, found)
    assert decision.phase == phase or (decision.reason and decision.message)


@pytest.mark.shows("2.7/finished")
def test_nothing_leaves_a_finished_phase():
    assert all(TRANSITIONS[phase] == frozenset() for phase in FINISHED)


@pytest.mark.shows("2.7/only these")
def test_move_outside_the_table_is_a_defect():
    rule = phases.PhaseRule(phases.always, P.RUNNING, "Magic", lambda _: "It came back.")
    with pytest.raises(ValueError, match="cannot go from Completed to Running"):
        phases.decide(P.COMPLETED, (rule,), main())


@pytest.mark.shows("2.1/unknown phase")
@pytest.mark.parametrize("written", ["", "Unheard", "Pending"])
def test_unknown_phase_is_pending(written):
    assert phases.phase_of(written) == P.PENDING
