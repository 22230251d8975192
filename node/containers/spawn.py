"""The agent's side of the spawner: start it, hand it orders, start another when it is gone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from node.shim.network import Network, Plan
from node.shim.order import Order, Wall
from node.shim.spawner import HEADER

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from node.shim.spawner import main; main()"


class Spawner:
    """Starts containers by way of a small process with a clean environment."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self, order: Order, network: Network | None = None) -> int:
        """Order one attempt, in a network; return a pipe with "started" or "refused …", which ends with the shim.

        OSError when no spawner can be had, for example because the machine
        has no process or memory left; the attempt has not been started then.
        """
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(writer, True)
        try:
            self._request(b"o", order.encode(), [writer, *(network or ())])
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        return reader

    def start_network(self, plan: Plan) -> socket.socket:
        """Start the keeper of a network; return a line on which it hands that over (see `Network.received`)."""
        line, keeper_end = socket.socketpair()
        with keeper_end:
            try:
                self._request(b"n", json.dumps(plan).encode(), [keeper_end.fileno()])
            except OSError:
                line.close()
                raise
        return line

    def probe(self, staging: Path) -> Wall:
        """Return which layers of a wall round its containers this machine allows."""
        staging.mkdir(parents=True, exist_ok=True)
        return Wall.decode(self._request(b"p", str(staging).encode(), []))

    def close(self) -> None:
        """End the spawner; shims live on."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _request(self, kind: bytes, body: bytes, fds: list[int]) -> str:
        for fresh in (False, True):
            spawner = self._connected()
            try:
                socket.send_fds(spawner, [HEADER.pack(kind, len(body))], fds)
                spawner.sendall(body)
                answer = spawner.recv(100)
            except OSError:
                answer = b""
            if answer:
                return answer.decode().strip()
            # The spawner was killed. Whether it had forked is on disk, and a second shim would be refused.
            self.close()
            if fresh:
                break
        raise OSError("The process that starts containers ended at once; is the machine out of memory or processes?")

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket, spawner_end = socket.socketpair()
            with spawner_end:
                self._process = subprocess.Popen(  # noqa: S603 - nothing in it comes from outside
                    [sys.executable, "-I", "-S", "-c", PROGRAM, str(ROOT)],
                    stdin=spawner_end.fileno(),
                    stdout=subprocess.DEVNULL,
                    env={"PATH": os.defpath},
                    cwd="/",
                    start_new_session=True,  # Ctrl-C in a terminal is for the agent, which then stops in order
                )
        return self._socket
