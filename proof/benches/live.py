"""How long a committed change takes to those who look at it.

The page is the list of queues and the change is a queue's weight, which has a
column there: every change is one that a reader sees, and no controller
answers it with changes of its own. Each weight is written once, so the cell's
text tells which change it shows.

* sockets: 200 sockets follow the list while 100 changes are committed each
  second. A change has arrived at a socket with the first message of its
  revision or a later one; bursts are merged, so one message may bring many.
* browser: one page in Chromium; a change has arrived when a MutationObserver
  sees its weight in the cell.
* idle tabs: what forty sockets that nobody writes to cost the web server.
"""

from __future__ import annotations

import bisect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import Any, Self

from cluster.store import Create, Patch, store
from kube.resources import QUEUES
from proof.benches.measure import cpu_s, percentile, pss_mb
from proof.harness import chromium
from proof.harness.waiting import until
from proof.pictures.world import cookies_of
from proof.systems.system import PROJECT, System

QUEUES_COUNT = 20
TOPIC = "queues:list"
SOCKETS, RATE, SECONDS = 200, 100, 20
BROWSER_CHANGES, BROWSER_PAUSE_S = 150, 0.1
TABS, IDLE_S = 40, 15
OBSERVER = """
() => {
  window.seen = {};
  const look = (node) => {
    for (const word of (node.textContent || "").match(/[0-9]{5,}/g) || [])
      window.seen[word] ??= Date.now() / 1000;
  };
  new MutationObserver((all) => {
    for (const each of all) {
      look(each.target);
      each.addedNodes.forEach(look);
    }
  }).observe(document.querySelector("[data-live^='queues:list']"),
             {subtree: true, childList: true, characterData: true});
}
"""


def run(system: System) -> dict[str, Any]:
    """Return the latencies in ms and the price of idle tabs."""
    system.client().close()
    writer = Writer()
    return {
        "idle_tabs": idle_tabs(system),
        "browser": in_browser(system, writer),
        "sockets": on_sockets(system, writer),
    }


class Writer:
    """Commits changes of weights, each with a number of its own, and notes when."""

    def __init__(self) -> None:
        self.weight = 10_000
        self.names = [f"live-{number}" for number in range(QUEUES_COUNT)]
        for name in self.names:
            store.write(Create(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1}}))

    def commit(self) -> tuple[int, int, float]:
        """Commit one change; return its weight, its revision and when it was committed."""
        self.weight += 1
        name = self.names[self.weight % len(self.names)]
        stored = store.write(Patch(QUEUES, "", name, {"spec": {"weight": self.weight}}))[0]
        return self.weight, stored.revision, time.time()

    def steadily(self, count: int, per_second: float) -> list[tuple[int, float]]:
        """Commit at a steady rate; return revision and time of each."""
        begun, done = time.monotonic(), []
        for number in range(count):
            time.sleep(max(0.0, begun + number / per_second - time.monotonic()))  # the rate that is asked for
            done.append(self.commit()[1:])
        return done


class Sockets:
    """Sockets in a process of their own; use it as a context manager."""

    def __init__(self, system: System, count: int, topic: str = TOPIC) -> None:
        self.system = system
        self.count = count
        self.topic = topic

    def __enter__(self) -> Self:
        assert self.system.cookies is not None, "nobody has logged in"
        cookie = "; ".join(f"{name}={value}" for name, value in self.system.cookies.items())
        url = f"{self.system.base.replace('http', 'ws')}/live/"
        command = [sys.executable, "-m", "proof.benches.clients.sockets", url, cookie, self.topic, str(self.count)]
        self.process = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", "the sockets could not be opened"
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> list[list[tuple[float, int]]]:
        """Stop listening; return for each socket the times and revisions of its messages."""
        answer = json.loads(self.process.communicate("\n", timeout=60)[0])
        assert not answer["lost"], f"{answer['lost']} sockets were cut off"
        arrivals: list[list[tuple[float, int]]] = answer["arrivals"]
        return arrivals


def on_sockets(system: System, writer: Writer) -> dict[str, float]:
    """Commit to the message at each of many sockets."""
    with Sockets(system, SOCKETS) as sockets:
        begun = time.monotonic()
        commits = writer.steadily(RATE * SECONDS, RATE)
        took = time.monotonic() - begun
        time.sleep(2)  # the last messages are under way; what has not come by then is counted as never
        arrivals = sockets.end()
    late: list[float] = []
    missing = 0
    for messages in arrivals:
        times, revisions = zip(*messages, strict=True)
        for revision, at in commits:
            index = bisect.bisect_left(revisions, revision)
            if index == len(revisions):
                missing += 1
            else:
                late.append(times[index] - at)
    return {
        "changes_per_s": round(len(commits) / took),
        "messages_per_socket_and_s": round(sum(map(len, arrivals)) / len(arrivals) / took, 1),
        "missing": missing,
        **_spread(late),
    }


def in_browser(system: System, writer: Writer) -> dict[str, float]:
    """Commit to changed cell in a real page."""
    # Playwright's loop runs in this thread, so Django takes it for one that must not ask a database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="volcano-ui-profile-") as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium.find(), headless=True, args=chromium.ARGUMENTS
        )
        context.add_cookies(cookies_of(system))
        page = context.new_page()
        page.goto(f"{system.base}/queues/?per=100")
        page.wait_for_selector("#live[data-state=live]")
        page.evaluate(OBSERVER)
        done = {}
        for _ in range(BROWSER_CHANGES):
            weight, _, at = writer.commit()
            done[str(weight)] = at
            time.sleep(BROWSER_PAUSE_S)  # ten changes a second
        until(lambda: str(weight) in page.evaluate("window.seen"), within_s=10, what="the last change")
        seen = page.evaluate("window.seen")
        context.close()
    late = [seen[weight] - at for weight, at in done.items() if weight in seen]
    return {"changes": len(done), "shown": len(late), **_spread(late)}


def idle_tabs(system: System) -> dict[str, float]:
    """What forty quiet sockets add to the web server's CPU and memory."""
    web = system.children()["web"]
    with Sockets(system, 1):
        memory, quiet = pss_mb(web), _cpu_percent(web)
        with Sockets(system, TABS):
            busy, more = _cpu_percent(web), pss_mb(web)
    return {
        "tabs": TABS,
        "added_cpu_percent_of_a_core": round(busy - quiet, 2),
        "added_memory_mb": round(more - memory, 1),
    }


def _cpu_percent(pid: int) -> float:
    before, begun = cpu_s(pid), time.monotonic()
    time.sleep(IDLE_S)  # the length of the measurement
    return 100 * (cpu_s(pid) - before) / (time.monotonic() - begun)


def _spread(values: Iterable[float]) -> dict[str, float]:
    return {f"p{share}_ms": round(percentile(values, share / 100) * 1000, 1) for share in (50, 95, 99)}
