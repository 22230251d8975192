from __future__ import annotations

import signal

import pytest

from tests.system.harness import System
from tests.system.work import Person, Watcher


@pytest.fixture(autouse=True)
def _database(django_db_blocker):
    """The tests read the database of the system that they started, not that of the test run."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """One running system for a module; at its end nothing of it may be left."""
    running = System(tmp_path_factory.mktemp("system") / "data", nodes=2)
    try:
        yield running.start()
    finally:
        running.stop()
    running.assert_gone()


@pytest.fixture
def person(system):
    with Person(system) as somebody:
        yield somebody


@pytest.fixture
def watcher(system):
    with system.store() as store:
        yield Watcher(store)


@pytest.fixture
def own(tmp_path):
    """A system for this test alone, started by the test; killed should the test leave it running."""
    system = System(tmp_path / "data")
    yield system
    if system.process is not None and system.process.poll() is None:
        system.process.send_signal(signal.SIGCONT)
        system.stop()
    system.assert_gone()
