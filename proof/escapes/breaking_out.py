"""A stage on which `breakouts.py` runs: a state directory, another pod, a process outside, a home; and each wall.

The standard library, node and proof.harness.waiting are all that is imported, so that it can
run for a user who can read nothing else: `python -m proof.escapes.breaking_out FOLDER`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from node.shim.order import Bind, Wall
from proof.escapes.attempts import Attempts
from proof.escapes.breakouts import Given
from proof.harness.waiting import until

# What the other pod runs: it has something to be read, and a port.
OTHER = """
import socket, sys, time
open(sys.argv[1], "w").write("private\\n")
server = socket.create_server(("127.9.9.9", 0))
print(server.getsockname()[1], flush=True)
time.sleep(600)
"""
# What typeshed leaves out: the interpreter itself, not its name in a virtual environment.
INTERPRETER: str = sys._base_executable  # type: ignore[attr-defined]
PROGRAM = Path(__file__).with_name("breakouts.py")
LEAST = Wall("none", 0, False)


def walls(found: Wall) -> dict[str, Wall]:
    """Return the walls to try on a machine that allows what was found, by what they are called."""
    tried = {"no wall": LEAST}
    for mode in dict.fromkeys((found.mounts, "none")):
        has_root = mode != "none"
        whole = found._replace(
            mounts=mode, pids=found.pids and has_root, networks="closed" if found.networks and has_root else ""
        )
        # Root gives no root directory where it can give no processes of their own.
        less: list[dict[str, Any]] = [{"landlock": 0}, {"seccomp": False}]
        if mode != "none":
            less += [{"networks": ""}, *([{"pids": False}] if mode == "user" else [])]
        tried |= {name(wall): wall for wall in (whole, *(whole._replace(**each) for each in less))}
    return tried


def name(wall: Wall) -> str:
    """Return what a wall is called: its layers."""
    mounts = {"root": ["own root, subordinate users"], "user": ["own root"], "none": []}[wall.mounts]
    pids = ["processes"] * wall.pids
    network = ["own network"] * bool(wall.networks)
    landlock, seccomp = ["Landlock"] * bool(wall.landlock), ["filter"] * bool(wall.seccomp)
    return " + ".join(mounts + pids + network + landlock + seccomp) or "no wall"


class Stage:
    """What there is to be reached, below one directory."""

    def __init__(self, root: Path, attempts: Attempts, state: Path | None = None) -> None:
        self.attempts = attempts
        self.home = root / "home"
        self.state = state or self.home / "state"
        self.tools = root / "tools"
        self.own = self.state / "pods" / "own"
        self.work = str(self.own / "work")
        self.other = self.state / "pods" / "other"
        self.count = 0
        self.tmp_socket = f"/tmp/volcano-{os.getpid()}-{root.name}"
        self.machine = root / "srv"  # neither a home, nor the cluster's, nor for temporary files
        self.shared = f"/dev/shm/volcano-{os.getpid()}-{root.name}"
        for path in (
            self.home,
            self.machine / "private",
            self.tools,
            self.own,
            self.other / "work",
            self.other / "volume",
            self.other / "tmp",
        ):
            path.mkdir(parents=True)
        (self.state / "secret-key").write_text("hush")
        (self.state / "victim").write_text("whole")
        for path in (self.home / "file", self.other / "work" / "file", self.other / "volume" / "file"):
            path.write_text("private")
        (self.machine / "file").write_text("the machine's")
        (self.machine / "private").chmod(0o700)
        shutil.copy(PROGRAM, self.tools)
        (self.tools / "tool").write_text("#!/bin/sh\n")
        self.sockets = [self._listen(str(self.state / "socket")), self._listen(str(self.home / "socket"))]
        self.sockets.append(self._listen(str(self.machine / "socket")))
        self.sockets.append(self._listen(self.tmp_socket))
        self.abstract = f"volcano-{os.getpid()}-{root.name}"
        self.sockets.append(self._listen("\0" + self.abstract))
        self.servers = [
            socket.create_server(("127.0.0.1", 0)),
            socket.create_server(("::1", 0), family=socket.AF_INET6),
        ]
        self.address = _address()
        self.servers.append(socket.create_server((self.address, 0)))
        self.ports = [one.getsockname()[1] for one in self.servers]
        self.terminal = os.openpty()
        with (self.state / "secret-key").open() as secret:
            self.outside = subprocess.Popen(
                [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"],
                env={"SECRET": "hush", "PATH": os.environ["PATH"]}, stdin=secret,
                stdout=subprocess.PIPE, cwd=self.state,
            )  # fmt: skip
        self._pipe().readline()

    def _pipe(self) -> IO[bytes]:
        assert self.outside.stdout is not None
        return self.outside.stdout

    def _listen(self, address: str) -> socket.socket:
        found = socket.socket(socket.AF_UNIX)
        found.bind(address)
        found.listen(64)
        return found

    def close(self) -> None:
        self.outside.kill()
        self.outside.wait()
        self._pipe().close()
        for one in (*self.sockets, *self.servers):
            one.close()
        for path in (self.tmp_socket, self.shared):
            Path(path).unlink(missing_ok=True)
        for fd in self.terminal:
            os.close(fd)

    def order(self, wall: Wall, *, whose: Path) -> dict[str, Any]:
        """Return what an order says of a wall, as the agent would."""
        own = [whose / "work"] + [whose / "volume"] * (whose == self.own)
        binds = [Bind(str(path), str(path)) for path in own]
        if wall.mounts != "none":
            binds.append(Bind(str(whose / "tmp"), "/tmp"))
        return {
            "mounts": wall.mounts, "pids": wall.pids, "landlock": wall.landlock, "seccomp": wall.seccomp,
            "state": str(self.state), "read": (str(self.tools), *python()), "binds": tuple(binds),
            "network": whose.name if wall.networks else "",
        }  # fmt: skip

    def reached(self, wall: Wall, setuid: str | Path) -> dict[str, bool]:
        """Run the program behind a wall; return by attack whether it got through."""
        shutil.rmtree(self.own)
        for path in (self.own / "work", self.own / "volume", self.own / "tmp"):
            path.mkdir(parents=True)
        (self.state / "victim").write_text("whole")
        (self.machine / "file").chmod(0o644)
        other = self._start(
            INTERPRETER, "-I", "-c", OTHER, self.shared,
            wall=wall, whose=self.other, env={"SECRET": "private"},
        )  # fmt: skip
        until(lambda: b"\n" in self.attempts.output(other))
        started = self.attempts.started(other)
        other_pid = started.get("root", started["pid"])
        directory = self._directory()
        at: Given = {
            "state": str(self.state), "machine": str(self.machine), "own": self.work, "attempt": str(directory),
            "home": str(self.home), "home_inode": self.home.stat().st_ino,
            "outside": self.outside.pid, "outside_inode": self.state.stat().st_ino,
            "other": str(self.other), "other_pid": other_pid,
            "shared": self.shared, "tmp_socket": self.tmp_socket, "abstract": self.abstract,
            "other_port": int(self.attempts.output(other)), "ports": self.ports,
            "address": self.address, "interfaces": [name for _, name in socket.if_nameindex()],
            "terminal": os.ttyname(self.terminal[1]), "setuid": str(setuid), "tool": str(self.tools / "tool"),
        }  # fmt: skip
        directory = self._start(
            INTERPRETER, "-I", str(self.tools / PROGRAM.name), json.dumps(at),
            wall=wall, whose=self.own, directory=directory,
        )  # fmt: skip
        status = self.attempts.end(directory)
        self.attempts.stop(other, grace=0)
        self.attempts.end(other)
        output = self.attempts.output(directory)
        assert status["exitCode"] == 0, (status, self.attempts.log(directory))
        found: dict[str, bool] = json.loads(output)
        return found

    def _directory(self) -> Path:
        self.count += 1
        path = self.state / "attempts" / str(self.count)
        path.mkdir(parents=True)
        return path

    def _start(
        self, *argv: str, wall: Wall, whose: Path, directory: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Path:
        return self.attempts.start(
            *argv, directory=directory or self._directory(), env=env, cwd="/", **self.order(wall, whose=whose)
        )


def _address() -> str:
    """Return an address of this machine that is not on its loopback, where it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has none
                request = struct.pack("16s16x", name.encode())
                found = socket.inet_ntoa(fcntl.ioctl(asking, 0x8915, request)[20:24])  # SIOCGIFADDR
                if not found.startswith("127."):
                    return found
    return "127.0.0.2"


def python() -> tuple[str, ...]:
    """Return what a program in Python needs, wherever that is installed."""
    base = Path(sys.base_prefix).resolve()
    return () if base == Path("/usr") else (str(base / "bin"), str(base / "lib"))


def table(folder: Path, setuid: str | Path) -> dict[str, dict[str, bool]]:
    """Return by wall and attack whether it got through, for the user who runs this."""
    attempts = Attempts(folder)
    try:
        found = attempts.spawner.probe(folder / "probe")
        with contextlib.closing(Stage(folder, attempts)) as stage:
            return {words: stage.reached(wall, setuid) for words, wall in walls(found).items()}
    finally:
        attempts.close()


def make_setuid(folder: Path) -> Path:
    """Return a program that says whose rights it has and would give root's: `id` with the setuid bit."""
    path = folder / "id"
    shutil.copy(shutil.which("id") or "/usr/bin/id", path)
    path.chmod(0o755 | stat.S_ISUID)
    return path


if __name__ == "__main__":
    json.dump(table(Path(sys.argv[1]), sys.argv[2]), sys.stdout)
