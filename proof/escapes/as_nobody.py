"""Running tests' code as a user without rights, who can read neither this clone nor where its Python may lie."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

from node.shim import linux

PROJECT = Path(__file__).resolve().parents[2]
NEEDED = (
    "kube/__init__.py",
    "kube/mount_paths.py",
    "node/__init__.py",
    "node/containers/__init__.py",
    "node/containers/spawn.py",
    "node/rules/__init__.py",
    "node/rules/programs.py",
    *(f"{name}/__init__.py" for name in ("proof", "proof/harness", "proof/escapes")),
    "proof/harness/waiting.py",
    *(f"proof/escapes/{name}.py" for name in ("attempts", "escapes", "breakouts", "breaking_out")),
)


def code(home: Path) -> Path:
    """Copy what the test runs to where everybody may read it: this clone may lie in somebody's closed home."""
    shim = [str(path.relative_to(PROJECT)) for path in (PROJECT / "node" / "shim").rglob("*.py")]
    for name in (*NEEDED, *shim):
        copy = home / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / name, copy)
    subprocess.run(["chmod", "-R", "a+rX", home], check=True)
    return home


def closed_above(path: Path) -> Path | None:
    """Return the outermost directory on the way to a path that others may not enter, None when there is none."""
    return next((one for one in reversed(path.parents) if not one.stat().st_mode & stat.S_IXOTH), None)


def opened(*paths: Path) -> None:
    """Let others reach paths, in this process' own view of the machine: all beside them in what is closed is gone."""
    closed = {path: folder for path in paths if (folder := closed_above(path)) is not None}
    if closed:
        linux.unshare(linux.CLONE_NEWNS)
        linux.keep_mounts_private()
        mounts = {path: linux.copy_of_mount(os.open(path, os.O_PATH)) for path in closed}
        for folder in set(closed.values()):
            linux.attach(linux.file_system("tmpfs", mode="755"), os.open(folder, os.O_PATH))
        for path, mount in sorted(mounts.items()):  # one may lie in another
            path.mkdir(parents=True, exist_ok=True)
            linux.attach(mount, os.open(path, os.O_PATH))


def become(user: pwd.struct_passwd, *paths: Path) -> None:
    """Turn this process into another user's, who can reach the Python that the tests run with, and paths, wherever they lie."""
    opened(Path(sys.base_prefix).resolve(), *paths)
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
