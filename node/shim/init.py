"""The first process of a container's namespace of processes.

Whoever goes into such a namespace does it by being forked into it. The shim, which stays
outside, forks two: the *init*, which the kernel wants to be there as long as the
namespace is, and the command. So it
waits for the command as it does without a namespace, and numbers them as the machine does. The
command is not the init itself, because an init is not ended by signals that
it does not handle, and has to collect what others leave behind.

When the init ends, or the shim does, the kernel ends the whole namespace.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from typing import TYPE_CHECKING, NoReturn

from node.shim import linux, tree, users

if TYPE_CHECKING:
    from collections.abc import Sequence

    from node.shim.order import Ids

FILES = 1 << 16
SHIM_NAME, INIT_NAME = b"volcano-shim", b"volcano-init"  # of processes, for people who look
_SIGNALS = tuple(signal.valid_signals())


def begin(shim: int, ids: Sequence[Ids] = ()) -> tuple[int, int]:
    """Fork the init of the namespace that is set for children of this process, of which shim is a pidfd; return its id.

    With `ids` it makes a user namespace of these users, of which a descriptor is returned, too; else -1.
    """
    ours, theirs = socket.socketpair()
    linux.prctl(linux.PR_SET_NAME, INIT_NAME)  # before: the command may look at once
    pid = os.fork()
    if pid == 0:
        _be(shim, theirs.fileno() if ids else -1)
    linux.prctl(linux.PR_SET_NAME, SHIM_NAME)
    with ours, theirs:
        return pid, _map_users(pid, ours, ids) if ids else -1


def user_namespace(ids: Sequence[Ids]) -> int:
    """Return a descriptor of a user namespace of these users, in which nobody is."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            linux.unshare(linux.CLONE_NEWUSER)
            os.write(theirs.fileno(), b"1")
            os.read(theirs.fileno(), 1)
        finally:
            os._exit(0)
    with ours, theirs:
        found = _map_users(pid, ours, ids)
    os.waitpid(pid, 0)
    return found


def _map_users(pid: int, line: socket.socket, ids: Sequence[Ids]) -> int:
    """Say who the users of a process's new namespace are on the machine; return a descriptor of the namespace."""
    line.recv(1)
    lines = "\n".join(f"{each.inside} {each.outside} {each.size}" for each in ids)
    for name in ("uid_map", "gid_map"):
        linux.write(f"/proc/{pid}/{name}", lines)
    found = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    line.send(b"1")
    return found


def _be(shim: int, line: int) -> NoReturn:
    """Collect what ends in the namespace, for as long as the shim lives."""
    try:
        # It sees the machine's files: nobody in the namespace looks at them by way of /proc/1.
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
        os.setsid()
        default_signals()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        if line >= 0:
            linux.unshare(linux.CLONE_NEWUSER)
            os.write(line, b"1")
            if not os.read(line, 1):
                os._exit(1)
            users.become((0, 0, []))
            linux.prctl(linux.PR_SET_DUMPABLE, 0)  # that is forgotten with every change of credentials
        end_with(shim)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.closerange(3, FILES)
        while True:
            signal.sigwait({signal.SIGCHLD})
            tree.reap()
    finally:
        os._exit(1)


def end_with(shim: int) -> None:
    """See to it that this process is killed when its parent ends, of which shim is a pidfd."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    poll = select.poll()
    poll.register(shim, select.POLLIN)
    if poll.poll(0):  # it ended before that was set
        os._exit(128)


def default_signals() -> None:
    """Handle every signal as a new program expects it."""
    for number in _SIGNALS:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
