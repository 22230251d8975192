"""A private view of the file system: volumes appear at their mount paths for one container only.

In a mount namespace of its own a container sees each volume where its pod
wants it, and the machine's own files are not touched. Root may simply have
one; anybody else gets it inside a user namespace, where the kernel allows that.

A mount path that does not exist on the machine needs a place to be created in.
The container then gets a root directory of its own, in memory, in which every
directory along such a path is made anew and everything beside it is bound from
the machine. What is written there next to the bound entries is lost with the
container; everything else is the machine's own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.node.shim import linux

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cluster.node.shim.order import Bind

ENTRIES = 4096  # a directory with more entries is not rebuilt


class MountError(Exception):
    """A volume cannot appear where its pod wants it."""


def enter(mode: str) -> None:
    """Move this process into a mount namespace; mode is "root" or "user"."""
    if mode == "user":
        uid, gid = os.getuid(), os.getgid()
        linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    else:
        linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)


def join(mode: str, pid: int) -> None:
    """Move this process into the namespaces of another, a container's command, which enter() made."""
    kinds = {"user": linux.CLONE_NEWUSER, "mnt": linux.CLONE_NEWNS}
    if mode != "user":
        del kinds["user"]
    # All are opened first: in the namespace /proc is another process's, and may be out of reach.
    opened = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), kind) for name, kind in kinds.items()]
    for fd, kind in opened:
        linux.setns(fd, kind)
        os.close(fd)


def apply(binds: Sequence[Bind], staging: str) -> None:
    """Make every bind, outer targets before inner ones; staging is an empty directory."""
    ordered = sorted(binds, key=lambda bind: bind.target.count("/"))
    missing = _create_mount_points(ordered)
    if missing:
        _new_root(missing, staging)
    for bind in ordered:
        _bind(bind)


def hide(path: str, keep: Sequence[str]) -> None:
    """Cover a directory by an empty one, in which only the directories of keep are what they were."""
    kept = [(os.open(one, os.O_PATH | os.O_DIRECTORY), one) for one in keep]
    linux.mount("tmpfs", path, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=1m")
    for fd, target in kept:
        Path(target).mkdir(parents=True)
        linux.mount(f"/proc/self/fd/{fd}", target, flags=linux.MS_BIND)
        os.close(fd)


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


def _create_mount_points(binds: Sequence[Bind]) -> list[Bind]:
    """Create targets that lie inside another bind in that bind's source; return those that lie elsewhere."""
    missing = []
    for index, bind in enumerate(binds):
        outer = _outer(binds[:index], bind)
        if outer:
            _create(outer.source + bind.target[len(outer.target) :], Path(bind.source).is_dir())
        elif not os.path.lexists(bind.target):
            missing.append(bind)
    return missing


def _outer(binds: Iterable[Bind], inner: Bind) -> Bind | None:
    holders = [bind for bind in binds if inner.target.startswith(bind.target.rstrip("/") + "/")]
    return max(holders, key=lambda bind: len(bind.target), default=None)


def _create(path: str, directory: bool) -> None:
    if directory:
        Path(path).mkdir(parents=True, exist_ok=True)
    elif not os.path.lexists(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()


def _bind(bind: Bind) -> None:
    target = os.path.realpath(bind.target)
    linux.mount(bind.source, target, flags=linux.MS_BIND | linux.MS_REC)
    if bind.read_only:
        # A user namespace may not lift nosuid and the like from a mount: repeat what is there.
        kept = os.statvfs(target).f_flag & (linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        linux.mount("none", target, flags=linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | kept)


def _new_root(missing: Sequence[Bind], staging: str) -> None:
    linux.mount("tmpfs", staging, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=16m")
    _expose("/", staging, {bind.target for bind in missing})
    for bind in missing:
        _create(staging + bind.target, Path(bind.source).is_dir())
    os.chdir(staging)
    # The second "." covers the new root with the old one, which is then taken off.
    linux.pivot_root(".", ".")
    linux.unmount(".", linux.MNT_DETACH)
    os.chdir("/")


def _expose(real: str, copy: str, wanted: set[str]) -> None:
    """Show every entry of the directory real in copy; descend where a wanted path leads."""
    names = os.listdir(real)
    if len(names) > ENTRIES:
        raise MountError(
            f"A volume cannot be mounted below {real}, which has {len(names)} entries; choose another mountPath."
        )
    for name in names:
        source, target = os.path.join(real, name), os.path.join(copy, name)
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
        elif os.path.isdir(source):
            os.mkdir(target, os.stat(source).st_mode & 0o7777)
            if any(path.startswith(source + "/") for path in wanted):
                _expose(source, target, wanted)
            else:
                linux.mount(source, target, flags=linux.MS_BIND | linux.MS_REC)
        elif os.path.isfile(source):
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
            linux.mount(source, target, flags=linux.MS_BIND)
