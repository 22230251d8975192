"""How long a committed change takes to those who watch it, over TLS on loopback, beside the running controllers.

Changes of pods are committed to the store, 200 each second, and fifty
watchers in a process of their own note when each line has come.

* plain: fifty watch the same pods as kubectl and controllers do.
* mixed: all forms and selectors at once: ten plain, ten of all namespaces,
  ten with a label selector, ten as tables, ten as metadata alone.
* idle: what open watches to which nothing comes hold in memory, each on a
  connection of its own.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Self

import httpx
from django.contrib.auth.models import User

from cluster import access
from cluster.access import tokens
from cluster.runtime import nudge
from cluster.store import Create, Patch, store
from kube.meta import Object
from kube.resources import NAMESPACES, PODS
from proof.benches.measure import cpu_s, percentile, pss_mb
from proof.systems.system import PROJECT, System

Form = tuple[str, str]  # what is watched: its path, and in which form it is accepted

WATCHERS, RATE, SECONDS = 50, 200, 20
IDLE = 500
PODS_COUNT = 100
NAMESPACE = "watch-bench"
PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PLAIN = [(PATH, "application/json")]
MIXED = [
    (PATH, "application/json"),
    ("/api/v1/pods", "application/json"),
    (f"{PATH}?labelSelector=app%3Dbench", "application/json"),
    (PATH, TABLE),
    (PATH, METADATA),
]
FORMS = {"plain": 1, "mixed": 3}


def run(system: System) -> dict[str, Any]:
    """Return latencies in ms, the API server's share of a core, and the lines written for each change."""
    nudge.from_a_thread()
    _prepare()
    secret = tokens.issue(access.SYSTEM, User.objects.get(username="admin"), "watching", 3600).secret
    server = Server(system, secret)
    return {
        "plain": _measured(server, PLAIN, 1),
        "mixed": _measured(server, MIXED, FORMS["mixed"]),
        "idle": _idle(server),
    }


class Server:
    """The measured API server, asked from here and watched from another process."""

    def __init__(self, system: System, secret: str) -> None:
        self.system, self.secret = system, secret
        self.pid = system.children()["apiserver"]
        self.http = httpx.Client(
            base_url=system.api,
            verify=ssl.create_default_context(cafile=str(system.ca)),
            headers={"authorization": f"Bearer {secret}"},
        )

    def counts(self) -> dict[str, int]:
        """The watch's counters of /metrics."""
        lines = self.http.get("/metrics").raise_for_status().text.splitlines()
        found = (line.split(" ") for line in lines if line.startswith("volcano_ui_watch_"))
        return {name.removeprefix("volcano_ui_watch_").removesuffix("_total"): int(n) for name, n in found}

    def watchers(self, kinds: Sequence[Form], count: int) -> Watchers:
        """Start watchers, spread over the kinds; use it as a context manager."""
        return Watchers(self, kinds, count)


class Watchers:
    """Watches in a process of their own."""

    def __init__(self, server: Server, kinds: Sequence[Form], count: int) -> None:
        self.order = {
            "port": server.system.api_port,
            "ca": str(server.system.ca),
            "secret": server.secret,
            "kinds": kinds,
            "count": count,
            "revision": str(store.revision()),
        }

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "proof.benches.clients.watchers"]
        self.process = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(self.order) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ready\n", "the watches could not be opened"
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> list[dict[int, float]]:
        """Stop; return for each watcher when it had which revision."""
        answer = json.loads(self.process.communicate("\n", timeout=60)[0])
        assert not answer["lost"], f"{answer['lost']} watches ended"
        return [dict(arrivals) for arrivals in answer["arrivals"]]


def _prepare() -> None:
    store.write(Create(NAMESPACES, {"metadata": {"name": NAMESPACE}, "status": {"phase": "Active"}}))
    store.write(*(Create(PODS, _pod(number)) for number in range(PODS_COUNT)))


def _pod(number: int) -> Object:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", "echo hello; sleep 60"],
        "env": [{"name": f"VARIABLE_{index}", "value": "value" * 4} for index in range(12)],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {
        "metadata": {"name": f"pod-{number:03}", "namespace": NAMESPACE, "labels": {"app": "bench"}},
        "spec": {"containers": [container], "restartPolicy": "Never", "schedulerName": "nobody"},
        "status": {"phase": "Succeeded"},
    }


def _measured(server: Server, kinds: Sequence[Form], forms: int) -> dict[str, float]:
    with server.watchers(kinds, WATCHERS) as watchers:
        counts, used, begun = server.counts(), cpu_s(server.pid), time.monotonic()
        commits = _write()
        took = time.monotonic() - begun
        time.sleep(2)  # the last lines are under way; what has not come by then is counted as never
        used, after = cpu_s(server.pid) - used, server.counts()
        arrivals = watchers.end()
    late = [seen[revision] - at for seen in arrivals for revision, at in commits if revision in seen]
    written = after["lines_written"] - counts["lines_written"]
    return {
        "changes_per_s": round(len(commits) / took),
        "missing": WATCHERS * len(commits) - len(late),
        "p50_ms": round(percentile(late, 0.5) * 1000, 1),
        "p95_ms": round(percentile(late, 0.95) * 1000, 1),
        "p99_ms": round(percentile(late, 0.99) * 1000, 1),
        "most_ms": round(max(late) * 1000, 1),
        "apiserver_cpu_percent": round(100 * used / (took + 2)),
        "lines_written_per_change_and_form": round(written / len(commits) / forms, 3),
        "lines_sent_per_change": round((after["lines_sent"] - counts["lines_sent"]) / len(commits), 1),
    }


def _write() -> list[tuple[int, float]]:
    """Commit changes at a steady rate; return revision and time of each."""
    done: list[tuple[int, float]] = []
    # The first to hear of a commit; nudges are sent after it.
    store.listeners.insert(0, lambda _, revision: done.append((revision, time.time())))
    begun = time.monotonic()
    for number in range(RATE * SECONDS):
        time.sleep(max(0.0, begun + number / RATE - time.monotonic()))  # the rate that is asked for
        name = f"pod-{number % PODS_COUNT:03}"
        store.write(Patch(PODS, NAMESPACE, name, {"status": {"message": str(number)}}, "status"))
    del store.listeners[0]
    return done


def _idle(server: Server) -> dict[str, float]:
    before = pss_mb(server.pid)
    with server.watchers([("/api/v1/namespaces/nobody/pods", "application/json")], IDLE):
        held = pss_mb(server.pid) - before
        used, begun = cpu_s(server.pid), time.monotonic()
        time.sleep(10)  # the length of the measurement
        used = cpu_s(server.pid) - used
        took = time.monotonic() - begun
    return {
        "watches": IDLE,
        "kb_each": round(held * 1024 / IDLE, 1),
        "gb_for_20000": round(held / IDLE * 20_000 / 1024, 2),
        "apiserver_cpu_percent": round(100 * used / took, 1),
    }
