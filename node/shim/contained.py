"""A container of an engine: podman's or docker's, whose own program runs in the foreground below the shim.

The container is created with a name that follows from its attempt, so that who
comes after a killed shim finds and removes it (`node.containers.engine_sweep`). The
exit code is the inspected container's and never that of the engine's program,
which uses some codes for failures of its own.

What a container mounts is opened here and mounted from descriptors in a mount
namespace of the shim's, where no pod can exchange it, and only then given to
the engine by name. Where an engine does not see that namespace, the agent
lets no pod mount what a pod could exchange.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import stat
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from node.shim import init, linux, tree
from node.shim.isolation import root, seccomp
from node.shim.isolation.sources import open_source
from node.shim.launch import Ending, LaunchError, Streams, program
from node.shim.path_walk import NEW_FILE, WRITE, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from node.shim.network import Network
    from node.shim.order import Bind, Image, Order

ENGINE_TIMEOUT_S = 120.0  # a call of an engine that takes longer is given up
POLL_S = 0.03  # between two inspections of a container that starts
LONGEST_LINE = 60_000  # bytes that engines take from a line of a file with variables
NOTE = "engine.json"  # in the attempt's directory: how its container is called and removed
VARIABLES = "env"  # beside it: the container's variables, until it is created
FILTER = "seccomp.json"  # and as long the filter of its system calls
COMMAND_MARK = "VOLCANO_EXEC_ID"  # a variable that identifies the processes that a command of exec started
# Commands that have ended whose marks are retained, as what they forked may still have to be ended.
ENDED_MARKS = 100
_NEVER = "0001-01-01"  # when a container started that did not


class Answer(NamedTuple):
    """The exit code and output of an engine's program."""

    code: int
    output: str
    errors: str

    @property
    def problem(self) -> str:
        """Return in one line why it failed."""
        return problem(self.errors) or f"the engine ended with {self.code}"


class Contained:
    """A container of an engine: see `node.shim.container_runtime.ContainerRuntime`."""

    def __init__(self, order: Order, image: Image, network: Network | None = None) -> None:
        self._order = order
        self._network = network
        self._image = image
        self.root = 0
        self.is_bound = False  # not every engine may limit what it runs
        self.id = ""
        self._ticks = 0
        self._killed = False
        self._commands: dict[int, str] = {}  # their marks, by the engine's program; the oldest are forgotten
        self._commands_started = 0

    def start(self, streams: Streams) -> int:
        """Create the container and start it; return the engine's program, which ends with it."""
        interactive = ("--interactive",) if self._order.stdin else ()
        try:
            if self._network is not None:  # where the engine's own network is the container's
                self._network.join()
            write_note(self._order.directory, self._image)
            self._create(list(self._mounts()))
            main = self._program(("start", "--attach", *interactive, self._image.name), streams)
            self._await_start(main)
        except (OSError, ValueError) as error:
            self.clear()
            raise LaunchError(str(error)) from None
        except LaunchError:
            self.clear()
            raise
        return main

    def signal(self, number: int) -> None:
        """Send a signal to the container's first process."""
        if number != signal.SIGCONT and not self._send_signal(number):  # a container is not stopped by its terminal
            self._program(("kill", "--signal", signal.Signals(number).name, self._image.name), Streams())

    def kill(self) -> dict[int, int]:
        """Have the engine kill everything in the container."""
        self._killed = True
        if not self._send_signal(signal.SIGKILL):
            self._run_engine("kill", "--signal", "KILL", self._image.name)
        return tree.reap()

    def clear(self) -> dict[int, int]:
        """Remove the container."""
        self._run_engine("rm", "--force", "--volumes", self._image.name)
        return tree.reap()

    def ending(self, status: int) -> Ending:
        """Return how the container ended, as the engine reports it."""
        state = self._state()
        if state.get("Running"):  # only the engine's program has ended: nothing would report the container's end
            self.kill()
            message = "The engine's program that watched over the container was ended, and the container with it."
            return Ending(137, 9, "Error", message)
        if not state:
            code = os.waitstatus_to_exitcode(status)
            return Ending(128 - code if code < 0 else code, max(0, -code), message="The container was removed.")
        code = int(state.get("ExitCode") or 0)
        number = code - 128 if 128 < code <= 128 + signal.NSIG else 0
        if state.get("OOMKilled") or (number == signal.SIGKILL and not self._killed and self._limit):
            return Ending(code, number, "OOMKilled", f"It used more memory than its limit, {self._limit} bytes.")
        return Ending(code, number, message=str(state.get("Error") or ""))

    def processes(self) -> list[int]:
        """Return the container's first process and what is below it."""
        return [self.root, *tree.below(self.root)] if self.root else []

    def execute(self, argv: Sequence[str], streams: Streams, env: dict[str, str]) -> int:
        """Have the engine run a command in the container."""
        mark = f"{self._image.name}/{self._commands_started}"
        self._commands_started += 1
        options = [f"--env={name}={value}" for name, value in {**env, COMMAND_MARK: mark}.items()]
        options += ["--interactive"] if streams.stdin >= 0 else []
        options += ["--tty"] if streams.tty else []
        pid = self._program(("exec", *options, self._image.name, *argv), streams)
        self._commands.pop(pid, None)  # of one that had this number before
        self._commands[pid] = mark
        ended = [other for other in self._commands if not linux.start_ticks(other)]
        for other in ended[:-ENDED_MARKS]:
            del self._commands[other]
        return pid

    def of_command(self, pid: int) -> list[int]:
        """Return the engine's program for a command, and what of the command can be seen."""
        mark = self._commands.get(pid)
        visible = tree.with_variable({f"{COMMAND_MARK}={mark}".encode()}) if mark else []
        return [*tree.session(os.getpid(), pid), *visible]

    def _send_signal(self, number: int) -> bool:
        """Signal the container's first process, which is quicker than its engine, where the user may."""
        if not self._ticks or linux.start_ticks(self.root) != self._ticks:
            return False
        try:
            os.kill(self.root, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    @property
    def _limit(self) -> int:
        options = self._image.options
        return int(options[options.index("--memory") + 1]) if "--memory" in options else self._order.memory_bytes

    def _create(self, mounts: list[str]) -> None:
        file_variables = {name: value for name, value in self._order.env.items() if _fits_a_line(name, value)}
        argument_variables = [
            f"--env={name}={value}" for name, value in self._order.env.items() if name not in file_variables
        ]
        lines = "".join(f"{name}={value}\n" for name, value in file_variables.items())
        profile = json.dumps(seccomp.profile(seccomp.architecture())) if self._image.filters else ""
        with self._file(VARIABLES, lines) as variables_path, self._file(FILTER, profile) as filter_path:
            security_options = ["--security-opt", f"seccomp={filter_path}"] if profile else []
            answer = self._run_engine(
                "create", "--name", self._image.name, "--env-file", variables_path, *argument_variables, *mounts, *security_options,
                *self._image.options, self._image.id, *self._order.argv,
            )  # fmt: skip
        if answer.code:
            raise LaunchError(answer.problem)
        self.id = answer.output.split()[-1] if answer.output.split() else ""

    @contextlib.contextmanager
    def _file(self, name: str, text: str) -> Iterator[str]:
        """Write a file that is there as long as the engine reads it; give its path."""
        path = f"{self._order.directory}/{name}"
        fd = os.open(path, NEW_FILE, 0o600)
        try:
            with os.fdopen(fd, "w") as stream:
                stream.write(text)
            yield path
        finally:
            os.unlink(path)

    def _mounts(self) -> Iterator[str]:
        """Yield the options that mount the order's binds, outer targets before inner ones."""
        binds = sorted(self._order.binds, key=lambda bind: bind.target.count("/"))
        if self._image.stages and binds:
            linux.unshare(linux.CLONE_NEWNS)
            linux.keep_mounts_private()
        users = init.user_namespace(self._order.ids) if self._order.ids and self._image.stages and binds else -1
        for number, bind in enumerate(binds):
            source = self._stage(bind, number, users) if self._image.stages else bind.source
            read_only = ",readonly" if bind.read_only else ""
            yield f"--mount=type=bind,src={source},dst={bind.target}{read_only}"

    def _stage(self, bind: Bind, number: int, users: int) -> str:
        """Mount what a bind shows where only the shim and its engine look, for users of a namespace unless that is -1; return where."""
        mount_point = f"{self._order.directory}/mounts/{number}"
        try:
            fd = open_source(bind, self._order.state)
            try:
                os.makedirs(os.path.dirname(mount_point), exist_ok=True)
                if stat.S_ISDIR(os.fstat(fd).st_mode):
                    os.mkdir(mount_point)
                else:
                    os.close(os.open(mount_point, WRITE, 0o600))
                copied = linux.copy_of_mount(fd)
                try:
                    if users >= 0:
                        root.show_to(users, copied, self._order.ids, own=root.is_own(bind))
                    with Walk(mount_point) as walk:
                        linux.attach(copied, walk.fd)
                finally:
                    os.close(copied)
            finally:
                os.close(fd)
        except (OSError, ValueError) as error:
            reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
            raise LaunchError(f"mount {bind.source} on {bind.target}: {reason}") from None
        return mount_point

    def _await_start(self, main: int) -> None:
        """Wait until the container runs, or has run; LaunchError when it could not be started."""
        deadline = time.monotonic() + ENGINE_TIMEOUT_S
        with _end_waiter(main) as has_ended:
            while time.monotonic() < deadline:
                is_ended = has_ended(POLL_S)  # before the state, which must not be the older of the two
                state = self._state()
                if state.get("Running"):
                    self.root = int(state.get("Pid") or 0)
                    self._ticks = linux.start_ticks(self.root) if self.root else 0
                    return
                if not str(state.get("StartedAt") or _NEVER).startswith(_NEVER):
                    return
                if is_ended:
                    break
        tree.kill([main])
        os.waitpid(main, 0)
        raise LaunchError("the container could not be started")

    def _state(self) -> dict[str, Any]:
        answer = self._run_engine("container", "inspect", "--format", "{{json .State}}", self._image.name)
        try:
            state = json.loads(answer.output)
        except ValueError:
            return {}
        return state if isinstance(state, dict) else {}

    def _program(self, arguments: Sequence[str], streams: Streams) -> int:
        return program([*self._image.engine, *arguments], self._image.env, streams)

    def _run_engine(self, *arguments: str) -> Answer:
        """Run the engine's program to its end and return its output."""
        output, errors = os.memfd_create("output"), os.memfd_create("errors")
        try:
            pid = self._program(arguments, Streams(-1, output, errors))
            with _end_waiter(pid) as has_ended:
                if not has_ended(ENGINE_TIMEOUT_S):
                    tree.kill([pid])
            _, status = os.waitpid(pid, 0)
            return Answer(os.waitstatus_to_exitcode(status), _text(output), _text(errors))
        finally:
            os.close(output)
            os.close(errors)


@contextlib.contextmanager
def _end_waiter(pid: int) -> Iterator[Callable[[float], bool]]:
    """Give a function that waits up to some seconds for a child's end and returns whether it has ended."""
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        yield lambda seconds: bool(poll.poll(seconds * 1000))
    finally:
        os.close(fd)


def _text(fd: int) -> str:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(os.dup(fd), "rb") as file:
        return file.read().decode(errors="replace")


def _fits_a_line(name: str, value: str) -> bool:
    """Whether a variable can be written into a file, where other users do not see it; else it becomes an argument."""
    line = f"{name}={value}".encode()
    return len(line) < LONGEST_LINE and not name.startswith("#") and not {*line} & {*b"\n\r\0"}


def problem(output: str) -> str:
    """Return in one line the cause of failure in an engine's error output; "" where that is empty."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    message = next((line for line in reversed(lines) if line.startswith("Error")), lines[-1] if lines else "")
    message = message.removeprefix("Error: ")
    # Of a command that cannot be executed only the cause is reported, which OCI runtimes put between their own names.
    cause = message.rpartition("unable to start container process: ")[2]
    return cause.partition(": OCI ")[0]


def write_note(directory: str, image: Image) -> None:
    """Write an attempt's container name and engine to disk, for the sweep that removes it when its shim was killed."""
    with os.fdopen(os.open(f"{directory}/{NOTE}", NEW_FILE, 0o600), "w") as file:
        json.dump({"engine": image.engine, "name": image.name}, file)
