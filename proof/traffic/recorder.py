"""A proxy between clients and an API server that writes down each request and its answer.

Clients reach it over plain HTTP and with no credentials; it asks as an administrator. Whom a client acts as
(`kubectl --as`) is passed on and written down.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from proof.traffic.exchange import Exchange, is_watch
from proof.traffic.symbols import Symbols

LARGEST = 65536  # bytes of an answer that is kept: what is larger is OpenAPI
STARTING = b"storage is (re)initializing"  # said of a kind for a moment after its definition was written
PROTOBUF = "application/vnd.kubernetes.protobuf"
ENDS_HERE = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding", "host", "if-none-match"}
)


class Recorder:
    """Records what passes; use it as a context manager, and set `client` and `command` before something is asked."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.client = self.command = ""
        self._target, self._context = port, context
        self._exchanges: list[tuple[Exchange, bytes, list[bytes]]] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.recorder = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Recorder:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def connection(self) -> http.client.HTTPSConnection:
        """Return a connection to the API server."""
        return http.client.HTTPSConnection("127.0.0.1", self._target, context=self._context)

    def begin(self, exchange: Exchange, body: bytes) -> list[bytes]:
        """Note a request at its turn; return the list to which its answer is to be added piece by piece."""
        pieces: list[bytes] = []
        self._exchanges.append((exchange, body, pieces))
        return pieces

    def is_watched(self) -> bool:
        """Whether somebody watches by what is done now."""
        return any(is_watch(each.path) and each.status and each.command == self.command for each, *_ in self._exchanges)

    def recording(self) -> list[Exchange]:
        """Return what was recorded, with symbols; reads that were answered the same before are only counted."""
        symbols, exchanges = Symbols(), dict[str, Exchange]()
        numbers = itertools.count()
        for exchange, body, pieces in self._exchanges:
            if not exchange.status:
                continue  # who asked went away before it was answered
            answer = b"".join(pieces)
            if exchange.status == http.client.TOO_MANY_REQUESTS and STARTING in answer:
                continue  # nor has it been answered: the client asks again until the server has started
            _symbolize(exchange, body, answer, symbols)
            is_read = exchange.method == "GET" and not is_watch(exchange.path)
            key = json.dumps([exchange.client, *_seen(exchange)]) if is_read else str(next(numbers))
            if key in exchanges:
                exchanges[key].times += 1
            else:
                exchanges[key] = exchange
        return list(exchanges.values())


def _seen(exchange: Exchange) -> Iterator[Any]:
    for each in ("method", "path", "accept", "user", "groups", "status", "answer_type", "warnings", "answer"):
        yield getattr(exchange, each)


def _symbolize(exchange: Exchange, body: bytes, answer: bytes, symbols: Symbols) -> None:
    content = _read(body, exchange.content_type)
    exchange.path = symbols.path(exchange.path)
    exchange.body = symbols.requested(content)
    exchange.is_left_out = len(answer) > LARGEST or exchange.answer_type.startswith(PROTOBUF)
    if exchange.is_left_out:
        return
    if is_watch(exchange.path) and exchange.status == http.client.OK:
        found = [json.loads(line) for line in answer.splitlines()]
    else:
        found = _read(answer, exchange.answer_type)
    symbols.note_name(content, found)
    exchange.answer = symbols.answered(found)


def _read(body: bytes, media_type: str) -> Any:
    if not body:
        return None
    if PROTOBUF in media_type:
        return base64.b64encode(body).decode()
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    recorder: Recorder


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        recorder = self.server.recorder
        exchange = Exchange(
            client=recorder.client,
            command=recorder.command,
            method=self.command,
            path=self.path,
            accept=self.headers.get("Accept", ""),
            content_type=self.headers.get("Content-Type", "") if body else "",
            agent=self.headers.get("User-Agent", "").partition(" ")[0],
            user=self.headers.get("Impersonate-User", ""),
            groups=self.headers.get_all("Impersonate-Group") or [],
        )
        pieces = recorder.begin(exchange, body)
        with contextlib.closing(recorder.connection()) as upstream:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ENDS_HERE}
            upstream.request(self.command, self.path, body or None, headers)
            answer = upstream.getresponse()
            exchange.answer_type = answer.headers.get("Content-Type", "")
            exchange.warnings = answer.headers.get_all("Warning") or []
            exchange.status = answer.status
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in ENDS_HERE:
                    self.send_header(name, value)
            if is_watch(self.path):
                self._stream(upstream, answer, pieces)
            else:
                pieces.append(answer.read())
                self.send_header("Content-Length", str(len(pieces[0])))
                self.end_headers()
                self.wfile.write(pieces[0])

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _pass_on  # noqa: N815  as http.server calls them

    def _stream(
        self, upstream: http.client.HTTPSConnection, answer: http.client.HTTPResponse, pieces: list[bytes]
    ) -> None:
        """Pass an answer on as it comes, until either side has done."""
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        threading.Thread(target=self._until_closed, args=(upstream.sock,), daemon=True).start()
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            while piece := answer.read1(LARGEST):
                if _is_closed(self.connection):
                    return
                pieces.append(piece)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

    def _until_closed(self, upstream: socket.socket) -> None:
        """End what the server sends when the client has gone."""
        with contextlib.suppress(OSError, ValueError):
            select.select([self.connection], [], [])
            upstream.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


def _is_closed(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0)[0])


def context(certificate: tuple[Path, Path], authority: Path) -> ssl.SSLContext:
    """Return how the API server is asked by who has a certificate."""
    found = ssl.create_default_context(cafile=authority)
    found.load_cert_chain(*certificate)
    return found
