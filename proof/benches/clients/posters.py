"""Clients that create objects one by one, in a process of their own: `python -m proof.benches.clients.posters`.

The order comes as a line of JSON. Prints "ready" once every connection
stands; reads a line from its input to begin. Each connection is kept alive
and posts the next object as soon as the one before is answered. Prints as JSON
how long all of it took, each answer's latency and the processor time that
this process used, which says how much of the machine the asking took.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Mapping
from typing import Any

import uvloop

NAME = "the-name"  # in the body, where each object's own comes


class Poster(asyncio.Protocol):
    """One connection, on which one request is under way at a time."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.rest = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # it can write, and uvloop's is no asyncio.Transport by its class
        self.transport = transport

    def post(self) -> None:
        """Send the next request; without one, end."""
        message = self.work.next()
        if message is None:
            self.done.set_result(None)
            return
        self.begun = time.perf_counter()
        self.transport.write(message)

    def data_received(self, data: bytes) -> None:
        self.rest += data
        head, found, body = self.rest.partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return
        self.work.latencies.append(time.perf_counter() - self.begun)
        self.rest = b""
        if not head.startswith(b"HTTP/1.1 201"):
            self.done.set_exception(AssertionError(f"{head!r} {body[:500]!r}"))
            return
        self.post()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(AssertionError(f"the server closed a connection: {error}"))


class Work:
    """The objects that are left to create, and how long those took that are there."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.prefix: str = order["prefix"]
        self.left: int = order["count"]
        self.latencies: list[float] = []
        body: str = order["body"]
        before, name, after = body.partition(NAME)
        assert name, "the body names its object"
        length = len(before.encode()) + len(self._name()) + len(after.encode())
        head = (
            f"POST {order['path']} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {order['secret']}\r\nContent-Length: {length}\r\n\r\n"
        )
        self.before, self.after = (head + before).encode(), after.encode()

    def next(self) -> bytes | None:
        """The next request; None when there is nothing left."""
        if not self.left:
            return None
        self.left -= 1
        return self.before + self._name() + self.after

    def _name(self) -> bytes:
        return f"{self.prefix}-{self.left:07}".encode()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise AssertionError(f"an answer without its length: {head!r}")


async def main(order: Mapping[str, Any]) -> None:
    context = ssl.create_default_context(cafile=order["ca"])
    work, loop = Work(order), asyncio.get_running_loop()
    posters = []
    for _ in range(order["clients"]):
        _, poster = await loop.create_connection(lambda: Poster(work), "127.0.0.1", order["port"], ssl=context)
        posters.append(poster)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    begun, used = time.perf_counter(), time.process_time()
    for poster in posters:
        poster.post()
    await asyncio.gather(*(poster.done for poster in posters))
    took, used = time.perf_counter() - begun, time.process_time() - used
    json.dump({"took_s": took, "cpu_s": used, "latencies": work.latencies}, sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.stdin.readline())))
