"""Events go when they are too old or too many; everything else stays."""

from __future__ import annotations

import time

import pytest

from cluster import clock, tasks
from cluster.api import backend
from cluster.store import Create, retention, store
from kube.resources import CONFIGMAPS, EVENTS
from proof.harness.waiting import HANG_S

pytestmark = pytest.mark.django_db(transaction=True)
HOUR_MS = 3_600_000


def tell(*hours_ago):
    for number, hours in enumerate(hours_ago):
        event = {"metadata": {"name": f"e{number}", "namespace": "d"}}
        store.write(Create(EVENTS, event), now=clock.milliseconds() - hours * HOUR_MS)


def left():
    return [event.name for event in store.find(EVENTS)]


def expire():
    return retention.expire_events(time.monotonic() + HANG_S)


def test_old_events_go(settings):
    settings.EVENT_HOURS = 24
    tell(30, 25, 23, 0)
    store.write(
        Create(CONFIGMAPS, {"metadata": {"name": "old", "namespace": "d"}}), now=clock.milliseconds() - 99 * HOUR_MS
    )
    assert expire() == 2
    assert left() == ["e2", "e3"]
    assert len(store.find(CONFIGMAPS)) == 1


def test_the_oldest_of_too_many_go(monkeypatch):
    monkeypatch.setattr(retention, "MOST_EVENTS", 2)
    tell(5, 4, 3, 2, 1)
    expire()
    assert left() == ["e3", "e4"]


def test_many_events_go_in_batches(monkeypatch, settings):
    monkeypatch.setattr(retention, "BATCH", 2)
    tell(*[50] * 7, 1)
    assert expire() == 7
    assert left() == ["e7"]


@pytest.mark.parametrize(
    ("is_mirror", "stays"),
    [
        pytest.param(False, [], id="ours"),
        pytest.param(True, ["e0"], id="those of another cluster, which sees to them itself"),
    ],
)
def test_cleaning_takes_old_events(settings, monkeypatch, is_mirror, stays):
    settings.EVENT_HOURS = 24
    monkeypatch.setattr(backend, "is_mirror", is_mirror)
    tell(30)
    tasks.clean()
    assert left() == stays
