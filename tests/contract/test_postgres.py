"""The same programs against a system whose store is PostgreSQL."""

import contextlib
import json

import pytest

from kube.resources import JOBS
from proof.harness import services
from proof.harness.waiting import until
from proof.systems.system import running
from proof.systems.work import Person, job, problems, shell
from tests.contract.test_python_client import (  # noqa: F401  tests and fixtures that pytest finds here again
    api,
    core,
    test_a_pod_runs_is_watched_and_its_log_followed,
    test_a_volcano_job_runs_as_a_custom_object,
    test_a_watch_goes_on_from_where_another_ended,
    test_errors_have_the_codes_that_programs_branch_on,
)

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def database(postgres_url):
    """The address of a database of their own."""
    with services.postgres_database(postgres_url, "volcano_ui_contract") as url:
        yield url


@pytest.fixture(scope="module")
def system(database, tmp_path_factory):
    with running(tmp_path_factory.mktemp("postgres") / "data", DATABASE_URL=database) as started:
        assert not list(started.data.glob("*.sqlite3"))
        yield started


@pytest.fixture(scope="module")
def kubeconfig(system, tmp_path_factory):
    return system.kubeconfig(tmp_path_factory.mktemp("kubeconfig") / "config")


@pytest.fixture(scope="module")
def visitor(system):
    with contextlib.closing(system.client()) as client:
        yield client


PAGES = """
    / /jobs/?phase=Running&queue=default&q=a&sort=-created /jobs/new/ /jobs/?phase=Deleted&q=a /jobs/-/operations/
    /flows/?q=a /flows/-/templates/ /cronjobs/?q=a /sweeps/ /sweeps/-/new/ /queues/ /queues/-/new/ /nodes/?q=a
    /events/?type=Warning&q=a /audit/?actor=a&q=a /access/ /connect/
"""


@pytest.mark.parametrize("path", PAGES.split())
def test_pages_open(visitor, path):
    assert visitor.get(path).status_code == 200


def test_a_sweep_runs_its_jobs_are_deleted_in_bulk_and_stay_in_the_history(system):
    with Person(system) as person, system.store() as store:
        text = json.dumps(job("tuned", shell("exit {{code}}"), maxRetry=0))
        made = person.post("/sweeps/-/new/", text=text, do="submit", **{"grid-code": "0, 1, 2"})
        assert made.status_code == 302, problems(made)
        ended = {"Completed": 1, "Failed": 2}
        until(lambda: store.count(JOBS, text="tuned-") == ended, what="the end of the sweep")
        assert person.get("/sweeps/default/tuned/").status_code == 200
        drafted = person.post("/jobs/-/operations/", action="delete", which="all", q="tuned-", phase="Failed")
        operation = drafted.headers["location"]
        assert "2 jobs" in person.get(operation).text
        assert person.post(f"{operation}confirm/").status_code == 302
        until(lambda: store.count(JOBS, text="tuned-") == {"Completed": 1}, what="the deletion of those that failed")
        until(lambda: "tuned-2" in person.get("/jobs/", phase="Deleted").text, what="their records")
        assert "This job was deleted" in person.get("/jobs/default/tuned-2/").text
        until(lambda: person.get(operation).text.count("Done") >= 2, what="the results")
