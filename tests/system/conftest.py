import signal

import pytest

from kube.resources import JOBS, PODS
from proof.harness.waiting import until
from proof.systems.system import System
from proof.systems.work import Person, Watcher
from tests.system.pair import installed


@pytest.fixture(autouse=True)
def _database(django_db_blocker):
    """The tests read the database of the system that they started, not that of the test run."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="package")
def system_mode(request):
    """How the system works: embedded, and in modules marked `both_modes` also in-place, on the cluster of another one."""
    return request.param


@pytest.fixture(scope="package")
def shared_system(system_mode, tmp_path_factory):
    """One running system for all modules that have none of their own; at its end nothing of it may be left."""
    with installed(system_mode, tmp_path_factory.mktemp("system"), nodes=2) as started:
        yield started


@pytest.fixture(scope="module")
def system(shared_system, django_db_blocker):
    """The shared system, in which each module finds no jobs of those before it."""
    yield shared_system
    with django_db_blocker.unblock(), Person(shared_system) as person, shared_system.cluster.store() as store:
        for job in store.find(JOBS):
            person.post(f"/jobs/{job.namespace}/{job.name}/delete/")
        until(lambda: not store.find(JOBS) and not store.find(PODS), what="the end of a module's jobs")


@pytest.fixture
def go(tmp_path):
    """The file that lets pods end."""
    return tmp_path / "out" / "go"


@pytest.fixture
def cluster(system):
    """The system in which pods run, and whose API server clients ask."""
    return system.cluster


@pytest.fixture
def person(system):
    with Person(system) as somebody:
        yield somebody


@pytest.fixture
def watcher(system):
    with system.cluster.store() as store:
        yield Watcher(store)


@pytest.fixture
def shown(system):
    """What the pages show and judge by, where another system is the cluster a moment later than that has it."""
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
    system.end_pods()
    system.assert_gone()
