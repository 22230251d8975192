"""A container of an engine: podman's or docker's, kept in the foreground by its own program below the shim.

The container is created with a name that follows from its attempt, so that who
comes after a killed shim finds and removes it (`node.containers.engine_sweep`). The
engine's program is never believed about the exit code, of which it has
some for itself; the container is asked.

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

ANSWER_S = 120.0  # an engine that says nothing for so long is given up
LOOK_S = 0.03  # how often it is asked whether the container runs
LONGEST_LINE = 60_000  # bytes that engines take from a line of a file with variables
NOTE = "engine.json"  # in the attempt's directory: how its container is called and removed
VARIABLES = "env"  # beside it: the container's variables, until it is created
FILTER = "seccomp.json"  # and as long the filter of its system calls
COMMAND_MARK = "VOLCANO_EXEC_ID"  # a variable by which what a command of exec started is known
# Commands that have ended whose marks are kept, as what they forked may still have to be ended.
ENDED_KEPT = 100
_NEVER = "0001-01-01"  # when a container started that did not


class Answer(NamedTuple):
    """What an engine's program said."""

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
        self._begun = 0

    def start(self, streams: Streams) -> int:
        """Create the container and start it; return the engine's program, which ends with it."""
        wanted = ("--interactive",) if self._order.stdin else ()
        try:
            if self._network is not None:  # where the engine's own network is the container's
                self._network.join()
            write_note(self._order.directory, self._image)
            self._create(list(self._mounts()))
            main = self._program(("start", "--attach", *wanted, self._image.name), streams)
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
        if number != signal.SIGCONT and not self._sent(number):  # a container is not stopped by its terminal
            self._program(("kill", "--signal", signal.Signals(number).name, self._image.name), Streams())

    def kill(self) -> dict[int, int]:
        """Have the engine kill everything in the container."""
        self._killed = True
        if not self._sent(signal.SIGKILL):
            self._ask("kill", "--signal", "KILL", self._image.name)
        return tree.reap()

    def clear(self) -> dict[int, int]:
        """Remove the container."""
        self._ask("rm", "--force", "--volumes", self._image.name)
        return tree.reap()

    def ending(self, status: int) -> Ending:
        """Return what the engine says of the container's end."""
        state = self._state()
        if state.get("Running"):  # only the engine's program has ended: nobody would hear of the container's end
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
        mark = f"{self._image.name}/{self._begun}"
        self._begun += 1
        options = [f"--env={name}={value}" for name, value in {**env, COMMAND_MARK: mark}.items()]
        options += ["--interactive"] if streams.stdin >= 0 else []
        options += ["--tty"] if streams.tty else []
        pid = self._program(("exec", *options, self._image.name, *argv), streams)
        self._commands.pop(pid, None)  # of one that had this number before
        self._commands[pid] = mark
        ended = [one for one in self._commands if not linux.start_ticks(one)]
        for one in ended[:-ENDED_KEPT]:
            del self._commands[one]
        return pid

    def of_command(self, pid: int) -> list[int]:
        """Return the engine's program for a command, and what of the command can be seen."""
        mark = self._commands.get(pid)
        seen = tree.with_variable({f"{COMMAND_MARK}={mark}".encode()}) if mark else []
        return [*tree.session(os.getpid(), pid), *seen]

    def _sent(self, number: int) -> bool:
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
        single = {name: value for name, value in self._order.env.items() if _fits_a_line(name, value)}
        several = [f"--env={name}={value}" for name, value in self._order.env.items() if name not in single]
        lines = "".join(f"{name}={value}\n" for name, value in single.items())
        profile = json.dumps(seccomp.profile(seccomp.known())) if self._image.filters else ""
        with self._file(VARIABLES, lines) as variables, self._file(FILTER, profile) as calls:
            guard = ["--security-opt", f"seccomp={calls}"] if profile else []
            answer = self._ask(
                "create", "--name", self._image.name, "--env-file", variables, *several, *mounts, *guard,
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
            source = self._staged(bind, number, users) if self._image.stages else bind.source
            read_only = ",readonly" if bind.read_only else ""
            yield f"--mount=type=bind,src={source},dst={bind.target}{read_only}"

    def _staged(self, bind: Bind, number: int, users: int) -> str:
        """Mount what a bind shows where only the shim and its engine look, for users of a namespace unless that is -1; return where."""
        place = f"{self._order.directory}/mounts/{number}"
        try:
            fd = open_source(bind, self._order.state)
            try:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                if stat.S_ISDIR(os.fstat(fd).st_mode):
                    os.mkdir(place)
                else:
                    os.close(os.open(place, WRITE, 0o600))
                copied = linux.copy_of_mount(fd)
                try:
                    if users >= 0:
                        root.show_to(users, copied, self._order.ids, own=root.is_own(bind))
                    with Walk(place) as point:
                        linux.attach(copied, point.fd)
                finally:
                    os.close(copied)
            finally:
                os.close(fd)
        except (OSError, ValueError) as error:
            why = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
            raise LaunchError(f"mount {bind.source} on {bind.target}: {why}") from None
        return place

    def _await_start(self, main: int) -> None:
        """Wait until the container runs, or has run; LaunchError when it could not be started."""
        deadline = time.monotonic() + ANSWER_S
        with _ended(main) as over:
            while time.monotonic() < deadline:
                is_over = over(LOOK_S)  # looked at first, so that what the engine says is not older
                state = self._state()
                if state.get("Running"):
                    self.root = int(state.get("Pid") or 0)
                    self._ticks = linux.start_ticks(self.root) if self.root else 0
                    return
                if not str(state.get("StartedAt") or _NEVER).startswith(_NEVER):
                    return
                if is_over:
                    break
        tree.kill([main])
        os.waitpid(main, 0)
        raise LaunchError("the container could not be started")

    def _state(self) -> dict[str, Any]:
        answer = self._ask("container", "inspect", "--format", "{{json .State}}", self._image.name)
        try:
            found = json.loads(answer.output)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _program(self, words: Sequence[str], streams: Streams) -> int:
        return program([*self._image.engine, *words], self._image.env, streams)

    def _ask(self, *words: str) -> Answer:
        """Have the engine do something and wait for it."""
        output, errors = os.memfd_create("output"), os.memfd_create("errors")
        try:
            pid = self._program(words, Streams(-1, output, errors))
            with _ended(pid) as over:
                if not over(ANSWER_S):
                    tree.kill([pid])
            _, status = os.waitpid(pid, 0)
            return Answer(os.waitstatus_to_exitcode(status), _text(output), _text(errors))
        finally:
            os.close(output)
            os.close(errors)


@contextlib.contextmanager
def _ended(pid: int) -> Iterator[Callable[[float], bool]]:
    """Give a function that waits some seconds for a child's end, and says whether it came."""
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
    """Whether a variable can be written into a file, where other users do not see it; else it is told as an argument."""
    line = f"{name}={value}".encode()
    return len(line) < LONGEST_LINE and not name.startswith("#") and not {*line} & {*b"\n\r\0"}


def problem(said: str) -> str:
    """Return from what an engine's program wrote why it did not do something, in one line; "" when it says nothing."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if line.startswith("Error")), lines[-1] if lines else "")
    told = told.removeprefix("Error: ")
    # Of a command that cannot be executed only the cause is told, which OCI runtimes put between their own names.
    cause = told.rpartition("unable to start container process: ")[2]
    return cause.partition(": OCI ")[0]


def write_note(directory: str, image: Image) -> None:
    """Note how an attempt's container is called, for who removes it when nobody watches over it any more."""
    with os.fdopen(os.open(f"{directory}/{NOTE}", NEW_FILE, 0o600), "w") as file:
        json.dump({"engine": image.engine, "name": image.name}, file)
