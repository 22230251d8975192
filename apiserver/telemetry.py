"""What the API server counts about itself, and `/metrics` in Prometheus' text format.

The names are those of kube-apiserver, so that existing dashboards read them.
A series exists for each verb, resource and code that was seen; the number of
series is bounded, because resources can be made by users.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.responses import Response

from apiserver.http import routes, threads
from apiserver.http.request import Request
from cluster import exposition
from cluster.access.roles import METRICS
from cluster.exposition import head, sample

BUCKETS_S = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0, 2.0, 5.0, 15.0, 60.0)
MAX_SERIES = 2000
OTHER = "other"  # the resource of what came after the most
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LONG_RUNNING = frozenset({"watch", "connect", "proxy"})
READING = frozenset({"get", "list", "watch"})

Labels = dict[str, str]


class Histogram:
    """How many requests took how long."""

    __slots__ = ("buckets", "sum_s")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one request."""
        self.buckets[bisect_left(BUCKETS_S, seconds)] += 1
        self.sum_s += seconds


class Telemetry:
    """The counters of one process; any thread may use them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._latencies: dict[tuple[str, str], Histogram] = {}
        self._running: dict[str, int] = {"readOnly": 0, "mutating": 0}
        self._watches: dict[str, int] = defaultdict(int)
        self._counters: list[tuple[str, str, Callable[[], int]]] = []

    def counter(self, name: str, text: str, read: Callable[[], int]) -> None:
        """Show a number that somebody else counts."""
        self._counters.append((name, text, read))

    def observe(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Count a request that was answered; that of a watch or stream has ended, its time tells nothing."""
        with self._lock:
            if len(self._requests) >= MAX_SERIES and (verb, resource, code) not in self._requests:
                resource = OTHER
            self._requests[verb, resource, code] += 1
            if verb not in LONG_RUNNING:
                histogram = self._latencies.get((verb, resource))
                if histogram is None:
                    histogram = self._latencies[verb, resource] = Histogram()
                histogram.observe(seconds)

    @contextmanager
    def inflight(self, verb: str) -> Iterator[None]:
        """Count a request as being worked on."""
        kind = "readOnly" if verb in READING else "mutating"
        self._add(self._running, kind, 1)
        try:
            yield
        finally:
            self._add(self._running, kind, -1)

    @contextmanager
    def watching(self, resource: str) -> Iterator[None]:
        """Count a watch as open."""
        self._add(self._watches, resource, 1)
        try:
            yield
        finally:
            self._add(self._watches, resource, -1)

    def _add(self, gauge: dict[str, int], key: str, change: int) -> None:
        with self._lock:
            gauge[key] += change

    def text(self) -> str:
        """Return everything in Prometheus' text format."""
        with self._lock:
            return "".join(f"{line}\n" for line in (*self._counts(), *self._durations(), *self._gauges()))

    def _counts(self) -> Iterator[str]:
        name = "apiserver_request_total"
        yield from head(name, "counter", "Requests answered, by verb, resource and HTTP code.")
        for (verb, resource, code), count in sorted(self._requests.items()):
            yield sample(name, {"code": str(code), **_names(verb, resource)}, count)

    def _durations(self) -> Iterator[str]:
        name = "apiserver_request_duration_seconds"
        yield from head(name, "histogram", "How long requests took, without watches and streams.")
        for (verb, resource), histogram in sorted(self._latencies.items()):
            labels = _names(verb, resource)
            total = 0
            for bound, count in zip((*BUCKETS_S, "+Inf"), histogram.buckets, strict=True):
                total += count
                yield sample(f"{name}_bucket", {**labels, "le": str(bound)}, total)
            yield sample(f"{name}_sum", labels, round(histogram.sum_s, 6))
            yield sample(f"{name}_count", labels, total)

    def _gauges(self) -> Iterator[str]:
        name = "apiserver_current_inflight_requests"
        yield from head(name, "gauge", "Requests being worked on.")
        for kind, count in sorted(self._running.items()):
            yield sample(name, {"request_kind": kind}, count)
        name = "apiserver_longrunning_requests"
        yield from head(name, "gauge", "Watches that are open.")
        for resource, count in sorted(self._watches.items()):
            yield sample(name, _names("watch", resource), count)
        for name, text, read in self._counters:
            yield from head(name, "counter", text)
            yield f"{name} {read()}"


telemetry = Telemetry()
observe = telemetry.observe
inflight = telemetry.inflight
watching = telemetry.watching
counter = telemetry.counter


def _names(verb: str, resource: str) -> Labels:
    """Return the labels of a verb and a resource's id, which may name a subresource: `pods/log`."""
    name, _, part = resource.partition("/")
    plural, _, group = name.partition(".")
    return {"verb": verb.upper(), "group": group, "resource": plural, "subresource": part}


@routes.path("/metrics", right=METRICS)
async def metrics(request: Request) -> Response:
    """Answer with the counters of this process, and with what others have for the actor (`cluster.exposition`)."""
    lines = await threads.read(exposition.lines, request.actor)
    return Response(telemetry.text() + "".join(f"{line}\n" for line in lines), media_type=CONTENT_TYPE)
