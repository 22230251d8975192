"""Unix sockets of a state directory: names that are short enough, in directories for their owner alone."""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from pathlib import Path

# sun_path holds 108 bytes on Linux and 104 on macOS, the final zero included.
LONGEST = 103


def short(path: Path) -> Path:
    """Return the path itself, or one that stands for it where it is too long for a socket; always the same."""
    if len(os.fsencode(path)) <= LONGEST:
        return path
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"volcano-ui-{os.getuid()}-{digest}" / path.name[-40:]


def of_cluster(state: Path, name: str) -> Path:
    """Return where the web server of one of several clusters listens; state is the directory of them all."""
    return short(state / "clusters" / "run" / f"{name}.sock")


def prepare(path: Path) -> None:
    """Make the socket's directory for its owner alone, and take away what a killed server left in it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = path.parent.stat().st_uid
    if owner != os.getuid():
        raise PermissionError(f"{path.parent} belongs to another user; set TMPDIR to a directory of your own.")
    path.parent.chmod(0o700)
    path.unlink(missing_ok=True)


def listen(path: Path) -> socket.socket:
    """Return a socket that listens at a path; OSError when that cannot be had."""
    prepare(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener
