"""Many at once: what holds in one thread holds among rivals on both databases; the line of those who want to write to SQLite."""

import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, connections, transaction

from cluster import access, api
from cluster.access import identities, logins
from cluster.backend import Creation
from cluster.claims import Person
from cluster.models import AuditEntry, Identity
from cluster.sqlite.line import Line
from cluster.store import Create, store
from kube import resources
from kube.errors import ApiError, NotFound
from proof.harness.waiting import HANG_S
from tests.cluster.store.conftest import database_opened
from volcano_ui import env

from .conftest import config_map, make_user, namespace

RIVALS = 8
WRITERS, TURNS = 16, 5


def together(deed, rivals=RIVALS):
    """Do deed(number) in so many threads that start at the same moment; return what they return."""
    start = threading.Barrier(rivals)

    def run(number):
        start.wait()
        try:
            return deed(number)
        except ApiError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(rivals) as threads:
        return list(threads.map(run, range(rivals)))


def test_of_many_who_log_in_at_once_a_link_lets_one_in_guesses_are_all_counted_and_one_user_is_made(database):
    token = logins.login_link("http://h", make_user("bob")).rstrip("/").rpartition("/")[2]
    results = together(lambda _: logins.claim(token, "::1"))
    assert sum(not isinstance(result, NotFound) for result in results) == 1
    assert AuditEntry.objects.filter(verb="login").count() == 1
    results = together(lambda _: logins.attempt("alice", "10.0.0.1", {}))
    assert sum(isinstance(result, ApiError) for result in results) == RIVALS - logins.MAX_FOR_NAME
    alice = Person("https://p", "1", "alice", ("staff",))
    results = together(lambda _: identities.log_in(alice, "::1"))
    assert {getattr(each, "username", each) for each in results} == {"alice"}
    assert Identity.objects.count() == 1


def test_groups_of_many_writers_leave_a_log_without_gaps_that_grows_at_its_end(database):
    store.write(Create(resources.NAMESPACES, namespace("default")))
    user, kind, before = make_user("root", is_superuser=True), resources.CONFIGMAPS, store.revision()
    ended = threading.Event()

    def write(number):
        actor = access.for_user(user)
        for turn in range(TURNS):
            # The one in the middle is wanted by all: one writer gets it.
            names = [f"map-{number}-{turn}", f"shared-{turn}", f"map-{number}-{turn}-b"]
            api.create_each([Creation(actor, kind, config_map(name)) for name in names])

    def read():
        seen = [before]
        try:
            while not (ended.is_set() and store.revision() == seen[-1]):
                seen += [change.revision for change in store.changes(seen[-1], limit=10_000)]
        finally:
            connection.close()
        return seen

    with ThreadPoolExecutor(1) as reader:
        seen = reader.submit(read)
        try:
            together(write, WRITERS)
        finally:
            ended.set()
        assert seen.result() == list(range(before, before + TURNS * (2 * WRITERS + 1) + 1))
    rows = AuditEntry.objects.filter(verb="create")
    assert rows.filter(outcome="refused").count() == TURNS * (WRITERS - 1)
    assert sorted(rows.filter(outcome="done").values_list("revision", flat=True)) == seen.result()[1:]


def test_patches_of_one_object_by_many_all_arrive(database):
    store.write(Create(resources.NAMESPACES, namespace("default")))
    user, kind = make_user("root", is_superuser=True), resources.CONFIGMAPS
    api.create(access.for_user(user), kind, config_map("x"))
    together(lambda n: api.patch(access.for_user(user), kind, "default", "x", {"data": {str(n): "1"}}))
    assert len(store.get(kind, "default", "x").object["data"]) == RIVALS
    assert AuditEntry.objects.filter(verb="patch", outcome="done").count() == RIVALS


HOLDER = """
import sys
from cluster.sqlite.line import Line
line = Line(sys.argv[1])
assert line.enter(60)
print("has it", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "line")


def test_only_one_has_the_turn(path):
    counted = [0]

    def count(_):
        line = Line(path)
        for _ in range(200):
            assert line.enter(HANG_S)
            before = counted[0]
            threading.Event().wait(0.00001)  # others run here
            counted[0] = before + 1
            line.leave()
        line.close()

    together(count, 8)
    assert counted == [1600]


def test_who_dies_has_the_turn_no_more(path):
    program = [sys.executable, "-c", HOLDER, path]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"has it\n"
        line = Line(path)
        assert not line.enter(0.01)
        holder.kill()
    assert line.enter(HANG_S)
    line.close()


def take_turns(*lines):
    for line in lines:
        assert line.enter(HANG_S)
        line.leave()


def test_who_came_too_late_takes_the_turn_from_nobody_and_the_turn_that_one_has_is_not_waited_for(path):
    first, second, third = Line(path), Line(path), Line(path)
    assert [first.enter(HANG_S), first.enter(0)] == [True, True]
    assert not second.enter(0.01)
    first.leave()
    first.leave()
    take_turns(third, second)


def test_who_is_interrupted_while_he_waits_takes_the_turn_from_nobody(path):
    def interrupt(*_):
        raise InterruptedError

    first, second, third = Line(path), Line(path), Line(path)
    assert first.enter(HANG_S)
    first._process.release()  # as if the first were in another process
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(InterruptedError):
        second.enter(HANG_S)
    signal.signal(signal.SIGALRM, before)
    first._process.acquire()
    first.leave()
    take_turns(third, second)


@pytest.fixture
def sqlite(tmp_path, django_db_blocker, monkeypatch):
    """An SQLite database as the product opens it, that waits for a moment only; yield its alias."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    values = env.database(tmp_path / "db.sqlite3")
    values["OPTIONS"] |= {"timeout": 0.05}
    with django_db_blocker.unblock(), database_opened("line", values):
        yield "line"


def write():
    with transaction.atomic(using="line"), connections["line"].cursor() as cursor:
        cursor.execute("UPDATE cluster_log SET head = head")


def test_a_writer_waits_for_another_as_long_as_the_database_says(sqlite):
    with transaction.atomic(using=sqlite), pytest.raises(OperationalError, match="database is locked"):
        together(lambda _: write(), 1)
    together(lambda _: write(), 1)


def leave_by_error():
    with pytest.raises(ZeroDivisionError), transaction.atomic(using="line"):
        raise ZeroDivisionError


def leave_by_closing():
    with transaction.atomic(using="line"):
        connections["line"].close()


@pytest.mark.parametrize("leave", [write, leave_by_error, leave_by_closing])
def test_every_end_of_a_transaction_gives_the_turn_to_the_next(sqlite, leave):
    leave()
    together(lambda _: write(), 1)


def test_a_transaction_that_cannot_begin_holds_nobody_up(sqlite, tmp_path):
    """Whoever opens the file with another program stands in no line."""
    stranger = sqlite3.connect(tmp_path / "db.sqlite3", isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(OperationalError, match="database is locked"):
        write()
    stranger.execute("ROLLBACK")
    stranger.close()
    together(lambda _: write(), 1)
    write()
