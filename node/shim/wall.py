"""The wall between a container's processes and the rest of the machine, put up in their own process before exec.

Layers are used where the kernel has them, as `node.shim.spawner` found out by
trying; each holds by itself, and what one lets through another stops:

* namespaces (`node.shim.mounts`, `node.shim.init`): the state directory, the user's home and other processes are not
  there to be named
* no new privileges, and of root's capabilities the harmless ones: no program gives back what was given up
* Landlock (`node.shim.landlock`): no file but those that are named here, no process outside
* the filter of system calls (`node.shim.seccomp`): what breaks walls is not called at all

The shim confines itself too, so that the commands of one container, those of
exec among them, can signal each other and nobody else.
"""

from __future__ import annotations

import contextlib
import os
import stat
from functools import cache
from typing import TYPE_CHECKING

from node.shim import capabilities, landlock, linux, seccomp
from node.shim.sources import open_source, own_walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from node.shim.order import Order

# What programs need of a machine: to be executed and read, never written.
PROGRAMS = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/sys",
)
# What /etc/resolv.conf and the like lead to; the rest of /run is sockets of the machine's services.
RUNTIME = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/nscd")
# Everybody's, as on any machine.
SHARED = ("/tmp", "/dev/shm", "/dev/mqueue")  # noqa: S108 - the machine's own
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
ACCELERATORS = ("nvidia", "dri", "kfd", "infiniband", "accel")  # how the names of these devices begin
ENTRIES = 4096  # of a directory that is allowed entry by entry

Reach = list[tuple[int, int]]  # descriptors of files and directories, and the rights of Landlock below them


def confine(order: Order) -> None:
    """Do the shim's part: nothing below it gains privileges, or signals what is not below it."""
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    landlock.confine(order.landlock)


def open_own(order: Order, *, beside: bool) -> Reach:
    """Open what is the container's own: its directories and volumes, as this machine and not the container sees them.

    Beside a command that runs, a volume that cannot be had any more is left out.
    """
    if not order.landlock:
        return []
    change = landlock.write(order.landlock)
    reach = []
    for path in order.write:
        with own_walk(path, order.hide) as walk:
            reach.append((walk.take(), change))
    for bind in order.binds:
        try:
            reach.append((open_source(bind, order.hide), landlock.READ if bind.read_only else change))
        except (OSError, ValueError):
            if not beside:
                raise
    return reach


def close(order: Order, own: Reach) -> None:
    """Close the wall behind this process, which is in its namespaces: what it executes is a container's command."""
    capabilities.drop()
    if order.landlock:
        landlock.restrict(order.landlock, _reach(order, own))
    if order.seccomp:
        apart = bool(order.landlock) or order.pids or order.mounts == "user"
        seccomp.install(_filter(tracing=apart, limiting=order.pids))


@cache
def _filter(*, tracing: bool, limiting: bool) -> bytes:
    return seccomp.program(seccomp.known(), tracing=tracing, limiting=limiting)


def prepare() -> None:
    """Do now what all shims that are forked from this process would do again."""
    capabilities.known()
    if seccomp.known():
        for tracing, limiting in ((False, False), (True, False), (True, True)):
            _filter(tracing=tracing, limiting=limiting)


def _reach(order: Order, own: Reach) -> Iterator[tuple[int, int]]:
    change = landlock.write(order.landlock)
    yield from own
    # Where the state directory is covered, what lies around it shows nothing of it.
    hidden = order.hide if order.mounts == "none" else ""
    for path, rights in (
        *((path, landlock.READ) for path in (*PROGRAMS, *RUNTIME, *order.read)),
        *((path, change) for path in (*SHARED, *_private_run(order), *_devices(order))),
    ):
        for each in _without(path, hidden):
            yield from _opened(each, rights)
    if order.mounts != "none":
        yield from _opened("/", landlock.READ_DIR)
        yield from _opened("/proc", landlock.READ | landlock.CHANGE_FILE)
        yield from _opened("/dev/pts", landlock.READ | landlock.CHANGE_FILE)
    terminal = os.fstat(0)
    if stat.S_ISCHR(terminal.st_mode):  # its own one, by whatever name it has
        yield from _opened("/proc/self/fd/0", change)


def _opened(path: str, rights: int) -> Iterator[tuple[int, int]]:
    with contextlib.suppress(OSError):  # not every machine has all of them
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        yield fd, rights
        os.close(fd)


def _private_run(order: Order) -> tuple[str, ...]:
    return ("/run",) if "/run" in order.covers else ()


def _devices(order: Order) -> Iterator[str]:
    """Yield the devices of all programs, accelerators that the node does not give out, and what it gave to this container."""
    yield from (f"/dev/{name}" for name in DEVICES)
    yield from order.devices
    for name in os.listdir("/dev"):
        if name.startswith(ACCELERATORS):
            yield from _without_all(f"/dev/{name}", {*order.devices, *order.withheld})


def _without_all(path: str, hidden: set[str]) -> Iterator[str]:
    """Yield a path, or where it contains hidden ones what lies beside them."""
    if path in hidden:
        return
    if not any(each.startswith(f"{path}/") for each in hidden):
        yield path
        return
    for name in os.listdir(path):
        yield from _without_all(os.path.join(path, name), hidden)


def _without(path: str, hidden: str) -> Iterator[str]:
    """Yield a path, or where it contains the hidden one what lies beside that: rules can allow, but not except."""
    if not hidden or not (hidden + "/").startswith(path.rstrip("/") + "/"):
        yield path
    elif path != hidden:
        names = os.listdir(path)
        for name in names if len(names) <= ENTRIES else ():
            yield from _without(os.path.join(path, name), hidden)
