"""Two installations on one Redis: neither wakes the other, nor takes what is meant for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack

from django.conf import settings

# Commits revisions as they come in; at the end it tells which it heard of, and which tasks are queued.
PART = """
import asyncio, json, selectors, sys, threading
import django
django.setup()
from cluster.runtime import nudge
from kube.resources import JOBS
from node.listen import RedisSubscription
from volcano_ui import celery_app

heard = threading.Condition()
revisions = []

def told(revision):
    with heard:
        revisions.append(revision)
        heard.notify_all()

def wait_for(revision):
    with heard:
        assert heard.wait_for(lambda: revision in revisions, 30), revisions

threading.Thread(target=lambda: asyncio.run(nudge.hear(told)), daemon=True).start()
agent = RedisSubscription(selectors.DefaultSelector())
assert agent.renew()
confirmed = agent._connection.read_response(push_request=True)
wait_for(nudge.NEWEST)
print("listens", flush=True)
for line in sys.stdin:
    asked, revision = line.split()
    if asked == "commit":
        nudge.send(frozenset({JOBS.id}), int(revision))
    wait_for(int(revision))
    if asked == "tell":
        break
    print("heard", flush=True)
queued = set()
with celery_app.connection_for_read() as connection:
    queue = celery_app.amqp.queues["jobs"](connection.default_channel)
    while message := queue.get(no_ack=True):
        queued.add(message.headers["argsrepr"])
by_agent = [int(agent._connection.read_response(push_request=True)[2]) for _ in revisions[1:]]
print(json.dumps([revisions[1:], by_agent, sorted(queued)]), flush=True)
"""


class Part:
    """A process of an installation."""

    def __init__(self, redis_url, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VOLCANO_UI_")}
        kept.pop("DATABASE_URL", None)
        environment = {"DJANGO_SETTINGS_MODULE": "volcano_ui.settings", "VOLCANO_UI_REDIS_URL": redis_url}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PART],
            cwd=settings.BASE_DIR, env=kept | environment | variables,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self):
        self.read()  # that it listens
        return self

    def __exit__(self, *_):
        with self.process:
            self.process.kill()

    def read(self):
        line = self.process.stdout.readline()
        assert line, "it ended"
        return line

    def commit(self, revision):
        """Commit a revision, and return when it was heard of."""
        print("commit", revision, file=self.process.stdin, flush=True)
        self.read()

    def tell(self, newest):
        """Return of which revisions up to the newest pages and agents heard, and which tasks wait in the queue of the jobs."""
        print("tell", newest, file=self.process.stdin, flush=True)
        return json.loads(self.read())


def test_of_two_installations_on_one_redis_neither_hears_of_the_other(redis_url, tmp_path):
    databases = {"web": "one", "works": "one", "other": "other"}
    with ExitStack() as stack:
        shared = {"VOLCANO_UI_SECRET_KEY": "of all"}
        started = [
            Part(redis_url, DATABASE_URL=f"postgresql://db/{database}", VOLCANO_UI_DATA=str(tmp_path / name), **shared)
            for name, database in databases.items()
        ]
        web, works, other = [stack.enter_context(each) for each in started]
        for revision, part in enumerate((web, other, works, other, web), 1):
            part.commit(revision)
        # The first takes every task that it can find before another installation looks.
        assert web.tell(5) == [[1, 3, 5], [1, 3, 5], ["('jobs', 0)"]]
        assert works.tell(5) == [[1, 3, 5], [1, 3, 5], []]
        assert other.tell(4) == [[2, 4], [2, 4], ["('jobs', 0)"]]
