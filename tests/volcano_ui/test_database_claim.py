"""One `up` at a time on a database of PostgreSQL, by its lock, its row, and whole systems."""

import contextlib
import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.db import connection

from cluster.models import ProgramsLease
from node.paths import Layout
from node.shim import linux
from proof.harness import services
from proof.harness.waiting import HANG_S, until
from tests.schemas import default_database, emptied_at_the_end, execute, migrated_schema, settings_of
from tests.tables import cases
from volcano_ui import env
from volcano_ui.supervision import database_claim
from volcano_ui.supervision.database_claim import Claim, DatabaseInUse, UpLocation

LOOK_S = 0.1


@pytest.fixture(scope="module")
def schema(postgres_url, django_db_blocker):
    """The settings of a schema of PostgreSQL with our tables, which goes away."""
    with django_db_blocker.unblock(), migrated_schema(postgres_url, "claimed") as values:
        yield values


@pytest.fixture
def database(postgres_url, schema, transactional_db, monkeypatch):
    """That schema as the default database."""
    monkeypatch.setenv("DATABASE_URL", postgres_url)
    monkeypatch.setattr(database_claim, "LOOK_EVERY_S", LOOK_S)
    with emptied_at_the_end(schema):
        yield


@pytest.fixture
def claims(database):
    made = []

    def claim():
        made.append(Claim())
        return made[-1]

    yield claim
    for each in made:
        each.release()


def lose(claim):
    """End the session of a claim as a server does that starts again."""
    pid = claim._session.connection.info.backend_pid
    execute(f"SELECT pg_terminate_backend({pid})")
    until(lambda: not sessions(pid), what="the end of the session")


def sessions(pid):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])
        return cursor.fetchall()


@pytest.fixture
def first(claims):
    first = claims()
    first.take()
    first.write()
    return first


def test_second_is_refused_as_soon_as_the_first_is_seen_to_live(first, claims, settings):
    second, ends = claims(), threading.Event()

    def live():
        while not ends.wait(LOOK_S):
            first.renew()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(live)
        with pytest.raises(DatabaseInUse) as refused:
            second.take(within_s=HANG_S)
        ends.set()
    message = str(refused.value)
    assert f"in use by another `up` on {socket.gethostname()} with the state directory {settings.DATA}." in message
    assert "another DATABASE_URL" in message
    first.release()
    second.take()


def test_lost_session_is_begun_anew_or_taken_by_who_waits_for_it(first, claims):
    lose(first)
    first.renew()  # which finds it lost
    first.renew()
    second = claims()
    with pytest.raises(DatabaseInUse, match="in use by another"):
        second.take(within_s=3 * LOOK_S)
    lose(first)
    second.take(within_s=3 * LOOK_S)
    second.write()
    first.renew()
    with pytest.raises(DatabaseInUse, match="in use by another"):
        first.renew()
    with default_database(settings_of(search_path="public")):
        claims().take(within_s=0)  # another schema is another database


@pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
@cases("before, goes_on, refused", {
    "pods go on elsewhere": ("{host}:{other}", True, True),
    "none go on": ("{host}:{other}", False, False),
    "pods of our own": ("{host}:{own}", True, False),
    "another machine's directory of that name": ("far:{other}", True, False),
    "nobody was before": ("", True, False),
})  # fmt: skip
def test_whose_pods_go_on_elsewhere_is_not_followed(request, settings, tmp_path, vendor, before, goes_on, refused):
    request.getfixturevalue("claims" if vendor == "postgresql" else "transactional_db")
    settings.DATA = tmp_path / "own"
    names = {"host": socket.gethostname(), "own": settings.DATA, "other": tmp_path / "other"}
    ProgramsLease.objects.create(id=1, holder=before.format(**names))
    if goes_on:  # this very process, as a shim
        for data in (names["own"], names["other"]):
            folder = Layout(data).container("uid", "main") / "0"
            folder.mkdir(parents=True)
            (folder / "claim").write_text(f"{os.getpid()} {linux.start_ticks(os.getpid())}")
    pattern = rf"would run a second time: .* in the state directory {tmp_path / 'other'}, .*RUNNING=end"
    with pytest.raises(DatabaseInUse, match=pattern) if refused else contextlib.nullcontext():
        Claim().write()
    assert not refused or ProgramsLease.objects.get().holder == before.format(**names)


def test_places_are_read():
    for text, location in (("host:/a:b", ("host", "/a:b")), ("host-ab12", ("host-ab12", "")), ("", ("", ""))):
        assert UpLocation.read(text) == UpLocation(*location)


@pytest.fixture
def url(postgres_url):
    """That of a database of its own, which ends behind the systems on it."""
    with services.postgres_database(postgres_url, "volcano_ui_both") as found:
        yield found


def test_second_system_on_one_database_names_the_first_and_may_follow_it(url, start, tmp_path):
    both = partial(start, DATABASE_URL=url, VOLCANO_UI_ENGINE="none")
    first = both("first")
    first.wait_for_line("^Open ")
    label = env.database_label(env.database(tmp_path)) if "DATABASE_URL" in os.environ else r"postgresql:///\S+"
    first.wait_for_line(rf"✓ database {label}")
    second = both("second")
    directory = tmp_path / "first"
    second.wait_for_line(
        rf"^✗ The database {label} is in use by another `up` on \S+ with the state directory {directory}\."
    )
    assert second.ended() == 1
    assert not [line for line in second.lines if line.startswith("✓ database")]
    os.kill(first.process.pid, signal.SIGKILL)  # which ends its programs too
    first.process.wait()
    third = both("second")
    third.wait_for_line("^Open ")
