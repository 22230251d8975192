"""Which programs of this machine containers see beside the usual ones: those on the search path, and nothing else below a home."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from node.pods.environment import search_path
from node.shim.isolation.root import PROGRAMS

# What belongs to a folder of programs, beside it. `share` is not among them, where desktops keep passwords.
BESIDE = (
    "bin", "sbin", "shims", "lib", "lib32", "lib64", "libexec", "include",
    "plugins", "pyenv.d", "versions", "version", "conda-meta", "pyvenv.cfg",
)  # fmt: skip


def of_this_machine(data: Path) -> tuple[str, ...]:
    """Return what containers read beside the directories that every machine has; data is where the cluster keeps its state."""
    state, home = data.resolve(), _home()
    folders = {
        path for path in _programs() if not _shows(path, state) and not (home and _shows(path, home, around=True))
    }
    return tuple(str(path) for path in sorted(folders) if not folders.intersection(path.parents))


def _shows(path: Path, private: Path, *, around: bool = False) -> bool:
    """Whether a directory is or contains a private one or, unless only what is around it counts, lies in it."""
    return private.is_relative_to(path) or (not around and path.is_relative_to(private))


def _home() -> Path | None:
    """Return the home of the user, if it is a directory of its own and not one that everybody's programs need."""
    try:
        path = Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    except KeyError:
        return None
    needed = [Path(each) for each in (*PROGRAMS, "/proc", "/sys", "/dev", "/tmp", "/var")]  # noqa: S108 - only its name
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
        yield from (path for name in BESIDE if (path := folder.parent / name).exists() and not path.is_symlink())
