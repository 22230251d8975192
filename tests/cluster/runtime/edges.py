"""A consumer that is killed again and again while somebody writes: a program of its own, for test_edges.

It writes to a database of its own, and prints how often the consumer was killed.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import time
import uuid
from pathlib import Path

import django

PODS_COUNT = 5
WRITES = 400  # at least
KILLS = 25  # at least
PHASES = ("Pending", "Running", "Succeeded", "Failed")
LIFE_S = (0.0, 0.04)
LONG_LIFE_S = 0.2
LONG_SHARE = 0.1


def write(store, choices, enough):
    """Let pods come, go from phase to phase, change otherwise, and go, until there is a file called enough."""
    from cluster.store import Create, Delete, Patch
    from kube.errors import ApiError
    from kube.resources import PODS

    for number in itertools.count():
        if number >= WRITES and enough.exists():
            return
        name = f"p{choices.randrange(PODS_COUNT)}"
        body = {"metadata": {"name": name, "namespace": "d"}, "spec": {}}
        phase = {"status": {"phase": choices.choice(PHASES)}}
        wanted = choices.choice(
            (
                [Create(PODS, body)],
                [Patch(PODS, "d", name, phase, "status")],
                [Patch(PODS, "d", name, phase, "status")],
                [Patch(PODS, "d", name, {"metadata": {"labels": {"n": str(number)}}})],
                [Delete(PODS, "d", name, grace=0)],
            )
        )
        try:
            store.write(*wanted)
        except ApiError:
            continue  # it is there already, or not
        time.sleep(0.003)


def phase_of(body):
    from cluster.store.types import decode

    return decode(body).get("status", {}).get("phase", "") if body else None


def make_consumer():
    from cluster.runtime.consumer import Consumer, Plan
    from cluster.store import Create, Group, store
    from kube.resources import CONFIGMAPS, PODS

    class Recorder(Consumer[dict]):
        """Writes a config map for each (before, after) of pods' phases."""

        name = "recorder"

        def load(self, shard, revision):
            return {stored.name: stored.revision for stored in store.find(PODS)}

        def apply(self, state, change):
            state[change.name] = change.revision

        def plan(self, state, changes, timers, now):
            return Plan([Group([self.record(change)]) for change in changes if self.concerns(change)])

        def concerns(self, change):
            return self.after(change) != phase_of(change.previous)

        def after(self, change):
            return None if change.verb == "DELETED" else phase_of(change.body)

        def record(self, change):
            pair = {"before": str(phase_of(change.previous)), "after": str(self.after(change))}
            data = {"pod": change.name, "revision": str(change.revision), **pair}
            # Under a new name each time: one that is written twice is there twice.
            return Create(CONFIGMAPS, {"metadata": {"name": str(uuid.uuid4()), "namespace": "d"}, "data": data})

    return Recorder()


def forked(work):
    from django.db import connections

    connections.close_all()
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def main(seed):
    django.setup()
    from django.core.management import call_command

    from cluster.runtime import consumer
    from cluster.runtime.registry import Registration
    from cluster.store import store
    from kube.resources import PODS

    call_command("migrate", verbosity=0)
    store.listeners.clear()  # nobody is there to be told
    consumer.BATCH = 7  # so that what was missed takes several
    choices = random.Random(seed)

    def run(end):
        runner = consumer.Runner(Registration("recorder", "", (PODS,), hears="edges"), 0, make_consumer())
        while runner.step() or not end:
            time.sleep(0.001)

    run(end=True)
    enough = Path(os.environ["VOLCANO_UI_DATA"]) / "enough"
    writer = forked(lambda: write(store, random.Random(seed + 1), enough))
    kills = 0
    while os.waitpid(writer, os.WNOHANG)[0] == 0:
        child = forked(lambda: run(end=False))
        time.sleep(LONG_LIFE_S if choices.random() < LONG_SHARE else choices.uniform(*LIFE_S))
        os.kill(child, signal.SIGKILL)
        kills += os.waitpid(child, 0)[1] == signal.SIGKILL
        if kills >= KILLS:
            enough.touch()
    _, status = os.waitpid(forked(lambda: run(end=True)), 0)
    assert status == 0
    print(kills)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
