"""Retention at the worst moments: while somebody reads the log."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.db import connections

from cluster import clock
from cluster.runtime import retention
from cluster.store import store


def forget(source=None):
    """Let retention remove all that is superseded, as when all that there is is old."""
    later = clock.milliseconds() + (settings.HISTORY_HOURS + 1) * 3_600_000
    retention.run(time.monotonic() + 20, now=later, source=source)


def forget_elsewhere(source=store):
    def work():
        try:
            forget(source)
        finally:
            connections[source.using].close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()


@contextmanager
def between_queries(act, alias="default"):
    """Do something once, right after the next statement of this thread that asks the log."""
    done = []

    def wrapper(execute, sql, params, many, context):
        answer = execute(sql, params, many, context)
        if not done and ("cluster_change" in sql or "cluster_log" in sql):
            done.append(sql)
            act()
        return answer

    with connections[alias].execute_wrapper(wrapper):
        yield
    assert done


@contextmanager
def _before_it_looks():
    forget()
    yield


ASLEEP = pytest.mark.parametrize(
    "forgotten",
    [_before_it_looks, lambda: between_queries(forget_elsewhere)],
    ids=["forgotten before it looks", "forgotten while it looks"],
)
