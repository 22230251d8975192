"""Many watches in a process of their own: `python -m proof.benches.clients.watchers`, with its order as a line of JSON.

Prints "ready" once every watch has its headers. Reads a line from its input
to stop, then prints as JSON, for each watch, when it had which revision.
Does as little as it can with a line, because it shares the machine with what
is measured.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
import time
from collections.abc import Mapping
from typing import Any

import uvloop

REVISION = re.compile(rb'"resourceVersion":"(\d+)"')
OPENING = 20  # connections that are opened at a time


class Watch(asyncio.Protocol):
    """One watch, read as it comes."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.headers: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lost = False
        self.rest = b""
        self.arrivals: dict[int, float] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # it can write, and uvloop's is no asyncio.Transport by its class
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        if not self.headers.done():
            head, found, data = (self.rest + data).partition(b"\r\n\r\n")
            if not found:
                self.rest = head
                return
            self.rest = b""
            assert head.startswith(b"HTTP/1.1 200"), head
            self.headers.set_result(None)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if named := REVISION.search(line):
                self.arrivals.setdefault(int(named[1]), now)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True


async def main(order: Mapping[str, Any]) -> None:
    context = ssl.create_default_context(cafile=order["ca"])
    opening = asyncio.Semaphore(OPENING)
    watches: list[Watch] = []

    async def open_one(number: int) -> None:
        path, accept = order["kinds"][number % len(order["kinds"])]
        path += ("&" if "?" in path else "?") + f"watch=true&resourceVersion={order['revision']}"
        request = (
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n"
            f"Authorization: Bearer {order['secret']}\r\n\r\n"
        )
        async with opening:
            _, watch = await asyncio.get_running_loop().create_connection(
                lambda: Watch(request.encode()), "127.0.0.1", order["port"], ssl=context
            )
            await watch.headers
        watches.append(watch)

    await asyncio.gather(*(open_one(number) for number in range(order["count"])))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    lost = sum(watch.lost for watch in watches)
    json.dump({"lost": lost, "arrivals": [list(watch.arrivals.items()) for watch in watches]}, sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.stdin.readline())))
