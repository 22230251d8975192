"""A cluster of Kubernetes' own programs. Where they have not been built no test is collected, and the report says so."""

from pathlib import Path

import pytest

from proof.kubernetes import volcano
from proof.kubernetes.cluster import DEPLOY, Kubernetes, missing
from proof.kubernetes.volcano import Volcano
from tests.system.conftest import _database

__all__ = ["_database"]


HERE = Path(__file__).parent
WANT_VOLCANO = ("test_volcano.py", "test_volcano_in_place.py")


def pytest_collection_modifyitems(config, items):
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    left_out = ours if missing() else []
    if volcano.missing():
        left_out = left_out or [item for item in ours if item.path.name in WANT_VOLCANO]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter):
    if lacking := missing():
        terminalreporter.write_line(
            f"NOT RUN tests/kubernetes: {', '.join(lacking)} not built; make test-kubernetes builds and runs"
        )
    elif lacking := volcano.missing():
        terminalreporter.write_line(
            f"NOT RUN {', '.join(WANT_VOLCANO)} of tests/kubernetes: {', '.join(lacking)} not built;"
            " make volcano-programs VOLCANO=checkout, then make test-kubernetes"
        )


@pytest.fixture(scope="session")
def kubernetes(tmp_path_factory):
    """One cluster for the whole run; at its end nothing of it may be left."""
    cluster = Kubernetes(tmp_path_factory.mktemp("kubernetes"))
    try:
        yield cluster.start()
    finally:
        cluster.stop()
    cluster.assert_gone()


@pytest.fixture(scope="module", params=["ours", "theirs"])
def cluster(request, tmp_path_factory):
    """A cluster with Volcano's kinds, as we define them or as Volcano does; nothing that works on them runs yet."""
    with Kubernetes(tmp_path_factory.mktemp("cluster"), volcano=request.param == "ours") as started:
        Volcano(started, definitions=request.param).install()
        started.kubectl("apply", "-f", DEPLOY / "base" / "roles.yaml")
        yield started
    started.assert_gone()
