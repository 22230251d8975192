"""What pages say of policies, plugins and how far a job is."""

from __future__ import annotations

import msgspec
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobs.pages import fired_policies, plugin_sentences, policy_sentences, progress
from jobs.pages.chapters import Chapter, Times
from jobs.pages.progress import Progress
from jobs.pages.reading import Job
from jobs.pages.timeline import Mark
from jobs.plugins.table import PLUGINS
from jobs.templatetags.gang import gang_bar
from kube.kinds.batch import JobPhase
from tests.blocks import blocks
from tests.jobs.builders import defaulted, job, task
from tests.tables import cases

TRAIN = (task("master", 1), task("worker", 4))
APART = (task("worker", 3, pod={"hostname": "w", "subdomain": "d"}),)
IDLE = {"Pending", "Restarting", "Aborted", "Failed", "Completed", "Terminated"}
HISTORIES = st.lists(st.sampled_from([str(phase) for phase in JobPhase]), max_size=12)


def of_policy(text):
    policy = yaml.safe_load(text)
    tasks = [task(policy.pop("task"), policies=[policy], maxRetry=5)] if "task" in policy else []
    stored = defaulted(job(*tasks, policies=[] if tasks else [policy]))
    return [" ".join((f"{each.when}: {each.then}.", *each.doubts)) for each in policy_sentences.of_job(stored)]


def of_restarts(text):
    action, used = text.split()
    stored = defaulted(job(policies=[{"event": "PodFailed", "action": action}]))
    return [policy_sentences.restarts({**stored, "status": {"retryCount": int(used)}})]


def of_plugin(text):
    name, *arguments = text.partition(" of ")[0].split()
    tasks = APART if " of " in text else TRAIN
    found = plugin_sentences.of_job(defaulted(job(*tasks, name="train", plugins={name: arguments})))
    return next(each.gave for each in found if each.name == name)


def of_gang(text):
    *numbers, over = text.split() if text.endswith("over") else (*text.split(), "")
    shown = Progress(*map(int, numbers), bool(over))
    return [f"{shown.short}: {shown.said}"]


def of_phases(text):
    times = [(phase, int(at)) for phase, at in (each.split() for each in text.split(", "))]
    deleted = dict(times).get("deleted", 0)
    ran = progress.last_ran([each for each in times if each[0] != "deleted"], deleted)
    return [f"before {ran.before}, since {ran.since}"]


SENTENCES = {
    "policies": of_policy, "restarts": of_restarts, "plugins of a master and four workers": of_plugin,
    "how far a gang is: how many there are, are needed, run, succeeded and failed": of_gang,
    "how long the newest run ran": of_phases,
}  # fmt: skip


@blocks("sentences", folder="pages")
def test_what_is_said(block, golden):
    golden(block, SENTENCES[block.title], by_line=True)


def test_every_plugin_has_something_to_say():
    assert set(plugin_sentences.SAYS) == set(PLUGINS)


def test_the_bar_says_its_numbers():
    assert "1 succeeded, 2 running, 1 failed, 1 waiting" in gang_bar(Progress(5, 4, 2, 1, 1))


@given(HISTORIES, st.integers(1, 5))
def test_only_a_job_that_runs_or_ends_its_pods_runs_and_nothing_grows_once_it_is_deleted(phases, later):
    """However a history went, its end does not depend on when one looks."""
    history = [(phase, at) for at, phase in enumerate(phases)]
    living, deleted = progress.last_ran(history), progress.last_ran(history, len(phases) + later)
    if living.since is not None:
        assert not {*phases[living.since :]} & IDLE
    assert deleted.since is None
    assert (deleted.before is None) or deleted.before <= len(phases) + later


@cases("phase, said", {
    "running": ("Running", "1 of 4 needed is running or has succeeded"),
    "aborting: nothing more starts": ("Aborting", "1 of 4 pods succeeded"),
    "aborted": ("Aborted", "1 of 4 pods succeeded"),
    "restarting": ("Restarting", "1 of 4 needed is running or has succeeded"),
})  # fmt: skip
def test_a_job_that_is_ending_waits_for_no_gang(phase, said):
    spec = {"minAvailable": 4, "tasks": [{"name": "main", "replicas": 4}]}
    status = {"state": {"phase": phase}, "succeeded": 1}
    assert progress.of_job(msgspec.convert({"spec": spec, "status": status}, Job)).said == said


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
        (1, 3, 3, ("demo-main-0", "demo-main-1"), 95), (1, 1, 4, ("demo-main-2",), 96),
        (2, 1, 3, ("demo-main-0",), 150),
    ]  # fmt: skip
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
