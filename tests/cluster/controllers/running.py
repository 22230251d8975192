"""Controllers that a test runs by hand."""

from __future__ import annotations

from django.db import connection, transaction

from cluster import clock
from cluster.runtime import registry
from cluster.runtime.consumer import Runner

MOST_STEPS = 300


def started(name, consumer):
    runner = Runner(registry.get(name), 0, consumer)
    settle(runner)
    return runner


def settle(runner):
    """Let a controller work until it has nothing to do, which must come soon."""
    for _ in range(MOST_STEPS):
        if not runner.step():
            return
    raise AssertionError("the controller does not come to an end")


def make_timers_due():
    """Return how many timers there are."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE cluster_timer SET due = %s", [clock.milliseconds() - 1])
        return cursor.rowcount


def later(runner):
    """Let things settle when every timer is due."""
    make_timers_due()
    settle(runner)
