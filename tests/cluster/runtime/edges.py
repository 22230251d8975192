"""A consumer that writes down each edge that it hears, and a program that kills it again and again while somebody writes."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
import uuid
from pathlib import Path

from django.core.management import call_command
from django.db import connections

from cluster.runtime import consumer
from cluster.runtime.consumer import Consumer, Plan, Runner
from cluster.runtime.registry import Registration, shard_of
from cluster.store import Create, Delete, Group, Patch, sql, store
from kube.errors import ApiError
from kube.resources import CONFIGMAPS, PODS

KEYS = [f"d/p{number}" for number in range(6)]
WRITES = 400  # at least
KILLS = 25  # at least
LIFE_S = (0.0, 0.04)
LONG_LIFE_S = 0.2
LONG_SHARE = 0.1


class Killed(Exception):
    """The process ended before its transaction."""


class Recorder(Consumer[dict]):
    """Writes down each edge of its shard's keys in the transaction that moves the cursor."""

    name = "recorder"

    def __init__(self, registration, using):
        self.shards, self.store = registration.shards, using
        self.shard = -1
        self.is_doomed = False

    def load(self, shard, revision):
        self.shard = shard
        return {}

    def apply(self, state, change):
        state[change.key] = change.revision

    def plan(self, state, changes, timers, now):
        mine = [c for c in changes if shard_of(c.key, self.shards) == self.shard]
        return Plan([Group([record(change)]) for change in mine])


class Mortal(Runner):
    """A runner that can be killed in the middle of its transaction."""

    def _set_timers(self, timers):
        super()._set_timers(timers)
        if self.consumer.is_doomed:
            raise Killed


def record(change):
    """Write an edge down under a new name each time: one that is told twice is there twice."""
    edge = [change.key, change.revision, version(change.previous), version(change.body)]
    metadata = {"name": str(uuid.uuid4()), "namespace": "d"}
    return Create(CONFIGMAPS, {"metadata": metadata, "data": {"edge": json.dumps(edge)}})


def version(body):
    return None if body is None else json.loads(body).get("metadata", {}).get("resourceVersion")


def starting(shards, using):
    """Return what a new process has for each of so many shards."""
    registration = Registration("recorder", "", (PODS,), hears="edges", shards=shards)
    return [Mortal(registration, n, Recorder(registration, using), using, holder="the same") for n in range(shards)]


def touch(using, key):
    """Change a pod, which is made for it."""
    name = key.partition("/")[2]
    try:
        using.write(Create(PODS, {"metadata": {"name": name, "namespace": "d"}, "spec": {}}))
    except ApiError:
        using.write(Patch(PODS, "d", name, {"metadata": {"labels": {"n": str(using.revision())}}}))


def remove(using, key):
    """Delete a pod, or make it."""
    try:
        using.write(Delete(PODS, "d", key.partition("/")[2], grace=0))
    except ApiError:
        touch(using, key)


def recorded(using):
    """Return the edges that were written down, in the order in which they were."""
    rows = sql.rows(using.using, "SELECT body FROM cluster_change WHERE resource = 'configmaps' ORDER BY revision")
    return [json.loads(json.loads(bytes(body))["data"]["edge"]) for (body,) in rows]


def made(using):
    """Return every edge of the log."""
    changes = using.changes(0, (PODS,), limit=10**6, previous=True)
    return [[c.key, c.revision, version(c.previous), version(c.body)] for c in changes]


def write(choices, enough):
    """Let pods come, change and go, until there is a file called enough."""
    for number in itertools.count():
        if number >= WRITES and enough.exists():
            return
        choices.choice([touch, touch, remove])(store, choices.choice(KEYS))
        time.sleep(0.003)


def forked(work):
    connections.close_all()
    if pid := os.fork():
        return pid
    try:
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def main(seed):
    """Write to a database of its own; print how often the consumer was killed."""
    call_command("migrate", verbosity=0)
    store.listeners.clear()  # nobody is there to be told
    consumer.BATCH = 7  # so that what was missed takes several
    choices = random.Random(seed)

    def run(end):
        (runner,) = starting(1, store)
        while runner.step() or not end:
            time.sleep(0.001)

    run(end=True)
    enough = Path(os.environ["VOLCANO_UI_DATA"]) / "enough"
    writer = forked(lambda: write(random.Random(seed + 1), enough))
    kills = 0
    while os.waitpid(writer, os.WNOHANG)[0] == 0:
        child = forked(lambda: run(end=False))
        time.sleep(LONG_LIFE_S if choices.random() < LONG_SHARE else choices.uniform(*LIFE_S))
        os.kill(child, signal.SIGKILL)
        kills += os.waitpid(child, 0)[1] == signal.SIGKILL
        if kills >= KILLS:
            enough.touch()
    run(end=True)
    assert recorded(store) == made(store)
    assert len(made(store)) >= WRITES
    print(kills)  # noqa: T201
