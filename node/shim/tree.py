"""The processes below one process: who they are, what memory they use, how to end all of them."""

from __future__ import annotations

import os
import select
import signal
import time
from functools import cache
from typing import TYPE_CHECKING

from node.shim.linux import content

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = os.sysconf("SC_PAGE_SIZE")
BLOCK = 512  # bytes, of st_blocks
TRIES = 100  # to read the children of a process whose threads end meanwhile


def parents() -> dict[int, int]:
    """Return the parent of every process of this machine that can be read."""
    parent_of: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                text = content(f"/proc/{name}/stat")
            except OSError:  # it ended meanwhile
                continue
            parent_of[int(name)] = int(text[text.rindex(b")") + 2 :].split(None, 2)[1])
    return parent_of


def below(root: int) -> list[int]:
    """Return every descendant of root, nearest first.

    The kernel's lists of children make this cost only what the tree holds;
    where they are not built in, the whole of /proc is read.
    """
    children_of = children if _KERNEL_LISTS_CHILDREN else _children_by_scan()
    descendants: list[int] = []
    pending = [root]
    while pending:
        direct = children_of(pending.pop())
        descendants += direct
        pending += direct
    return descendants


_KERNEL_LISTS_CHILDREN = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def children(pid: int) -> list[int]:
    """Return a process's children as the kernel lists them; none when it has ended."""
    pids: list[int] = []
    for _ in range(TRIES):
        pids = []
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            return []
        try:
            # Every thread has a list of its own: a child belongs to the thread that forked it.
            for thread in threads:
                words = content(f"/proc/{pid}/task/{thread}/children").split()
                pids += [int(word) for word in words]
        except OSError:  # that thread has ended meanwhile, and what was its is another's, perhaps of one read before
            continue
        return pids
    return pids


def _children_by_scan() -> Callable[[int], list[int]]:
    children_of: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children_of.setdefault(parent, []).append(pid)
    return lambda pid: children_of.get(pid, [])


def resident_bytes(pids: list[int]) -> int:
    """Return the sum of the processes' resident memory; pages they share are counted for each."""
    total = 0
    for pid in pids:
        try:
            total += int(content(f"/proc/{pid}/statm").split()[1]) * PAGE
        except (OSError, IndexError):
            continue
    return total


def proportional_bytes(pids: list[int], file_system_bytes: int = 0) -> int:
    """Return the processes' memory with shared pages divided among those who share them.

    kept are the bytes of a file system in memory that is theirs: those that they have mapped count once.
    """
    total = mapped = 0
    for pid in pids:
        try:
            lines = content(f"/proc/{pid}/smaps_rollup").splitlines()
        except OSError:  # it has ended; or it is another user's, and this one may not look closer
            total += resident_bytes([pid])
            continue
        total += _kilobytes(lines, b"Pss:") * 1024
        mapped += _kilobytes(lines, b"Pss_Shmem:") * 1024
    return total + max(0, file_system_bytes - mapped)


def _kilobytes(lines: list[bytes], field: bytes) -> int:
    return sum(int(line.split()[1]) for line in lines if line.startswith(field))


def open_below(pid: int, path: str) -> int:
    """Return a descriptor of a directory as a process sees it; -1 where that cannot be had."""
    try:
        return os.open(f"/proc/{pid}/root/{path}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1


def bytes_in(folder: int) -> int:
    """Return the bytes that are used in a directory's file system; 0 for a descriptor below 0."""
    if folder < 0:
        return 0
    status = os.fstatvfs(folder)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


@cache
def _memory_files() -> int:
    """Return the device of files that are in memory and have no name (memfd_create)."""
    fd = os.memfd_create("")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def bytes_in_open_files(pids: list[int]) -> int:
    """Return the memory of files without a name that processes have open, whether they have mapped them or not."""
    bytes_by_inode: dict[int, int] = {}
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        try:
            names = os.listdir(folder)
        except OSError:  # it has ended
            continue
        for name in names:
            try:
                status = os.stat(f"{folder}/{name}")
            except OSError:  # it was closed meanwhile
                continue
            if status.st_dev == _memory_files():
                bytes_by_inode[status.st_ino] = status.st_blocks * BLOCK
    return sum(bytes_by_inode.values())


def with_variable(assignments: set[bytes]) -> list[int]:
    """Return the processes of this machine that have one of these variables, as NAME=value, and let us read it."""
    pids = []
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            variables = content(f"/proc/{name}/environ").split(b"\0")
        except OSError:
            continue
        if not assignments.isdisjoint(variables):
            pids.append(int(name))
    return pids


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def end_all(root: int, seconds: float = 10.0) -> dict[int, int]:
    """Kill every descendant of root, which is this process and their subreaper, and collect them.

    Whoever forks faster than it is killed is stopped first: a stopped process
    makes no children, so the rounds come to an end. Returns the wait statuses
    of the collected.
    """
    deadline = time.monotonic() + seconds
    statuses: dict[int, int] = {}
    while (pids := below(root)) and time.monotonic() < deadline:
        kill(pids)
        statuses |= reap()
        time.sleep(0.0005)
    return statuses


def end(pid: int, seconds: float = 1.0) -> None:
    """Kill a child of this process and collect it, unless it waits for so long for something that does not answer."""
    fd = os.pidfd_open(pid)
    send(pid, signal.SIGKILL)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if poll.poll(seconds * 1000):
        os.waitpid(pid, 0)
    os.close(fd)


def kill(pids: list[int]) -> None:
    """Stop all of the processes, then kill them."""
    for pid in pids:
        send(pid, signal.SIGSTOP)
    for pid in pids:
        send(pid, signal.SIGKILL)


def session(root: int, leader: int) -> list[int]:
    """Return what a session's leader has started and is still below root, itself included."""
    own = set(below(leader))
    return [pid for pid in below(root) if pid == leader or pid in own or _session_of(pid) == leader]


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def reap() -> dict[int, int]:
    """Collect every child that ended; return their wait statuses."""
    statuses: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return statuses
        if pid == 0:
            return statuses
        statuses[pid] = status
