"""Opening paths that somebody else can change: from one directory to the next, never the whole name at once.

A pod can put a symbolic link wherever it can write, at any moment, also
between a look at a path and its use. So here every component is opened by
itself, relative to the descriptor of the directory before it, and a link is
read and followed by us or not at all. What was opened was found below the
root, and stays what it was, whatever becomes of its name.

This is what `openat2` does with RESOLVE_BENEATH. It cannot create what is
missing, so the steps would be needed beside it, and they work with every kernel.
"""

from __future__ import annotations

import os
import stat
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

LINKS_MOST = 40  # on one way, as in the kernel
DEPTH_MOST = 4096
STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


# How files are opened in directories that a pod may write in: through no link, and a FIFO is an error instead of a wait.
WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW_FILE = WRITE | os.O_EXCL


class PathRefused(ValueError):
    """A path leads where it must not, or is not what it should be."""


class Links(Enum):
    """Which symbolic links are followed."""

    NONE = "none"
    INSIDE = "inside"  # relative ones that stay below the root
    SYSTEM = "system"  # those in a directory that only root or another user can write, as /var/run
    ANY = "any"  # all, where no pod has written


class Make(Enum):
    """What is made of a path that does not exist."""

    NOTHING = ""
    DIRECTORY = "directory"  # with those that lead to it
    FILE = "file"  # an empty one, in a directory that exists


class Walk:
    """A way down from a directory; a context manager that closes what it opened.

    `fd` is where the way has come to and `folder` the directory that it lies
    in, which for a directory is itself. Both are O_PATH descriptors. `before_make`
    is called with the directory in which something is about to be made, and
    may refuse; owner is whose that is then, a user and group; -1: this process's.
    """

    def __init__(
        self,
        root: str | int,
        links: Links = Links.NONE,
        make: Make = Make.NOTHING,
        before_make: Callable[[int], None] | None = None,
        owner: int = -1,
    ) -> None:
        self._chain = [os.dup(root) if isinstance(root, int) else os.open(root, os.O_PATH | os.O_CLOEXEC)]
        self._names = [""]
        self._links = links
        self._make = make
        self._before_make = before_make
        self._owner = owner
        self._followed = 0

    def __enter__(self) -> Walk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fd in self._chain:
            os.close(fd)

    @property
    def fd(self) -> int:
        """What was reached."""
        return self._chain[-1]

    @property
    def path(self) -> str:
        """The way from the root to what was reached, which leads through no link; "" for the root itself."""
        return "/".join(self._names)

    @property
    def folder(self) -> int:
        """The directory reached, or the one with the file reached."""
        return self.fd if stat.S_ISDIR(os.fstat(self.fd).st_mode) else self._chain[-2]

    def go(self, path: str) -> Walk:
        """Follow a path; PathRefused where it leads out or through a link that is not followed, OSError as open()."""
        remaining = _parts(path)
        while remaining:
            name = remaining.pop()
            if name == "..":
                if len(self._chain) > 1:
                    self._pop()
                elif self._links not in (Links.SYSTEM, Links.ANY):
                    raise PathRefused(f'"{path}" leads out of the volume.')
                continue
            fd = self._open(name, last=not remaining)
            if not stat.S_ISLNK(os.fstat(fd).st_mode):
                self._chain.append(fd)
                self._names.append(name)
                continue
            try:
                target = os.readlink("", dir_fd=fd)
            finally:
                os.close(fd)
            self._follow(name, target, path)
            remaining += _parts(target)
        return self

    def dup(self) -> int:
        """Return what was reached as a descriptor that is the caller's to close."""
        return os.dup(self.fd)

    def _open(self, name: str, *, last: bool) -> int:
        try:
            return os.open(name, STEP, dir_fd=self.fd)
        except FileNotFoundError:
            if self._make is Make.NOTHING or (self._make is Make.FILE and not last):
                raise
        if self._before_make is not None:
            self._before_make(self.fd)
        try:
            if self._make is Make.DIRECTORY:
                os.mkdir(name, dir_fd=self.fd)
            else:
                os.close(os.open(name, NEW_FILE, 0o644, dir_fd=self.fd))
            if self._owner >= 0:
                os.chown(name, self._owner, self._owner, dir_fd=self.fd, follow_symlinks=False)
        except FileExistsError:  # made by somebody else meanwhile; what it is shows when it is opened
            pass
        return os.open(name, STEP, dir_fd=self.fd)

    def _follow(self, name: str, target: str, path: str) -> None:
        self._followed += 1
        if self._followed > LINKS_MOST:
            raise PathRefused(f'"{path}" leads through too many symbolic links.')
        absolute = target.startswith("/")
        if self._links is Links.SYSTEM:
            if not _is_protected(os.fstat(self.fd)):
                raise PathRefused(
                    f'"{path}" leads through the symbolic link "{name}", which pods could have made; '
                    "name the place that it stands for."
                )
        elif self._links is Links.NONE:
            raise PathRefused(f'"{path}" leads through the symbolic link "{name}".')
        elif absolute and self._links is Links.INSIDE:
            raise PathRefused(f'"{path}" leads out of the volume, by the symbolic link "{name}".')
        while absolute and len(self._chain) > 1:
            self._pop()

    def _pop(self) -> None:
        os.close(self._chain.pop())
        self._names.pop()


def _parts(path: str) -> list[str]:
    """Return the components of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _is_protected(folder: os.stat_result) -> bool:
    """Whether nobody puts links into a directory but root, or another user than the one that pods run as."""
    own = os.getuid()
    return (own == 0 or folder.st_uid != own) and not folder.st_mode & 0o022


def identity(fd: int) -> tuple[int, int]:
    """Return what makes a file or directory the same under every name."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def lineage(folder: int) -> Iterator[tuple[int, int]]:
    """Yield the identity of a directory and of each that contains it, up to the root."""
    top = os.stat("/")
    fd = os.dup(folder)
    try:
        for _ in range(DEPTH_MOST):
            current = identity(fd)
            yield current
            if current == (top.st_dev, top.st_ino):
                return
            above = os.open("..", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = above
    finally:
        os.close(fd)
    raise PathRefused("The directory is not below the root of this machine.")
