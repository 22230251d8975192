"""The API server: `python -m volcano_ui.apiserver`, on a socket that its parent opened or on one of its own.

It speaks TLS only, because clients do not send tokens over plain HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import resource
import socket

from volcano_ui import heartbeat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")

import ssl

import uvicorn

from apiserver.app import App
from cluster.access.certificates import Certificates

# Clients keep a connection for 90 s (client-go); the server must not be the first to close it.
KEEP_ALIVE_S = 120
LOOK_EVERY_S = 3600.0  # whether the certificate is due, or was replaced
log = logging.getLogger(__name__)


def config(application: App, certificates: Certificates | None = None) -> uvicorn.Config:
    """Return the API server's configuration; without certificates, as in tests, it serves plain HTTP."""
    import uvicorn

    from apiserver.http.slices import Socket
    from apiserver.watch.connection import Connection

    # At INFO it logs each upgrade with its query, in which people put tokens, and commands have secrets.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    return uvicorn.Config(
        application,
        loop="uvloop",
        http=Connection,
        ws=Socket,
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
        ws_per_message_deflate=False,
        # The Python client sends what is written to a command's input as one message.
        ws_max_size=16 * 1024 * 1024,
        # Pings keep connections alive. A client that does not answer is not cut off: the Python client answers only
        # while it reads, and from a client whose input waits for a slow command nothing is read meanwhile.
        ws_ping_timeout=None,
        ssl_certfile=certificates.certificate if certificates else None,
        ssl_keyfile=certificates.key if certificates else None,
    )


def serve(listener: socket.socket, certificates: Certificates) -> None:
    """Serve until SIGTERM."""
    import uvicorn

    from apiserver import handlers, openapi  # noqa: F401  handlers registers who answers what
    from apiserver.app import App
    from apiserver.http import authentication
    from volcano_ui.web import become_server

    become_server()
    openapi.warm()
    # The objects of now stay for ever: each collection would take a tenth of a second to go through them again.
    gc.freeze()
    # Each watch takes a descriptor, and the usual soft limit of 1024 is for programs that use select().
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    tls = config(App(authentication.authenticate), certificates)
    tls.load()
    assert tls.ssl is not None  # noqa: S101  there is a certificate
    with asyncio.Runner(loop_factory=tls.get_loop_factory()) as runner:
        runner.run(_serve(uvicorn.Server(tls), listener, tls.ssl))


async def _serve(server: uvicorn.Server, listener: socket.socket, context: ssl.SSLContext) -> None:
    keeper = asyncio.create_task(keep_certificate(context))
    try:
        async with heartbeat.beating():
            await server.serve(sockets=[listener])
    finally:
        keeper.cancel()


async def keep_certificate(context: ssl.SSLContext, *, every_s: float = LOOK_EVERY_S) -> None:
    """Load a certificate that was renewed, by this system or by an administrator, until cancelled.

    It is loaded in the event loop of the server, so that no client comes between certificate and key.
    """
    from cluster.access import certificates

    served = certificates.current().certificate.stat().st_mtime_ns
    while True:
        await asyncio.sleep(every_s)
        try:
            current = await asyncio.to_thread(certificates.current)
            modified = current.certificate.stat().st_mtime_ns
            if modified != served:
                context.load_cert_chain(current.certificate, current.key)
                served = modified
        except Exception:
            # Half of a new pair may have been written; the next look finds the other half.
            log.exception("the certificate could not be renewed")


def main() -> None:
    """Read the command line and serve."""
    import django

    parser = argparse.ArgumentParser(prog="python -m volcano_ui.apiserver", description=__doc__)
    parser.add_argument("--fd", type=int, help="a listening socket that was inherited")
    options = parser.parse_args()
    django.setup()
    from django.conf import settings

    from cluster.access import certificates
    from volcano_ui.web import listen

    listener = (
        socket.socket(fileno=options.fd) if options.fd is not None else listen(settings.LISTEN, settings.API_PORT)
    )
    serve(listener, certificates.current())


if __name__ == "__main__":
    main()
