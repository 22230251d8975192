"""Web servers in the process of a test, which end as soon as the test has done with them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator

import uvicorn

from proof.harness.waiting import HANG_S, until

LOOK_S = 0.002


class Server(uvicorn.Server):
    """uvicorn's looks each 0.1 s whether it is to end, then gives its connections another 0.1 s: for hundreds of tests, minutes."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # they are pytest's

    async def main_loop(self) -> None:
        await self.on_tick(0)  # what it says in each answer
        while not self.should_exit:
            await asyncio.sleep(LOOK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:
                    await asyncio.sleep(LOOK_S)
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()


@contextlib.contextmanager
def in_thread(config: uvicorn.Config, listener: socket.socket) -> Iterator[str]:
    """Serve on a listening socket in a thread for the length of the block; yield the address."""
    server = Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive(), what="the start of a server", every_s=LOOK_S)
        assert server.started
        yield "http://{}:{}".format(*listener.getsockname())
    finally:
        server.should_exit = True
        thread.join(HANG_S)
        listener.close()


@contextlib.asynccontextmanager
async def in_loop(config: uvicorn.Config, listener: socket.socket) -> AsyncIterator[None]:
    """Serve on a listening socket in the running event loop for the length of the block."""
    server = Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        assert not task.done()
        await asyncio.sleep(LOOK_S)
    try:
        yield
    finally:
        server.should_exit = True
        await task
