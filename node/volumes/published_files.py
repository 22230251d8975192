"""The content of volumes that are made from objects, as kubelets lay it out.

    ..2026_11_22_10_15_00.3f2a1c/key   one version, complete before it is seen
    ..data -> ..2026_11_22_10_15_00.3f2a1c
    key -> ..data/key

One rename of `..data` exchanges all files at once. Everything is done relative
to the volume's descriptor and nothing is written where something is already:
a pod that can write in the volume (where the machine lets it have no mounts,
it can) cannot have the agent write through a link of its own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Mapping

from node import file_trees
from node.file_trees import Beyond, Bounds
from node.shim.path_walk import NEW_FILE, Make, PathRefused, Walk

Files = Mapping[str, tuple[bytes, int]]

DATA = "..data"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_COMPARED = Bounds(entries=100_000, seconds=5.0)
_REMOVING_S = 1.0  # more than was published has only who wrote there himself, and his volume goes with him


def publish(volume: int, files: Files, group: int = -1) -> None:
    """Make a volume show exactly these files: path → content and mode; nothing is written when it does already.

    volume is the descriptor of its directory; the files are given to the group, if there is one. ValueError when a path would
    leave it, OSError when the disk does not take them; that names no version,
    so it is the same each time, like the status of the pod that waits for it.
    """
    for path in files:
        parts = path.split("/")
        if not path.strip("./") or path.startswith(("/", "..")) or ".." in parts or "\0" in path:
            raise ValueError(f"{path!r} must be a relative path without '..' that does not start with '..'.")
    current = _current(volume)
    if current and _holds(volume, current, files):
        return
    try:
        _show(volume, files, group)
    except OSError as error:
        raise OSError(error.errno, error.strerror, "the files of a volume") from error


def _show(volume: int, files: Files, group: int) -> None:
    version = f"..{time.strftime('%Y_%m_%d_%H_%M_%S', time.gmtime())}.{secrets.token_hex(6)}"
    os.mkdir(version, dir_fd=volume)
    try:
        with Walk(volume) as way:
            way.go(version)
            for path, (content, mode) in files.items():
                _write(way.fd, path, content, mode, group)
        _point(volume, DATA, version)
    except OSError:  # such as a full disk: the version that is shown stays
        with contextlib.suppress(OSError):
            file_trees.remove(version, volume, within_s=_REMOVING_S)
        raise
    names = {path.split("/")[0] for path in files}
    for name in names:
        if _target(volume, name) != f"{DATA}/{name}":
            _point(volume, name, f"{DATA}/{name}")
    _clear(volume, names, version)


def _current(volume: int) -> str:
    """Return the name of the version that is shown; empty when there is none that we could have made."""
    try:
        name = os.readlink(DATA, dir_fd=volume)
    except OSError:
        return ""
    return name if name.startswith("..") and "/" not in name and name not in ("..", DATA) else ""


def _holds(volume: int, version: str, files: Files) -> bool:
    """Whether a version has these files and no others, and all of them are reached."""
    try:
        with Walk(volume) as way:
            folder = way.go(version).fd
            entries = (entry for _, entry in file_trees.walk(".", folder, _COMPARED))
            number = sum(not entry.is_dir(follow_symlinks=False) for entry in entries)
            reached = all(
                os.readlink(name, dir_fd=volume) == f"{DATA}/{name}" for name in {path.split("/")[0] for path in files}
            )
            wanted = {os.path.normpath(path) for path in files}
            is_whole = reached and number == len(wanted)
            return is_whole and all(_same(folder, path, *files[path]) for path in files)
    except (OSError, PathRefused, Beyond):
        return False


def _same(folder: int, path: str, content: bytes, mode: int) -> bool:
    name = os.path.basename(path)  # noqa: PTH119
    with Walk(folder) as way:
        fd = os.open(name, _READ, dir_fd=way.go(path[: -len(name)]).fd)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size != len(content):
            return False
        return stat.S_IMODE(status.st_mode) == mode & 0o777 and file.read(len(content) + 1) == content


def _write(folder: int, path: str, content: bytes, mode: int, group: int) -> None:
    where, _, name = path.rpartition("/")
    with Walk(folder, make=Make.DIRECTORY) as way:
        fd = os.open(name, NEW_FILE, 0o600, dir_fd=way.go(where).fd)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        if group >= 0:
            os.fchown(fd, -1, group)
        os.fchmod(fd, mode & 0o777)


def _point(volume: int, name: str, target: str) -> None:
    """Make name a link to target, in the place of whatever has the name."""
    draft = f"..{secrets.token_hex(6)}"
    os.symlink(target, draft, dir_fd=volume)
    try:
        os.rename(draft, name, src_dir_fd=volume, dst_dir_fd=volume)
    except IsADirectoryError:  # left by an older version of this cluster, or made by a pod
        file_trees.remove(name, volume, within_s=_REMOVING_S)
        os.rename(draft, name, src_dir_fd=volume, dst_dir_fd=volume)


def _clear(volume: int, names: set[str], version: str) -> None:
    """Take away the links and versions that are not shown any more; what else lies there is not ours, or a mount point."""
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=volume)
    try:
        entries = os.listdir(folder)  # noqa: PTH208
    finally:
        os.close(folder)
    for name in entries:
        old = name.startswith("..") and name not in (DATA, version)
        if old or (name not in names and _target(volume, name) == f"{DATA}/{name}"):
            try:
                os.unlink(name, dir_fd=volume)
            except IsADirectoryError:
                with contextlib.suppress(OSError):
                    file_trees.remove(name, volume, within_s=_REMOVING_S)


def _target(volume: int, name: str) -> str:
    try:
        return os.readlink(name, dir_fd=volume)
    except OSError:
        return ""
