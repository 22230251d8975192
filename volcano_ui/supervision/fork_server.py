"""The process of which our other programs are forks: `python -m volcano_ui.supervision.fork_server`.

Loading Django and the product takes a second of processor time and 80 MB of memory in each process that does it. Here it is
done once; a program is a fork of that, so it begins within milliseconds and shares that memory.

Its supervisor sends an order for each program and gets the pid back (`volcano_ui.supervision.forks`). The program is forked
twice, and the process in between ends at once, so that the supervisor adopts the program and waits for it as for its own child.
The program begins when the supervisor allows it: one whose pid was lost, because the server was killed then, ends at once.
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
    """Fork a program for each order; return None in the server when the channel is closed, and in each program its order."""
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
    """Fork a grandchild, which the supervisor adopts; return its pid, and 0 in the grandchild itself."""
    reader, writer = os.pipe()
    try:
        between = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        raise
    if not between:
        try:
            pid = os.fork()
        except OSError:
            os._exit(1)  # anything else would leave a second server behind
        if pid:
            os.write(writer, str(pid).encode())
            os._exit(0)
    else:
        os.waitpid(between, 0)
    os.close(writer)
    pid = int(os.read(reader, 20) or 0) if between else 0
    os.close(reader)
    if between and not pid:
        raise OSError("the process between could not fork")
    return pid


def become(order: Order, descriptors: list[int], supervisor: int) -> None:
    """Set this process up as if its program had been executed: session, descriptors, environment and command line."""
    begin, *descriptors = descriptors
    if not os.read(begin, 1):
        os._exit(0)  # the supervisor did not get its pid
    os.close(begin)
    os.setsid()
    if request_signal := die_with(supervisor):
        request_signal()
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
    """Have `ps` show another command line, cut to the length of the one that this process was started with."""
    numbers = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(numbers[45]), int(numbers[46])  # arg_start and arg_end of proc(5), the 48th and the 49th
    size = end - start
    ctypes.memmove(start, text.encode()[: size - 1].ljust(size, b"\0"), size)


def run(command: list[str]) -> None:
    """Run in this process what `python` would run for this command line."""
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
