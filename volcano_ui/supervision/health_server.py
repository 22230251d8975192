"""`GET /healthz` of an `up` without a web server, for a supervisor outside."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cluster.version import VERSION

PATIENCE_S = 5  # for a client that sends nothing


class HealthServer:
    """Serves what `check` returns: "ok" or a problem by the name of each part; the status is 503 if any part has a problem."""

    def __init__(self, listener: socket.socket, check: Callable[[], Mapping[str, str]]) -> None:
        self._server = ThreadingHTTPServer(listener.getsockname()[:2], _handler(check), bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listener
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()


def _handler(check: Callable[[], Mapping[str, str]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S

        def do_GET(self) -> None:  # the name that BaseHTTPRequestHandler calls
            if self.path != "/healthz":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            parts = check()
            healthy = all(answer == "ok" for answer in parts.values())
            body = json.dumps({"version": VERSION, **parts}).encode()
            self.send_response(HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: probes come every few seconds."""

    return Handler
