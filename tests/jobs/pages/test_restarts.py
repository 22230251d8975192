"""Restarts are counted alike wherever they are told: the head, the policies, the message, the runs and retryCount."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.store import store
from kube.kinds.batch import Action
from kube.resources import JOBS, PODS
from tests.jobs.control import task
from tests.jobs.pages.job_page import JobPage, words
from tests.tables import cases

POLICIES = [
    {"exitCode": 1, "action": "RestartJob"},
    {"exitCode": 2, "action": "RestartPod"},
    {"event": "TaskCompleted", "action": "CompleteJob"},
]


def go_on(one):
    """Let a job come to run, if anything lets it."""
    for _ in range(3):
        one.passes(1).bury(143).admit().place()
        one.jobs.settle()
    for pod in store.find(PODS, owner=one.job.uid):
        if pod.object["spec"].get("nodeName") and pod.object["status"].get("phase") == "Pending":
            one.status(pod.name, "Running", state={"running": {"startedAt": one.now()}})
    one.jobs.settle()
    return one


def status(one):
    return store.get(JOBS, "default", one.name).object["status"]


def fails(code):
    return lambda one: one.end(f"{one.name}-main-0", code, began=one.now())


WAYS = {
    "restart of the job, by its policy": fails(1),
    "restart of a pod, by its policy": fails(2),
    "restart of the job, on request": lambda one: one.ask(Action.RESTART_JOB),
    "suspended and resumed": lambda one: one.suspend().resume(),
}


def test_what_is_said_of_restarts_agrees_everywhere(life, reader):
    number = itertools.count()

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.sampled_from(sorted(WAYS)), max_size=5), st.integers(1, 4))
    def of(ways, most):
        name = f"job-{next(number)}"
        one = go_on(life(name, replicas=2, minAvailable=1, maxRetry=most, policies=POLICIES))
        whole = parts = resumed = asked = 0
        for way in ways:
            if status(one)["state"]["phase"] != "Running":
                break
            WAYS[way](one)
            go_on(one)
            resumed += "resumed" in way
            asked += "restart" in way
            if "restart" in way and asked < most:
                whole += "of the job" in way
                parts += "of a pod" in way
        made, page, told = whole + parts, JobPage(reader, name), status(one)
        assert told.get("retryCount", 0) == asked
        assert len(page.runs) in (1 + whole + resumed, 0 if not whole + resumed else None)
        assert f"{made} of {most - 1} restart" in page.text("job-policies")
        facts = words(page.tree.find(".//*[@class='job-facts']"))
        if asked:
            assert re.search(rf"Restarts\s*{made} of {most - 1}", facts)
            assert (f", {parts} of parts" in facts) == bool(parts)
        assert (told["state"]["phase"] == "Failed") == (asked >= most)
        if asked >= most:
            times = "once" if made == 1 else f"{made} times"
            assert f"The job was restarted {times}; instead of restart {asked} it" in told["state"]["message"]

    of()


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("restart of the job, by its policy", "Restarted by its policy exitCode 1 → RestartJob (main)"),
        ("restart of the job, on request", "Restarted on request, which counts as a retry"),
        ("suspended and resumed", "Aborted"),
    ],
)
def test_a_run_says_who_restarted_it(life, reader, way, said):
    one = go_on(life(maxRetry=3, policies=POLICIES))
    WAYS[way](one)
    go_on(one)
    assert said in words(JobPage(reader, query="?run=1").tree.find(".//main"))


@cases("complete, reason, who", {
    "by its policy": (lambda one: one.end("demo-ps-0", 0, began=one.now()), "CompletedByPolicy",
        "by its policy TaskCompleted → CompleteJob (ps)"),
    "on request": (lambda one: one.ask(Action.COMPLETE_JOB), "CompletedOnRequest", "on request"),
})  # fmt: skip
def test_a_completed_job_says_who_completed_it(life, complete, reason, who):
    one = go_on(life(tasks=[task("ps", 1), task("worker", 2)], policies=POLICIES))
    complete(one)
    for _ in range(2):  # a round in which pods are waited for
        one.jobs.settle()
    assert status(one)["state"]["phase"] == "Completing"
    state = status(one.bury(143))["state"]
    assert state["message"].endswith(f"when the job was completed {who}.")
    assert state["reason"] == reason
