from __future__ import annotations

import pytest

from jobs.pages import plugin_sentences, policy_sentences
from jobs.plugins.table import PLUGINS
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


def test_policies_of_tasks_come_first_and_name_their_task():
    own = task("worker", policies=[{"event": "TaskFailed", "action": "RestartTask"}], maxRetry=5)
    assert said({"event": "PodFailed", "action": "RestartJob"}, tasks=[own]) == [
        "When containers of worker restart too often (5 times): restart all pods of the task.",
        "When a pod fails: restart the whole job.",
    ]


def test_a_policy_that_cannot_act_says_why():
    stored = defaulted(job(policies=[{"event": "JobUpdated", "action": "AbortJob"}]))
    (sentence,) = policy_sentences.of_job(stored)
    assert sentence.names == "JobUpdated → AbortJob"
    assert sentence.doubts == ("JobUpdated never happens, so nothing follows from it; remove it.",)


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
        ("ssh", ("--ssh-port=2200",), "in /root/.ssh of each container, from the Secret train-ssh; clients use port 2200"),
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
