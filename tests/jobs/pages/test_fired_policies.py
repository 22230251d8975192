"""What a job's policies did, as rows; test_history has the table on its page."""

from __future__ import annotations

from jobs.pages import fired_policies
from jobs.pages.chapters import Chapter, Times
from jobs.pages.timeline import Mark
from tests.tables import cases


def failed(at, index, *, code=3, action="RestartJob", times=1):
    said = f"PodFailed: demo-main-{index} exited with code {code}. The policy for it is {action}."
    return Mark(at, "ExecuteAction", said, times)


def run(number, begun, ended=None, phase=""):
    return Chapter(number, Times(begun, ended=ended), phase=phase)


TWO = [run(1, 0, 100, "Restarting"), run(2, 110)]


def test_equal_answers_of_a_run_are_one_row():
    marks = [failed(90, 0, times=2), failed(95, 1), failed(96, 2, code=4), failed(150, 0)]
    found = fired_policies.rows(marks, TWO)
    assert [(row.run, row.times, row.exit_code, row.pods, row.at) for row in found] == [
        (1, 3, 3, ("demo-main-0", "demo-main-1"), 95),
        (1, 1, 4, ("demo-main-2",), 96),
        (2, 1, 3, ("demo-main-0",), 150),
    ]


def test_of_many_pods_some_are_named():
    (row,) = fired_policies.rows([failed(90 + index % 9, index) for index in range(12)], TWO)
    assert (row.times, len(row.named), row.more) == (12, 3, 9)


def test_what_a_command_did_is_no_policy():
    assert fired_policies.rows([Mark(5, "CommandIssued", "Suspended by alice.")], TWO) == []


@cases("action, after, runs, said", {
    "restart": ("RestartJob", "", TWO, "run 2 began"),
    "restart under way": ("RestartJob", "", [run(1, 0)], ""),
    "no restart left": ("RestartJob", "", [run(1, 0, 100, "Failed")], "the job failed"),
    "abort": ("AbortJob", "", [run(1, 0, 100, "Aborted"), run(2, 200)], "the job was suspended"),
    "another end than was asked for": ("AbortJob", "", [run(1, 0, 100, "Completed")], ""),
    "complete": ("CompleteJob", "", [run(1, 0, None, "Completing")], "the job was completed"),
    "a task": ("RestartTask", "", [run(1, 0)], "the task's pods were restarted"),
    "a pod, later or never": ("RestartPod", " after 1m0s", [run(1, 0)], ""),
})  # fmt: skip
def test_a_row_says_what_it_led_to(action, after, runs, said):
    text = f"PodFailed: demo-main-0 exited with code 3. The policy for it is {action}{after}."
    (row,) = fired_policies.rows([Mark(90, "ExecuteAction", text)], runs)
    assert row.led_to == said
