"""From fork to exec: the few steps in the container's own process before its command takes over."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import resource
import signal
import termios
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from node.shim import absent, init, mounts, tree, users, wall

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


class LaunchError(Exception):
    """The command could not be started."""


class Streams(NamedTuple):
    """What a command's standard input, output and error are; -1: /dev/null. With tty they are its terminal."""

    stdin: int = -1
    stdout: int = -1
    stderr: int = -1
    tty: bool = False


class _Origin(NamedTuple):
    """What a command knows of the processes outside, by the names that they have for the shim."""

    shim: int  # a pidfd
    beside: int  # the container's command that it joins, or 0
    processors: list[int]  # that it may use


class Launched(NamedTuple):
    """A command that runs, and the init of its namespace of processes; 0 where it has none or joined another's."""

    pid: int
    init: int = 0


class Ending(NamedTuple):
    """How a container ended; an empty reason follows from the exit code."""

    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""


def launch(order: Order, streams: Streams, beside: int = 0) -> Launched:
    """Fork and exec the order's command; return its process, or raise LaunchError.

    With `beside`, the process id of a container's running command, the new one
    joins it: it sees the same files and processes and may use the same processors.
    Returns only when exec has succeeded: the pipe that would carry an error is
    closed by exec itself. Without `beside` this process, the shim, separates itself
    first, so that all that it forks is in the container's namespaces but that of mounts.
    """
    this = os.pidfd_open(os.getpid())
    first = 0 if beside else _separate(order, this)
    origin = _Origin(this, beside, _processors(order, beside))
    reader, writer = os.pipe()  # after the init is forked, which so does not hold it
    try:
        pid = os.fork()
        if pid == 0:
            _become(order, streams, origin, writer)
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
        os.close(this)
    problem = _all_of(reader)
    if not problem:
        return Launched(pid, first)
    # In this order: an init ends when all in its namespace have been collected.
    for each in (pid, first):
        if each:
            tree.send(each, signal.SIGKILL)
            os.waitpid(each, 0)
    raise LaunchError(problem.decode(errors="replace"))


def program(argv: list[str], env: dict[str, str], streams: Streams) -> int:
    """Fork and exec a program of the cluster's own, which ends when this process does; return its process id.

    One that cannot be executed ends with 127.
    """
    shim = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _connect(streams)
            init.default_signals()
            init.end_with(os.pidfd_open(shim))
            os.closerange(3, init.FILES)
            os.execve(argv[0], argv, env)  # noqa: S606 - the engine that the agent found
        finally:
            os._exit(127)
    return pid


def _separate(order: Order, shim: int) -> int:
    """Enter what namespaces the order asks of this process, of which shim is a pidfd; return the init that it has forked, or 0."""
    if order.mounts == "none":
        return 0
    try:
        mounts.separate(order.mounts, pids=order.pids)
    except OSError as error:
        raise LaunchError(str(error)) from None
    return init.begin(shim) if order.pids else 0


def _all_of(pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as file:
        return file.read()


def _become(order: Order, streams: Streams, origin: _Origin, writer: int) -> NoReturn:
    try:
        own = _settle(order, origin)
        _prepare(order, streams, origin)
        wall.close(order, own)
        if order.user is not None:
            users.become(order.user)
            init.end_with(origin.shim)  # this too is a change of credentials
        _execute(order)
    except (OSError, ValueError, mounts.MountError) as error:
        _tell(writer, str(error))
    except BaseException as error:
        _tell(writer, f"{type(error).__name__}: {error}")
    os._exit(128)


def _tell(writer: int, text: str) -> None:
    os.write(writer, text.encode(errors="replace")[:4000])


def _settle(order: Order, origin: _Origin) -> wall.Reach:
    """Do what is still done with the machine's own view: limits, and the way into the namespace of mounts."""
    os.umask(0o022)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(OOM_SCORE)
    _limit(order, origin.processors)
    own = wall.open_own(order, beside=bool(origin.beside))
    if order.mounts != "none":
        if origin.beside:
            mounts.join(origin.beside)
        else:
            mounts.enter()
            mounts.arrange(
                order.binds, order.directory, order.hide, order.keep, order.covers, order.shared_memory
            )
    return own


def _prepare(order: Order, streams: Streams, origin: _Origin) -> None:
    os.setsid()
    _connect(streams)
    init.default_signals()
    if order.mounts != "none" and not origin.beside:
        if order.pids:
            mounts.show_processes()
        mounts.keep_settings()
        mounts.own_terminals()
        if not order.landlock:
            volumes = [bind.target for bind in order.binds]
            own = [path for path in (*order.write, *order.covers, order.hide) if path]
            mounts.withhold(own, volumes, order.devices)
    _limit_processes(order)
    # Set after the namespaces, because a change of credentials clears it.
    init.end_with(origin.shim)
    _change_directory(order.cwd)


def _connect(streams: Streams) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard, fd in enumerate(streams[:3]):
        os.dup2(fd if fd >= 0 else null, standard)
    if streams.tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _processors(order: Order, beside: int) -> list[int]:
    """Return the processors that the command may use: those of the one that it joins, or as many as the order says."""
    allowed = sorted(os.sched_getaffinity(beside))
    if not beside and 0 < order.cpus < len(allowed):
        allowed = sorted(allowed, key=lambda _: os.urandom(8))[: order.cpus]  # any of them
    return allowed


def _limit(order: Order, processors: list[int]) -> None:
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, order.files)
    os.sched_setaffinity(0, processors)


def _limit_processes(order: Order) -> None:
    if order.mounts == "user":
        # Counted per user namespace, hence per container; elsewhere it would count the user's other processes.
        _lower(resource.RLIMIT_NPROC, order.processes)


def _lower(limit: int, value: int) -> None:
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
