"""A whole system of its own: `manage.py up` on a state directory and port nobody else uses."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

import httpx
from django.db import connections

from cluster.store import Store
from node import leftovers
from node.paths import Layout
from node.shim import tree
from proof.harness.ports import free_port
from proof.harness.waiting import HANG_S, until
from volcano_ui import env
from volcano_ui.supervision import supervisor

PROJECT = Path(__file__).resolve().parents[2]
UP = [sys.executable, "manage.py", "up"]
# The last line of a start: a link that logs in, or where the health of programs without pages is told.
READY = re.compile(r"(?:Open|Its health is served at) (\S+)")
_openings = itertools.count()
NAMES = ("web", "apiserver", "controllers", "jobs", "scheduler", "beat", "agent", "simulator", "redis")


class System:
    """One run of `manage.py up`, or of `command` in `folder`; use it as a context manager."""

    command, folder = UP, PROJECT

    def __init__(self, data: str | Path, *, nodes: int = 0, port: int | None = None, **variables: str) -> None:
        self.data = Path(data).absolute()
        self.port = port or free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.api_port = free_port()
        self.api = f"https://127.0.0.1:{self.api_port}"
        self.ca = self.data / "pki" / "ca.crt"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("VOLCANO_UI_", "DJANGO_"))},
            "VOLCANO_UI_DATA": str(self.data),
            "VOLCANO_UI_PORT": str(self.port),
            "VOLCANO_UI_API_PORT": str(self.api_port),
            "VOLCANO_UI_NODES": str(nodes),
            "VOLCANO_UI_ENGINE": "none",  # pods are processes, whatever is installed
            "VOLCANO_UI_RUNNING": "end",  # a test run that is killed leaves nothing behind
            "VOLCANO_UI_HOST_PATHS": tempfile.gettempdir(),  # by which tests and pods meet
            **variables,
        }
        self.cluster: System = self  # the system in which pods run; another one where this works on it
        self.output: list[str] = []
        self.process: subprocess.Popen[str] | None = None
        self.link = ""
        self.cookies: dict[str, str] | None = None
        self.started_s = 0.0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Start and wait for the link, or what comes in its place; `started_s` is how long that took."""
        assert self.process is None or self.process.poll() is not None, "it runs already"
        begun = time.monotonic()
        self.output.clear()
        self.process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A test run that is killed leaves nothing behind.
            preexec_fn=supervisor.die_with(os.getpid(), signal.SIGTERM),
        )
        ready = threading.Event()
        threading.Thread(target=self._read, args=(self.process.stdout, ready), daemon=True).start()
        if not ready.wait(HANG_S) or not self.link:
            self.stop()
            raise AssertionError("the system did not start:\n" + "".join(self.output) + self.logs())
        self.started_s = time.monotonic() - begun
        return self

    def _read(self, stream: IO[str], ready: threading.Event) -> None:
        for line in stream:
            self.output.append(line)
            if found := READY.match(line):
                self.link = found[1]
                ready.set()
        ready.set()
        stream.close()

    def stop(self, number: int = signal.SIGINT) -> float:
        """Stop as Ctrl-C does, or by another signal; return the seconds that it took, which is for benchmarks."""
        if self.process is None or self.process.poll() is not None:
            return 0.0
        begun = time.monotonic()
        self.process.send_signal(number)
        try:
            self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the system did not stop:\n" + "".join(self.output)) from None
        return time.monotonic() - begun

    @property
    def up(self) -> subprocess.Popen[str]:
        """The process of `up`, which was started."""
        assert self.process is not None, "it was not started"
        return self.process

    def kill(self) -> None:
        """Kill `up` itself, as nothing can that asks first; wait until its programs have followed. Pods go on."""
        programs = [pid for pid in self.tree() if _program(pid)]
        self.up.kill()
        self.up.wait()
        until(lambda: not any(_program(pid) for pid in programs), what="the end of its programs")

    def shims(self) -> dict[int, str]:
        """Return the ids of the processes that watch over containers, with the uids of their pods."""
        return leftovers.shims(Layout(self.data))

    def end_pods(self) -> None:
        """Kill whatever of pods runs, as a machine does that loses its power."""
        for pid in self.shims():
            for each in (pid, *tree.below(pid)):  # the shim first: it is not to say how the command ended
                tree.send(each, signal.SIGKILL)

    @property
    def state(self) -> Path:
        """The state directory of its cluster: with another cluster behind the pages one below that of the embedded one."""
        below = sorted((self.data / "clusters").glob("*"))
        return below[0] if "VOLCANO_UI_KUBECONFIG" in self.environment and below else self.data

    def logs(self) -> str:
        """The last lines of every program's log."""
        files = sorted((self.state / "logs").glob("*.log"))
        return "".join(
            f"\n--- {file.name}\n" + "\n".join(line[:300] for line in file.read_text().splitlines()[-15:])
            for file in files
        )

    def children(self) -> dict[str, int]:
        """The supervised processes' ids by program."""
        found = {}
        for pid in _children_of(self.up.pid):
            if name := _program(pid):
                found[name] = pid
        return found

    def fork_server(self) -> int | None:
        """Return the id of the process of which the programs are forks, or None while there is none."""
        return next(
            (pid for pid in _children_of(self.up.pid) if b"volcano_ui.supervision.fork_server" in _line(pid)), None
        )

    def holder(self) -> int | None:
        """Return the id of the process that holds the ports, or None while there is none."""
        from volcano_ui.supervision import (
            held_ports,
        )  # which takes models; programs import this module before Django is set up

        return next((pid for pid, line in self.processes().items() if held_ports.MARK.decode() in line), None)

    def tree(self) -> list[int]:
        """The ids of the supervisor and everything below it."""
        pids, todo = [], [self.up.pid]
        while todo:
            pid = todo.pop()
            pids.append(pid)
            todo.extend(_children_of(pid))
        return pids

    def processes(self, mark: str = "") -> dict[int, str]:
        """Return the command lines, by id, of all that belongs to the state directory or carries `mark`.

        Looks at every process of the machine, so that what escaped from the tree is found as well.
        """
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                ours = _is_below(folder, self.data) or (mark and mark in line)
                if ours and int(folder.name) != os.getpid() and not _is_zombie(folder):
                    found[int(folder.name)] = line
        return found

    def assert_gone(self, mark: str = "") -> None:
        """Fail unless nothing of the system is left within a moment."""
        until(lambda: not self.processes(mark), what=f"no process left ({self.processes(mark)})")

    def kubeconfig(self, file: Path) -> Path:
        """Write the first administrator's kubeconfig to a file and return its path."""
        command = [sys.executable, "manage.py", "kubeconfig", "--file", str(file)]
        subprocess.run(command, cwd=PROJECT, env=self.environment, check=True, capture_output=True)
        return file

    def client(self) -> httpx.Client:
        """A browser's session, logged in; the first one uses the link up, the others share its cookies."""
        client = httpx.Client(base_url=self.base, timeout=HANG_S, follow_redirects=True, verify=False)
        if self.cookies is None:
            self.log_in(client)
        else:
            for name, value in self.cookies.items():
                client.cookies.set(name, value, domain="127.0.0.1", path="/")
        return client

    def log_in(self, client: httpx.Client) -> None:
        """Follow the one-time link as a browser does that was told its address."""
        navigation = {
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
            "Sec-Fetch-Site": "none",
            "Sec-Fetch-User": "?1",
        }
        answer = client.get(self.link, headers=navigation)
        assert answer.status_code == 200, answer.text
        self.link = ""
        self.cookies = dict(client.cookies)

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """The system's store, read from this process; may be opened again while it is open."""
        alias = f"system_{self.port}_{next(_openings)}"
        with _environment(self.environment):
            values = env.database(self.state / "db.sqlite3")
        connections.databases[alias] = values
        connections.configure_settings(connections.databases)
        try:
            yield Store(alias)
        finally:
            connections[alias].close()
            del connections[alias]
            del connections.databases[alias]


@contextlib.contextmanager
def running(data: str | Path, **options: Any) -> Iterator[System]:
    """A system that is started; at its end nothing of it may be left."""
    system = System(data, **options)
    try:
        yield system.start()
    finally:
        system.stop()
    system.assert_gone()


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = os.environ.get("DATABASE_URL")
    os.environ["DATABASE_URL"] = values.get("DATABASE_URL", "")
    try:
        yield
    finally:
        if before is None:
            del os.environ["DATABASE_URL"]
        else:
            os.environ["DATABASE_URL"] = before


def _is_below(folder: Path, data: Path) -> bool:
    """Tell whether a process works in a state directory or was told of it."""
    if (folder / "cwd").readlink().is_relative_to(data):
        return True
    return os.fsencode(data) in (folder / "environ").read_bytes()


def _is_zombie(folder: Path) -> bool:
    return (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _children_of(pid: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in file.read_text().split()]
    return found


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _program(pid: int) -> str | None:
    """Say which program of the supervisor a process is, by its command line."""
    line = _line(pid).replace(b"\0", b" ").decode()
    if worker := re.search(r"manage.py worker (\S+)", line):
        return worker[1]
    marks = {
        "volcano_ui.webhooks": "webhooks",  # before the one whose mark is part of it
        "volcano_ui.web": "web",
        "volcano_ui.apiserver": "apiserver",
        "manage.py beat": "beat",
        "manage.py agent": "agent",
        "manage.py simulator": "simulator",
        "manage.py mirror": "mirror",
        "redis.sock": "redis",
    }
    return next((name for mark, name in marks.items() if mark in line), None)
