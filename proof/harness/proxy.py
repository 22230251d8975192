"""A proxy of TCP connections that cuts them: a network that fails in the middle of things."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from random import Random
from typing import Self

QUIET_S = 0.05  # what comes after such a pause is the next thing that happened


class CuttingProxy:
    """Forwards connections to a port of this machine; while it is `cutting`, it drops each at the first thing told after a pause.

    What is told then passes whole or in half. `cuts` counts the connections that were dropped.
    """

    def __init__(self, port: int, *, seed: int = 0) -> None:
        self.target = port
        self.cutting = False
        self.cuts = 0
        self.random = Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    client.close()
                    continue
                for one, other, is_response in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pump, args=(one, other, is_response), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_response: bool) -> None:
        last = time.monotonic()
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                before, last = last, time.monotonic()
                if is_response and self.cutting and last - before > QUIET_S:
                    self.cuts += 1
                    target.sendall(data if self.random.random() < 0.5 else data[: len(data) // 2])
                    break
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
