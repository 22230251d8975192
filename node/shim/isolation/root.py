"""A container's root directory: built of what is on a list, in a mount namespace of its own.

Nothing of the machine that is not on the list has a name inside, and nothing that a pod has put into its volumes has a
say in how the root is built:

1. What is shown is opened in the machine's own view (`node.shim.isolation.sources`).
2. The root is put together of the machine's programs, a /proc, /dev and /run of its own, and mount points for the volumes,
   which are copied as mounts that are mounted nowhere yet.
3. It becomes the root directory, and the machine's is let go of: from here on nothing of the machine has a name.
4. The volumes are mounted from their descriptors, on points that are reached through no link.

docs/design/node.md says what was weighed, and which ways out of other runtimes each step closes.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from kube import mount_paths
from kube.mount_paths import SHARED_MEMORY, lies_in
from node.shim import linux
from node.shim import users as subordinates
from node.shim.isolation import landlock
from node.shim.isolation.new_root import QUIET, READ_ONLY, NewRoot, TooManyEntries, go_making, kind_of
from node.shim.isolation.sources import open_source
from node.shim.path_walk import STEP, Make, PathRefused, Walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from node.shim.order import Bind, Ids, Order

    Source = tuple[str, int]  # a path, and a descriptor of what is there

# What programs need of a machine: to be executed and read, never written.
PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix")
RESOLVER = "/etc/resolv.conf"  # often a link to a file that a service keeps below /run
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
ACCELERATORS = ("nvidia", "dri", "kfd", "infiniband", "accel")  # how the names of these devices begin
FOLDERS = ("home", "mnt", "root", "tmp", "var/tmp")
LINKS = {"var/run": "/run", "var/lock": "/run"}
DEVICE_LINKS = {
    "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}  # fmt: skip
# What of /proc is about the machine and not about a process: root may write it without any capability.
SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "dynamic_debug", "scsi")
COVERED = ("fs", "firmware")  # of /sys: the machine's groups of processes, and what its firmware says
RUN_BYTES = 16 << 20
SHARED_BYTES = 64 << 20  # of a /dev/shm for which the order says nothing


class MountError(Exception):
    """A volume cannot appear where its pod wants it."""


def build(order: Order, users: int = -1) -> int:
    """Give this process, which may make mounts, a mount namespace with the root of an order; return Landlock's rules for it.

    users is the descriptor of the user namespace that it enters afterwards; -1 where it is in it already. The rules are
    a descriptor too, -1 where the order has no Landlock. MountError says why a pod cannot have a volume.
    """
    linux.unshare(linux.CLONE_NEWNS)
    linux.keep_mounts_private()
    with contextlib.ExitStack() as stack:
        # First: from the machine's root leads no way up any more once there is a new one.
        volumes = [_Volume.opened(bind, order.state, stack) for bind in order.binds]
        root = stack.enter_context(NewRoot(-1 if users < 0 else order.ids[0].outside))
        rules = _populate(root, order, of_machine=users < 0)
        for volume in volumes:
            with _as_mount_error(volume.bind):
                volume.locate(root)
        for volume in volumes:
            with _as_mount_error(volume.bind):
                volume.make_point(root, volumes)
        for volume in volumes:
            with _as_mount_error(volume.bind):
                volume.copy(root, users, order.ids)
        root.enter()
        for volume in sorted(volumes, key=lambda volume: volume.mount_point.count("/")):
            with _as_mount_error(volume.bind):
                root.mount(volume.mount, volume.mount_point)
            rules.append((volume.mount, landlock.READ if volume.bind.read_only else landlock.write(order.landlock)))
        root.close()
        return landlock.ruleset(order.landlock, rules) if order.landlock else -1


def join(pid: int) -> None:
    """Move this process into the mount namespace, and so the root, of a container's command."""
    fd = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    linux.setns(fd, linux.CLONE_NEWNS)
    os.close(fd)


def show_to(users: int, mount: int, ids: Sequence[Ids], *, own: bool) -> None:
    """Show files to the users of a namespace as theirs.

    Where a file system cannot (NFS, FUSE, overlayfs, tmpfs before Linux 6.3), files are theirs whose they are outside; a
    directory of the pod's own is given to them then.
    """
    try:
        linux.map_mount(mount, users)
    except OSError:
        status = os.fstat(mount)
        if own and stat.S_ISDIR(status.st_mode):
            owner = subordinates.outside(ids, status.st_uid), subordinates.outside(ids, status.st_gid)
            os.chown(f"/proc/self/fd/{mount}", *owner)
            os.chmod(f"/proc/self/fd/{mount}", stat.S_IMODE(status.st_mode))  # which a change of owner may have changed


def is_own(bind: Bind) -> bool:
    """Whether a bind shows a directory of the pod's, in which it may write."""
    return not bind.within and not bind.read_only


class _Volume:
    """A bind whose source is open."""

    def __init__(self, bind: Bind, source: int) -> None:
        self.bind = bind
        self.source = source
        self.mount_point = ""  # its mount point in the new root, without links
        self.mount = -1  # a copy of the source's mount

    @classmethod
    def opened(cls, bind: Bind, state: str, stack: contextlib.ExitStack) -> _Volume:
        """Open what a bind shows, as long as the stack keeps it open."""
        with _as_mount_error(bind):
            source = open_source(bind, state)
        stack.callback(os.close, source)
        return cls(bind, source)

    def locate(self, root: NewRoot) -> None:
        """Find out where it is mounted, before any volume is."""
        self.mount_point = root.locate(os.path.normpath(self.bind.target))
        if problem := mount_paths.problem(self.mount_point):
            raise PathRefused(f"it {problem}")

    def make_point(self, root: NewRoot, volumes: Sequence[_Volume]) -> None:
        """Make its mount point: in the new root, or in the volume that it lies in, through no link there."""
        containing = [
            volume for volume in volumes if volume is not self and lies_in(self.mount_point, volume.mount_point)
        ]
        if not containing:
            root.make(self.mount_point, kind_of(self.source))
            return
        holder = max(containing, key=lambda volume: len(volume.mount_point))
        with Walk(holder.source, make=Make.DIRECTORY) as way:
            os.close(go_making(way, self.mount_point[len(holder.mount_point) :], kind_of(self.source)))

    def copy(self, root: NewRoot, users: int, ids: Sequence[Ids]) -> None:
        """Copy its mount; a pod of subordinate users sees what it writes there as its own."""
        self.mount = root.close_later(linux.copy_of_mount(self.source))
        if users >= 0:
            show_to(users, self.mount, ids, own=is_own(self.bind))
        linux.restrict_mount(self.mount, READ_ONLY if self.bind.read_only else QUIET)


@contextlib.contextmanager
def _as_mount_error(bind: Bind) -> Iterator[None]:
    try:
        yield
    except (PathRefused, TooManyEntries) as error:
        raise MountError(f"A volume cannot be mounted at {bind.target}: {error}") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise MountError(f"mount {bind.source} on {bind.target}: {reason}") from None


def _populate(root: NewRoot, order: Order, *, of_machine: bool) -> list[tuple[int, int]]:
    """Put all into a root but the volumes; return what Landlock is to allow there.

    of_machine: this process is an ordinary user of the machine, who can show its devices but not make any.
    """
    for path in FOLDERS:
        root.make(path, Make.DIRECTORY)
    for path, target in LINKS.items():
        os.symlink(target, path, dir_fd=root.top)
    run = root.add("run", mode="755", size=RUN_BYTES)  # before a file that is shown in it
    for path, source in programs(order.read):
        if stat.S_ISLNK(os.fstat(source).st_mode):
            root.make(os.path.dirname(path), Make.DIRECTORY)
            os.symlink(os.readlink("", dir_fd=source), path[1:], dir_fd=root.top)
        else:
            root.show(source, path)
        os.close(source)
    kernel = (_add_processes(root, own=order.pids), *_add_devices(root, order, of_machine=of_machine))
    _add_hardware(root, whole=of_machine)
    writable, changeable = landlock.write(order.landlock), landlock.READ | landlock.CHANGE_FILE
    shared = [root.add(SHARED_MEMORY, mode="1777", size=order.shared_memory or SHARED_BYTES)]
    if order.pids:
        shared.append(root.add("dev/mqueue", "mqueue", QUIET | linux.NOEXEC))
    return [
        (root.top, landlock.READ),
        *((each, writable) for each in (run, *shared)),
        *((each, changeable) for each in kernel),
    ]


def programs(more: Sequence[str]) -> Iterator[Source]:
    """Yield what programs need of this machine, opened: the well-known directories, where hosts' names are, and more."""
    resolver = os.path.realpath(RESOLVER)
    resolvers = () if any(lies_in(resolver, each) for each in PROGRAMS) else (resolver,)
    yield from _opened((*PROGRAMS, *resolvers, *more))


def devices(order: Order) -> Iterator[Source]:
    """Yield the devices of all programs, accelerators that the node does not give out, and what it gave to this container, opened."""
    paths = [*(f"/dev/{name}" for name in DEVICES), *order.devices]
    for name in os.listdir("/dev"):
        if name.startswith(ACCELERATORS):
            paths += (path for path in _below(f"/dev/{name}") if path not in (*order.devices, *order.withheld))
    for path, fd in _opened(paths):
        if stat.S_ISCHR(os.fstat(fd).st_mode) or stat.S_ISBLK(os.fstat(fd).st_mode):
            yield path, fd
        else:
            os.close(fd)


def _opened(paths: Sequence[str]) -> Iterator[Source]:
    for path in paths:
        with contextlib.suppress(OSError):  # not every machine has all of them
            yield path, os.open(path, STEP)


def _below(path: str) -> Iterator[str]:
    """Yield a path, or where that is a directory what lies below it."""
    if os.path.isdir(path) and not os.path.islink(path):
        for name in os.listdir(path):
            yield from _below(os.path.join(path, name))
    else:
        yield path


def _add_processes(root: NewRoot, *, own: bool) -> int:
    """Show the processes of the container, where it has some of its own, else the machine's; what sets the kernel can be read only."""
    quiet = QUIET | linux.NOEXEC
    proc = root.add("proc", "proc", quiet) if own else root.show_path("/proc", quiet)
    for name in SETTINGS:
        root.show_again(f"proc/{name}", f"proc/{name}", quiet | linux.RDONLY)
    return proc


def _add_hardware(root: NewRoot, *, whole: bool) -> None:
    """Show the machine's processors and devices, without its other processes and its firmware.

    whole: with what is mounted in /sys, which a user namespace cannot leave out.
    """
    root.show_path("/sys", READ_ONLY | linux.NOEXEC, whole=whole)
    for name in COVERED:
        root.show_again("mnt", f"sys/{name}", READ_ONLY)


def _add_devices(root: NewRoot, order: Order, *, of_machine: bool) -> tuple[int, int]:
    """Make /dev, and terminals of the container's own in it; return both."""
    sources = list(devices(order))
    dev = root.add("dev", attributes=linux.NOSUID | linux.NOEXEC, mode="755", size=RUN_BYTES)
    for path, source in sources:
        if of_machine:
            root.show(source, path, linux.NOSUID | linux.NOEXEC)
        else:
            root.make(os.path.dirname(path), Make.DIRECTORY)
            status, name = os.fstat(source), os.path.relpath(path, "/dev")
            os.mknod(name, stat.S_IFMT(status.st_mode), status.st_rdev, dir_fd=dev)
            os.chmod(name, 0o666, dir_fd=dev)  # noqa: S103 - it is there for this container alone
        os.close(source)
    for name, target in DEVICE_LINKS.items():
        os.symlink(target, name, dir_fd=dev)
    root.fixed.append(dev)
    return dev, root.add("dev/pts", "devpts", linux.NOSUID | linux.NOEXEC, mode="620", ptmxmode="666")
