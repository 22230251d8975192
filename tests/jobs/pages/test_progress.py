from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jobs.pages import progress
from jobs.pages.progress import Progress, Ran
from jobs.pages.reading import Job
from jobs.templatetags.gang import gang_bar
from kube.kinds.batch import JobPhase
from tests.tables import cases


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
    bar = gang_bar(Progress(5, 4, 2, 1, 1))
    assert "1 succeeded, 2 running, 1 failed, 1 waiting" in bar


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
def test_nothing_grows_once_a_job_is_deleted(phases, later):
    """However a history went, its end does not depend on when one looks."""
    ran = progress.last_ran([(phase, at) for at, phase in enumerate(phases)], len(phases) + later)
    assert ran.since is None
    assert (ran.before is None) or ran.before <= len(phases) + later


@given(HISTORIES)
def test_only_a_job_that_runs_or_ends_its_pods_runs(phases):
    ran = progress.last_ran([(phase, at) for at, phase in enumerate(phases)])
    if ran.since is not None:
        assert not {*phases[ran.since :]} & {P, X, A, F, "Completed", "Terminated"}


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
