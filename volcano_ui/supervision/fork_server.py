"""The process of which our other programs are forks: `python -m volcano_ui.supervision.fork_server`.

Loading Django and the product takes a second of processor time and 80 MB of memory in each process that does it. Here it is
done once; a program is a fork of that, so it begins within milliseconds and shares that memory.

Its supervisor sends an order for each program and is told the pid (`volcano_ui.supervision.forks`). Between the two stands a process
that ends at once, so the program is adopted by the supervisor, which waits for it as for a child of its own. It begins when
the supervisor lets it: one whose pid got lost, because the server was killed then, ends without having done anything.
The server has one thread and no connection to anything when it forks.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import gc
import importlib
import os
import runpy
import socket
import sys
from pathlib import Path

import django
import msgspec

from volcano_ui.supervision.forks import BYTES, Answer, Order
from volcano_ui.supervision.supervisor import die_with

ABOVE = 100  # where received descriptors are put before they get the numbers that the program expects
DESCRIPTORS = 16  # of one order, at most


def main() -> None:
    """Load everything, then start programs until the supervisor closes its end of the channel."""
    parser = argparse.ArgumentParser(prog="python -m volcano_ui.supervision.fork_server", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="the channel to the supervisor")
    parser.add_argument("room", help="room for the longest command line: a process has no more than it began with")
    options = parser.parse_args()
    supervisor = os.getppid()
    set_command_line(f"{sys.executable} -m volcano_ui.supervision.fork_server")
    django.setup()
    # Four programs are Celery's, which would each load these late.
    for name in ("celery.apps.worker", "celery.apps.beat", "kombu.transport.redis"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # so that the collector of a fork does not write to, and thereby copy, what is shared
    order = serve(socket.socket(fileno=options.fd), supervisor)
    if order is not None:
        run(order.command)


def serve(channel: socket.socket, supervisor: int) -> Order | None:
    """Carry orders out; return None when no more can come, and in each program its order."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, BYTES, DESCRIPTORS)
        if not data:
            return None
        order = msgspec.json.decode(data, type=Order)
        try:
            pid = _fork()
        except OSError as error:
            answer = Answer(problem=str(error))
        else:
            if not pid:
                channel.close()
                become(order, descriptors, supervisor)
                return order
            answer = Answer(pid)
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(msgspec.json.encode(answer))


def _fork() -> int:
    """Fork a grandchild, which is the supervisor's when the server returns from this; return its pid, 0 in itself."""
    told, tell = os.pipe()
    try:
        between = os.fork()
    except OSError:
        os.close(told)
        os.close(tell)
        raise
    if not between:
        try:
            pid = os.fork()
        except OSError:
            os._exit(1)  # anything else would leave a second server behind
        if pid:
            os.write(tell, str(pid).encode())
            os._exit(0)
    else:
        os.waitpid(between, 0)
    os.close(tell)
    pid = int(os.read(told, 20) or 0) if between else 0
    os.close(told)
    if between and not pid:
        raise OSError("the process between could not fork")
    return pid


def become(order: Order, descriptors: list[int], supervisor: int) -> None:
    """Give this process what its program would have if it had been executed: session, descriptors, environment, name."""
    begin, *descriptors = descriptors
    if not os.read(begin, 1):
        os._exit(0)  # nobody knows of it
    os.close(begin)
    os.setsid()
    if ask := die_with(supervisor):
        ask()
    os.umask(order.umask)
    nothing = os.open(os.devnull, os.O_RDWR)
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, ABOVE) for each in (nothing, *descriptors)]
    for descriptor in (nothing, *descriptors):
        os.close(descriptor)
    for descriptor, number in zip(moved, (0, *order.numbers), strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(order.environment)
    set_command_line(" ".join(order.command))


def set_command_line(text: str) -> None:
    """Have `ps` show another command line, as far as that of this process's beginning had room for it."""
    numbers = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(numbers[45]), int(numbers[46])  # arg_start and arg_end of proc(5), the 48th and the 49th
    size = end - start
    ctypes.memmove(start, text.encode()[: size - 1].ljust(size, b"\0"), size)


def run(command: list[str]) -> None:
    """Run what a Python of its own would run at this command line."""
    _, first, *more = command
    if first == "-m":
        module, *arguments = more
        sys.argv = [module, *arguments]
        importlib.import_module(module).main()
    else:
        sys.argv = [first, *more]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
