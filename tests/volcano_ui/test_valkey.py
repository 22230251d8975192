from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from celery import Celery
from redis.backoff import NoBackoff
from redis.retry import Retry

from volcano_ui import sockets, valkey

ONCE = Retry(NoBackoff(), 0)


def test_socket_is_in_the_state_directory_or_where_that_is_long_a_short_one_of_its_own():
    assert valkey.socket_path(Path("/srv/batch")) == Path("/srv/batch/run/redis.sock")
    paths = {valkey.socket_path(Path("/srv" + "/directory" * number)) for number in (12, 13)}
    assert len(paths) == 2
    assert all(len(str(path)) <= sockets.LONGEST for path in paths)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://:secret@cache:6379/3", "redis://:secret@cache:6379/3"),
        ("unix:///run/redis.sock?db=2", "redis+socket:///run/redis.sock?virtual_host=2"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix://:secret@/run/redis.sock?db=0", "redis+socket://:secret@/run/redis.sock?virtual_host=0"),
    ],
)
def test_broker_url(url, expected):
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
