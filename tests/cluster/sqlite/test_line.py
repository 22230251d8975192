"""The line in which those stand who want to write to SQLite."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading

import pytest
from django.db import OperationalError, connections, transaction

from cluster.sqlite.line import Line
from proof.harness.waiting import HANG_S
from tests.cluster.api.test_rivals import together
from tests.cluster.store.conftest import database_opened
from volcano_ui import env

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
    """Eight threads read a number and write the next one: none is lost."""
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
def database(tmp_path, django_db_blocker, monkeypatch):
    """An SQLite database as the product opens it, that waits for a moment only; yield its alias."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    values = env.database(tmp_path / "db.sqlite3")
    values["OPTIONS"] |= {"timeout": 0.05}
    with django_db_blocker.unblock(), database_opened("line", values):
        yield "line"


def write():
    with transaction.atomic(using="line"), connections["line"].cursor() as cursor:
        cursor.execute("UPDATE cluster_log SET head = head")


def test_a_writer_waits_for_another_as_long_as_the_database_says(database):
    with transaction.atomic(using=database), pytest.raises(OperationalError, match="database is locked"):
        together(lambda _: write(), 1)
    together(lambda _: write(), 1)


def leave_by_error():
    with pytest.raises(ZeroDivisionError), transaction.atomic(using="line"):
        raise ZeroDivisionError


def leave_by_closing():
    with transaction.atomic(using="line"):
        connections["line"].close()


@pytest.mark.parametrize("leave", [write, leave_by_error, leave_by_closing])
def test_every_end_of_a_transaction_gives_the_turn_to_the_next(database, leave):
    leave()
    together(lambda _: write(), 1)


def test_a_transaction_that_cannot_begin_holds_nobody_up(database, tmp_path):
    """Whoever opens the file with another program stands in no line."""
    stranger = sqlite3.connect(tmp_path / "db.sqlite3", isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(OperationalError, match="database is locked"):
        write()
    stranger.execute("ROLLBACK")
    stranger.close()
    together(lambda _: write(), 1)
    write()
