import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from celery import Celery
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from volcano_ui import sockets, valkey

ONCE = Retry(NoBackoff(), 0)


def test_socket_is_in_the_state_directory_or_where_that_is_long_a_short_one_of_its_own():
    assert valkey.socket_path(Path("/srv/batch")) == Path("/srv/batch/run/redis.sock")
    paths = {valkey.socket_path(Path("/srv" + "/directory" * number)) for number in (12, 13)}
    assert len(paths) == 2
    assert all(len(str(path)) <= sockets.LONGEST for path in paths)


def test_broker_url():
    for url, expected in {
        "redis://:secret@cache:6379/3": "redis://:secret@cache:6379/3",
        "unix:///run/redis.sock?db=2": "redis+socket:///run/redis.sock?virtual_host=2",
        "unix:///run/redis.sock": "redis+socket:///run/redis.sock?virtual_host=0",
        "unix://:secret@/run/redis.sock?db=0": "redis+socket://:secret@/run/redis.sock?virtual_host=0",
    }.items():
        assert valkey.broker_url(url) == expected


def test_server_answers_on_a_socket_of_its_owner_who_has_the_password(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()
        assert client.config_get("save", "appendonly", "port") == {"save": "", "appendonly": "no", "port": "0"}
        socket = Path(client.config_get("unixsocket")["unixsocket"])
    assert socket.parent.stat().st_mode & 0o077 == 0
    with Celery(broker=valkey.broker_url(redis_url)).connection_for_read() as connection:
        connection.ensure_connection(max_retries=1)
        assert connection.default_channel.client.ping()
    for password in (None, "", "a guess"):
        guessing = redis.Redis(unix_socket_path=urlsplit(redis_url).path, password=password, retry=ONCE)
        with guessing, pytest.raises(redis.AuthenticationError):
            guessing.info()


def test_password_is_its_owner_s_alone_and_on_no_command_line(tmp_path):
    password = valkey.password(tmp_path)
    valkey.prepare(tmp_path)
    command = valkey.command(Path("/usr/bin/valkey-server"), valkey.socket_path(tmp_path))
    assert not any(password in word for word in command)
    for file in (tmp_path / "redis-password", Path(command[1])):
        assert password in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
    assert valkey.password(tmp_path) == password


def test_what_a_killed_server_left_is_taken_away(tmp_path):
    socket = tmp_path / "run" / "redis.sock"
    socket.parent.mkdir(mode=0o755)
    socket.touch()
    sockets.prepare(socket)
    assert not socket.exists()
    assert socket.parent.stat().st_mode & 0o777 == 0o700


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

threading.Thread(target=lambda: asyncio.run(nudge.listen(told)), daemon=True).start()
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
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("VOLCANO_UI_")}
        inherited.pop("DATABASE_URL", None)
        environment = {"DJANGO_SETTINGS_MODULE": "volcano_ui.settings", "VOLCANO_UI_REDIS_URL": redis_url}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PART],
            cwd=settings.BASE_DIR, env=inherited | environment | variables,
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
