"""Fixtures that every package's tests share, the network guard, and what the run says at its end."""

import contextlib
import ipaddress
import logging
import os
import socket

import hypothesis
import pytest

from cluster.runtime import nudge
from proof.harness import chromium, clocks, kubectl, services
from proof.harness.clocks import ManualClock
from proof.harness.waiting import HANG_S
from tests import campaign, database, workers
from volcano_ui import assets, collector

pytest_plugins = ("tests.record",)

MODES = ("embedded", "in-place")
NO_CHROMIUM = "no Chromium (browser tests): apt-get install chromium-headless-shell, or set CHROMIUM=/path/to/it"
NO_POSTGRES = "no PostgreSQL (store on PostgreSQL): apt-get install postgresql, or set DATABASE_URL"
NO_DOCKER = "no docker that works (containers of images): apt-get install docker.io busybox-static"
NO_PODMAN = "no podman that works (containers of images): apt-get install podman runc busybox-static"
NO_KUBECTL = "no kubectl (contract of the Kubernetes API): install it, or set KUBECTL=/path/to/it"

# How long an example takes says more about the machine than about what it tries. CI tries the same examples each time, as it plays
# the same worlds: what a change breaks is found in its own run. New ones are for whoever types `make test`.
hypothesis.settings.register_profile(
    "suite",
    max_examples=campaign.scaled(campaign.EXAMPLES, 100),
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files from what is computed")


def pytest_configure(config):
    _guard("connect")
    _guard("connect_ex")
    database.flush_by_deletion()
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it has a line for each request


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    left = [item for item in items if not campaign.belongs(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if campaign.belongs(item)]
    files = {name: position for position, name in enumerate(dict.fromkeys(item.path for item in items))}
    # A file's tests with one system first, so that none of its systems is started twice.
    items.sort(key=lambda item: (workers.turn(item.nodeid), files[item.path], "clusters" in item.keywords))


def pytest_collection_finish(session):
    # Twelve thousand tests are no garbage, and each full collection would look at all of them.
    collector.collect_rarely()


def pytest_generate_tests(metafunc):
    """Run a test that asks for a mode in each, but for one that is about what only the embedded cluster has.

    In-place is tried by `make test-clusters`. Where consumers are run by hand it differs from embedded only below the
    backend's commit: a module for each of them, marked `each_backend`, shows both in `make test` as well.
    """
    find = metafunc.definition.get_closest_marker
    embedded, in_place = MODES
    apart = pytest.param(in_place, marks=pytest.mark.clusters)
    if "runner_mode" in metafunc.fixturenames:
        modes = [embedded, in_place if find("each_backend") else apart]
        metafunc.parametrize("runner_mode", modes[:1] if find("embedded") else modes, indirect=True)
    if "system_mode" in metafunc.fixturenames:
        modes = [embedded, apart] if find("both_modes") and not find("embedded") else [embedded]
        metafunc.parametrize("system_mode", modes, indirect=True, scope="package")


@pytest.fixture
def runner_mode(request, _django_db_helper):
    """The mode in which consumers run that the test runs by hand; see proof/modes."""
    from proof.modes import mode as modes

    with modes.using(request.param) as chosen:
        yield chosen


@pytest.fixture
def moved_clock():
    """The clock of this process, which stands until the test moves it."""
    with clocks.using(ManualClock()) as manual:
        yield manual


def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False
    return workers.ByFile(config, log)


def _guard(name):
    """Let a method of sockets reach this machine only: a test that needs the network is a wrong test."""
    connect = getattr(socket.socket, name)

    def guarded(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _local(address[0]):
            self.close()
            raise AssertionError(f"A test tried to reach {address[0]}; tests stay on this machine.")
        return connect(self, address)

    setattr(socket.socket, name, guarded)


def _local(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def pytest_terminal_summary(terminalreporter):
    reasons = {str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])}
    programs = (NO_CHROMIUM, NO_POSTGRES, NO_KUBECTL, NO_PODMAN, NO_DOCKER)
    missing = [text for text in programs if any(text in reason for reason in reasons)]
    if missing:
        terminalreporter.write_line(f"Not run: {'; '.join(missing)}", yellow=True)


@pytest.fixture(scope="session")
def chromium_path():
    """A Chromium's program; without one the test is skipped and the run's last line says so."""
    from playwright.sync_api import expect

    found = chromium.find() or pytest.skip(NO_CHROMIUM)
    expect.set_options(timeout=HANG_S * 1000)
    return found


@pytest.fixture(scope="session")
def kubectl_path():
    """A kubectl's program; without one the test is skipped and the run's last line says so."""
    return kubectl.find() or pytest.skip(NO_KUBECTL)


def _engine(name, missing):
    from proof.harness import engine

    @pytest.fixture(scope="session", name=name)
    def made():
        """An engine with images; without one the test is skipped and the run's last line says so."""
        with engine.working(name) as found:
            yield found or pytest.skip(missing)

    return made


podman, docker = _engine("podman", NO_PODMAN), _engine("docker", NO_DOCKER)


@pytest.fixture(scope="session")
def npm_packages():
    """The folder of npm's packages, installed once with those that only tests need."""
    assets.install_tools(lambda line: None)
    return assets.ROOT / "node_modules"


@pytest.fixture(scope="session")
def axe(npm_packages):
    """The script that finds what keeps people out of a page."""
    return (npm_packages / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="session")
def redis_url():
    """A real Redis for the whole run; tests that count keys flush it first."""
    with services.redis_server() as url:
        yield url


@pytest.fixture
def redis(redis_url, settings):
    """What follows the log and announces commits in this process uses the test's Redis, with a client of its own."""
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    yield redis_url
    nudge.client.cache_clear()


@pytest.fixture(scope="session")
def postgres_url():
    """A real PostgreSQL for the whole run, database `postgres`; without one the test is skipped."""
    if given := os.environ.get("TEST_DATABASE_URL"):
        yield given
        return
    binaries = services.postgres_binaries()
    if binaries is None:
        pytest.skip(NO_POSTGRES)
    with services.postgres_server(binaries) as url:
        yield url


@pytest.fixture
def full_disk(transactional_db):
    """A database that cannot grow by one page more, as on a full disk."""
    from django.db import OperationalError, connection

    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE slack (filling BLOB)")
        cursor.execute("PRAGMA max_page_count = 1")  # SQLite raises it to what is in use
        for size in (4000, 100):
            with contextlib.suppress(OperationalError):
                while True:
                    cursor.execute("INSERT INTO slack VALUES (randomblob(%s))", [size])
        yield
        cursor.execute("PRAGMA max_page_count = 1073741823")
        cursor.execute("DROP TABLE slack")
