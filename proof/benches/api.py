"""How fast the Kubernetes API answers, over TLS on loopback, beside the running controllers.

* writes: 200 changes of single objects a second from twenty connections, each
  sent when its time has come whether or not others are answered; a latency
  counts from the moment at which the request was due.
* list: all of 5,000 pods in one answer.
* pages: 10,000 Volcano jobs, 500 to a page, as kubectl reads them.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpx
from django.contrib.auth.models import User

from cluster import access
from cluster.access import tokens
from cluster.store import Create, Group, store
from kube.meta import Object
from kube.resources import CONFIGMAPS, JOBS, NAMESPACES, PODS, QUEUES, Resource
from proof.benches.measure import cpu_s, percentile
from proof.systems.system import System
from proof.systems.work import job, task

RATE, SECONDS, CONNECTIONS = 200, 20, 20
PODS_COUNT, JOBS_COUNT, PAGE = 5_000, 10_000, 500
REPEATS = 5
TARGET, TARGETS = "target", 100
NAMESPACE = "api-bench"  # a namespace and a closed queue: nothing of it is to run


def run(system: System) -> dict[str, Any]:
    """Return latencies in ms and times in s."""
    _prepare()
    secret = tokens.issue(access.SYSTEM, User.objects.get(username="admin"), "bench", 3600).secret
    pid = system.children()["apiserver"]
    before = cpu_s(pid)
    # First, while no consumer has thousands of new objects to look at.
    figures = asyncio.run(_writes(system, secret))
    figures["apiserver_cpu_percent"] = round(100 * (cpu_s(pid) - before) / SECONDS)
    _prepare_lists()
    with httpx.Client(
        base_url=system.api,
        verify=ssl.create_default_context(cafile=str(system.ca)),
        headers={"authorization": f"Bearer {secret}"},
        timeout=60,
    ) as client:
        return {"writes": figures, "list_5000_pods": _list(client), "pages_of_10000_jobs": _pages(client)}


def _prepare() -> None:
    """Store what is changed, and where the lists will be."""
    space = {"metadata": {"name": NAMESPACE}, "status": {"phase": "Active"}}
    queue = {"metadata": {"name": NAMESPACE}, "spec": {"weight": 1, "state": "Closed"}, "status": {"state": "Closed"}}
    store.write(Create(NAMESPACES, space), Create(QUEUES, queue))
    _store(CONFIGMAPS, [{"metadata": {"name": f"{TARGET}-{n}", "namespace": NAMESPACE}} for n in range(TARGETS)])


def _prepare_lists() -> None:
    """Store the pods and jobs that are listed. No node takes the pods, and their queue is closed."""
    _store(PODS, [_pod(number) for number in range(PODS_COUNT)])
    _store(JOBS, [_job(number) for number in range(JOBS_COUNT)])


def _store(resource: Resource, objs: list[Object]) -> None:
    for start in range(0, len(objs), 1000):
        outcomes = store.commit([Group([Create(resource, obj)]) for obj in objs[start : start + 1000]])
        assert all(isinstance(outcome, list) for outcome in outcomes), outcomes[0]


def _pod(number: int) -> Object:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", "echo hello; sleep 60"],
        "env": [{"name": f"VARIABLE_{index}", "value": "value" * 4} for index in range(12)],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {
        "metadata": {
            "name": f"pod-{number:05}",
            "namespace": NAMESPACE,
            "labels": {"app": "bench", "shard": str(number % 10), "volcano.sh/job-name": f"job-{number // 10}"},
        },
        "spec": {"containers": [container], "restartPolicy": "Never", "schedulerName": "nobody"},
        "status": {"phase": "Succeeded", "startTime": "2026-01-01T00:00:00Z"},
    }


def _job(number: int) -> Object:
    obj = job(f"job-{number:05}", task(["true"]))
    obj["metadata"]["namespace"] = NAMESPACE
    obj["spec"]["queue"] = NAMESPACE
    obj["status"] = {"state": {"phase": "Completed"}}
    return obj


def _list(client: httpx.Client) -> dict[str, float]:
    path, times, size = f"/api/v1/namespaces/{NAMESPACE}/pods", [], 0
    for _ in range(REPEATS):
        begun = time.perf_counter()
        body = client.get(path).raise_for_status().content
        times.append(time.perf_counter() - begun)
        size = len(body)
    assert len(json.loads(body)["items"]) == PODS_COUNT
    return {**_spread(times), "mb": round(size / 1e6, 1)}


def _pages(client: httpx.Client) -> dict[str, Any]:
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs"
    pages, token, count = [], "", 0
    while True:
        begun = time.perf_counter()
        answer = client.get(path, params={"limit": PAGE, "continue": token}).raise_for_status().json()
        pages.append(time.perf_counter() - begun)
        count += len(answer["items"])
        token = answer["metadata"].get("continue", "")
        if not token:
            break
    assert count == JOBS_COUNT
    return {"all_s": round(sum(pages), 2), "page": _spread(pages)}


def _spread(times: Iterable[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "least_ms": round(ordered[0] * 1000),
        "median_ms": round(percentile(ordered, 0.5) * 1000),
        "most_ms": round(ordered[-1] * 1000),
    }


async def _writes(system: System, secret: str) -> dict[str, float]:
    context = ssl.create_default_context(cafile=str(system.ca))
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", system.api_port, ssl=context))
    latencies: list[float] = []
    refused: list[int] = []

    async def one(number: int, due: float) -> None:
        reader, writer = await free.get()
        method, path, body = _write(number)
        writer.write(_message(method, path, body, secret))
        status = await _answered(reader)
        latencies.append(time.perf_counter() - due)
        if status >= 300:
            refused.append(status)
        free.put_nowait((reader, writer))

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(RATE * SECONDS):
            due = begun + number / RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(number, due))
    took = time.perf_counter() - begun
    while not free.empty():
        _, writer = free.get_nowait()
        writer.close()
    assert not refused, refused[:10]
    return {
        "p50_ms": round(percentile(latencies, 0.5) * 1000, 1),
        "p99_ms": round(percentile(latencies, 0.99) * 1000, 1),
        "most_ms": round(max(latencies) * 1000, 1),
        "per_s": round(len(latencies) / took),
    }


def _write(number: int) -> tuple[str, str, Object]:
    """A creation or a change of an object that is there, in turn: no write has to wait for another."""
    base = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    if number % 2:
        return "POST", base, {"metadata": {"name": f"map-{number}"}, "data": {"text": "x" * 500}}
    return "PATCH", f"{base}/{TARGET}-{number % TARGETS}", {"data": {"number": str(number)}}


def _message(method: str, path: str, body: Object, secret: str) -> bytes:
    content = json.dumps(body).encode()
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def _answered(reader: asyncio.StreamReader) -> int:
    """Read one answer and return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    await reader.readexactly(length)
    return int(head.split(" ", 2)[1])
