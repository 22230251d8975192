"""Why pods failed, in words."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.controller import facts
from jobs.lifecycle import causes, fired
from jobs.lifecycle.causes import Failure
from jobs.lifecycle.fired import Fired
from jobs.pages.reading import Pod
from kube.kinds.batch import Action, JobEvent
from tests.tables import cases


def failed(*indexes, code=1, task="worker", **how):
    return [Failure(f"job-{task}-{index}", task, (code,) if code else (), **how) for index in indexes]


def without_command(task, *indexes):
    return failed(*indexes, code=None, task=task, reason="NoCommand", message=f"give container {task} a command")


@cases("failures, more, told", {
    "none": ([], 0, ""),
    "alike": (failed(0, 3), 0, "exit 1 · worker-0, worker-3"),
    "many": (failed(*range(8)), 0, "exit 1 · worker-0, worker-1, worker-2 and 5 more"),
    "more than are given": (failed(0), 4, "exit 1 · worker-0 and 4 more"),
    "most first": ([*failed(0, code=2), *failed(1, 2)], 0, "exit 1 · worker-1, worker-2; exit 2 · worker-0"),
    "several and more": ([*failed(0, 1, 2, 3), *failed(0, task="ps", code=2)], 3,
        "exit 1 · worker-0, worker-1, worker-2 and 1 more; exit 2 · ps-0; 3 more"),
    "too many causes": ([failed(code, code=code)[0] for code in range(1, 6)], 0,
        "exit 1 · worker-1; exit 2 · worker-2; exit 3 · worker-3; 2 more"),
    "memory": (failed(0, code=137, reason="OOMKilled"), 0, "out of memory · worker-0"),
    "the message of all": (failed(0, 1, code=128, reason="StartError", message="no such file: x"), 0,
        "could not start: no such file: x · worker-0, worker-1"),
    "messages that differ": ([*failed(0, message="step 3"), *failed(1, message="step 9")], 0,
        "exit 1 · worker-0, worker-1"),
    "the message of each task": ([*without_command("worker", 0, 1), *without_command("ps", 0)], 0,
        "no command: give container worker a command · worker-0, worker-1; "
        "no command: give container ps a command · ps-0"),
    "image": (failed(0, code=None, reason="ErrImagePull"), 0, "image cannot be pulled · worker-0"),
    "deadline": (failed(0, code=143, reason="DeadlineExceeded"), 0, "deadline exceeded · worker-0"),
    "evicted": (failed(0, code=None, reason="Evicted"), 0, "evicted · worker-0"),
    "unknown reason": (failed(0, code=3, reason="Poisoned"), 0, "Poisoned (exit 3) · worker-0"),
    "nothing is known": (failed(0, code=None), 0, "failed · worker-0"),
    "several codes of a pod": ([Failure("x-a-0", "a", (1, 42)), Failure("x-a-1", "a", (1, 2, 42))], 0,
        "exit 1 and 42 · a-0; exit 1, 2 and 42 · a-1"),
    "a pod of no task": ([Failure("alone", "", (1,))], 0, "exit 1 · alone"),
    "pods of one name in turn": (failed(0, 0, 0, 1, code=None), 0, "failed · worker-0 (3 times), worker-1"),
    "others counted by name": (failed(0, 1, 2, 2, 3, 3, code=None), 0,
        "failed · worker-0, worker-1, worker-2 (2 times) and 1 more"),
    "in the order of numbers": (failed(10, 9, 2), 0, "exit 1 · worker-2, worker-9, worker-10"),
})  # fmt: skip
def test_failures_are_told_in_a_few_words(failures, more, told):
    assert causes.cause(failures, more) == told


class Ended(NamedTuple):
    exit_code: int
    reason: str = ""
    message: str = ""


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


CLAUSES = "This node runs commands and no images; give container job a command, or install podman there and start again"


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


@cases("message, rest", {
    "it begins so": ("Exit 1 · worker-0. 3 of 4 succeeded.", "3 of 4 succeeded."),
    "it ends so": ("Suspended. Exit 1 · worker-0.", "Suspended."),
    "it has others": ("Exit 2 · worker-0. 3 of 4.", "Exit 2 · worker-0. 3 of 4."),
})  # fmt: skip
def test_a_message_is_left_without_what_is_told_apart(message, rest):
    assert causes.without(message, causes.sentence(failed(0))) == rest


@given(
    st.lists(
        st.builds(
            Failure,
            st.from_regex(r"job-(a|b-c)-[0-9]", fullmatch=True),
            st.sampled_from(["a", "b-c", ""]),
            st.lists(st.integers(1, 255), max_size=3, unique=True).map(tuple),
            st.sampled_from(["", "Error", "OOMKilled", "Odd"]),
            st.sampled_from(["", "one", "two"]),
        ),
        max_size=12,
    )
)
def test_each_failure_has_one_cause(failures):
    found = causes.causes(failures)
    assert sum(len(one.failures) for one in found) == len(failures)
    assert all(sum(each.times for each in one.named) <= len(one.failures) for one in found)
    assert all(len(one.named) + one.more == len({each.pod for each in one.failures}) for one in found)
    assert all(len({str(each) for each in one.named}) == len(one.named) for one in found)
    assert len({one.said for one in found}) == len(found)


STATES = st.just({}) | st.builds(lambda code: {"terminated": {"exitCode": code}}, st.sampled_from([0, 1, 42, 143]))


@given(st.lists(STATES, max_size=3), st.lists(STATES, max_size=3))
def test_pages_and_controllers_read_one_fact_of_a_pod(states, init):
    status = {
        "phase": "Failed",
        "containerStatuses": [{"name": f"c{n}", "state": each} for n, each in enumerate(states)],
        "initContainerStatuses": [{"name": f"i{n}", "state": each} for n, each in enumerate(init)],
    }
    body = msgspec.json.encode({"metadata": {"name": "a-b-0"}, "status": status})
    fact, shown = facts.read_pod(body)[1], msgspec.json.decode(body, type=Pod)
    codes = {each["terminated"]["exitCode"] for each in (*states, *init) if each} - {0}
    assert set(fact.exit_codes) == codes
    assert shown.failure.exit_codes == fact.exit_codes
    assert shown.bad_exit_codes == fact.exit_codes
    assert (shown.exit_code or None) == (fact.exit_codes[0] if codes else None)


@cases("text, pod, code", {
    "failed": ("PodFailed: a-0 exited with code 3 (Error): x. y. The policy for it is RestartJob.", "a-0", 3),
    "failed twice": ("PodFailed: a-0 exited with codes 3 and 42. The policy for it is RestartJob.", "a-0", 3),
    "did not start": ("PodFailed: a-0 could not start. The policy for it is RestartTask.", "a-0", None),
    "evicted": (
        "PodEvicted: a-0 was deleted, and not by the job controller. The policy for it is RestartPod after 1m0s.",
        "a-0", None),
    "task": (
        "TaskFailed: containers of task a were started again too often, last of a-1. The policy for it is AbortJob.",
        "a-1", None),
    "no pod": ("TaskCompleted: all pods of task a succeeded. The policy for it is CompleteJob.", "", None),
})  # fmt: skip
def test_a_sentence_tells_pod_and_exit_code(text, pod, code):
    found = fired.read(text)
    assert (found.pod, found.exit_code) == (pod, code)
    assert fired.write(found) == text


@pytest.mark.parametrize("text", ["", "Suspended by alice.", "alice asked: the policy for it is RestartJob."])
def test_other_sentences_are_no_policies(text):
    assert fired.read(text) is None


@given(
    st.sampled_from(list(JobEvent)[:-1]),
    st.text(max_size=40).filter(lambda text: "The policy for it" not in text),
    st.sampled_from(list(Action)),
    st.sampled_from(["", "1m0s", "5s"]),
)
def test_what_is_written_is_read(event, what, action, after):
    if not event.isalnum():
        return
    written = Fired(event, what, action, after)
    assert fired.read(fired.write(written)) == written
