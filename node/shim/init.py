"""The first process of a container's namespace of processes, and how the command comes into it.

Whoever goes into such a namespace does it by forking. The process that has
prepared it forks two: the *init*, which the kernel wants to be there as long as the
namespace is, and the command. Both are made children of the shim, so that it
waits for the command as it does without a namespace, and numbers them as the machine does. The
command is not the init itself, because an init is not ended by signals that
it does not handle, and has to collect what others leave behind.

When the init ends, or the shim does, the kernel ends the whole namespace.
"""

from __future__ import annotations

import os
import select
import signal
from typing import NoReturn

from node.shim import linux, tree

FILES = 1 << 16
_SIGNALS = tuple(signal.valid_signals())


def divide(shim: int, telling: int, *, joins: bool) -> None:
    """Go on as a process in the namespace that is set for children, beside its init, which is made if it is not joined.

    shim is a pidfd of this process's parent. Their process ids go to the pipe `telling`: the command's, and the init's or 0.
    """
    first = 0
    if not joins:
        # Before it is forked: the command may look at once, and takes a name of its own when it is executed.
        linux.prctl(linux.PR_SET_NAME, b"volcano-init")
        first = linux.fork_sibling()
        if first == 0:
            _be(shim)
    command = linux.fork_sibling()
    if command:
        os.write(telling, f"{command} {first}".encode())
        os._exit(0)


def _be(shim: int) -> NoReturn:
    """Collect what ends in the namespace, for as long as the shim lives."""
    try:
        os.setsid()
        default_signals()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
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
