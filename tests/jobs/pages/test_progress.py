from __future__ import annotations

import msgspec
import pytest

from jobs.pages import progress
from jobs.pages.progress import Progress
from jobs.pages.reading import Job
from jobs.templatetags.gang import gang_bar


@pytest.mark.parametrize(
    ("numbers", "finished", "said", "short"),
    [
        pytest.param((4, 4, 0, 0, 0), False, "0 of 4 needed are running", "0/4", id="nothing yet"),
        pytest.param((4, 4, 1, 0, 0), False, "1 of 4 needed is running", "1/4", id="one"),
        pytest.param((5, 4, 5, 0, 0), False, "5 are running, 4 are needed", "5/4", id="more than needed"),
        pytest.param((5, 4, 4, 0, 1), False, "4 of 4 needed are running, 1 failed", "4/4", id="one failed"),
        pytest.param(
            (4, 4, 2, 2, 0), False, "4 of 4 needed are running or have succeeded", "4/4", id="some done"
        ),
        pytest.param(
            (3, 1, 0, 1, 0), False, "1 of 1 needed is running or has succeeded", "1/1", id="one done"
        ),
        pytest.param((3, 0, 2, 0, 0), False, "2 running, no minimum is set", "2/0", id="no minimum"),
        pytest.param((5, 4, 0, 4, 1), True, "4 of 5 pods succeeded, 1 failed", "4/5", id="over"),
        pytest.param((1, 1, 0, 1, 0), True, "1 of 1 pod succeeded", "1/1", id="one pod over"),
    ],
)
def test_the_gang_in_words(numbers, finished, said, short):
    total, minimum, running, succeeded, failed = numbers
    progress = Progress(total, minimum, running, succeeded, failed, finished)
    assert (progress.said, progress.short) == (said, short)


def test_the_bar_says_its_numbers():
    bar = gang_bar(Progress(5, 4, 2, 1, 1))
    assert "1 succeeded, 2 running, 1 failed, 1 waiting" in bar


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        pytest.param("Running", "1 of 4 needed is running or has succeeded", id="Running"),
        pytest.param("Aborting", "1 of 4 pods succeeded", id="Aborting: nothing more starts"),
        pytest.param("Aborted", "1 of 4 pods succeeded", id="Aborted"),
        pytest.param("Restarting", "1 of 4 needed is running or has succeeded", id="Restarting"),
    ],
)
def test_a_job_that_is_ending_waits_for_no_gang(phase, said):
    body = {
        "spec": {"minAvailable": 4, "tasks": [{"name": "main", "replicas": 4}]},
        "status": {"state": {"phase": phase}, "succeeded": 1},
    }
    assert progress.of_job(msgspec.convert(body, Job)).said == said
