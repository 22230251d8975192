from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
from pathlib import Path

from node.agent.spawn import Spawner
from node.shim import linux, tree, users
from node.shim.network import Network, Plan
from node.shim.order import Bind, Order
from proof.harness.waiting import HANG_S, until

PATH = os.environ["PATH"]


def kill_shim_of(claim):
    """Kill the shim that made a claim and all below it; a process that has its number by now is let alone."""
    pid, ticks = map(int, claim.read_text().split())
    if linux.start_ticks(pid) == ticks:
        for each in [*reversed(tree.below(pid)), pid]:
            tree.send(each, signal.SIGKILL)


@contextlib.contextmanager
def deaf():
    """A port of this machine at which a connection is neither made nor refused: the queue for them is full."""
    with (
        socket.create_server(("", 0), backlog=0) as full,
        socket.create_connection(("127.0.0.1", full.getsockname()[1])),
    ):
        yield full.getsockname()[1]


def layers(wall):
    """Return what an order says of a wall."""
    return {name: value for name, value in wall._asdict().items() if name in Order._fields}


class Attempts:
    """Runs attempts through a real spawner and reads what their shims leave on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.spawner = Spawner()
        self.layers = {}  # of the wall, for orders that say nothing of them
        self.count = 0
        self.networks = {}
        (root / "work").mkdir()

    def directory(self) -> Path:
        self.count += 1
        path = self.root / "attempts" / str(self.count)
        path.mkdir(parents=True)
        return path

    def start(self, *argv, directory=None, env=None, cwd="", **fields) -> Path:
        directory = directory or self.directory()
        where = cwd or str(self.root / "work")
        given = {"ids": users.subordinate(0), **self.layers, **fields}
        if given.get("mounts", "none") != "none" and not cwd and "binds" not in self.layers:
            given["binds"] = (*given.get("binds", ()), Bind(where, where))
        return self.begin(Order(str(directory), list(argv), {"PATH": PATH} | (env or {}), where, **given))

    def begin(self, order) -> Path:
        """Carry an order out; return its directory."""
        self.said = ""
        notice = self.spawner.start(order, self.network(order.network))
        select.select([notice], [], [], HANG_S)
        self.said = os.read(notice, 4096).decode()
        os.close(notice)
        return Path(order.directory)

    def network(self, name) -> Network | None:
        """Return a network without a way out, the same for the same name."""
        if name and name not in self.networks:
            folder = self.root / "networks" / name
            folder.mkdir(parents=True)
            self.networks[name] = Network.received(self.spawner.start_network(Plan(str(folder), "key")))
        return self.networks.get(name)

    def shell(self, script, **fields) -> Path:
        return self.start("sh", "-c", script, **fields)

    def shim(self, directory) -> int:
        return int((directory / "claim").read_text().split()[0])

    def started(self, directory) -> dict:
        return json.loads((directory / "started.json").read_bytes())

    def kill_shim(self, directory) -> None:
        os.kill(self.shim(directory), signal.SIGKILL)

    def until_gone(self, pid) -> None:
        until(lambda: not linux.start_ticks(pid))

    def stop(self, directory, grace=30.0, reason="Deleted") -> None:
        # At once, as the agent does: an earlier signal may be about to be obeyed.
        (directory / "stop.new").write_text(json.dumps({"grace": grace, "reason": reason}))
        (directory / "stop.new").rename(directory / "stop.json")
        os.kill(self.shim(directory), signal.SIGTERM)

    def end(self, directory) -> dict:
        until((directory / "status.json").exists)
        until(lambda: not linux.start_ticks(self.shim(directory)))
        return json.loads((directory / "status.json").read_bytes())

    def log(self, directory) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(directory.glob("log.*")))

    def output(self, directory, stream="stdout") -> bytes:
        """Return what the program wrote, joined from the log's entries."""
        out = b""
        for line in self.log(directory).split(b"\n")[:-1]:
            _, name, tag, data = line.split(b" ", 3)
            if name.decode() == stream:
                out += data + (b"\n" if tag == b"F" else b"")
        return out

    def close(self) -> None:
        for network in self.networks.values():
            network.close()
        self.spawner.close()
        for claim in self.root.glob("**/claim"):
            kill_shim_of(claim)
