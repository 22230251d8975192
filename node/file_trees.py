"""Trees of files in which pods write: measured, given to a group, removed.

A pod makes what it likes: directories thousands deep, millions of files,
directories that nobody may enter. And it moves them while they are looked at.
So nothing here is recursive, takes a path of more than one name, follows a
link or goes into another mount, and everything comes to an end.

What is looked at is walked from the top down, and every directory on the way
stays open until what is in it has been seen: to move it leads nobody astray.
That costs two descriptors a level, so levels are bounded. Removing has no such
bound: a directory within a directory is brought up to the top first, by one
rename, so there is never more than one level to empty.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

BLOCK = 512  # bytes, of st_blocks
_LOOK, _CHANGE = 0o500, 0o700  # what the owner of a directory must be allowed
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# What a pod's group may do with what is in its volumes, as Kubernetes' kubelet has it.
_FILE, _FOLDER = 0o660, 0o2770
PREFIX_LETTERS = 40  # characters that remain of a name when something is brought up


class Bounds(NamedTuple):
    """How much of a tree is walked."""

    levels: int = 100
    entries: int = 2_000_000
    seconds: float = 20.0


BOUNDS = Bounds()


class Beyond(Exception):
    """A tree is larger than the bounds of a walk; the message names the bound."""


class TooSlow(Beyond):
    """The time was over, which may be the disk's fault and not the tree's."""


class Size(NamedTuple):
    """The bytes that a tree takes up on the disk, or that were counted until a bound ended the walk."""

    bytes: int
    beyond: str = ""  # which bound, unless it was time


class _Level(NamedTuple):
    fd: int
    entries: Iterator[os.DirEntry[str]]
    mode: int  # that it had before it was opened


def walk(name: str | Path, above: int | None = None, bounds: Bounds = BOUNDS) -> Iterator[tuple[int, os.DirEntry[str]]]:
    """Yield everything below a directory: each entry with the descriptor of the directory that it lies in.

    Beyond is raised when a bound is reached. A directory that we own and may
    not read is opened all the same, and has its mode again afterwards; what is
    removed meanwhile, or somebody else's alone, is passed over.
    """
    deadline, count = time.monotonic() + bounds.seconds, 0
    levels = [_level(name, above)]
    try:
        mount = _mount(levels[0].fd)
        while levels:
            folder = levels[-1]
            entry = next(folder.entries, None)
            if entry is None:
                _leave(levels.pop())
                continue
            count += 1
            if count > bounds.entries:
                raise Beyond(f"more than {bounds.entries:,} files and directories")
            if time.monotonic() > deadline:
                raise TooSlow(f"more than can be looked at in {bounds.seconds:g} s")
            yield folder.fd, entry
            if not entry.is_dir(follow_symlinks=False):
                continue
            if len(levels) >= bounds.levels:
                raise Beyond(f"more than {bounds.levels} levels of directories")
            try:
                level = _level(entry.name, folder.fd)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue
            if _mount(level.fd) == mount:
                levels.append(level)
            else:
                _leave(level)
    finally:
        for level in levels:
            _leave(level)


def size(folder: Path, bounds: Bounds = BOUNDS) -> Size:
    """Count what everything below a directory, which need not exist, takes up; a file with several names counts once."""
    total, counted = 0, set()
    try:
        for _, entry in walk(folder, bounds=bounds):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # removed meanwhile
                continue
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                if (status.st_dev, status.st_ino) in counted:
                    continue
                counted.add((status.st_dev, status.st_ino))
            total += status.st_blocks * BLOCK
    except (FileNotFoundError, NotADirectoryError, TooSlow):
        pass
    except Beyond as error:
        return Size(total, str(error))
    return Size(total)


def give_to_group(root: int, group: int, bounds: Bounds = BOUNDS) -> None:
    """Give all in a directory to a group that may change it, unless the directory itself belongs to the group already.

    A file with several names is left alone: another name may be somebody
    else's. Beyond is raised for a tree that is too large; the next try goes on
    where this one has ended, as far as time is what ended it.
    """
    status = os.fstat(root)
    if status.st_gid == group and status.st_mode & _FOLDER == _FOLDER:
        return
    for folder, entry in walk(".", root, bounds):
        try:
            fd = os.open(entry.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except OSError:  # removed meanwhile
            continue
        try:
            _give_one(fd, group)
        finally:
            os.close(fd)
    _give_one(root, group)


def _give_one(fd: int, group: int) -> None:
    status = os.fstat(fd)
    is_folder = stat.S_ISDIR(status.st_mode)
    if is_folder or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1):
        path = f"/proc/self/fd/{fd}"
        if status.st_gid != group:
            os.chown(path, -1, group)
        os.chmod(path, stat.S_IMODE(status.st_mode) | (_FOLDER if is_folder else _FILE))


def remove(name: str | Path, above: int | None = None, *, within_s: float) -> None:
    """Remove a directory with all that is in it; OSError when that could not be done, or not within the time."""
    folder, _ = _open(name, above, _CHANGE)
    try:
        empty(folder, within_s)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=above)


def empty(folder: int, within_s: float, spared: Collection[str] = ()) -> dict[str, str]:
    """Remove what is in a directory but the names that are spared; return what could not be removed, by name, and why.

    It ends when the time is over, whoever adds to it meanwhile; what it has
    done by then is done. What lies deep in a name may by then have come up
    beside it, under a name that begins like it.
    """
    deadline = time.monotonic() + within_s
    failed: dict[str, str] = {}
    is_over = False
    while not is_over and time.monotonic() < deadline:
        is_over = True
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name in spared or entry.name in failed:
                    continue
                is_over = False
                if why := _dissolve(entry.name, folder, deadline):
                    failed[entry.name] = why
                if time.monotonic() > deadline:
                    break
    return failed


def move(name: str | Path, new: str | Path, source: int | None = None, target: int | None = None) -> None:
    """Rename something to another directory: also a directory whose owner, who we are, may not change it."""
    try:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:
        os.close(_open(name, source, _CHANGE)[0])
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)


def _dissolve(name: str, top: int, deadline: float) -> str:
    """Remove something from a directory; the directories in it come up beside it. Return why it cannot be removed, "" else."""
    try:
        if _is_removed(name, top):
            return ""
        if why := _dissolve_content(name, top, deadline):
            return why
        os.rmdir(name, dir_fd=top)
    except (FileNotFoundError, NotADirectoryError):  # changed by somebody meanwhile
        return ""
    except OSError as error:
        # What is not empty has been added to, or the time was over: it is found again.
        return "" if error.errno == errno.ENOTEMPTY else f"{name}: {error.strerror}"
    return ""


def _dissolve_content(name: str, top: int, deadline: float) -> str:
    why = ""
    folder, _ = _open(name, top, _CHANGE)
    try:
        if _mount(folder) != _mount(top):
            return f"{name}: a file system is mounted there"
        with os.scandir(folder) as entries:
            for entry in entries:
                if time.monotonic() > deadline:
                    break
                try:
                    if not _is_removed(entry.name, folder):
                        piece = f"{name.partition('.')[0][:PREFIX_LETTERS]}.{os.urandom(8).hex()}"
                        move(entry.name, piece, folder, top)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError as error:
                    why = why or f"{name}/{entry.name}: {error.strerror}"
    finally:
        os.close(folder)
    return why


def _is_removed(name: str, folder: int) -> bool:
    """Remove a file, or a directory that is empty; return whether it is gone."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError:  # there is something in it, or what hinders shows when it is moved
            return False
    return True


def _level(name: str | Path, above: int | None) -> _Level:
    fd, mode = _open(name, above, _LOOK)
    try:
        return _Level(fd, os.scandir(fd), mode)
    except OSError:
        os.close(fd)
        raise


def _leave(level: _Level) -> None:
    """Close a directory, and undo what opening it has changed unless its owner has changed it since."""
    level.entries.close()  # type: ignore[attr-defined]
    if level.mode & _LOOK != _LOOK and stat.S_IMODE(os.fstat(level.fd).st_mode) == level.mode | _LOOK:
        with contextlib.suppress(OSError):
            os.fchmod(level.fd, level.mode)
    os.close(level.fd)


def _open(name: str | Path, above: int | None, needed: int) -> tuple[int, int]:
    """Open a directory through no link, and return it with its mode; its owner, if we are that, gets the rights that are needed."""
    step = os.open(name, _STEP, dir_fd=above)
    try:
        status = os.fstat(step)
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid == os.geteuid() and mode & needed != needed:
            os.chmod(f"/proc/self/fd/{step}", mode | needed)
        return os.open(".", _LIST, dir_fd=step), mode
    finally:
        os.close(step)


def _mount(fd: int) -> str:
    """Return the mount that an open directory is in: of one file system there may be several, and of one mount several devices."""
    with open(f"/proc/self/fdinfo/{fd}") as file:
        return next(line for line in file if line.startswith("mnt_id:"))
