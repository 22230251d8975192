"""The phases of a job: a row for each decision of volcano-job §2.5, and only the moves of §2.7; and why pods failed, in words."""

from collections import namedtuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.controller import facts
from jobs.lifecycle import causes, phases, policy_firings, requester
from jobs.lifecycle.causes import Failure
from jobs.lifecycle.counts import Counts
from jobs.lifecycle.messages import Text
from jobs.lifecycle.phases import FINISHED, TRANSITIONS
from jobs.lifecycle.policy_firings import PolicyFiring
from jobs.lifecycle.reading import Pod
from jobs.lifecycle.requester import Requester, Source
from jobs.lifecycle.situation import Situation, Task
from kube.kinds.batch import Action, JobEvent, JobPhase
from kube.kinds.core import Event
from kube.kinds.meta import ObjectMeta
from tests.campaign import examples
from tests.jobs import reference
from tests.tables import cases

P = JobPhase
Ended = namedtuple("Ended", "exit_code reason message", defaults=("", ""))
NAMES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
COMMAND = Requester(source=Source.COMMAND, action=Action.RESTART_JOB)
POLICY = Requester(source=Source.POLICY, action=Action.COMPLETE_JOB, event=JobEvent.TASK_COMPLETED, task="ps")
TWO = [("a", 2, 1), ("b", 2, 2)]
ALIKE = (Failure("x-a-0", "a", (3,)), Failure("x-a-1", "a", (1,)), Failure("x-a-2", "a", (3,)))
ONE_FAILED, ONE_POD = {"failures": ALIKE[1:2]}, ("a", 1, 1)
OF_QUEUES = {Action.SYNC_QUEUE, Action.OPEN_QUEUE, Action.CLOSE_QUEUE}
REQUESTERS = st.builds(
    Requester, source=st.sampled_from(Source), action=st.sampled_from(Action), task=st.sampled_from(["", "ps"]),
    event=st.none() | st.sampled_from(JobEvent), exit_code=st.none() | st.integers(0, 255),
)  # fmt: skip
CLAUSES = "This node runs commands and no images; give container job a command, or install podman there and start again"
STATES = st.just({}) | st.builds(lambda code: {"terminated": {"exitCode": code}}, st.sampled_from([0, 1, 42, 143]))
firings = st.builds(
    PolicyFiring, event=st.sampled_from(JobEvent), what=st.text(max_size=40), action=st.sampled_from(Action),
    pod=st.sampled_from(["", "a-0"]), exit_code=st.none() | st.integers(1, 255), delay_ms=st.sampled_from([0, 5000]),
)  # fmt: skip


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


@cases("phase, found", {
    **{f"{phase}: stays": (phase, main(0, 4)) for phase in (P.ABORTED, *sorted(FINISHED))},
    "Pending: too few run | 2.5/Pending": (P.PENDING, main(1, 3)),
    "Pending: enough run | 2.5/Pending": (P.PENDING, main(0, 4)),
    "Pending: ended pods count | 2.5/Pending": (P.PENDING, main(0, 2, 1, 1)),
    "Pending: minimum 0 | 2.5/Pending, minAvailable 0": (P.PENDING, main(4, least=0)),
    "Pending: not admitted": (P.PENDING, main(admitted=False)),
    "Pending: unschedulable": (P.PENDING, main(4, waiting="no node.")),
    "Running 1: no replicas | 2.5/Running 1": (P.RUNNING, situation(("main", 0, 0), least=0)),
    "Running 2 | 2.5/Running 2 + 1.1/minSuccess": (P.RUNNING, main(0, 3, 1, min_success=1)),
    "Running 3: a task missed its minimum | 2.5/Running 3": (
        P.RUNNING, situation(*TWO, counted={"a": (0, 0, 2), "b": (0, 0, 1, 1)})),
    "Running 3: not asked below the sum of the tasks' minimums | 2.5/Running 3": (
        P.RUNNING, situation(*TWO, least=2, counted={"a": (0, 0, 2), "b": (0, 0, 0, 2)})),
    "Running 3: a task without a minimum is not asked | 2.5/Running 3": (
        P.RUNNING, situation(("a", 2, None), least=2, counted={"a": (0, 0, 1, 1)})),
    "Running 4: minSuccess missed | 2.5/Running 4 + 1.1/minSuccess": (
        P.RUNNING, main(0, 0, 3, 1, least=1, min_success=4)),
    "Running 5: all succeeded | 2.5/Running 5": (P.RUNNING, main(0, 0, 4)),
    "Running 5: enough succeeded | 2.5/Running 5": (P.RUNNING, main(0, 0, 3, 1, least=3)),
    "Running 6: too few succeeded | 2.5/Running 6": (P.RUNNING, main(0, 0, 2, 2, least=3)),
    "Running 7: too many pending | 2.5/Running 7": (P.RUNNING, main(2, 2, least=3)),
    "Running 7: all were evicted": (P.RUNNING, main(admitted=False)),
    "Running 8: keep | 2.5/Running 8": (P.RUNNING, main(1, 3, least=3)),
    "no retries left | 2.5/Restarting, no retries": (P.RESTARTING, main(retry_count=3)),
    "Restarting: names are free | 2.5/Restarting": (P.RESTARTING, main(retry_count=1)),
    "pods end | 2.5/Restarting": (P.RESTARTING, main(terminating=2, retry_count=1)),
    "Aborting: pods run | 2.5/Aborting": (P.ABORTING, main(0, 1)),
    "Aborting: only ended pods | 2.5/Aborting": (P.ABORTING, main(0, 0, 1, 1)),
    "Completing: pods end | 2.5/Completing": (P.COMPLETING, main(terminating=1)),
    "Completing: done | 2.5/Completing": (P.COMPLETING, main()),
    "Terminating: pods wait | 2.5/Terminating": (P.TERMINATING, main(1)),
    "Terminating: done | 2.5/Terminating": (P.TERMINATING, main()),
    # ---- what the message has in it
    "why it waits": (P.PENDING, main(4, waiting="0/3 nodes have 8 CPU free.")),
    "the only one waits": (P.PENDING, situation(ONE_POD)),
    "the only one": (P.RUNNING, situation(ONE_POD, counted={"a": (0, 0, 1)})),
    "failures": (P.RUNNING, situation(("a", 4, 0), least=3, counted={"a": (0, 0, 2, 2)}, **ONE_FAILED)),
    "pods that failed alike": (P.RUNNING, situation(("a", 4, 0), least=3, counted={"a": (0, 0, 1, 3)}, failures=ALIKE)),
    "a task's minimum": (P.RUNNING, main(0, 0, 3, 1)),
    "name taken": (P.PENDING, main(2, 1, foreign_names=("j-main-0",))),
    "resumed": (P.RESTARTING, main()),
    "restarted by a policy": (P.RESTARTING, main(retry_count=1, by=POLICY)),
    "restarted by a person": (P.RESTARTING, main(retry_count=1, by=COMMAND)),
    "no restart left": (P.RESTARTING, main(retry_count=1, max_retry=1)),
    "pods of two runs, by a policy": (P.RESTARTING, main(1, terminating=3, by=POLICY)),
    "completes by a policy": (P.COMPLETING, main(1, by=POLICY)),
    "completed by a policy": (P.COMPLETING, main(0, 0, 1, by=POLICY)),
    "terminated by a policy": (P.TERMINATING, main(0, 0, 1, by=POLICY)),
    "suspended by a policy": (P.ABORTING, main(by=POLICY)),
    "pods of two runs": (P.RESTARTING, main(1, terminating=3)),
    "aborted": (P.ABORTING, main(0, 0, 1, 1, **ONE_FAILED)),
})  # fmt: skip
def test_decision(golden, phase, found):
    decision = phases.decide(phase, phases.step_for(phase).rules, found)
    text = decision.text
    assert bool(text.message) == bool(decision.reason)
    assert not decision.reason or (text.message.endswith(".") and text.next[-1:] in ("", "."))
    following = f" Next: {text.next}" if text.next else ""
    golden("decisions", f"{phase} → {decision.phase} {decision.reason}: {text.message}{following}")


@pytest.mark.shows("3.2/SyncQueue, OpenQueue, CloseQueue", "3.4/1", "6.3/action")
def test_action_of_a_command():
    assert all(phases.action_of(str(action)) is (None if action in OF_QUEUES else action) for action in Action)
    assert [phases.action_of(text) for text in ("", "Jump", "abortjob")] == [None] * 3


@given(st.none() | REQUESTERS)
def test_who_asked_is_read_from_the_status_and_is_nobody_where_that_cannot_be_read(by):
    assert requester.of_status(msgspec.json.decode(msgspec.json.encode({"requestedBy": requester.written(by)}))) == by
    texts = ("", "alice", {}, {"source": "Magic", "action": "RestartJob"}, {"source": "Policy", "action": "Dance"})
    assert [requester.of_status({"requestedBy": each}) for each in texts] == [None] * 5


numbers = st.integers(0, 5)
counted = st.dictionaries(st.sampled_from("abc"), st.tuples(*[numbers] * 5), max_size=3)
task = st.builds(Task, st.sampled_from("abc"), numbers, st.none() | numbers)
tasks = st.lists(task, max_size=3, unique_by=lambda each: each.name)
situations = st.builds(
    Situation, tasks=tasks.map(tuple), min_available=numbers, min_success=st.none() | numbers, retry_count=numbers,
    counts=st.builds(lambda terminating, tasks: counts(terminating, **tasks), numbers, counted), max_retry=numbers,
    admitted=st.booleans(), waiting=st.sampled_from(["", "no node."]),
)  # fmt: skip


@pytest.mark.shows("2.7/only these", "1.5/state.reason, state.message", "9.1/29")
@given(st.sampled_from(sorted(P)), st.sampled_from(sorted(Action)), situations)
def test_only_moves_of_the_table_are_made_and_each_is_explained(phase, action, found):
    decision = phases.decide(phase, phases.step_for(phase, action).rules, found)
    assert decision.phase == phase or decision.phase in TRANSITIONS[phase]
    assert decision.phase == phase or (decision.reason and decision.text.message)


@examples(300)
@given(st.sampled_from(sorted(P)), situations)
def test_the_phase_is_the_one_that_the_reference_says(phase, found):
    """`tests.jobs.reference` says it once more, of objects as they are stored."""
    least = [{} if task.minimum is None else {"minAvailable": task.minimum} for task in found.tasks]
    tasks = [{"name": each.name, "replicas": each.replicas, **of} for each, of in zip(found.tasks, least, strict=True)]
    spec = {"tasks": tasks, "minAvailable": found.min_available, "minSuccess": found.min_success}
    spec["maxRetry"] = found.max_retry
    status = {name.lower(): sum(of.get(name, 0) for of in found.counts.tasks.values()) for name in NAMES}
    status |= {"terminating": found.counts.terminating, "retryCount": found.retry_count}
    status["taskStatusCount"] = {name: {"phase": of} for name, of in found.counts.tasks.items()}
    follows = reference.by_itself(phase, spec, status, "Inqueue" if found.admitted else "Pending")
    assert phases.decide(phase, phases.step_for(phase).rules, found).phase == follows


@pytest.mark.shows("2.7/finished", "2.7/only these")
def test_nothing_leaves_a_finished_phase_and_a_move_outside_the_table_is_a_defect():
    assert all(TRANSITIONS[phase] == frozenset() for phase in FINISHED)
    rule = phases.PhaseRule(phases.always, P.RUNNING, "Magic", lambda _: Text("It came back."))
    with pytest.raises(ValueError, match="cannot go from Completed to Running"):
        phases.decide(P.COMPLETED, (rule,), main())


@pytest.mark.shows("2.1/unknown phase")
def test_unknown_phase_is_pending():
    assert {phases.phase_of(written) for written in ("", "Unheard", "Pending")} == {P.PENDING}


# ---- why pods failed, in words
def failed(*indexes, code=1, task="worker", **how):
    return [Failure(f"job-{task}-{index}", task, (code,) if code else (), **how) for index in indexes]


def without_command(task, *indexes):
    return failed(*indexes, code=None, task=task, reason="NoCommand", message=f"give container {task} a command")


@cases("failures, more", {
    "none": ([], 0),
    "alike": (failed(0, 3), 0),
    "many": (failed(*range(8)), 0),
    "more than are given": (failed(0), 4),
    "most first": ([*failed(0, code=2), *failed(1, 2)], 0),
    "several and more": ([*failed(0, 1, 2, 3), *failed(0, task="ps", code=2)], 3),
    "too many causes": ([failed(code, code=code)[0] for code in range(1, 6)], 0),
    "memory": (failed(0, code=137, reason="OOMKilled"), 0),
    "the message of all": (failed(0, 1, code=128, reason="StartError", message="no such file: x"), 0),
    "messages that differ": ([*failed(0, message="step 3"), *failed(1, message="step 9")], 0),
    "the message of each task": ([*without_command("worker", 0, 1), *without_command("ps", 0)], 0),
    "image": (failed(0, code=None, reason="ErrImagePull"), 0),
    "deadline": (failed(0, code=143, reason="DeadlineExceeded"), 0),
    "evicted": (failed(0, code=None, reason="Evicted"), 0),
    "unknown reason": (failed(0, code=3, reason="Poisoned"), 0),
    "nothing is known": (failed(0, code=None), 0),
    "several codes of a pod": ([Failure("x-a-0", "a", (1, 42)), Failure("x-a-1", "a", (1, 2, 42))], 0),
    "a pod of no task": ([Failure("alone", "", (1,))], 0),
    "pods of one name in turn": (failed(0, 0, 0, 1, code=None), 0),
    "others counted by name": (failed(0, 1, 2, 2, 3, 3, code=None), 0),
    "in the order of numbers": (failed(10, 9, 2), 0),
})  # fmt: skip
def test_failures_are_told_in_a_few_words(golden, failures, more):
    golden("causes", causes.summed_up(failures, more).text)


@cases("reason, ended, init, failure", {
    "nothing is known": ("", [], [], ()),
    "two containers": ("", [Ended(1), Ended(42, "Error", "no")], [Ended(0)], ((1, 42),)),
    "an init container": ("", [], [Ended(0), Ended(42, "Error", "no")], ((42,), "Error", "no")),
    "a sidecar": ("", [Ended(3, "Error", "no")], [Ended(143)], ((3, 143), "Error", "no")),
    "last words in colours": ("", [Ended(1, "Error", "1%\r\x1b[K\x1b[31mno\x1b[0m\nroom")], [],
        ((1,), "Error", "no room")),
    "one code twice": ("", [Ended(1), Ended(1)], [], ((1,),)),
    "the second container": ("", [Ended(0), Ended(3, "Error", "x\ny.")], [], ((3,), "Error", "x y")),
    "the pod's own reason": ("Evicted", [Ended(137)], [], ((137,), "Evicted", "Low disk")),
    "a long message": ("", [Ended(1, "Error", "y" * 999)], [], ((1,), "Error", "y" * 198 + " …")),
})  # fmt: skip
def test_a_failure_is_of_the_container_that_ended_badly(reason, ended, init, failure):
    message = "Low disk." if reason else ""
    assert causes.failure("a-b-0", "b", reason, message, ended, init) == Failure("a-b-0", "b", *failure)


@cases("text, line", {
    "lines": ("one\n two. ", "one two"),
    "not within brackets": (f"{CLAUSES} (VOLCANO_UI_ENGINE, which says so, is none, {'x' * 99}).",
        f"{CLAUSES.partition(', or')[0]} …"),
    "whole clauses": (f"{CLAUSES}; {'word ' * 50}", f"{CLAUSES} …"),
    "no clause ends late enough: whole words": (f"Error: {'word ' * 50}", f"Error: {'word ' * 38}…"),
})  # fmt: skip
def test_a_long_message_is_cut_where_a_clause_ends(text, line):
    assert causes.one_line(text) == line


@given(st.text(alphabet="ab ,;.()", max_size=400))
def test_a_message_is_never_longer_than_it_may_be_and_says_when_it_is_cut(text):
    line, whole = causes.one_line(text), " ".join(text.split()).rstrip(".")
    assert len(line) <= causes.LONGEST_MESSAGE
    assert line == whole or (line.endswith(" …") and whole.startswith(line.removesuffix(" …")))


failures = st.builds(
    Failure, st.from_regex(r"job-(a|b-c)-[0-9]", fullmatch=True), st.sampled_from(["a", "b-c", ""]),
    st.lists(st.integers(1, 255), max_size=3, unique=True).map(tuple),
    st.sampled_from(["", "Error", "OOMKilled", "Odd"]), st.sampled_from(["", "one", "two"]),
)  # fmt: skip


@given(st.lists(failures, max_size=12), st.integers(0, 3))
def test_each_failure_is_summed_up_once(failures, more):
    found = causes.summed_up(failures, more)
    named = [pod.times for each in found.groups for pod in each.pods]
    assert sum(named) + sum(each.more for each in found.groups) + found.others <= len(failures) + more
    assert bool(found.groups) == bool(failures)
    assert all(len({str(pod) for pod in each.pods}) == len(each.pods) <= causes.MAX_NAMES for each in found.groups)
    assert len({each.why for each in found.groups}) == len(found.groups) <= causes.MAX_CAUSES
    status = {"causes": causes.written(found)}
    stored = msgspec.json.decode(msgspec.json.encode(status))
    assert (causes.in_status(stored), stored) == (found, status), "so it is not written again"


@given(st.lists(STATES, max_size=3), st.lists(STATES, max_size=3))
def test_pages_and_controllers_read_one_fact_of_a_pod(states, init):
    own, first = ([{"name": f"c{n}", "state": state} for n, state in enumerate(each)] for each in (states, init))
    status = {"phase": "Failed", "containerStatuses": own, "initContainerStatuses": first}
    body = msgspec.json.encode({"metadata": {"name": "a-b-0"}, "status": status})
    fact, pod = facts.read_pod(body)[1], msgspec.json.decode(body, type=Pod)
    codes = {each["terminated"]["exitCode"] for each in (*states, *init) if each} - {0}
    assert set(fact.exit_codes) == codes
    assert pod.failure.exit_codes == fact.exit_codes
    assert pod.bad_exit_codes == fact.exit_codes
    assert (pod.exit_code or None) == (fact.exit_codes[0] if codes else None)


@given(firings)
def test_the_event_of_a_policy_carries_it_as_data_and_another_is_none(firing):
    texts = ("", "{", "[]", '{"event": "Magic", "what": "It rains", "action": "RestartJob"}')
    notes = [policy_firings.as_annotations(firing), {}, *({policy_firings.ANNOTATION: text} for text in texts)]
    found = [Event(metadata=ObjectMeta(annotations=each), message=firing.sentence) for each in notes]
    assert [policy_firings.of_event(event) for event in found] == [firing, *[None] * 5]
