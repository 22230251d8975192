"""From fork to exec: the few steps in the container's own process before its command takes over."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import socket
import sys
import termios
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from node.shim import absent, control_group, init, linux, tree, users
from node.shim.isolation import capabilities, root, wall

if TYPE_CHECKING:
    from node.shim.order import Order

EXEC_MESSAGES = {
    errno.EACCES: "permission denied",
    errno.ENOEXEC: "exec format error; a script needs a first line like #!/bin/sh",
}
BEYOND_THE_WALL = (
    "containers do not reach this directory of their node; mount it as a hostPath volume, "
    "or name a program in /usr, /opt or a volume"
)
# The kernel's own out-of-memory killer takes containers before the cluster's processes.
OOM_SCORE = "800"
RULES = b"+"  # what a descriptor of rules is sent with
# In which a command begins, or a file system that it needs does not answer. The shim waits for it and does nothing else.
FIRST_S, NEXT_S = 120.0, 10.0


class LaunchError(Exception):
    """The command could not be started."""


class Streams(NamedTuple):
    """What a command's standard input, output and error are; -1: /dev/null. With tty they are its terminal."""

    stdin: int = -1
    stdout: int = -1
    stderr: int = -1
    tty: bool = False


class Inside(NamedTuple):
    """Where the commands of a container run, as its shim holds it; descriptors are -1 where there is no such thing."""

    init: int = 0  # of its namespace of processes; 0 where it has none
    users: int = -1  # the user namespace that they enter last
    main: int = 0  # the first command, whose root the others join; 0 until it is there
    rules: int = -1  # what Landlock lets them reach
    group: int = -1  # the directory of their control group


class Ending(NamedTuple):
    """How a container ended; an empty reason follows from the exit code."""

    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""


def separate(order: Order) -> Inside:
    """Separate this process, the shim, as far as a container's order requires, so that what it forks is apart from the machine; LaunchError."""
    if order.mounts == "none":
        return Inside()
    namespaces = linux.CLONE_NEWPID | linux.CLONE_NEWIPC if order.pids else 0
    try:
        if order.mounts == "user":
            linux.own_users(namespaces)
        elif namespaces:
            linux.unshare(namespaces)
        if not order.pids:
            return Inside()
        shim = os.pidfd_open(os.getpid())
        try:
            return Inside(*init.begin(shim, order.ids if order.mounts == "root" else ()))
        finally:
            os.close(shim)
    except OSError as error:
        raise LaunchError(str(error)) from None


def launch(order: Order, streams: Streams, inside: Inside, processors: list[int]) -> Inside:
    """Fork and exec the order's command, the first of its container or, where that has one, one more; return how it is inside.

    A later one sees the same files and processes as the first. Returns only when exec has
    succeeded: the line that would carry an error is closed by exec itself. Raises LaunchError, also when that takes too long.
    """
    shim = os.pidfd_open(os.getpid())
    line, child_end = socket.socketpair()  # after the init is forked, which so does not hold it
    with line:
        try:
            pid, is_inside = control_group.fork(inside.group)
            if pid == 0:
                _run_command(
                    order, streams, _Child(shim, processors, child_end, inside, -1 if is_inside else inside.group)
                )
        finally:
            child_end.close()
            os.close(shim)
        problem, rules = _receive_outcome(line, NEXT_S if inside.main else FIRST_S)
    if problem:
        tree.end(pid)
        raise LaunchError(problem)
    return inside._replace(main=pid, rules=rules if rules >= 0 else inside.rules)


def _receive_outcome(line: socket.socket, seconds: float) -> tuple[str, int]:
    """Read a child's line until its exec; return why it failed, and Landlock's rules where it made some."""
    message, rules = b"", -1
    line.settimeout(seconds)
    while True:
        try:
            data, fds, _, _ = socket.recv_fds(line, 4096, 1)
        except TimeoutError:
            return f"it did not begin within {seconds:.0f} s; does a file system not answer?", rules
        for fd in fds:
            os.set_inheritable(fd, False)
            rules = fd
        if not data:
            return message.decode(errors="replace"), rules
        message += data.removeprefix(RULES)


def program(argv: list[str], env: dict[str, str], streams: Streams) -> int:
    """Fork and exec a program of the cluster's own, which ends when this process does; return its process id.

    One that cannot be executed ends with 127.
    """
    shim = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _connect_streams(streams)
            init.default_signals()
            init.end_with(os.pidfd_open(shim))
            os.closerange(3, init.FILES)
            os.execve(argv[0], argv, env)  # noqa: S606 - the engine that the agent found
        finally:
            os._exit(127)
    return pid


class _Child(NamedTuple):
    """What a command's process needs before its exec."""

    shim: int  # a pidfd of it
    processors: list[int]  # that it may use
    line: socket.socket  # on which it reports to the shim what went wrong
    inside: Inside
    group: int  # the control group that it has to enter; -1: none


def _run_command(order: Order, streams: Streams, child: _Child) -> NoReturn:
    """Become a command of a container. After its root is built nothing is looked up by name but by the command's own rights."""
    try:
        _prepare_process(order, streams, child)
        rules = _enter_container(order, child)
        _drop_privileges(order, child)
        wall.close(order, rules)
        _change_directory(order.cwd)
        _execute(order)
    except (OSError, ValueError, root.MountError) as error:
        _report(child.line, str(error))
    except BaseException as error:
        _report(child.line, f"{type(error).__name__}: {error}")
    os._exit(128)


def _report(line: socket.socket, text: str) -> None:
    line.sendall(text.encode(errors="replace")[:4000])


def _prepare_process(order: Order, streams: Streams, child: _Child) -> None:
    """Do what is done in the machine's own view: streams and limits. Nothing else stays open, and nothing is imported later."""
    if child.group >= 0:
        control_group.enter(child.group)
    os.umask(0o022)
    os.setsid()
    _connect_streams(streams)
    init.default_signals()
    open_fds = sorted(fd for fd in (child.shim, child.line.fileno(), child.inside.users, child.inside.rules) if fd > 2)
    for before, after in pairwise((2, *open_fds, init.FILES)):
        os.closerange(before + 1, after)
    # Python's own library may lie where the pod has a volume.
    sys.meta_path.clear()
    with contextlib.suppress(OSError):
        linux.write("/proc/self/oom_score_adj", OOM_SCORE)
    _lower_limit(resource.RLIMIT_CORE, 0)
    _lower_limit(resource.RLIMIT_NOFILE, order.files)
    os.sched_setaffinity(0, child.processors)


def _enter_container(order: Order, child: _Child) -> int:
    """Go where the container's commands run; return Landlock's rules for them. The first builds what the others join."""
    inside = child.inside
    if inside.main:
        if order.mounts != "none":
            root.join(inside.main)
        return inside.rules
    rules = root.build(order, inside.users) if order.mounts != "none" else wall.rules(order)
    if rules >= 0:
        socket.send_fds(child.line, [RULES], [rules])
    return rules


def _drop_privileges(order: Order, child: _Child) -> None:
    """Become the container's user, with nothing that is not its own."""
    user = order.user or ((0, 0, []) if child.inside.users >= 0 else None)
    if user is not None:
        users.give_streams(user, order.ids)
    if child.inside.users >= 0:
        linux.setns(child.inside.users, linux.CLONE_NEWUSER)
    if order.mounts != "none" and order.group is None:
        # Counted per user namespace, hence per container, with its init; elsewhere it would count the user's other processes.
        # A control group counts without the init, and two limits that differ by one would bind at the lower.
        _lower_limit(resource.RLIMIT_NPROC, order.processes)
    capabilities.drop()
    if user is not None:
        users.become(user)
    init.end_with(child.shim)  # a change of credentials clears it


def _connect_streams(streams: Streams) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard, fd in enumerate(streams[:3]):
        os.dup2(fd if fd >= 0 else null, standard)
    if streams.tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def processors(order: Order, main: int) -> list[int]:
    """Return the processors that a command may use: those of the one that it joins, or as many as the order allows."""
    allowed = sorted(os.sched_getaffinity(main))
    if not main and 0 < order.cpus < len(allowed):
        allowed = sorted(allowed, key=lambda _: os.urandom(8))[: order.cpus]  # any of them
    return allowed


def _lower_limit(limit: int, value: int) -> None:
    _, hard = resource.getrlimit(limit)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))


def _change_directory(path: str) -> None:
    try:
        os.chdir(path)
    except OSError as error:
        raise OSError(
            f'The working directory "{path}" cannot be entered: {os.strerror(error.errno or 0).lower()}.'
        ) from None


def _execute(order: Order) -> None:
    command = order.argv[0]
    try:
        os.execvpe(command, order.argv, order.env)  # noqa: S606 - running the user's command is the purpose
    except OSError as error:
        number = error.errno or 0
        missing = number in (errno.ENOENT, errno.ENOTDIR)
        if missing:
            text = "no such file or directory" if "/" in command else "executable file not found in $PATH"
        else:
            text = EXEC_MESSAGES.get(number, os.strerror(number).lower())
            if number == errno.EACCES and order.landlock and os.access(command, os.X_OK):
                text = BEYOND_THE_WALL
        problem = f"exec: {json.dumps(command)}: {text}"
        raise OSError(
            absent.explained(problem, os.path.basename(command), order.node) if missing else problem
        ) from None
