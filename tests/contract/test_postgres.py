"""The same programs against a system whose store is PostgreSQL."""

from __future__ import annotations

import contextlib
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.contract.conftest import administrators_kubeconfig, running
from tests.contract.test_python_client import (  # noqa: F401  tests and fixtures that pytest finds here again
    api,
    core,
    test_a_pod_runs_is_watched_and_its_log_followed,
    test_a_volcano_job_runs_as_a_custom_object,
    test_a_watch_goes_on_from_where_another_ended,
    test_errors_have_the_codes_that_programs_branch_on,
)

pytestmark = pytest.mark.system
NAME = "volcano_ui_contract"


@pytest.fixture(scope="module")
def database(postgres_url):
    """The address of a database of their own."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {NAME}")
        yield urlsplit(postgres_url)._replace(path=f"/{NAME}").geturl()
        connection.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@pytest.fixture(scope="module")
def system(database, tmp_path_factory):
    with running(tmp_path_factory.mktemp("postgres") / "data", DATABASE_URL=database) as started:
        assert not list(started.data.glob("*.sqlite3"))
        yield started


@pytest.fixture(scope="module")
def kubeconfig(system, tmp_path_factory):
    return administrators_kubeconfig(system, tmp_path_factory.mktemp("kubeconfig") / "config")


@pytest.fixture(scope="module")
def visitor(system):
    with contextlib.closing(system.client()) as client:
        yield client


PAGES = {
    "overview": "/",
    "jobs": "/jobs/?phase=Running&queue=default&q=a&sort=-created",
    "flows": "/flows/?q=a",
    "templates": "/flows/-/templates/",
    "cron jobs": "/cronjobs/?q=a",
    "new job": "/jobs/new/",
    "queues": "/queues/",
    "new queue": "/queues/-/new/",
    "nodes": "/nodes/?q=a",
    "events": "/events/?type=Warning&q=a",
    "audit": "/audit/?actor=a&q=a",
    "access": "/access/",
    "connect": "/connect/",
}


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_pages_open(visitor, path):
    assert visitor.get(path).status_code == 200
