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
    ours, init_end = socket.socketpair()
    linux.prctl(linux.PR_SET_NAME, INIT_NAME)  # before: the command may look at once
    pid = os.fork()
    if pid == 0:
        ours.close()
        _run_init(shim, init_end if ids else None)
    linux.prctl(linux.PR_SET_NAME, SHIM_NAME)
    init_end.close()  # or the end of the init would not end the line
    with ours:
        return pid, _map_users(pid, ours, ids) if ids else -1


def user_namespace(ids: Sequence[Ids]) -> int:
    """Return a descriptor of a user namespace of these users, in which nobody is; OSError when it cannot be had."""
    ours, child_end = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            _enter_user_namespace(child_end)
        finally:
            os._exit(0)
    child_end.close()
    try:
        with ours:
            return _map_users(pid, ours, ids)
    finally:
        os.waitpid(pid, 0)


def _enter_user_namespace(line: socket.socket) -> bool:
    """Go into a new user namespace and wait until its ids are mapped; return whether they are."""
    linux.unshare(linux.CLONE_NEWUSER)
    line.send(b"1")
    return bool(line.recv(1))


def _map_users(pid: int, line: socket.socket, ids: Sequence[Ids]) -> int:
    """Map the users of a process's new namespace to those of the machine; return a descriptor of the namespace.

    OSError when the process has ended without one.
    """
    if not line.recv(1):
        raise OSError("this machine gives root no further user namespace (sysctl user.max_user_namespaces)")
    lines = "\n".join(f"{each.inside} {each.outside} {each.size}" for each in ids)
    for name in ("uid_map", "gid_map"):
        linux.write(f"/proc/{pid}/{name}", lines)
    namespace = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    line.send(b"1")
    return namespace


def _run_init(shim: int, line: socket.socket | None) -> NoReturn:
    """Collect what ends in the namespace, for as long as the shim lives."""
    try:
        # It sees the machine's files: nobody in the namespace looks at them by way of /proc/1.
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
        os.setsid()
        default_signals()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        if line is not None:
            if not _enter_user_namespace(line):
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
