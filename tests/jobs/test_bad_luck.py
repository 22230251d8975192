"""Each piece of bad luck that a job may have, on its own: what comes of it, and what people are told.

More of it: Commands in a burst (`test_stories`), answers whose writes fail (`test_answers`), several pieces at once
(`test_lifecycle_machine`).
"""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest
from django.db import connection

from tests.jobs.control import Controller, messages, task, uids
from tests.jobs.lifecycle.mortal import Doom, Killed
from tests.jobs.story import Story
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)
THREE = {"replicas": 3}
# Where a job gets from a phase when nothing else happens to it.
GOES_ON = {
    "Pending": "Running", "Running": "Running", "Restarting": "Running", "Aborting": "Aborted", "Aborted": "Aborted",
    "Completing": "Completed", "Completed": "Completed", "Terminating": "Terminated", "Terminated": "Terminated",
    "Failed": "Failed",
}  # fmt: skip
BY_COMMAND = {
    "Restarting": "RestartJob", "Aborting": "AbortJob", "Aborted": "AbortJob", "Completing": "CompleteJob",
    "Completed": "CompleteJob", "Terminating": "TerminateJob", "Terminated": "TerminateJob",
}  # fmt: skip
# How a job of three pods gets to a phase; where pods are left in it, one of them has succeeded.
RUNS = "run, bind, succeed main-0"
REACH = {
    "Pending": "admit, bind", "Running": RUNS, "Failed": f"{RUNS}, fail main-1 main-2",
    **{phase: f"{RUNS}, command {action}" + ", sweep" * (GOES_ON[phase] == phase) for phase, action in BY_COMMAND.items()},
}  # fmt: skip
ALL = "main-0 main-1 main-2"


def on(event, action="RestartJob", **fields):
    return {"policies": [{"event": event, "action": action, **fields}]}


def evicted(phase, how, policies):
    """The story of a job whose pods somebody deletes: a policy heeds it only while the job is on its way."""
    is_heeded = bool(policies) and phase in ("Pending", "Running")
    end = "Aborted" if is_heeded else GOES_ON[phase]
    there = ALL if end == "Running" else ""
    return f"{REACH[phase]} → phase {phase}\n{how}, rest → phase {end}; executed {int(is_heeded)}; pods {there}; anew {there}"


def lost(phase):
    """The story of a job whose nodes are lost."""
    is_restarted = phase in ("Pending", "Running", "Restarting")
    retries, running = int(is_restarted or phase == "Failed"), 3 * is_restarted
    return f"{REACH[phase]} → phase {phase}\nlose, rest → phase {GOES_ON[phase]}; retries {retries}; running {running}"


def jumped(phase, seconds):
    """The story of a job that goes on when the clock jumps."""
    end = "Completed" if phase == "Running" else GOES_ON[phase]
    ended = ", succeed main-1 main-2" * (phase == "Running")
    return f"{REACH[phase]} → phase {phase}\nwait {seconds}{ended}, rest → phase {end}"


@cases("spec, story", {
    # ---- policies that fight
    "restarted for whatever happens it fails with its retries and tells its story": (
        {"replicas": 1, "maxRetry": 2, **on("*")}, """
        rest → phase Running; reasons PodsRunning
        fail main-0 7 → reasons PodFailed ExecuteAction SuccessfulDelete RestartRequested Restarted; executed 1
        rest → phase Running; reasons PodsRunning
        fail main-0 7, rest → phase Failed; reason RetriesUsedUp; conditions Pending Running Restarting Failed
        → says Exit 7 · main-0. The job was restarted once; instead of restart 2 it failed, as maxRetry is 2."""),
    # The second finds the job restarting, which heeds no action (reference: volcano-job §10, Q-13).
    "of policies that ask for opposites at once the first decides": (
        {"tasks": [task("a", **on("PodFailed", "RestartTask")), task("b")], **on("PodFailed", "AbortJob")}, """
        rest, fail, rest → phase Running; retries 1; executed 2"""),
    # ---- in every phase
    **{
        f"{phase}: pods are deleted {words}": (THREE | policies, evicted(phase, how, policies))
        for phase in GOES_ON
        for words, how, policies in (
            ("by force", "evict", {}), ("with grace", "delete", {}), ("and answered", "evict", on("PodEvicted", "AbortJob")),
        )
    },
    **{
        f"{phase}: nodes are lost": (THREE | on("PodFailed") | {"maxRetry": 1 if phase == "Failed" else 3}, lost(phase))
        for phase in GOES_ON
    },
    **{
        f"{phase}: the clock jumps by {seconds}": (THREE, jumped(phase, seconds))
        for phase in GOES_ON
        for seconds in (3600, -3600)
    },
    # ---- while every controller is down
    **{
        f"what happens while every controller is down is answered once: {event}": (on(event, **fields), f"""
        {happens}, !wait 300, next, rest, next, rest → phase Running; retries 1; executed 1""")
        for event, happens, fields in (
            ("PodFailed", "run, bind, !fail main-0", {}), ("PodEvicted", "run, bind, !evict main-0", {}),
            ("Unknown", "run, bind, !group Unknown", {}), ("TaskCompleted", "run, bind, !succeed", {}),
            ("TaskFailed", "run, bind, !restarts main-0 3", {}), ("PodPending", "admit", {"timeout": "1m"}),
        )
    },
    "a pod fails and is deleted, the job is scaled, suspended and resumed, and nobody sees any of it": (
        THREE | on("PodFailed"), """
        run, bind, !fail main-0, !evict main-0, !scale 2 2, !command AbortJob ResumeJob, !group Unknown, next, rest → running 2
        → phase Running; pods main-0 main-1; executed 0"""),
})  # fmt: skip
def test_story(tell, spec, story):
    tell(spec, story)


@cases("happens, action, anew, version", {
    "by a policy": ("fail main-0", "RestartJob", 2, 1),
    "by a Command": ("command RestartJob", "RestartJob", 2, 1),
    "of a pod": ("fail main-0", "RestartPod", 1, 0),
})  # fmt: skip
def test_restart_is_whole_before_which_statement_ever_the_controller_dies(
    controller, monkeypatch, happens, action, anew, version
):
    policies = {} if "command" in happens else on("PodFailed", action)
    story = Story(controller, monkeypatch, **policies)
    for at in itertools.count():
        story.goes("run, bind → phase Running")
        before, words = uids(), messages("ExecuteAction", "CommandIssued")
        story.does(f"!{happens}")
        doom = Doom(at)
        with suppress(Killed), connection.execute_wrapper(doom):
            story.controller.settle()
        story.controller = Controller()
        story.goes(f"rest → phase Running; retries 1; version {version}")
        assert len([name for name, uid in uids().items() if before[name] != uid]) == anew
        assert [action in each for each in messages("ExecuteAction", "CommandIssued")[len(words) :]] == [True]
        story.does("again")
        if doom.left >= 0:
            break
    assert at > 20, "it died somewhere"
