"""Old history goes when every consumer has read it; who is none holds nothing back."""

from __future__ import annotations

import time

import pytest
from django.db import connection

from cluster import clock
from cluster.runtime import registry
from cluster.store import Create, Patch, retention, sql, store
from kube.resources import CONFIGMAPS

pytestmark = pytest.mark.django_db(transaction=True)
REGISTRATION = registry.Registration("reader", "unused", (CONFIGMAPS,), shards=2)
LATER = 10**10  # milliseconds, more than any history is kept


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(registry, "every", lambda: [REGISTRATION])


def change(times):
    store.write(Create(CONFIGMAPS, {"metadata": {"name": "a", "namespace": "d"}}))
    for number in range(times - 1):
        store.write(Patch(CONFIGMAPS, "d", "a", {"data": {"n": str(number)}}))


def read_up_to(**positions):
    with connection.cursor() as cursor:
        for name, position in positions.items():
            cursor.execute(
                "INSERT INTO cluster_cursor (name, position, generation, holder, held_until) VALUES (%s, %s, 1, '', 0)",
                [name.replace("_", "/"), position],
            )


def set_timer(cursor_name):
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO cluster_timer (cursor, kind, key, due, payload) VALUES (%s, 'k', 'k', 0, '{}')", [cursor_name]
        )


def column(text):
    return [row[0] for row in sql.rows("default", text)]


def clean():
    retention.run(time.monotonic() + 5, now=clock.milliseconds() + LATER)


def test_history_goes_as_far_as_the_slowest_shard_has_read():
    change(5)
    read_up_to(reader_0=5, reader_1=3)
    clean()
    assert store.compacted() == 3


def test_cursor_of_nobody_holds_no_history_back():
    change(5)
    read_up_to(reader_0=5, reader_1=5, renamed_0=1)
    clean()
    assert store.compacted() == 5


def test_cursor_of_a_shard_that_is_no_more_holds_history_until_others_have_taken_its_place():
    change(5)
    read_up_to(reader_0=5, reader_1=5, reader_2=2)
    clean()
    assert store.compacted() == 2
    assert "reader/2" in column("SELECT name FROM cluster_cursor")


def test_cursor_of_nobody_goes_with_its_timers_once_history_is_past_it():
    change(5)
    read_up_to(reader_0=4, reader_1=4, renamed_0=1)
    for name in ("reader/0", "renamed/0", "forgotten/0"):
        set_timer(name)
    clean()
    assert sorted(column("SELECT name FROM cluster_cursor")) == ["reader/0", "reader/1"]
    assert column("SELECT cursor FROM cluster_timer") == ["reader/0"]


def test_cursor_of_a_consumer_that_runs_elsewhere_stays_while_it_is_of_use():
    change(5)
    read_up_to(reader_0=3, reader_1=3, elsewhere_0=4)
    set_timer("elsewhere/0")
    clean()
    assert "elsewhere/0" in column("SELECT name FROM cluster_cursor")
    assert column("SELECT cursor FROM cluster_timer") == ["elsewhere/0"]


def test_where_nobody_is_registered_nothing_is_forgotten(monkeypatch):
    monkeypatch.setattr(registry, "every", list)
    change(5)
    read_up_to(reader_0=1)
    clean()
    assert store.compacted() == 5
    assert column("SELECT name FROM cluster_cursor") == ["reader/0"]
