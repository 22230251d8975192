"""What of this machine's user containers reach: the programs on the search path, and nothing else below the home."""

from __future__ import annotations

import os
import pwd
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from node.agent.environment import search_path
from node.shim.wall import PROGRAMS, RUNTIME, SHARED

if TYPE_CHECKING:
    from collections.abc import Iterable

# What belongs to a folder of programs, beside it. `share` is not among them, where desktops keep passwords.
BESIDE = (
    "bin", "sbin", "shims", "lib", "lib32", "lib64", "libexec", "include",
    "plugins", "pyenv.d", "versions", "version", "conda-meta", "pyvenv.cfg",
)  # fmt: skip
RUN = Path("/run")  # sockets of the machine's services; containers get an empty one to write in


class Reach(NamedTuple):
    """What containers see of places that are not theirs (see `node.shim.order.Order`)."""

    covers: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


def of_this_machine(data: Path) -> Reach:
    """Return what containers reach on this machine, whose cluster keeps its state in data."""
    own = data.resolve()
    home = _home()
    covered = (*([home] if home else []), RUN)
    read = _outermost(
        path
        for path in _programs()
        if not _shows(path, own) and not (home and _shows(path, home, around=True))
    )
    kept = [
        path
        for path in (*read, *map(Path, RUNTIME))
        if path.exists() and any(map(path.is_relative_to, covered))
    ]
    return Reach(
        covers=tuple(str(path) for path in covered if path.is_dir()),
        keep=tuple(str(path.resolve()) for path in kept),
        read=tuple(map(str, read)),
    )


def _shows(path: Path, private: Path, *, around: bool = False) -> bool:
    """Whether a directory is or contains a private one or, unless only what is around it counts, lies in it."""
    return private.is_relative_to(path) or (not around and path.is_relative_to(private))


def _home() -> Path | None:
    """Return the home of the user, if it is a directory of its own and not one that everybody's programs need."""
    try:
        path = Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    except KeyError:
        return None
    needed = [Path(each) for each in (*PROGRAMS, *SHARED, "/dev", "/var")]
    shared = any(each.is_relative_to(path) for each in needed)
    return path if path.is_dir() and not shared else None


def _programs() -> Iterable[Path]:
    """Yield what belongs to the folders of the search path, and the Python that the cluster itself runs with."""
    yield from _tree(Path(sys.base_prefix) / "bin")
    for folder in search_path().split(os.pathsep):
        if folder.startswith("/"):
            # Some may be closed to the user, as root's own on a search path that su has left.
            with suppress(OSError):
                yield from tuple(_tree(Path(folder)))


def _tree(folder: Path) -> Iterable[Path]:
    folder = folder.resolve()
    if any(folder.is_relative_to(path) for path in PROGRAMS) or not folder.is_dir():
        return
    yield folder
    if folder.name in BESIDE:
        yield from (
            path for name in BESIDE if (path := folder.parent / name).exists() and not path.is_symlink()
        )


def _outermost(paths: Iterable[Path]) -> list[Path]:
    found = set(paths)
    return sorted(path for path in found if not found.intersection(path.parents))
