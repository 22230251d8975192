"""The server of the admission webhooks: `python -m volcano_ui.webhooks`, on a socket that its parent opened or on one of its own.

It serves once there is a certificate, and loads a new one without a restart.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket

from volcano_ui import heartbeat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")

import ssl

import uvicorn

from cluster.remote.webhooks.served import Served

KEEP_ALIVE_S = 120  # API servers keep connections for 90 s; the server must not be the first to close one


def config(served: Served) -> uvicorn.Config:
    """Return the configuration of the webhooks' server."""
    import uvicorn

    from apiserver.http.bounds import Bounded
    from cluster.remote.webhooks.app import App

    return uvicorn.Config(
        App(),
        loop="uvloop",
        http=Bounded,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=2,
        ssl_certfile=served.certificate,
        ssl_keyfile=served.key,
    )


def serve(listener: socket.socket, served: Served) -> None:
    """Serve until SIGTERM."""
    import uvicorn

    served.await_first()
    served.show()
    tls = config(served)
    tls.load()
    assert tls.ssl is not None  # noqa: S101  there is a certificate
    with asyncio.Runner(loop_factory=tls.get_loop_factory()) as runner:
        runner.run(_serve(uvicorn.Server(tls), listener, served, tls.ssl))


async def _serve(server: uvicorn.Server, listener: socket.socket, served: Served, context: ssl.SSLContext) -> None:
    keeping = asyncio.create_task(served.keep(context))
    try:
        async with heartbeat.beating():
            await server.serve(sockets=[listener])
    finally:
        keeping.cancel()


def main() -> None:
    """Read the command line and serve."""
    import django

    parser = argparse.ArgumentParser(prog="python -m volcano_ui.webhooks", description=__doc__)
    parser.add_argument("--fd", type=int, help="a listening socket that was inherited")
    options = parser.parse_args()
    django.setup()
    from django.conf import settings

    from cluster.remote.door import server
    from cluster.remote.webhooks import hooks
    from cluster.remote.webhooks.keeper import Keeper
    from cluster.remote.webhooks.served import Served
    from volcano_ui.web import listen

    if settings.WEBHOOKS is None:
        parser.error("there are no webhooks; VOLCANO_UI_WEBHOOKS says where the API server is to find them")
    listener = (
        socket.socket(fileno=options.fd)
        if options.fd is not None
        else listen(hooks.interface(settings.WEBHOOKS, settings.LISTEN), settings.WEBHOOK_PORT)
    )
    keeper = Keeper(server.connection, settings.WEBHOOKS)
    serve(listener, Served(keeper, settings.DATA / "run" / "webhooks"))


if __name__ == "__main__":
    main()
