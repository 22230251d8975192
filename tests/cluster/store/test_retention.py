"""Old history goes when every consumer has read it, old events when they are too old or too many."""

import time

import pytest
from django.db import connection

from cluster import clock, tasks
from cluster.api import backend
from cluster.runtime import registry, retention
from cluster.store import Create, Patch, sql, store
from kube.resources import CONFIGMAPS, EVENTS
from proof.harness.waiting import HANG_S
from tests.builders import config_map, of
from tests.tables import cases

pytestmark = pytest.mark.django_db
READER = registry.Registration("reader", "unused", (CONFIGMAPS,), shards=2)
LATER = 10**10  # milliseconds, more than any history is kept
HOUR_MS = 3_600_000


def forgotten(registered, positions):
    """Change an object 5 times, have consumers read so far, each with a timer, and run retention; return what is left."""
    store.write(Create(CONFIGMAPS, config_map("a")))
    for number in range(4):
        store.write(Patch(CONFIGMAPS, "default", "a", {"data": {"n": str(number)}}))
    with connection.cursor() as cursor:
        text = "INSERT INTO cluster_cursor (name, position, generation, holder, held_until) VALUES (%s, %s, 1, '', 0)"
        cursor.executemany(text, list(positions.items()))
        text = "INSERT INTO cluster_timer (cursor, kind, key, due, payload) VALUES (%s, 'k', 'k', 0, '{}')"
        cursor.executemany(text, [(name,) for name in (*positions, "lost/0")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "every", lambda: registered)
        retention.run(time.monotonic() + HANG_S, now=clock.milliseconds() + LATER)
    columns = ("SELECT name FROM cluster_cursor ORDER BY name", "SELECT cursor FROM cluster_timer ORDER BY cursor")
    return store.compacted(), *([name for (name,) in sql.rows("default", text)] for text in columns)


@cases("positions, compacted, left", {
    "the slowest shard has read three": ({"reader/0": 5, "reader/1": 3}, 3, "reader/0 reader/1"),
    "nobody moves a cursor": ({"reader/0": 5, "reader/1": 5, "renamed/0": 1}, 5, "reader/0 reader/1"),
    "a shard that is no more has read two": ({"reader/0": 5, "reader/1": 5, "reader/2": 2}, 2, "reader/0 reader/1 reader/2"),
    "who runs elsewhere is where history begins": ({"elsewhere/0": 4, "reader/0": 3, "reader/1": 3}, 3, "elsewhere/0 reader/0 reader/1"),
})  # fmt: skip
def test_history_goes_as_far_as_every_reader_has_read_and_cursors_of_nobody_after_it(positions, compacted, left):
    assert forgotten([READER], positions) == (compacted, left.split(), left.split())


def test_where_nobody_is_registered_no_cursor_is_forgotten():
    assert forgotten([], {"reader/0": 1}) == (5, ["reader/0"], ["lost/0", "reader/0"])


def tell(*hours_ago):
    for number, hours in enumerate(hours_ago):
        store.write(Create(EVENTS, of(EVENTS, f"e{number}")), now=clock.milliseconds() - hours * HOUR_MS)


def left():
    return [event.name for event in store.find(EVENTS)]


@cases("hours_ago, most, stays", {
    "too old": ([30, 25, 23, 0], 9, ["e2", "e3"]),
    "too many": ([5, 4, 3, 2, 1], 2, ["e3", "e4"]),
    "more than a batch": ([50] * 7 + [1], 9, ["e7"]),
})  # fmt: skip
def test_events_go_when_they_are_too_old_or_too_many(monkeypatch, settings, hours_ago, most, stays):
    settings.EVENT_HOURS = 24
    monkeypatch.setattr(retention, "MAX_EVENTS", most)
    monkeypatch.setattr(retention, "BATCH", 3)
    tell(*hours_ago)
    store.write(Create(CONFIGMAPS, config_map("old")), now=clock.milliseconds() - 99 * HOUR_MS)
    assert retention.expire_events(time.monotonic() + HANG_S) == len(hours_ago) - len(stays)
    assert left() == stays
    assert len(store.find(CONFIGMAPS)) == 1


@cases("is_mirror, stays", {"ours": (False, []), "of another cluster, which sees to them itself": (True, ["e0"])})
def test_cleaning_takes_old_events(settings, monkeypatch, is_mirror, stays):
    settings.EVENT_HOURS = 24
    monkeypatch.setattr(backend, "is_mirror", is_mirror)
    tell(30)
    tasks.clean()
    assert left() == stays
