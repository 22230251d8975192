"""The web server: `python -m volcano_ui.web`, on a socket that its parent opened or on one of its own."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
from typing import Any

import uvicorn

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise OSError if the address is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Only listening reserves the port: two sockets with SO_REUSEADDR may be bound to it.
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def reserve(host: str, port: int) -> socket.socket:
    """Return a socket that is bound and does not listen: nobody else can use the address, and connections are refused.

    Raise OSError if the address is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    reserved = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            reserved.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # Without SO_REUSEADDR, with which another socket could be bound to it as well.
        reserved.bind((host, port))
    except OSError:
        reserved.close()
        raise
    return reserved


def become_server() -> None:
    """Move what a server's clients would wait for at each write to a thread, and to other processes."""
    from cluster.runtime import nudge
    from cluster.store.connections import leave_checkpoints_to_workers

    nudge.from_a_thread()
    leave_checkpoints_to_workers()


def config(application: Any = "volcano_ui.asgi:application", *, is_behind_front: bool = False) -> uvicorn.Config:
    """Return the configuration of a server for an application.

    Client and scheme are taken from headers of the front of several clusters, and otherwise only from those of
    proxies that the settings name: any program on this machine could send such headers.
    """
    # Imported late: `up` needs `listen` alone.
    import uvicorn
    from django.conf import settings

    from apiserver.http.bounds import Bounded
    from apiserver.http.slices import Socket

    return uvicorn.Config(
        application,
        loop="uvloop",
        http=Bounded,
        ws=Socket,
        lifespan="off",
        log_config=None,
        access_log=False,
        # Compression costs each socket some 100 KB, and broadcasts to hundreds most of their time.
        ws_per_message_deflate=False,
        # The live socket refuses far smaller messages; this bounds what is read before it can.
        ws_max_size=64 * 1024,
        timeout_graceful_shutdown=2,
        proxy_headers=is_behind_front or bool(settings.TRUSTED_PROXIES),
        # The front and this web server are two ends of a socket that nobody else can open.
        forwarded_allow_ips="*" if is_behind_front else settings.TRUSTED_PROXIES,
    )


def serve(listener: socket.socket) -> None:
    """Serve the pages until SIGTERM."""
    become_server()
    behind = listener.family == socket.AF_UNIX
    run(config(is_behind_front=behind), listener)


def run(configuration: uvicorn.Config, listener: socket.socket) -> None:
    """Serve until SIGTERM, and give signs of life."""
    import uvicorn

    from volcano_ui import heartbeat

    async def serving() -> None:
        async with heartbeat.beating():
            await uvicorn.Server(configuration).serve(sockets=[listener])

    with asyncio.Runner(loop_factory=configuration.get_loop_factory()) as runner:
        runner.run(serving())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m volcano_ui.web", description=__doc__)
    parser.add_argument("--fd", type=int, help="a listening socket that was inherited")
    options = parser.parse_args()
    if options.fd is not None:
        serve(socket.socket(fileno=options.fd))
        return
    from django.conf import settings

    serve(listen(settings.LISTEN, settings.PORT))


if __name__ == "__main__":
    main()
