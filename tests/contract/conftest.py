from __future__ import annotations

import contextlib
import os

import pytest

from tests.kubectl import Kubectl
from tests.system.harness import System


@pytest.fixture(autouse=True)
def _database(django_db_blocker):
    """The tests talk to the system that they started, not to the database of the test run."""
    with django_db_blocker.unblock():
        yield


@contextlib.contextmanager
def running(data, **options):
    """A system as `make up` starts it; at its end nothing of it may be left."""
    started = System(data, **options)
    try:
        yield started.start()
    finally:
        started.stop()
    started.assert_gone()


@pytest.fixture(scope="package")
def system(tmp_path_factory):
    """One running system for all of these tests."""
    with running(tmp_path_factory.mktemp("contract") / "data", nodes=2) as started:
        yield started


@pytest.fixture(scope="package")
def kubeconfig(system, tmp_path_factory):
    """A kubeconfig of the administrator."""
    return system.kubeconfig(tmp_path_factory.mktemp("kubeconfig") / "config")


@pytest.fixture
def kubectl(kubectl_path, kubeconfig, tmp_path):
    """Run kubectl against the system, with a cache and a home of its own."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}
    return Kubectl(kubectl_path, environment)
