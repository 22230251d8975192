"""Which nodes of other machines have a link here, as files that every process of the server reads.

`DATA/run/nodes/<digest of the name>/` of a node that has ever been linked:

* `state.json`: its name, and since when it is linked or away;
* `port`: a socket at which the process that holds the link takes requests (`node.link.holder`);
* `usage.json`: the use that the node reported last.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from node.shim.shim import write_json

PORT, STATE, USAGE = "port", "state.json", "usage.json"
FRESH_NS = 2 * 10**9  # longer than the tick of any file system's clock
BACKLOG = 128
_cached_names: dict[Path, tuple[int, frozenset[str]]] = {}


class State(NamedTuple):
    """Whether a node is linked, and since when, in ms."""

    node: str
    linked: bool
    since: int


def directory(data: Path, node: str) -> Path:
    """Return where the files about a node are. Names of nodes may be longer than a socket's path."""
    return data / "run" / "nodes" / hashlib.sha256(node.encode()).hexdigest()[:32]


def names(data: Path) -> frozenset[str]:
    """Return the names of the nodes that have ever been linked: one `stat` where nothing has changed."""
    folder = data / "run" / "nodes"
    try:
        changed = folder.stat().st_mtime_ns
    except FileNotFoundError:
        return frozenset()
    cached = _cached_names.get(folder)
    if cached is not None and cached[0] == changed:
        return cached[1]
    states = (_read(each) for each in folder.iterdir() if not each.name.startswith("."))
    nodes = frozenset(state.node for state in states if state is not None)
    if time.time_ns() - changed > FRESH_NS:
        _cached_names[folder] = changed, nodes
    return nodes


def state(data: Path, node: str) -> State | None:
    """Return whether a node is linked; None when it never was."""
    return _read(directory(data, node))


def note(data: Path, node: str, *, linked: bool, now: int) -> None:
    """Note that a node is linked or away from now (ms) on."""
    folder = directory(data, node)
    state = {"node": node, "linked": linked, "since": now}
    if folder.exists():
        write_json(str(folder / STATE), state)
        return
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # It is seen whole or not at all.
    draft = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    write_json(str(draft / STATE), state)
    with contextlib.suppress(OSError):  # somebody was faster
        draft.rename(folder)


def listen(data: Path, node: str) -> socket.socket:
    """Return a socket at a node's port, in the place of one that was there."""
    folder = os.open(directory(data, node), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    draft = f".{os.getpid()}.{time.monotonic_ns()}"
    try:
        # By way of the directory's descriptor the path is short enough for a socket.
        listener.bind(f"/proc/self/fd/{folder}/{draft}")
        listener.listen(BACKLOG)
        listener.setblocking(False)
        os.rename(draft, PORT, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(folder)
    return listener


def connect(data: Path, node: str, timeout_s: float) -> socket.socket:
    """Return a connection to who holds the link of a node; OSError when nobody does."""
    folder = os.open(directory(data, node), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(f"/proc/self/fd/{folder}/{PORT}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


def is_held(data: Path, node: str) -> bool:
    """Whether somebody holds the link of a node."""
    try:
        connect(data, node, 1.0).close()
    except OSError:
        return False
    return True


def _read(folder: Path) -> State | None:
    try:
        return State(**json.loads((folder / STATE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
