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

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING

from node.shim import linux
from node.shim.path_walk import Links, Make, PathRefused, Walk
from node.shim.sources import open_source, own_walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from node.shim.order import Bind

# What of /proc is about the machine and not about a process: root may write it without any capability.
KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "dynamic_debug", "scsi")
TMP = "/tmp"  # noqa: S108 - everybody's
_ESCAPED = re.compile(r"\\([0-7]{3})")  # a space, for example, in a list of mounts
MEMORY = ("mem", "kmem", "port")  # devices of /dev by which the machine's memory is read and written
ENTRIES = 4096  # a directory with more entries is not rebuilt
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the container's own is mounted there


class MountError(Exception):
    """A volume cannot appear where its pod wants it."""


def separate(mode: str, *, pids: bool = False) -> None:
    """Give this process what it takes to make mounts; mode is "root", or "user" for a user namespace of its own.

    With `pids` what it forks from here on is in a namespace of processes, and it
    is itself in one of System V's shared memory, semaphores and messages.
    """
    uid, gid = os.getuid(), os.getgid()
    more = linux.CLONE_NEWPID | linux.CLONE_NEWIPC if pids else 0
    if mode == "user":
        linux.unshare(linux.CLONE_NEWUSER | more)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    elif more:
        linux.unshare(more)


def enter() -> None:
    """Move this process, which may make mounts, into a mount namespace of its own."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)


def join(pid: int) -> None:
    """Move this process into the mount namespace of another, a container's command, which enter() made."""
    fd = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    linux.setns(fd, linux.CLONE_NEWNS)
    os.close(fd)


def arrange(
    binds: Sequence[Bind],
    staging: str,
    hide: str = "",
    keep: Sequence[str] = (),
    covers: Sequence[str] = (),
    shared_memory: int = 0,
) -> None:
    """Make every bind, outer targets before inner ones; staging is an empty directory.

    The directories hide, which is the state directory, and covers are covered by
    empty ones, in which only what keep names is what it was; so is /dev/shm, if
    shared_memory says how many bytes it may take. Everything that is shown is opened before, and nothing that a pod can change is looked up by its name: the
    covered directories are out of reach when the first mount point is.
    """
    own = (*((hide,) if hide else ()), *((SHARED_MEMORY,) if shared_memory else ()))
    tops = _outermost((*covers, *own))
    with contextlib.ExitStack() as stack:
        shown = _open(binds, hide, stack)
        kept = [_by_real_path(stack.enter_context(own_walk(one, hide)).fd) for one in keep]
        place = stack.enter_context(own_walk(staging, hide))
        for one in shown:
            if one.holder is not None:
                # In the holder's source, because its mount may be read-only.
                _make_point(one.holder.fd, one.at, one)
            else:
                one.cover = next((top for top in tops if _lies_in(one.at, top)), "")
        for top in tops:
            size = f"mode=1777,size={shared_memory}" if top == SHARED_MEMORY else "mode=755,size=1m"
            _hide(top, [(path, fd) for path, fd in kept if _lies_in(path, top)], size)
        for one in shown:
            if one.cover:
                _make_covered_point(one, hide)
        with _root([one for one in shown if one.missing and not one.cover], place):
            for one in shown:
                _mount(one, stack)


def _outermost(paths: Sequence[str]) -> list[str]:
    """Return the directories without those that lie in others; those that are not there count for nothing."""
    there = {os.path.realpath(path) for path in paths if os.path.isdir(path)}
    return sorted(path for path in there if not any(_lies_in(path, other) for other in there - {path}))


def _lies_in(path: str, top: str) -> bool:
    return (path + "/").startswith(top.rstrip("/") + "/")


def own_terminals() -> None:
    """Give this process a /dev/pts of its own: programs make terminals there, and those of others are not to be opened."""
    if not os.path.isdir("/dev/pts"):
        return
    flags = linux.MS_NOSUID | linux.MS_NOEXEC
    linux.mount("devpts", "/dev/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")
    if not os.path.islink("/dev/ptmx"):
        linux.mount("/dev/pts/ptmx", "/dev/ptmx", flags=linux.MS_BIND)


def show_processes() -> None:
    """Make /proc that of this process's own namespace; only its init and those that come after can."""
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)


def keep_settings() -> None:
    """Make read-only what of /proc sets the kernel; what is about processes can be written, as sshd does."""
    for name in KERNEL:
        path = f"/proc/{name}"
        if os.path.exists(path):
            linux.mount(path, path, flags=linux.MS_BIND | linux.MS_REC)
            _make_read_only(path)


def withhold(own: Sequence[str], volumes: Sequence[str], devices: Sequence[str]) -> None:
    """Do what Landlock does elsewhere: make the machine's files read-only, and keep root from its disks and memory.

    What is mounted at the paths in `own` can still be written, and so can volumes with all that is mounted in them, /tmp, what
    /proc has of processes, and devices that the mode of their files allows; of disks those in `devices`.
    """
    if not os.path.ismount(TMP):
        # With what is mounted below: a user namespace may not look under it.
        linux.mount(TMP, TMP, flags=linux.MS_BIND | linux.MS_REC)
    kept = set(map(os.path.realpath, own))
    # Those in others lie in them, and on the way to them pods may make links.
    outer = [path for path in volumes if not any(_lies_in(path, each) for each in volumes if each != path)]
    tops = ("/proc", "/dev", TMP, *map(os.path.realpath, outer))
    for point in _mount_points():
        if point not in kept and not any(_lies_in(point, top) for top in tops):
            with contextlib.suppress(OSError):  # something is mounted over it, so that it has no name
                _make_read_only(point)
    for path in _disks("/dev") if os.geteuid() == 0 else ():
        if path not in devices:
            linux.mount(os.devnull, path, flags=linux.MS_BIND)


def _mount_points() -> list[str]:
    lines = linux.content("/proc/self/mountinfo").decode(errors="surrogateescape").splitlines()
    return [_ESCAPED.sub(lambda found: chr(int(found[1], 8)), line.split(" ", 5)[4]) for line in lines]


def _disks(folder: str) -> Iterator[str]:
    """Yield the files of block devices and of the machine's memory; subdirectories are looked through, links not followed."""
    for entry in os.scandir(folder):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode) and entry.name not in ("shm", "pts", "mqueue"):
            yield from _disks(entry.path)
        elif stat.S_ISBLK(mode) or entry.name in MEMORY:
            yield entry.path


class _Shown:
    """A bind whose source is open."""

    def __init__(self, bind: Bind, fd: int, holder: _Shown | None, at: str, missing: bool = False) -> None:
        self.bind = bind
        self.fd = fd
        self.holder = holder  # the bind inside whose target this one's lies
        self.at = at  # the mount point: in the holder, or in the machine's directories with links resolved
        self.missing = missing  # the machine has no such mount point
        self.cover = ""  # the covered directory that the mount point lies in
        self.mounted = -1  # the mount, once it is made


def _open(binds: Sequence[Bind], hide: str, stack: contextlib.ExitStack) -> list[_Shown]:
    """Open the sources; outer targets come before inner ones."""
    shown: list[_Shown] = []
    for bind in sorted(binds, key=lambda bind: bind.target.count("/")):
        try:
            fd = open_source(bind, hide)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise MountError(f"mount {bind.source} on {bind.target}: {why}") from None
        stack.callback(os.close, fd)
        holder = _holder(shown, bind)
        if holder is not None:
            shown.append(_Shown(bind, fd, holder, bind.target[len(holder.bind.target) :]))
        else:
            with _explained(bind):
                shown.append(_Shown(bind, fd, None, *_resolved(bind.target)))
    return shown


def _resolved(path: str) -> tuple[str, bool]:
    """Return a path of this machine without links, as far as it exists, and whether something of it does not."""
    parts = path.split("/")
    for count in range(len(parts), 0, -1):
        try:
            with Walk("/", Links.SYSTEM) as way:
                found = os.readlink(_by_fd(way.go("/".join(parts[:count])).fd))
        except FileNotFoundError:
            continue
        return os.path.join(found, *parts[count:]), count < len(parts)
    return path, True


def _by_fd(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def _hide(path: str, kept: Sequence[tuple[str, int]], options: str) -> None:
    linux.mount("tmpfs", path, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
    for target, fd in kept:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        linux.mount(_by_fd(fd), target, flags=linux.MS_BIND)


def _by_real_path(fd: int) -> tuple[str, int]:
    return os.readlink(_by_fd(fd)), fd


def _make_covered_point(one: _Shown, hide: str) -> None:
    """Make a mount point in a covered directory, where there is nothing that anybody could have put there."""
    if hide and _lies_in(one.at, os.path.realpath(hide)):
        raise MountError(
            f"A volume cannot be mounted at {one.bind.target}: files of the cluster itself are there."
        )
    with Walk(one.cover) as top:
        _make_point(top.fd, one.at[len(one.cover) :], one)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _holder(outer: Sequence[_Shown], inner: Bind) -> _Shown | None:
    holders = [one for one in outer if inner.target.startswith(one.bind.target.rstrip("/") + "/")]
    return max(holders, key=lambda one: len(one.bind.target), default=None)


def _make_point(root: int, path: str, one: _Shown) -> None:
    """Make a mount point below a directory, where there is none: a file for a file."""
    folder, _, name = path.rpartition("/")
    make = Make.DIRECTORY if stat.S_ISDIR(os.fstat(one.fd).st_mode) else Make.FILE
    with (
        _explained(one.bind),
        Walk(root, make=Make.DIRECTORY) as way,
        Walk(way.go(folder).fd, make=make) as last,
    ):
        last.go(name)


def _mount(one: _Shown, stack: contextlib.ExitStack) -> None:
    """Mount one source on its target, in the mount of its holder or in the machine's own directories."""
    bind = one.bind
    with _explained(bind), Walk(one.holder.mounted if one.holder else "/") as way:
        way.go(one.at)
        linux.mount(_by_fd(one.fd), _by_fd(way.fd), flags=linux.MS_BIND | linux.MS_REC)
        one.mounted = way.again()
    stack.callback(os.close, one.mounted)
    if bind.read_only:
        _make_read_only(_by_fd(one.mounted))


def _make_read_only(path: str) -> None:
    # A user namespace may not lift nosuid and the like from a mount: repeat what is there.
    kept = os.statvfs(path).f_flag & (linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    linux.mount("none", path, flags=linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | kept)


@contextlib.contextmanager
def _explained(bind: Bind) -> Iterator[None]:
    try:
        yield
    except PathRefused as error:
        raise MountError(f"A volume cannot be mounted at {bind.target}: {error}") from None


@contextlib.contextmanager
def _root(missing: Sequence[_Shown], place: Walk) -> Iterator[None]:
    """Give this process a root directory of its own if mount points are missing; place is an empty directory for it.

    The former root stays in reach until the end, because what is mounted was opened in it.
    """
    if not missing:
        yield
        return
    linux.mount("tmpfs", _by_fd(place.fd), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=16m")
    root, former = place.again(), os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fchdir(root)  # names from here are shorter, and so quicker, than those by its descriptor
    _expose("/", ".", {one.at for one in missing})
    for one in missing:
        _make_point(root, one.at, one)
    # The second "." covers the new root with the former one.
    linux.pivot_root(".", ".")
    os.chdir("/")
    yield
    os.fchdir(former)
    linux.unmount(".", linux.MNT_DETACH)
    os.chdir("/")
    os.close(root)
    os.close(former)


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
