"""Programs that are forks of one process: the supervisor's end of `volcano_ui.supervision.fork_server`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

ROOM = 1024  # characters of the longest command line that `ps` shows of a program
BYTES = 1 << 20  # of an order or an answer, at most
PATIENCE_S = 30.0  # for an answer of the server, which takes a second or two to load


class Order(msgspec.Struct):
    """A program to start: the arguments that `asyncio.create_subprocess_exec` would get.

    Sent along with the order are the reading end of a pipe, from which the program reads a byte before it begins, and one
    descriptor for each of `numbers`, in their order; in the program the descriptors have these numbers.
    """

    command: list[str]  # `PYTHON -m MODULE …`, of a module with a `main`, or `PYTHON FILE …`
    environment: dict[str, str]
    umask: int
    numbers: list[int]


class Answer(msgspec.Struct):
    """The pid of a program, or why it could not be started."""

    pid: int = 0
    problem: str = ""


class Fork:
    """A program that the fork server started and this process has adopted, with the interface of asyncio's processes."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.Event()
        self._descriptor = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._descriptor, self._take_status)

    def _take_status(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        try:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:
            self.returncode = 255  # asyncio's value for a process whose status was taken elsewhere
        self._ended.set()

    async def wait(self) -> int:
        """Wait for its end and return the exit code; a negative one is the number of the signal that ended it."""
        await self._ended.wait()
        assert self.returncode is not None  # noqa: S101  it is set before the event
        return self.returncode

    def terminate(self) -> None:
        """Send SIGTERM."""
        # An ended process was reaped, and another one may have its number by now.
        if self.returncode is None:
            os.kill(self.pid, signal.SIGTERM)


class ForkServer:
    """The fork server of one supervisor, started again for the next order if it has died. Used from one event loop."""

    def __init__(
        self, *, cwd: Path, environment: Mapping[str, str], log: Path | None, before_exec: Callable[[], None] | None
    ) -> None:
        self._cwd = cwd
        self._environment = environment
        self._log = log
        self._before_exec = before_exec
        self._channel: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._exchanging = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Start the server; orders wait until it has loaded."""
        await self.stop()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)
        with theirs, self._log.open("ab") if self._log else contextlib.nullcontext() as output:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "volcano_ui.supervision.fork_server", f"--fd={theirs.fileno()}", " " * ROOM,
                cwd=self._cwd,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
                preexec_fn=self._before_exec,
            )  # fmt: skip

    async def fork(self, order: Order, descriptors: Sequence[int]) -> Fork:
        """Start a program; raise OSError if that fails. A program whose pid does not arrive here never begins."""
        async with self._exchanging:
            if self._channel is None or self.pid is None:
                await self.start()
            assert self._channel is not None  # noqa: S101  it has started
            theirs, begin = os.pipe()
            try:
                socket.send_fds(self._channel, [msgspec.json.encode(order)], [theirs, *descriptors])
                receiving = asyncio.get_running_loop().sock_recv(self._channel, BYTES)
                data = await asyncio.wait_for(receiving, PATIENCE_S)
                if not data:
                    raise ConnectionResetError("the fork server has ended")
                answer = msgspec.json.decode(data, type=Answer)
                if answer.problem:
                    raise OSError(answer.problem)
                fork = Fork(answer.pid)
                os.write(begin, b".")
                return fork
            except (asyncio.CancelledError, TimeoutError) as error:
                self._kill()  # a late answer would be read as the answer to the next order
                if isinstance(error, TimeoutError):
                    raise ConnectionAbortedError(f"the fork server did not answer for {PATIENCE_S:g} s") from None
                raise
            finally:
                os.close(theirs)
                os.close(begin)

    async def stop(self) -> None:
        """Kill the server; the programs that it has started go on."""
        self._kill()
        if self._process:
            await self._process.wait()

    def _kill(self) -> None:
        if self._process and self._process.returncode is None:
            self._process.kill()  # it has no state to save, and may still be loading
        if self._channel:
            self._channel.close()
            self._channel = None
