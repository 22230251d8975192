"""The front of several clusters: `python -m volcano_ui.front` listens on the port and forwards each request.

Each cluster has a web server of its own, on a Unix socket; the beginning of the
path names the cluster (`cluster.several.addresses`). The front uses neither
accounts nor a database. The web servers trust its headers about the client.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from html import escape
from logging.config import dictConfig
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import ClientError, ClientSession, UnixConnector, WSMsgType, WSServerHandshakeError
from yarl import URL

from cluster.several import addresses

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
Headers = list[tuple[str, str]]

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")

CONNECT_S = 5
# RFC 9110 §7.6.1: headers for one connection, which are not forwarded.
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# The front answers the first and sets the others; those of a request count only from a trusted proxy of the settings.
SET_HERE = frozenset({b"expect", b"x-forwarded-for", b"x-forwarded-proto"})
SECURE = frozenset({"https", "wss"})
AUTOMATIC = frozenset({"Accept", "Accept-Encoding", "Content-Type", "User-Agent"})  # headers that aiohttp would add
AWAY = 1013  # "try again later"
UNSENDABLE = frozenset({1005, 1006, 1015})  # codes for sockets that ended without one (RFC 6455 §7.4.1)
NO_CLUSTER = "There is no such cluster"
MISTYPED = "The address is mistyped, or it was renamed."
log = logging.getLogger(__name__)
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">{refresh}<title>{title} · Volcano UI</title></head>
<body><main><h1>{title}</h1><p>{text}</p><ul>{links}</ul></main></body></html>
"""


class Front:
    """An ASGI application in front of web servers, by the names of their clusters; the first one is home."""

    def __init__(self, sockets: Mapping[str, Path]) -> None:
        self._sockets = sockets
        self._home = next(iter(sockets))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["raw_path"].decode("latin-1")
        if scope["type"] == "websocket":
            name = addresses.route(path, self._sockets, self._home).name
            await (
                self._forward_socket(name, scope, receive, send)
                if name
                else _refuse(send, 404, f"{NO_CLUSTER}. {MISTYPED}")
            )
        elif path == "/healthz":
            await _answer(send, 200, "text/plain", "ok")
        else:
            await self._request(path, scope, receive, send)

    async def _request(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        name, moved = addresses.route(path, self._sockets, self._home)
        if moved:
            query = scope["query_string"].decode("latin-1")
            address = f"{moved}?{query}" if query else moved
            await _answer(send, 307, "text/plain", address, [(b"location", address.encode("latin-1"))])
        elif not name:
            await self._answer_page(send, 404, NO_CLUSTER, MISTYPED)
        else:
            await self._forward(name, scope, receive, send)

    async def _forward(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False
        has_body = any(each in (b"content-length", b"transfer-encoding") for each, _ in scope["headers"])
        try:
            async with (
                self._session(name) as session,
                session.request(
                    scope["method"],
                    _address(scope),
                    headers=_headers(scope),
                    data=_body(receive) if has_body else None,
                    allow_redirects=False,
                    skip_auto_headers=AUTOMATIC,
                ) as answer,
            ):
                headers = [pair for pair in answer.raw_headers if pair[0].lower() not in HOP_BY_HOP]
                begun = True
                await send({"type": "http.response.start", "status": answer.status, "headers": headers})
                async for data in answer.content.iter_any():
                    await send({"type": "http.response.body", "body": data, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except (ClientError, TimeoutError) as error:
            if begun:
                # A part of the response was sent already: uvicorn cuts the connection.
                log.warning("a response of %s broke off: %s", name, error)
                return
            text = f"The pages of {name} do not run at present. They are started again by themselves; this page reloads every few seconds."
            await self._answer_page(send, 503, f"{name} is not running", text, again=True)

    async def _forward_socket(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        begun = False
        headers = [(each, value) for each, value in _headers(scope) if not each.startswith("sec-websocket-")]
        try:
            async with (
                self._session(name) as session,
                session.ws_connect(
                    _address(scope), headers=headers, protocols=scope["subprotocols"], max_msg_size=0
                ) as upstream,
            ):
                begun = True
                await send({"type": "websocket.accept", "subprotocol": upstream.protocol})
                await _pump(upstream, receive, send)
        except WSServerHandshakeError as error:
            await _refuse(send, error.status, f"The web server of {name} refuses this socket.")
        except (ClientError, TimeoutError):
            if begun:
                await send({"type": "websocket.close", "code": AWAY})
            else:
                await _refuse(send, 503, f"{name} is not running at present.")

    def _session(self, name: str) -> ClientSession:
        """Return a session for one request to a cluster's web server: a connection to a local socket costs almost nothing."""
        return ClientSession(
            connector=UnixConnector(str(self._sockets[name]), force_close=True),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def _answer_page(self, send: Send, status: int, title: str, text: str, *, again: bool = False) -> None:
        links = "".join(f'<li><a href="/{addresses.prefix(name)}">{escape(name)}</a></li>' for name in self._sockets)
        refresh = '<meta http-equiv="refresh" content="5">' if again else ""
        page = PAGE.format(title=escape(title), text=escape(text), links=links, refresh=refresh)
        headers = [(b"content-security-policy", b"default-src 'none'"), (b"cache-control", b"no-store")]
        await _answer(send, status, "text/html; charset=utf-8", page, headers)


async def _pump(upstream: aiohttp.ClientWebSocketResponse, receive: Receive, send: Send) -> None:
    """Forward messages in both directions until one side closes, and close the other."""
    outward = asyncio.create_task(_to_browser(upstream, send))
    inward = asyncio.create_task(_from_browser(upstream, receive))
    done, pending = await asyncio.wait({outward, inward}, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for task in done:
        task.result()
    if inward in pending:
        with suppress(RuntimeError):  # the browser was quicker
            await send({"type": "websocket.close", "code": close_code(upstream.close_code)})


def close_code(code: int | None) -> int:
    """Return the code with which the browser's socket is closed, given that of the web server's."""
    return AWAY if code is None or code in UNSENDABLE else code


async def _to_browser(upstream: aiohttp.ClientWebSocketResponse, send: Send) -> None:
    async for message in upstream:
        kind = "text" if message.type is WSMsgType.TEXT else "bytes"
        await send({"type": "websocket.send", kind: message.data})


async def _from_browser(upstream: aiohttp.ClientWebSocketResponse, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            await upstream.close()
            return
        if message.get("text") is not None:
            await upstream.send_str(message["text"])
        else:
            await upstream.send_bytes(message["bytes"])


def _address(scope: Scope) -> URL:
    """Return the address as the browser wrote it; the host is in the headers."""
    query = scope["query_string"].decode("latin-1")
    path = scope["raw_path"].decode("latin-1")
    return URL(f"http://cluster{path}{'?' + query if query else ''}", encoded=True)


def _headers(scope: Scope) -> Headers:
    # aiohttp writes them as UTF-8.
    left_out = HOP_BY_HOP | SET_HERE
    headers = [
        (name.decode("latin-1"), value.decode(errors="replace"))
        for name, value in scope["headers"]
        if name not in left_out
    ]
    headers.append(("x-forwarded-proto", "https" if scope["scheme"] in SECURE else "http"))
    client = scope.get("client")
    return [*headers, ("x-forwarded-for", client[0])] if client else headers


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise aiohttp.ClientConnectionError("the browser is gone")
        yield message.get("body", b"")
        more = message.get("more_body", False)


async def _answer(
    send: Send,
    status: int,
    kind: str,
    text: str,
    headers: Iterable[tuple[bytes, bytes]] = (),
    to: str = "http.response",
) -> None:
    body = text.encode()
    length = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": f"{to}.start", "status": status, "headers": [*length, *headers]})
    await send({"type": f"{to}.body", "body": body})


async def _refuse(send: Send, status: int, why: str) -> None:
    """Answer the request for a socket with a status and the reason."""
    await _answer(send, status, "text/plain; charset=utf-8", f"{why}\n", to="websocket.http.response")


def main() -> None:
    from django.conf import settings

    from volcano_ui import sockets, web

    parser = argparse.ArgumentParser(prog="python -m volcano_ui.front", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="a listening socket that was inherited")
    listener = socket.socket(fileno=parser.parse_args().fd)
    dictConfig(settings.LOGGING)
    front = Front({each.name: sockets.of_cluster(settings.STATE, each.name) for each in settings.CLUSTERS})
    config = web.config(front)
    # The web servers behind it set these headers.
    config.server_header = config.date_header = False
    web.run(config, listener)


if __name__ == "__main__":
    main()
