"""A server that hands out logs of pods as API servers do, over HTTP: by the last lines, from a second on, with times."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import yaml

from cluster.remote import server, target
from kube.meta import now_text, parse_time
from tests.cluster.remote.answering import Quiet


class LogServer(ThreadingHTTPServer):
    """Its `logs` hold (epoch µs, line) by pod's name, container and whether the run before is meant.

    `refused` has the HTTP code and message with which the log of a pod is refused, `heard` what was asked.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.logs, self.refused, self.heard, self.zone = {}, {}, [], "Z"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def log(self, pod, container="main", *, previous=False):
        return self.logs.setdefault((pod, container, previous), [])

    def write(self, pod, *lines, container="main", previous=False):
        """Add lines, each with its time in seconds of one minute."""
        begin = parse_time("2026-11-01T00:00:00Z") * 1000
        for second, text in lines:
            self.log(pod, container, previous=previous).append((begin + round(second * 1_000_000), text.encode()))

    def answer(self, pod, query):
        """Return the lines that are asked for, chosen as kubelets choose them: the last ones, and of these the late ones."""
        lines = self.log(pod, query["container"], previous="previous" in query)
        if "tailLines" in query:
            lines = lines[-int(query["tailLines"]) :]
        since = parse_time(query["sinceTime"]) * 1000 if "sinceTime" in query else 0
        return [self.text(*line) for line in lines if line[0] >= since]

    def text(self, moment, line):
        seconds, micros = divmod(moment, 1_000_000)
        if self.zone == "+02:00":
            seconds += 7200
        return f"{now_text(seconds * 1000)[:19]}.{micros:06d}000{self.zone} ".encode() + line


class Handler(Quiet, BaseHTTPRequestHandler):
    """Answers each request on a connection of its own, so that nothing is answered once the server is closed."""

    def do_GET(self):
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        pod = parts.path.split("/")[-2]
        self.server.heard.append((pod, query))
        if pod in self.server.refused:
            code, message = self.server.refused[pod]
            self.say(code, {"kind": "Status", "message": message, "code": code})
        else:
            self.say(200, b"".join(line + b"\n" for line in self.server.answer(pod, query)))

    def handle(self):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who has enough hangs up
            super().handle()


@contextlib.contextmanager
def serving(folder, settings):
    """A server of logs to which this process is connected."""
    with connected(LogServer(), folder, settings) as running:
        yield running


@contextlib.contextmanager
def connected(running, folder, settings):
    """Connect this process to a server until the end of the test, and stop that then."""
    file = folder / "kubeconfig"
    cluster = {"server": f"http://127.0.0.1:{running.server_port}"}
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "dev",
            }
        )
    )
    settings.TARGET, settings.DATA = target.find(str(file), ""), folder
    server.connection.cache_clear()
    try:
        yield running
    finally:
        server.connection.cache_clear()
        running.shutdown()
        running.server_close()
