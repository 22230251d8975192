"""The page of a job of ten thousand pods: how long it takes to open, and what it costs while it is looked at.

All pods run on simulated nodes until they are released, then end within
seconds, while readers have the page's topics open.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

from cluster import access, api
from cluster.store import Create, store
from dashboard.live.topics import address
from kube.resources import CONFIGMAPS, JOBS, PODS
from proof.benches import shapes
from proof.benches.live import Sockets
from proof.benches.measure import Processors, percentile
from proof.harness import chromium
from proof.harness.waiting import until
from proof.pictures.world import cookies_of
from proof.systems.system import System

NAME, HOLD, REPLICAS = "looked-at", "release-page", 10_000
OPENINGS, PAINTS, READERS = 20, 5, 10
TOPICS = ("jobs:detail", "jobs:timeline", "jobs:pods")
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"


def run(system: System) -> dict[str, Any]:
    """Return ms from request to answer for each tab and to the first paint, and processor seconds while pods end."""
    api.create(access.SYSTEM, JOBS, shapes.job(NAME, REPLICAS, HOLD))
    until(_all_in("Running"), within_s=shapes.LIMIT_S, what="all pods Running")
    result: dict[str, Any] = {
        f"open_{tab or 'overview'}": _opened(system, tab) for tab in ("", "logs", "events", "yaml")
    }
    result["first_paint"] = _painted(system)
    return result | {"while_pods_end": _live(system)}


def _all_in(phase: str) -> Callable[[], bool]:
    def are_all() -> bool:
        time.sleep(1)  # do not compete with what is waited for
        return store.count(PODS, text=f"{NAME}-").get(phase) == REPLICAS

    return are_all


def _opened(system: System, tab: str) -> dict[str, float]:
    took: list[float] = []
    size = 0
    with contextlib.closing(system.client()) as client:
        for _ in range(OPENINGS):
            begun = time.monotonic()
            answer = client.get(f"/jobs/default/{NAME}/", params={"tab": tab})
            took.append(time.monotonic() - begun)
            assert answer.status_code == 200, answer.status_code
            size = len(answer.content)
    return {**_spread(took), "kb": round(size / 1000)}


def _painted(system: System) -> dict[str, float]:
    """Return ms from the navigation to the first paint in a browser that has the files of the pages."""
    # Playwright's loop runs in this thread, so Django takes it for one that must not ask a database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="volcano-ui-profile-") as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium.find(), headless=True, args=chromium.ARGUMENTS
        )
        context.add_cookies(cookies_of(system))
        page = context.new_page()
        took: list[float] = []
        for _ in range(PAINTS + 1):
            page.goto(f"{system.base}/jobs/default/{NAME}/")
            page.wait_for_selector("#timeline svg")
            took.append(page.evaluate(PAINTED) / 1000)
        context.close()
    return _spread(took[1:])


def _live(system: System) -> dict[str, Any]:
    """Release the pods while readers look at the page; return what the web server used until all have ended."""
    processors, begun = Processors(system), time.monotonic()
    key = {"namespace": "default", "name": NAME}
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(Sockets(system, READERS, address(topic, key))) for topic in TOPICS]
        store.write(Create(CONFIGMAPS, {"metadata": {"name": HOLD, "namespace": "default"}}))
        until(_all_in("Succeeded"), within_s=shapes.LIMIT_S, what="all pods Succeeded")
        took = time.monotonic() - begun
        messages = [sum(map(len, each.end())) / READERS for each in sockets]
    return {
        "readers": READERS,
        "seconds": round(took, 1),
        "messages_to_each": {topic: round(number) for topic, number in zip(TOPICS, messages, strict=True)},
        "cpu_s": processors.used(),
    }


def _spread(values: Iterable[float]) -> dict[str, float]:
    return {f"p{share}_ms": round(percentile(values, share / 100) * 1000) for share in (50, 95)}
