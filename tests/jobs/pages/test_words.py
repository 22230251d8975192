"""What pages say of policies, plugins and how far a job is."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.pages import fired_policies, plugin_sentences, policy_sentences, progress
from jobs.pages.chapters import Chapter, Times
from jobs.pages.progress import Progress, Ran
from jobs.pages.reading import Job
from jobs.pages.timeline import Mark
from jobs.plugins.table import PLUGINS
from jobs.templatetags.gang import gang_bar
from kube.kinds.batch import JobPhase
from tests.jobs.builders import defaulted, job, task
from tests.tables import cases

TRAIN = (task("master", 1), task("worker", 4))


def said(*policies, tasks=(), **spec):
    found = policy_sentences.of_job(defaulted(job(*tasks, policies=list(policies), **spec)))
    return [f"{each.when}: {each.then}." for each in found]


@cases("policy, expected", {
    "event": ({"event": "PodFailed", "action": "RestartJob"}, "When a pod fails: restart the whole job."),
    "events": ({"event": "PodFailed", "events": ["PodEvicted"], "action": "AbortJob"},
        "When a pod fails or a pod is evicted or deleted: suspend the job; it can be resumed."),
    "exit code": ({"exitCode": 3, "action": "TerminateJob"},
        "When a pod fails with exit code 3: end the job as Terminated."),
    "timeout": ({"event": "PodPending", "action": "RestartPod", "timeout": "10m"},
        "When a pod waits to start: after 10m, restart the pod, unless the pod runs by then."),
    "timeout of what is not undone": ({"event": "TaskCompleted", "action": "CompleteJob", "timeout": "1h"},
        "When a task has completed: after 1h, end the job as Completed."),
    "Unknown": ({"event": "Unknown", "action": "RestartJob"},
        "When pods of the gang are lost and cannot be placed again: restart the whole job."),
})  # fmt: skip
def test_a_policy_is_a_sentence(policy, expected):
    assert said(policy) == [expected]


def test_policies_of_tasks_come_first_and_name_their_task_and_one_that_cannot_act_says_why():
    own = task("worker", policies=[{"event": "TaskFailed", "action": "RestartTask"}], maxRetry=5)
    assert said({"event": "PodFailed", "action": "RestartJob"}, tasks=[own]) == [
        "When containers of worker restart too often (5 times): restart all pods of the task.",
        "When a pod fails: restart the whole job.",
    ]
    (never,) = policy_sentences.of_job(defaulted(job(policies=[{"event": "JobUpdated", "action": "AbortJob"}])))
    doubt = "JobUpdated never happens, so nothing follows from it; remove it."
    assert (never.names, never.doubts) == ("JobUpdated → AbortJob", (doubt,))


@pytest.mark.parametrize(
    ("action", "used", "expected"),
    [
        ("RestartJob", 1, "1 of 2 restarts is used up; with restart 3 the job fails instead."),
        ("RestartPod", 0, "0 of 2 restarts are used up; with restart 3 the job fails instead."),
        ("AbortJob", 0, ""),
        ("AbortJob", 2, "2 of 2 restarts are used up; with restart 3 the job fails instead."),
        ("RestartJob", 3, "2 of 2 restarts are used up; instead of restart 3 the job failed."),
    ],
)
def test_restarts_are_counted_where_there_may_be_any(action, used, expected):
    stored = defaulted(job(policies=[{"event": "PodFailed", "action": action}]))
    stored["status"] = {"retryCount": used}
    assert policy_sentences.restarts(stored) == expected


def gave(plugin, *arguments, tasks=TRAIN):
    found = plugin_sentences.of_job(defaulted(job(*tasks, name="train", plugins={plugin: list(arguments)})))
    return " ".join(next(each.gave for each in found if each.name == plugin))


@pytest.mark.parametrize(
    ("plugin", "arguments", "expected"),
    [
        ("env", (), "VC_TASK_INDEX and VK_TASK_INDEX"),
        ("svc", (), "Pods of worker are found as train-worker-0.train to train-worker-3.train."),
        ("svc", (), "Pods of master are found as train-master-0.train."),
        ("svc", (), "NetworkPolicy train"),
        ("ssh", ("--ssh-port=2200",), "/root/.ssh of each container, from the Secret train-ssh; clients use port 2200"),
        ("pytorch", ("--port", "9000"), "MASTER_ADDR is train-master-0.train, MASTER_PORT 9000, WORLD_SIZE 5."),
        ("pytorch", (), "RANK is 0 in master and 1 to 4 in worker."),
        ("pytorch", ("--master=boss",), "No pod of a task boss leads, so nothing is set."),
        ("tensorflow", ("--ps=master",), "In TF_CONFIG ps is train-master-0.train at port 2222."),
        ("mpi", (), "MPI_HOST in the pods of master is the list train-worker-0.train to train-worker-3.train."),
        ("ray", ("--head=master",), "The head is train-master-0.train; workers join it at port 6379."),
        ("ray", ("--dashboardPort=80",), "Service train-head-svc leads to it: port 6379 for workers, 80 for the dashboard"),
        ("hcclrank", (), "is 0 in master, unless RANK is set. The annotation hccl/rankIndex is 1 to 4 in worker"),
    ],
)  # fmt: skip
def test_a_plugin_says_what_it_gave(plugin, arguments, expected):
    assert expected in gave(plugin, *arguments)


@cases("tasks, arguments, is_said, words", {
    "what is switched off": (TRAIN, ["--inject-hosts-env=false"], False, "VC_TASK_HOSTS"),
    "no network policy": (TRAIN, ["--disable-network-policy"], False, "NetworkPolicy"),
    "a host name of a template is one for all pods": ([task("worker", 3, pod={"hostname": "w", "subdomain": "d"})], [],
        True, "Pods of worker are found as w.d."),
})  # fmt: skip
def test_what_svc_gave_follows_its_arguments_and_the_template(tasks, arguments, is_said, words):
    assert (words in gave("svc", *arguments, tasks=tasks)) == is_said


def test_every_plugin_has_something_to_say():
    assert set(plugin_sentences.SAYS) == set(PLUGINS)


@cases("numbers, finished, said, short", {
    "nothing yet": ((4, 4, 0, 0, 0), False, "0 of 4 needed are running", "0/4"),
    "one": ((4, 4, 1, 0, 0), False, "1 of 4 needed is running", "1/4"),
    "more than needed": ((5, 4, 5, 0, 0), False, "5 are running, 4 are needed", "5/4"),
    "one failed": ((5, 4, 4, 0, 1), False, "4 of 4 needed are running, 1 failed", "4/4"),
    "some done": ((4, 4, 2, 2, 0), False, "4 of 4 needed are running or have succeeded", "4/4"),
    "one done": ((3, 1, 0, 1, 0), False, "1 of 1 needed is running or has succeeded", "1/1"),
    "no minimum": ((3, 0, 2, 0, 0), False, "2 running, no minimum is set", "2/0"),
    "over": ((5, 4, 0, 4, 1), True, "4 of 5 pods succeeded, 1 failed", "4/5"),
    "one pod over": ((1, 1, 0, 1, 0), True, "1 of 1 pod succeeded", "1/1"),
})  # fmt: skip
def test_the_gang_in_words(numbers, finished, said, short):
    total, minimum, running, succeeded, failed = numbers
    progress = Progress(total, minimum, running, succeeded, failed, finished)
    assert (progress.said, progress.short) == (said, short)


def test_the_bar_says_its_numbers():
    assert "1 succeeded, 2 running, 1 failed, 1 waiting" in gang_bar(Progress(5, 4, 2, 1, 1))


P, R, X, A, F = "Pending", "Running", "Restarting", "Aborted", "Failed"


@cases("phases, deleted, found", {
    "never ran": ([(P, 1)], 0, Ran(None, None)),
    "never ran, deleted": ([(P, 1)], 9, Ran(None, None)),
    "runs": ([(P, 1), (R, 2)], 0, Ran(None, 2)),
    "was deleted while it ran": ([(P, 1), (R, 2)], 9, Ran(7, None)),
    "had ended when it was deleted": ([(P, 1), (R, 2), (A, 5)], 9, Ran(3, None)),
    "pods run until they have ended": ([(P, 1), (R, 2), ("Aborting", 4), (A, 5)], 0, Ran(3, None)),
    "waits again: what it ran stays": ([(R, 2), (P, 5)], 0, Ran(3, None)),
    "evicted twice": ([(P, 1), (R, 2), (P, 5), (R, 6), (P, 8)], 0, Ran(5, None)),
    "runs again after an eviction": ([(P, 1), (R, 2), (P, 5), (R, 6)], 0, Ran(3, 6)),
    "was suspended while it waited again": ([(R, 2), (P, 5), (A, 7)], 0, Ran(3, None)),
    "restarts": ([(P, 1), (R, 2), (X, 4)], 0, Ran(2, None)),
    "failed instead of a restart": ([(P, 1), (R, 2), (X, 4), (F, 5)], 0, Ran(2, None)),
    "the new run has not run": ([(R, 2), (X, 4), (P, 5)], 0, Ran(None, None)),
    "the new run never ran": ([(R, 2), (X, 4), (P, 5), (A, 6)], 0, Ran(None, None)),
    "the new run ran": ([(X, 4), (P, 5), (R, 6), (F, 9)], 0, Ran(3, None)),
})  # fmt: skip
def test_how_long_the_newest_run_ran(phases, deleted, found):
    assert progress.last_ran(phases, deleted) == found


HISTORIES = st.lists(st.sampled_from([str(phase) for phase in JobPhase]), max_size=12)


@given(HISTORIES, st.integers(1, 5))
def test_only_a_job_that_runs_or_ends_its_pods_runs_and_nothing_grows_once_it_is_deleted(phases, later):
    """However a history went, its end does not depend on when one looks."""
    history = [(phase, at) for at, phase in enumerate(phases)]
    living, deleted = progress.last_ran(history), progress.last_ran(history, len(phases) + later)
    if living.since is not None:
        assert not {*phases[living.since :]} & {P, X, A, F, "Completed", "Terminated"}
    assert deleted.since is None
    assert (deleted.before is None) or deleted.before <= len(phases) + later


@cases("phase, said", {
    "Running": ("Running", "1 of 4 needed is running or has succeeded"),
    "Aborting: nothing more starts": ("Aborting", "1 of 4 pods succeeded"),
    "Aborted": ("Aborted", "1 of 4 pods succeeded"),
    "Restarting": ("Restarting", "1 of 4 needed is running or has succeeded"),
})  # fmt: skip
def test_a_job_that_is_ending_waits_for_no_gang(phase, said):
    body = {
        "spec": {"minAvailable": 4, "tasks": [{"name": "main", "replicas": 4}]},
        "status": {"state": {"phase": phase}, "succeeded": 1},
    }
    assert progress.of_job(msgspec.convert(body, Job)).said == said


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
    (row,) = fired_policies.rows([failed(90 + index % 9, index) for index in range(12)], TWO)
    assert (row.times, len(row.named), row.more) == (12, 3, 9), "of many pods some are named"
    assert fired_policies.rows([Mark(5, "CommandIssued", "Suspended by alice.")], TWO) == [], "no policy did that"


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
