"""Becoming the user whom a pod names: the last step before its command takes over."""

from __future__ import annotations

import os
import stat

# What a pod's group may do with what is in its volumes, as Kubernetes' kubelet has it.
_FILE, _FOLDER = 0o660, 0o2770
_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def become(user: tuple[int, int, list[int]]) -> None:
    """Be another user with these groups, for good; its standard streams become its own, so that it may open them by name."""
    uid, gid, groups = user
    for fd in (0, 1, 2):
        if stat.S_ISFIFO(os.fstat(fd).st_mode) or os.isatty(fd):
            os.fchown(fd, uid, gid)
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def give_folder(fd: int, group: int | None) -> None:
    """Let everybody in a pod write in a directory of its own, which is new; what is made there belongs to the group."""
    path = f"/proc/self/fd/{fd}"
    if group is not None:
        os.chown(path, -1, group)
    os.chmod(path, 0o777 if group is None else 0o2777)


def give_tree(root: int, group: int) -> None:
    """Give all in a directory to a group that may change it, unless it has been given before, which the directory itself tells.

    No link is followed. A file with several names is left alone: another name may be somebody else's.
    """
    found = os.fstat(root)
    if found.st_gid == group and found.st_mode & _FOLDER == _FOLDER:
        return
    top = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root)
    try:
        for _, folders, files, folder in os.fwalk(".", dir_fd=top):
            for name in (*folders, *files):
                _give(name, folder, group)
    finally:
        os.close(top)
    _change(root, group)


def _give(name: str, folder: int, group: int) -> None:
    try:
        fd = os.open(name, _STEP, dir_fd=folder)
    except OSError:  # removed meanwhile
        return
    try:
        _change(fd, group)
    finally:
        os.close(fd)


def _change(fd: int, group: int) -> None:
    found = os.fstat(fd)
    is_folder = stat.S_ISDIR(found.st_mode)
    if is_folder or (stat.S_ISREG(found.st_mode) and found.st_nlink == 1):
        path = f"/proc/self/fd/{fd}"
        os.chown(path, -1, group)
        os.chmod(path, stat.S_IMODE(found.st_mode) | (_FOLDER if is_folder else _FILE))
