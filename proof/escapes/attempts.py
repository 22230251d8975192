from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from node.containers.spawn import Spawner
from node.shim import linux, tree, users
from node.shim.network import Network, Plan
from node.shim.order import Bind, Order, Wall
from proof.harness.waiting import HANG_S, until

PATH = os.environ["PATH"]


def kill_shim_of(claim: Path) -> None:
    """Kill the shim that made a claim and all below it; a process that has its number by now is let alone."""
    pid, ticks = map(int, claim.read_text().split())
    if linux.start_ticks(pid) == ticks:
        for each in [*reversed(tree.below(pid)), pid]:
            tree.send(each, signal.SIGKILL)


@contextlib.contextmanager
def deaf() -> Iterator[int]:
    """A port of this machine at which a connection is neither made nor refused: the queue for them is full."""
    with (
        socket.create_server(("", 0), backlog=0) as full,
        socket.create_connection(("127.0.0.1", full.getsockname()[1])),
    ):
        yield full.getsockname()[1]


def layers(wall: Wall) -> dict[str, Any]:
    """Return what an order says of a wall."""
    return {name: value for name, value in wall._asdict().items() if name in Order._fields}


class Attempts:
    """Runs attempts through a real spawner and reads what their shims leave on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.spawner = Spawner()
        self.layers: dict[str, Any] = {}  # of the wall, for orders that say nothing of them
        self.count = 0
        self.networks: dict[str, Network] = {}
        (root / "work").mkdir()

    def directory(self) -> Path:
        """Make a directory for another attempt."""
        self.count += 1
        path = self.root / "attempts" / str(self.count)
        path.mkdir(parents=True)
        return path

    def start(
        self,
        *argv: str,
        directory: Path | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str = "",
        **fields: Any,
    ) -> Path:
        """Start a command; return its directory. `fields` are the order's, beside those of `layers`."""
        directory = directory or self.directory()
        where = cwd or str(self.root / "work")
        given: dict[str, Any] = {"ids": users.subordinate(0), **self.layers, **fields}
        if given.get("mounts", "none") != "none" and not cwd and "binds" not in self.layers:
            given["binds"] = (*given.get("binds", ()), Bind(where, where))
        return self.begin(Order(str(directory), list(argv), {"PATH": PATH, **(env or {})}, where, **given))

    def begin(self, order: Order) -> Path:
        """Carry an order out; return its directory."""
        self.reply = ""
        notice = self.spawner.start(order, self.network(order.network))
        select.select([notice], [], [], HANG_S)
        self.reply = os.read(notice, 4096).decode()
        os.close(notice)
        return Path(order.directory)

    def network(self, name: str) -> Network | None:
        """Return a network without a way out, the same for the same name."""
        if name and name not in self.networks:
            folder = self.root / "networks" / name
            folder.mkdir(parents=True)
            self.networks[name] = Network.received(self.spawner.start_network(Plan(str(folder), "key")))
        return self.networks.get(name)

    def shell(self, script: str, **fields: Any) -> Path:
        """Start a shell script as `start` does."""
        return self.start("sh", "-c", script, **fields)

    def shim(self, directory: Path) -> int:
        """Return the id of the shim of an attempt."""
        return int((directory / "claim").read_text().split()[0])

    def started(self, directory: Path) -> Mapping[str, Any]:
        """Return what the shim wrote when the command ran."""
        found: Mapping[str, Any] = json.loads((directory / "started.json").read_bytes())
        return found

    def kill_shim(self, directory: Path) -> None:
        os.kill(self.shim(directory), signal.SIGKILL)

    def until_gone(self, pid: int) -> None:
        until(lambda: not linux.start_ticks(pid))

    def stop(self, directory: Path, grace: float = 30.0, reason: str = "Deleted") -> None:
        """Ask an attempt to end."""
        # At once, as the agent does: an earlier signal may be about to be obeyed.
        (directory / "stop.new").write_text(json.dumps({"grace": grace, "reason": reason}))
        (directory / "stop.new").rename(directory / "stop.json")
        os.kill(self.shim(directory), signal.SIGTERM)

    def end(self, directory: Path) -> Mapping[str, Any]:
        """Wait for the end of an attempt; return how it ended."""
        until((directory / "status.json").exists)
        until(lambda: not linux.start_ticks(self.shim(directory)))
        found: Mapping[str, Any] = json.loads((directory / "status.json").read_bytes())
        return found

    def log(self, directory: Path) -> bytes:
        """Return the log of an attempt, as its files have it."""
        return b"".join(path.read_bytes() for path in sorted(directory.glob("log.*")))

    def output(self, directory: Path, stream: str = "stdout") -> bytes:
        """Return what the program wrote, joined from the log's entries."""
        out = b""
        for line in self.log(directory).split(b"\n")[:-1]:
            _, name, tag, data = line.split(b" ", 3)
            if name.decode() == stream:
                out += data + (b"\n" if tag == b"F" else b"")
        return out

    def close(self) -> None:
        """End whatever runs."""
        for network in self.networks.values():
            network.close()
        self.spawner.close()
        for claim in self.root.glob("**/claim"):
            kill_shim_of(claim)
