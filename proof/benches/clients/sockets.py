"""Many live sockets in a process of their own: `python -m proof.benches.clients.sockets URL COOKIE TOPIC COUNT`.

Prints "ready" once every socket has the whole topic. Reads a line from its
input to stop, then prints as JSON, for each socket, the times at which it
received which revision. Does as little as it can with a message, because it
shares the machine with what is measured.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

import uvloop
import websockets
from websockets.typing import Origin

REVISION = re.compile(rb'"revision":(\d+)')
PARTS = b'{"op":"parts"'


OPENING = 20  # sockets that are opened at a time


async def follow(
    url: str, cookie: str, topic: str, opening: asyncio.Semaphore, arrivals: list[tuple[float, int]]
) -> None:
    """Follow a topic and note when which revision came; leaves `opening` with the first one."""
    origin = url.replace("ws", "http", 1).partition("/live/")[0]
    await opening.acquire()
    async with websockets.connect(
        url, additional_headers={"Cookie": cookie}, origin=Origin(origin), compression=None, max_size=None
    ) as socket:
        await socket.send(json.dumps({"op": "subscribe", "id": topic, "topic": topic, "revision": 0}))
        while True:
            message = await socket.recv(decode=False)
            if message.startswith(PARTS):
                now, found = time.time(), REVISION.search(message, 0, 4000)
                assert found is not None, message[:4000]
                arrivals.append((now, int(found[1])))
                if len(arrivals) == 1:
                    opening.release()


async def main(url: str, cookie: str, topic: str, count: int) -> None:
    opening = asyncio.Semaphore(OPENING)
    arrivals: list[list[tuple[float, int]]] = [[] for _ in range(count)]
    tasks = [asyncio.create_task(follow(url, cookie, topic, opening, each)) for each in arrivals]
    while not all(arrivals):
        await asyncio.sleep(0.05)
        if ended := [task for task in tasks if task.done()]:
            ended[0].result()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    lost = sum(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    json.dump({"lost": lost, "arrivals": arrivals}, sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
