"""Our controllers on another cluster with several workers for jobs, and with PostgreSQL."""

import pytest

from cluster.runtime.registry import shard_of
from proof.harness import services
from proof.systems.system import running
from proof.systems.work import job
from tests.clusters.test_in_place import check, first, in_place, kill_while_sending, telling
from tests.system.pair import here, kubeconfig, person, there

__all__ = ["first", "here", "kubeconfig", "person", "there"]  # fixtures
pytestmark = pytest.mark.system
SHARDS = 2


@pytest.fixture(scope="module")
def database(postgres_url):
    with services.postgres_database(postgres_url, "volcano_ui_in_place") as url:
        yield url


@pytest.fixture(scope="module", params=["workers", "postgres"])
def second(request, kubeconfig, tmp_path_factory):
    """The system that works there."""
    settings = {"VOLCANO_UI_JOB_WORKERS": str(SHARDS)}
    if request.param == "postgres":
        settings = {"DATABASE_URL": request.getfixturevalue("database")}
    folder = tmp_path_factory.mktemp(request.param)
    with running(folder / "data", **in_place(kubeconfig), **settings) as started:
        started.way = request.param
        yield started


def test_nothing_is_lost_nor_doubled_when_workers_are_killed_amid_their_plans(second, person, here, there, tmp_path):
    ran = tmp_path / "out" / "ran"
    names = [f"killed-{second.way}-{number}" for number in range(6)]
    if second.way == "workers":
        assert {shard_of(f"default/{name}", SHARDS) for name in names} == set(range(SHARDS))
    for number, name in enumerate(names):
        person.create(job(name, telling(ran, 1 + number % 3)))
        kill_while_sending(second, here, ("jobs/", "scheduler/")[number % 2])
    check(names, ran, here, there)
