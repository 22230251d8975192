"""What was stored before a migration means the same after it."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from cluster.models import Timer

pytestmark = pytest.mark.django_db
timer_kind = import_module("cluster.migrations.0007_timer_kind")


@pytest.mark.parametrize(
    ("cursor", "key", "expected"),
    [
        pytest.param("jobs/0", "ttl:default/demo", ("ttl", "default/demo"), id="end of a finished job"),
        pytest.param("jobs/0", "more", ("more", ""), id="more jobs to plan"),
        pytest.param("jobs/0", "default/demo", ("retry", "default/demo"), id="job whose writes failed"),
        pytest.param("garbage/0", "owner:1-2-3", ("owner", "1-2-3"), id="owner that waits"),
        pytest.param("garbage/0", "gone:1-2-3", ("retry", "1-2-3"), id="owner that is gone"),
        pytest.param("namespaces/0", "namespace:a", ("look", "a"), id="namespace that is emptied"),
        pytest.param("namespaces/0", "gone:a", ("gone", "a"), id="namespace that is gone"),
        pytest.param("quotas/0", "default", ("count", "default"), id="namespace to count"),
        pytest.param("definitions/0", "jobs.example.com", ("ending", "jobs.example.com"), id="definition"),
        pytest.param("queues/0", "flush", ("flush", ""), id="queues' counters"),
        pytest.param("queues/0", "team", ("retry", "team"), id="queue whose write failed"),
        pytest.param("scheduler/0", "cycle", ("cycle", ""), id="next cycle"),
        pytest.param("nodes/0", "look", ("look", ""), id="nodes"),
    ],
)
def test_keys_of_timers_are_parted_into_kind_and_key(cursor, key, expected):
    timer = Timer.objects.create(cursor=cursor, key=key, due=1, payload={"a": 1})
    timer_kind.part(apps, None)
    timer.refresh_from_db()
    assert (timer.kind, timer.key, timer.due, timer.payload) == (*expected, 1, {"a": 1})
