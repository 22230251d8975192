"""The wall between a container's processes and the rest of the machine, put up in their own process before exec.

Layers are used where the kernel has them, as `node.shim.spawner` found out by trying:

* a root directory of its own (`node.shim.isolation.root`): nothing but what is on a list has a name
* a namespace of processes (`node.shim.init`), and of users (`node.shim.users`): nobody outside is there to be named, and
  its root is root of nothing else
* no new privileges, and of root's capabilities the harmless ones: no program gives back what was given up
* Landlock (`node.shim.isolation.landlock`): no file but those that are named, no process outside
* the filter of system calls (`node.shim.isolation.seccomp`): what breaks walls is not called at all

The shim confines itself too, so that the commands of one container, those of
exec among them, can signal each other and nobody else.
"""

from __future__ import annotations

import contextlib
import os
import stat
from functools import cache
from typing import TYPE_CHECKING

from kube.mount_paths import lies_in
from node.shim import linux
from node.shim.isolation import capabilities, landlock, root, seccomp
from node.shim.isolation.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from node.shim.order import Order

# Without a root of its own: what a container reads beside programs. In /run that is where /etc/resolv.conf and the like lead to.
READ = ("/proc", "/sys", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
# Everybody's, as on any machine.
SHARED = ("/tmp", "/dev/shm", "/dev/mqueue", "/dev/ptmx")  # noqa: S108 - the machine's own
ENTRIES = 4096  # of a directory that is allowed entry by entry


def confine(order: Order) -> None:
    """Do the shim's part: nothing below it gains privileges, or signals what is not below it."""
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    landlock.confine(order.landlock)


def rules(order: Order) -> int:
    """Return Landlock's rules for a container that has no root of its own, a descriptor; -1 where an order has no Landlock."""
    if not order.landlock:
        return -1
    with contextlib.ExitStack() as stack:
        reach = []
        for fd, rights in _reach(order):
            stack.callback(os.close, fd)
            reach.append((fd, rights))
        return landlock.ruleset(order.landlock, reach)


def close(order: Order, rules: int) -> None:
    """Close the wall behind this process: what it executes is a container's command."""
    if rules >= 0:
        if stat.S_ISCHR(os.fstat(0).st_mode):  # its own terminal, by whatever name it has
            landlock.add(rules, order.landlock, 0, landlock.write(order.landlock))
        landlock.restrict(rules)
    if order.seccomp:
        apart = bool(order.landlock) or order.mounts != "none"
        seccomp.install(_filter(tracing=apart, limiting=order.pids))


@cache
def _filter(*, tracing: bool, limiting: bool) -> bytes:
    return seccomp.program(seccomp.architecture(), tracing=tracing, limiting=limiting)


def prepare() -> None:
    """Do now what all shims that are forked from this process would do again."""
    capabilities.supported()
    if seccomp.architecture():
        for tracing, limiting in ((False, False), (True, False), (True, True)):
            _filter(tracing=tracing, limiting=limiting)


def _reach(order: Order) -> Iterator[tuple[int, int]]:
    """Yield what a container reaches by the machine's own names, opened, and its rights there."""
    change = landlock.write(order.landlock)
    for bind in order.binds:
        yield open_source(bind, order.state), landlock.READ if bind.read_only else change
    yield from ((fd, change) for _, fd in root.devices(order))
    for paths, rights in (((*root.PROGRAMS, *READ, *order.read), landlock.READ), (SHARED, change)):
        for path in paths:
            for each in _without(path, order.state):
                with contextlib.suppress(OSError):  # not every machine has all of them
                    yield os.open(each, os.O_PATH | os.O_CLOEXEC), rights


def _without(path: str, hidden: str) -> Iterator[str]:
    """Yield a path, or where it contains the hidden one what lies beside that: rules can allow, but not except."""
    if not hidden or not lies_in(hidden, path):
        yield path
    elif path != hidden:
        names = os.listdir(path)
        for name in names if len(names) <= ENTRIES else ():
            yield from _without(os.path.join(path, name), hidden)
