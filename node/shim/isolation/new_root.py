"""A directory tree in memory that becomes a process's root: what is mounted in it is mounted from descriptors, on points reached by descriptors."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from node.shim import linux
from node.shim.path_walk import STEP, Links, Make, Walk

if TYPE_CHECKING:
    from types import TracebackType

QUIET = linux.NOSUID | linux.NODEV
READ_ONLY = QUIET | linux.RDONLY
ENTRIES = 4096  # of a directory that is put together anew


class TooManyEntries(ValueError):
    """A directory of the machine in which there can be no new mount point."""


class NewRoot:
    """A root that is being put together, in a mount namespace of this process's own; a context manager that closes what it opened.

    It is mounted over the machine's root, where no name leads to it, and `enter` makes it the root. `owner` is whose its
    directories are, a user and group of the machine; -1: this process's.
    """

    def __init__(self, owner: int = -1) -> None:
        self._stack = contextlib.ExitStack()
        self._owner = owner
        self.top = self.file_system("tmpfs", mode="755")
        self.fixed = [self.top]  # file systems in which nothing is changed any more once it is closed
        machine = os.open("/", os.O_PATH | os.O_CLOEXEC)
        linux.attach(self.top, machine)
        os.close(machine)

    def __enter__(self) -> NewRoot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def close_later(self, fd: int) -> int:
        """Return a descriptor that is closed with the rest."""
        self._stack.callback(os.close, fd)
        return fd

    def file_system(self, kind: str, attributes: int = QUIET, **options: str | int) -> int:
        """Return the root of a new file system, which is mounted nowhere yet."""
        if kind == "tmpfs" and self._owner >= 0:
            options |= {"uid": self._owner, "gid": self._owner}
        return self.close_later(linux.file_system(kind, attributes, **options))

    def mount(self, mount: int, path: str) -> None:
        """Mount something at a path that is there, through no link."""
        point = linux.open_beneath(self.top, path)
        linux.attach(mount, point)
        os.close(point)

    def add(self, path: str, kind: str = "tmpfs", attributes: int = QUIET, **options: str | int) -> int:
        """Mount a new file system at a path, which is made where it is missing; return it."""
        file_system = self.file_system(kind, attributes, **options)
        self._attach(file_system, path, Make.DIRECTORY)
        return file_system

    def show(self, source: int, path: str, attributes: int = READ_ONLY, *, whole: bool = True) -> int:
        """Show what a descriptor of this mount namespace stands for at a path, which is made where it is missing; return the mount."""
        mount = self.close_later(linux.copy_of_mount(source, whole=whole))
        linux.restrict_mount(mount, attributes, whole=whole)
        self._attach(mount, path, kind_of(source))
        return mount

    def show_path(self, path: str, attributes: int, *, whole: bool = True) -> int:
        """Show a directory of the machine where it is; return the mount."""
        source = os.open(path, STEP)
        try:
            return self.show(source, path, attributes, whole=whole)
        finally:
            os.close(source)

    def show_again(self, source_path: str, path: str, attributes: int) -> None:
        """Show something of this root at a path, if there is something there that it can cover."""
        with contextlib.suppress(FileNotFoundError):
            os.close(linux.open_beneath(self.top, path))
            source = linux.open_beneath(self.top, source_path)
            self.show(source, path, attributes)
            os.close(source)

    def make(self, path: str, kind: Make) -> None:
        """Make a mount point where there is none; where the machine has a directory, that is shown with one entry more."""
        os.close(self._point(path, kind))

    def _attach(self, mount: int, path: str, kind: Make) -> None:
        point = self._point(path, kind)
        linux.attach(mount, point)
        os.close(point)

    def _point(self, path: str, kind: Make) -> int:
        for is_new in (False, True):
            with Walk(self.top, make=Make.DIRECTORY, owner=self._owner) as way:
                try:
                    return go_making(way, path, kind, self._owner)
                except OSError as error:
                    if error.errno != errno.EROFS or is_new:
                        raise
                self._renew(way.fd)
        raise AssertionError  # the second time it was made, or could not be

    def locate(self, path: str) -> str:
        """Return a path without the links on it, which are the machine's or this root's; what is missing stays as it is written."""
        parts = [part for part in path.split("/") if part]
        with Walk(self.top, Links.ANY) as way:
            for index, part in enumerate(parts):
                try:
                    way.go(part)
                except FileNotFoundError:
                    return "/".join([way.path, *parts[index:]])
            return way.path or "/"

    def enter(self) -> None:
        """Make this the root; the machine's is not to be reached from here on."""
        linux.change_root(self.top)

    def close(self) -> None:
        """Let nobody change what belongs to no volume."""
        for file_system in self.fixed:
            linux.restrict_mount(file_system, linux.RDONLY, whole=False)

    def _renew(self, folder: int) -> None:
        """Put a directory of the machine together anew, in memory and of the same entries, so that there can be more in it."""
        listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        names = os.listdir(listing)
        os.close(listing)
        if len(names) > ENTRIES:
            raise TooManyEntries(f"the directory has {len(names)} entries; choose another mountPath.")
        file_system = self.file_system("tmpfs", mode="755")
        linux.attach(file_system, folder)
        self.fixed.append(file_system)
        for name in names:
            source = os.open(name, STEP, dir_fd=folder)
            try:
                self._show_entry(source, file_system, name)
            finally:
                os.close(source)

    def _show_entry(self, source: int, folder: int, name: str) -> None:
        mode = os.fstat(source).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink("", dir_fd=source), name, dir_fd=folder)
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            with Walk(folder, make=kind_of(source)) as way:
                mount = linux.copy_of_mount(source)
                linux.attach(mount, way.go(name).fd)
                os.close(mount)


def go_making(way: Walk, path: str, kind: Make, owner: int = -1) -> int:
    """Go to a mount point on a way that makes directories, and make it where it is missing; return a descriptor of it."""
    if kind is Make.DIRECTORY:
        return way.go(path).dup()
    folder, _, name = path.rpartition("/")
    with Walk(way.go(folder).fd, make=kind, owner=owner) as last:
        return last.go(name).dup()


def kind_of(fd: int) -> Make:
    """Return what a mount point for something is."""
    return Make.DIRECTORY if stat.S_ISDIR(os.fstat(fd).st_mode) else Make.FILE
