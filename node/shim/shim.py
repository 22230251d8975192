"""The shim: starts one attempt of a container, writes its log, enforces its limits, records how it ended."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pty
import select
import signal
import time
from typing import TYPE_CHECKING, Any, NoReturn

from node.shim import absent, init, linux, tree
from node.shim.contained import Contained, problem
from node.shim.control_socket import ControlSocket
from node.shim.crilog import CriLog
from node.shim.hooks import Hook
from node.shim.launch import Ending, LaunchError, Streams
from node.shim.path_walk import WRITE
from node.shim.processes import Processes

if TYPE_CHECKING:
    from node.shim.container_runtime import ContainerRuntime
    from node.shim.network import Network
    from node.shim.order import Action, Order

CHUNK = 64 * 1024
CHECK_S = 0.5
BUSY_CHECK_S = 0.05  # between checks of memory once more than half of it is used
DRAIN_S = 1.0
KILL_RETRY_S = 5.0
RECORD_RETRY_S = 0.5
SHUTDOWN_WAIT_S = 0.1
AFTER_HOOK_S = 2.0  # the least time that a command has to end after its preStop hook, however long that took
POST_START = "FailedPostStartHook"
NODE_SHUTDOWN = "NodeShutdown"  # only a machine that shuts down sends SIGTERM when the agent has not asked for it


class Refused(Exception):
    """The attempt was not started, and may be tried again."""


def run(order: Order, notice: int, network: Network | None) -> NoReturn:
    """Run as the shim of one attempt, in a network; `notice` is a pipe that reports its start and end to the agent.

    The agent reads "started", or "refused" with a reason, and the end of the
    pipe when the shim has ended. By then the attempt's files hold everything else.
    """
    code = 0
    try:
        os.setsid()
        linux.prctl(linux.PR_SET_NAME, init.SHIM_NAME)
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        # The only choice between the two: everything above uses the protocol.
        container: ContainerRuntime = (
            Processes(order, network) if order.image is None else Contained(order, order.image, network)
        )
        _claim(order.directory)
        Shim(order, container, notice).live()
    except Refused as error:
        _notify(notice, f"refused {error}\n")
    except BaseException:
        import traceback  # not at the top of the module: it would take memory in every shim

        _notify(notice, f"refused {traceback.format_exc()}\n")
        code = 1
    os._exit(code)


def _claim(directory: str) -> None:
    """Make this attempt ours, for good: no second shim gets past this point, now or after a restart.

    The claim appears with its content or not at all, and is on disk before the
    command can start.
    """
    draft = f"{directory}/claim.{os.getpid()}"
    try:
        fd = os.open(draft, WRITE | os.O_TRUNC, 0o600)
        os.write(fd, f"{os.getpid()} {linux.start_ticks(os.getpid())}\n".encode())
        os.fsync(fd)
        os.close(fd)
        os.link(draft, f"{directory}/claim")
    except FileExistsError:
        raise Refused("This attempt is running or has run.") from None
    except OSError as error:
        raise Refused(f"{error.strerror}: {directory}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)


def _notify(notice: int, text: str) -> None:
    try:
        os.write(notice, text.encode()[:4000])
    except OSError:  # the agent is gone; the next one reads the files
        pass


def microseconds() -> int:
    """Return the wall clock in microseconds since 1970."""
    return time.time_ns() // 1000


class Shim:
    """One attempt from fork to status.json."""

    def __init__(self, order: Order, container: ContainerRuntime, notice: int) -> None:
        self.order = order
        self.container = container
        self.notice = notice
        self.log = CriLog(order.directory, order.segment_bytes, order.segments)
        self.main = 0
        self.status: int | None = None
        self.ending = Ending(128)
        self.started_at = 0
        self.finished_at = 0
        self.streams: dict[int, str] = {}
        self.output_tail = b""  # the end of what it wrote to standard error, or to its terminal
        self.control = ControlSocket(order, container)
        self.kill_at: float | None = None
        self.stopped = ""  # the agent's reason for stopping it
        self.reason = ""
        self.message = ""
        self.next_check_at: float | None = time.monotonic() + CHECK_S
        self.unwritten: dict[str, Any] | None = None  # started.json while the disk is full
        self.hook: Hook | None = None  # the one that is being carried out
        self.hook_problem = ""
        self.is_up = False  # the hook after the start, if any, has succeeded
        self.shared_memory = -1  # its /dev/shm, where that is its own and has to be counted

    def live(self) -> None:
        """Run the command to its end and record it."""
        signals, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        try:
            self._start()
        except LaunchError as error:
            self.ending = Ending(128, reason="StartError", message=str(error))
            self.started_at = self.finished_at = microseconds()
        else:
            self.control.open()  # before the agent is notified: a client may send a command at once
            self._begin_hook(self.order.post_start)
            self._loop(signals)
            self.ending = self.container.ending(self.status or 0)
            self._note_shutdown(signals)
            self._finish_output()
        self._record()

    def _start(self) -> None:
        child_streams, self.streams, self.control.input = _terminal() if self.order.tty else _pipes(self.order)
        try:
            self.main = self.container.start(child_streams)
        except LaunchError as error:
            _close(child_streams)
            self._finish_output()
            raise LaunchError(problem(self.output_tail.decode(errors="replace")) or str(error)) from None
        _close(child_streams)
        self.started_at = microseconds()
        self.unwritten = {
            "pid": self.main,
            "ticks": linux.start_ticks(self.main),
            "startedAt": self.started_at,
            "streak": self.order.streak,
            **self._image_fields(),
        }
        if self.order.shared_memory and self.order.memory_bytes and not self.container.is_bound:
            self.shared_memory = tree.open_below(self.main, "dev/shm")

    def _begin_hook(self, action: Action | None) -> None:
        """Carry out a hook, of the command's start or of its end; go on where there is none."""
        if action is None:
            self._end_hook("")
            return
        try:
            self.hook = Hook(action, self.container, self.order.grace_s)
        except (LaunchError, OSError) as error:
            self._end_hook(str(error))

    def _end_hook(self, problem: str) -> None:
        """Go on after a hook: the container is up, or what stops it goes on."""
        self.hook = None
        self.hook_problem = self.hook_problem or problem
        if self.stopped:
            if self.kill_at is not None:
                self.kill_at = max(self.kill_at, time.monotonic() + AFTER_HOOK_S)
            self._terminate()
        elif problem:
            self._begin_stop(POST_START, self.order.grace_s)
        else:
            # For the agent the command runs when the hook after its start has succeeded.
            self.is_up = True
            self._write_started()
            _notify(self.notice, "started\n")

    def _image_fields(self) -> dict[str, Any]:
        """Return the fields about an engine's container, for both records."""
        if self.order.image is None:
            return {}
        container_id = f"{self.order.image.kind}://{self.container.id}"
        return {"container": container_id, "image": self.order.image.reference, "root": self.container.root}

    def _write_started(self) -> None:
        if self.unwritten is not None and (self.is_up or self.status is not None):
            try:
                write_json(f"{self.order.directory}/started.json", self.unwritten)
                self.unwritten = None
            except OSError:  # a full disk; tried again with the next look at the limits
                pass

    def _loop(self, signals: int) -> None:
        poll = select.poll()
        for fd in (signals, *self.streams):
            poll.register(fd, select.POLLIN)
        self.control.watch(poll)
        while self.status is None:
            ready = [fd for fd, _ in poll.poll(self._wait_ms())]
            for fd in ready:
                if fd == signals:
                    if signal.SIGTERM in os.read(signals, 512):
                        self._stop()
                    self._collect(tree.reap())
                elif fd in self.streams:
                    self._copy(fd, poll)
            self.control.on_ready(ready)
            self._on_time(time.monotonic())

    def _wait_ms(self) -> float | None:
        hook_until = self.hook.until if self.hook is not None else None
        times = (self.next_check_at, self.log.flush_due(), self.kill_at, self.control.due(), hook_until)
        due_times = [due for due in times if due is not None]
        return max(0.0, min(due_times) - time.monotonic()) * 1000 if due_times else None

    def _collect(self, statuses: dict[int, int]) -> None:
        self.control.ended(statuses)
        if self.main in statuses:
            self.status = statuses[self.main]
            self.finished_at = microseconds()
        if self.hook is not None and self.hook.pid in statuses and self.status is None:
            self._end_hook(self.hook.problem(statuses[self.hook.pid]))

    def _copy(self, fd: int, poll: select.poll) -> None:
        """Move what a stream has into the log."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that nobody has open any more
                raise
            data = b""
        if data:
            self.log.feed(self.streams[fd], data)
            if self.order.tty or self.streams[fd] == "stderr":
                self.output_tail = (self.output_tail + data)[-absent.TAIL_BYTES :]
            if self.order.tty:
                self.log.flush()  # somebody may sit before it and wait for a prompt
            return
        poll.unregister(fd)
        os.close(fd)
        del self.streams[fd]

    def _on_time(self, now: float) -> None:
        due = self.log.flush_due()
        if due is not None and now >= due:
            self.log.flush()
        if self.hook is not None and self.hook.until is not None and now >= self.hook.until:
            self._end_hook("")
        if self.kill_at is not None and now >= self.kill_at:
            # The grace is over: for the hook, and then for the command.
            self.kill_at = None
            if self.hook is not None:
                self.hook.kill()
                self.kill_at = time.monotonic()
                self._end_hook("it did not end within the grace period")
            else:
                self._kill()
                if self.status is None:  # an engine may not have been able to
                    self.kill_at = time.monotonic() + KILL_RETRY_S
        self.control.on_time(now)
        if self.status is None and self.next_check_at is not None and now >= self.next_check_at:
            pause = self._check_limits()
            self.next_check_at = now + pause if pause is not None else None

    def _stop(self) -> None:
        """Ask the command to end, and set the time at which it is killed; a later request can only bring that forward."""
        request = read_json(f"{self.order.directory}/stop.json")
        grace = float(request.get("grace", self.order.grace_s))
        kill_at = time.monotonic() + grace
        if not self.stopped:
            self._begin_stop(str(request.get("reason", NODE_SHUTDOWN)), grace)
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)

    def _begin_stop(self, reason: str, grace: float) -> None:
        """Ask the command to end, after the hook for that; a machine that goes down has asked it already."""
        self.stopped = reason
        self.kill_at = time.monotonic() + grace
        if self.hook is not None:  # the one after its start: it is too late for that
            self.hook.kill()
            self.hook = None
        if self.order.pre_stop is not None and grace > 0 and reason != NODE_SHUTDOWN:
            self._begin_hook(self.order.pre_stop)
        else:
            self._terminate()

    def _terminate(self) -> None:
        for number in (signal.SIGTERM, signal.SIGCONT):
            self.container.signal(number)

    def _note_shutdown(self, signals: int) -> None:
        """Note whether a SIGTERM that ended the command came with a shutdown: the machine then sends it to the shim, too."""
        if not self.stopped and self.ending.signal == signal.SIGTERM:
            poll = select.poll()
            poll.register(signals, select.POLLIN)
            deadline = time.monotonic() + SHUTDOWN_WAIT_S
            while not self.stopped and (remaining := deadline - time.monotonic()) > 0:
                if poll.poll(remaining * 1000) and signal.SIGTERM in os.read(signals, 512):
                    request = read_json(f"{self.order.directory}/stop.json")
                    self.stopped = str(request.get("reason", NODE_SHUTDOWN))

    def _kill(self) -> None:
        self._collect(self.container.kill())

    def _check_limits(self) -> float | None:
        """Compare the command with its limits; return the seconds until the next check, None when there is nothing to check."""
        self._write_started()
        if self.container.is_bound:
            return CHECK_S if self.unwritten is not None else None
        with open("/proc/loadavg") as file:  # cheaper than counting: the whole machine's threads are no fewer
            threads = int(file.read().split()[3].split("/")[1])
        if threads > self.order.processes:
            count = len(self._processes())
            if count > self.order.processes:
                self._end_for("ProcessLimitExceeded", f"It ran {count} processes; {self.order.processes} are allowed.")
                return CHECK_S
        return self._check_memory() if self.order.memory_bytes else CHECK_S

    def _processes(self) -> list[int]:
        """Return the processes that count towards the limits."""
        connecting = self.control.connecting
        return [pid for pid in self.container.processes() if pid not in connecting]

    def _check_memory(self) -> float:
        limit = self.order.memory_bytes
        pids = self._processes()
        shared = tree.bytes_in(self.shared_memory) + tree.bytes_in_open_files(pids)
        used = tree.resident_bytes(pids) + shared
        # Pages that processes share are counted once for each of them above; look closer before killing.
        if used > limit and (used := tree.proportional_bytes(pids, shared)) > limit:
            self._end_for("OOMKilled", f"It used {used} bytes of memory; its limit is {limit}.")
        return BUSY_CHECK_S if used > limit // 2 else CHECK_S

    def _end_for(self, reason: str, message: str) -> None:
        self.reason, self.message = reason, message
        self._kill()

    def _finish_output(self) -> None:
        """End whatever the command left behind, then read its output to the end."""
        self.control.ended(self.container.clear())
        self.control.close()
        deadline = time.monotonic() + DRAIN_S
        poll = select.poll()
        for fd in self.streams:
            poll.register(fd, select.POLLIN)
        while self.streams and (remaining := deadline - time.monotonic()) > 0:
            for fd, _ in poll.poll(remaining * 1000):
                self._copy(fd, poll)
        self.log.close()

    def _record(self) -> None:
        """Write status.json; with a full disk, wait until there is room, because the exit code must not be lost."""
        code = self.ending.exit_code
        # Whose machine it is matters only where there is no image.
        absence = "" if self.order.image else absent.shell_message(code, self.output_tail, self.order.node)
        outcome = {
            "exitCode": code,
            "signal": self.ending.signal,
            "reason": self.reason or self.ending.reason or ("Completed" if code == 0 else "Error"),
            "message": self.message or self.ending.message or absence,
            "stopped": self.stopped,
            "hook": self.hook_problem,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            "streak": self.order.streak,
            **self._image_fields(),
        }
        while True:
            try:
                self._write_started()
                write_json(f"{self.order.directory}/status.json", outcome, sync=True)
                return
            except FileNotFoundError:  # the state directory was removed: nobody will read it
                return
            except OSError:
                time.sleep(RECORD_RETRY_S)


def _pipes(order: Order) -> tuple[Streams, dict[int, str], int]:
    """Return a command's standard streams, those to copy by the name of their stream, and where its input comes in."""
    out_reader, out_writer = os.pipe2(os.O_CLOEXEC)
    err_reader, err_writer = os.pipe2(os.O_CLOEXEC)
    in_reader, in_writer = os.pipe2(os.O_CLOEXEC) if order.stdin else (-1, -1)
    return Streams(in_reader, out_writer, err_writer), {out_reader: "stdout", err_reader: "stderr"}, in_writer


def _terminal() -> tuple[Streams, dict[int, str], int]:
    """Return the same for a command at a terminal of its own, whose other end is both input and output."""
    terminal, child_end = pty.openpty()
    return Streams(child_end, child_end, child_end, tty=True), {terminal: "stdout"}, terminal


def _close(streams: Streams) -> None:
    for fd in {*streams[:3]} - {-1}:
        os.close(fd)


def write_json(path: str, value: dict[str, Any], *, sync: bool = False) -> None:
    """Write a file so that readers find it whole or not at all."""
    draft = f"{path}.{os.getpid()}.new"
    fd = os.open(draft, WRITE | os.O_TRUNC, 0o600)
    try:
        os.write(fd, json.dumps(value).encode())
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(draft, path)


def read_json(path: str) -> dict[str, Any]:
    """Return a file's object; {} when it is absent, unreadable or torn."""
    try:
        with open(path, "rb") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
