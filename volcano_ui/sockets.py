"""Unix sockets of a state directory: with names that are short enough, in directories of mode 0700."""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from pathlib import Path

# sun_path holds 108 bytes on Linux and 104 on macOS, the final zero included.
LONGEST = 103


def short(path: Path) -> Path:
    """Return the path itself or, if it is too long for a socket, a shorter one that is always the same."""
    if len(os.fsencode(path)) <= LONGEST:
        return path
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"volcano-ui-{os.getuid()}-{digest}" / path.name[-40:]


def of_cluster(state: Path, name: str) -> Path:
    """Return the socket's path of the web server of one of several clusters; `state` is the state directory of all."""
    return short(state / "clusters" / "run" / f"{name}.sock")


def prepare(path: Path) -> None:
    """Create the socket's directory with mode 0700, and remove the socket that a killed server left in it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = path.parent.stat().st_uid
    if owner != os.getuid():
        raise PermissionError(f"{path.parent} belongs to another user; set TMPDIR to a directory of your own.")
    path.parent.chmod(0o700)
    path.unlink(missing_ok=True)


def listen(path: Path) -> socket.socket:
    """Return a socket that listens at a path; raise OSError if that fails."""
    prepare(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener
