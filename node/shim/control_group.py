"""The control group (version 2) of one attempt: its shim makes it, its commands begin in it, and it goes when they have ended.

The agent decides where (`node.containers.control_groups`). The shim stays outside, so that what it needs does not count and it is
never killed for its container's memory.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from node.shim import linux

if TYPE_CHECKING:
    from collections.abc import Sequence

    from node.shim.order import Group, Order

PERIOD_US = 100_000  # of which a group may have a part of each processor's time, as in Kubernetes
OFTEN_MISSING = "memory.swap.max"  # where the kernel does not swap


def settings(group: Group, order: Order, processors: Sequence[int]) -> dict[str, str]:
    """Return what is written into the files of an order's group."""
    # All of a container is killed together, as by a kubelet: what is left of one without its server is of no use.
    values = {"memory.oom.group": "1", "pids.max": str(order.processes), "cpu.weight": str(group.cpu_weight)}
    if order.memory_bytes:
        values |= {"memory.max": str(order.memory_bytes), OFTEN_MISSING: "0"}
    if group.cpu_quota_us:
        values["cpu.max"] = f"{group.cpu_quota_us} {PERIOD_US}"
    if group.cpuset and order.cpus:
        values["cpuset.cpus"] = ",".join(map(str, processors))
    return values


def make(group: Group, order: Order, processors: Sequence[int]) -> int:
    """Make an order's group, below its pod's, which is there; return a descriptor of its directory. OSError names the file."""
    os.mkdir(group.path, 0o755)
    for name, value in settings(group, order, processors).items():
        try:
            write(f"{group.path}/{name}", value)
        except FileNotFoundError:
            if name != OFTEN_MISSING:
                raise
    return os.open(group.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def fork(group: int) -> tuple[int, bool]:
    """Fork this process, as os.fork(); return also whether the child is in a group (-1: there is none) or has yet to `enter` it.

    To be born in a group costs nothing. Who enters one makes the kernel wait until no processor is in the middle of a fork,
    which is milliseconds.
    """
    if group < 0:
        return os.fork(), True
    try:
        return linux.fork_into(group), True
    except OSError as error:
        # The group is full: entering it is not subject to that limit.
        if error.errno in (errno.EAGAIN, errno.ENOMEM):
            raise
        # The filter of an engine round us refuses the call, or Linux is older than 5.7.
        return os.fork(), False


def enter(group: int) -> None:
    """Move this process into a group."""
    fd = os.open("cgroup.procs", os.O_WRONLY | os.O_CLOEXEC, dir_fd=group)
    os.write(fd, b"0")
    os.close(fd)


def counts(text: str) -> dict[str, int]:
    """Return the numbers by name of a file such as memory.events."""
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}


def memory_problem(path: str, limit: int) -> str:
    """Return why the kernel killed something in a group for want of memory; empty when it did not."""
    try:
        events = counts(linux.content(f"{path}/memory.events").decode())
    except OSError:
        return ""
    if not events.get("oom_kill") and not events.get("oom_group_kill"):
        return ""
    if events.get("oom") and limit:
        return f"It used more memory than its limit, {limit} bytes."
    own = f"its own limit is {limit} bytes" if limit else "it has no limit of its own"
    return f"The machine, or the cluster's part of it, had no memory left, and the kernel chose this container; {own}."


def kill(path: str) -> bool:
    """Kill all that is in a group and below it; return whether there is such a group, and a kernel that can (Linux 5.14)."""
    try:
        write(f"{path}/cgroup.kill", "1")
    except OSError:
        return False
    return True


def remove(path: str) -> bool:
    """Remove an empty group; return whether it is gone."""
    with contextlib.suppress(FileNotFoundError):
        try:
            os.rmdir(path)
        except OSError:  # something is about to end there
            return False
    return True


def write(path: str, text: str) -> None:
    """Write a file of a group; OSError names it, and what it did not take."""
    try:
        linux.write(path, text)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} (it was to be {text!r})", path) from None
