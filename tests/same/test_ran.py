"""How long a job has run in its newest run is the same to everybody who tells it."""

import re
from datetime import datetime

import pytest

from cluster import clock
from cluster.store import Delete, store
from kube.meta import short_duration_words
from kube.resources import JOBS
from tests.dashboard.pages.conftest import admin, page  # noqa: F401  a fixture
from tests.jobs import control
from tests.jobs.conftest import controller  # noqa: F401  a fixture
from tests.same import differing
from tests.tables import cases

RAN = 8  # the place of the column, after the one to tick
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(Z| UTC)")


def words(cell):
    """What a cell says, with how long ago it was instead of a time; who waits again has run no longer than before."""
    text = " ".join("".join(cell.itertext()).split())
    if time := TIME.search(text):
        begun = datetime.fromisoformat(time[0].replace(" UTC", "Z")).timestamp() * 1000
        text = TIME.sub(f"{short_duration_words(round(clock.milliseconds() - begun))} so far", text)
    return text


def in_list(browser):
    rows = [each for each in page(browser, "/jobs/").one(id="table-rows") if each.tag == "tr"]
    return words(list(rows[0])[RAN]) if rows else None


def on_page(browser, query=""):
    """The page says also what it ran before it was evicted."""
    head = page(browser, f"/jobs/default/demo/{query}").one(id="job-head")
    return words(next(each.getnext() for each in head.iter("dt") if each.text == "Ran")).partition(", ")[0]


PLACES = {"list of jobs": in_list, "page of the job": on_page}


@pytest.fixture
def tell(controller, moved_clock):  # noqa: F811
    """Have a job of one pod live by steps: what happens to it, or so many seconds that pass."""
    steps = {
        "runs": controller.run,
        "succeeds": lambda: controller.become("Succeeded"),
        "fails": lambda: controller.become("Failed"),
        "suspend": lambda: controller.issue("AbortJob"),
        "resume": lambda: controller.issue("ResumeJob"),
        "evict": lambda: control.remove("demo-main-0"),
        "delete": lambda: store.write(Delete(JOBS, "default", "demo")),
    }

    def live(text, **spec):
        controller.submit(control.job(replicas=1, minAvailable=1, **spec))
        for step in text.split():
            if step.isdigit():
                moved_clock.move(int(step))
            else:
                steps[step]()
                controller.settle()

    return live


@cases(
    "steps, ran",
    {
        "it waits": ("5", "–"),
        "it runs": ("5 runs 40", "40 s so far"),
        "it completed": ("5 runs 90 succeeds 7", "1 min 30 s"),
        "it failed": ("5 runs 12 fails 7", "12 s"),
        "it was suspended": ("5 runs 30 suspend 100", "30 s"),
        "it waits after it was resumed": ("5 runs 30 suspend 100 resume 9", "–"),
        "it goes on after it was suspended": ("5 runs 30 suspend 100 resume 9 runs 20", "20 s so far"),
        "it completed after it was suspended": ("5 runs 30 suspend 100 resume 9 runs 20 succeeds 7", "20 s"),
        "it waits after it was evicted": ("5 runs 40 evict 50", "40 s"),
        "it runs again after it was evicted": ("5 runs 40 evict 50 runs 20", "20 s so far"),
        "it was deleted while it ran": ("5 runs 30 delete 50", "30 s"),
        "it was deleted while it waited again": ("5 runs 40 evict 50 delete 7", "40 s"),
        "it completed after it was evicted": ("5 runs 40 evict 50 runs 20 succeeds 7", "1 min"),
    },
)
@pytest.mark.django_db
def test_everybody_says_the_same_of_how_long_a_job_has_run(tell, admin, steps, ran):  # noqa: F811
    tell(steps)
    assert differing(PLACES, ran, admin) == {}


@pytest.mark.django_db
def test_a_run_that_failed_at_once_keeps_how_long_it_ran(tell, admin):  # noqa: F811
    tell("runs 1 fails runs 40", policies=[{"event": "PodFailed", "action": "RestartJob"}])
    assert (on_page(admin, "?run=1"), on_page(admin), in_list(admin)) == ("1.0 s", "40 s so far", "40 s so far")
