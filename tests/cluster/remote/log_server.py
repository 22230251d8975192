"""A server that hands out logs of pods as API servers do, over HTTP: by the last lines, from a second on, with times."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from kube.meta import now_text, parse_time
from tests.cluster.remote.servers import Handler, Server, connected


class LogServer(Server):
    """Its `logs` hold (epoch µs, line) by pod's name, container and whether the run before is meant.

    `refused` has the HTTP code and message with which the log of a pod is refused, `heard` what was asked.
    """

    def __init__(self):
        super().__init__(LogHandler)
        self.logs, self.refused, self.heard, self.zone = {}, {}, [], "Z"

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


class LogHandler(Handler):
    def do_GET(self):  # noqa: N802
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        pod = parts.path.split("/")[-2]
        self.server.heard.append((pod, query))
        if pod in self.server.refused:
            self.refuse(*self.server.refused[pod])
        else:
            self.say(200, b"".join(line + b"\n" for line in self.server.answer(pod, query)))


def serving(folder, settings):
    """A server of logs to which this process is connected."""
    return connected(LogServer(), folder, settings)
