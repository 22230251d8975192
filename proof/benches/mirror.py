"""Another system that shows this one through its API: how soon it has all, how far behind it is, and what that costs.

* load: from the start of the mirror's process to the last of 20,000 pods (`--pods`) of 2.8 KB in its store, beside 1,000 nodes (`--nodes`).
* changes: 1,000 a second for twenty seconds, ten in each transaction; how much later each stands in the mirror's log.
* idle: what the mirror computes in a minute in which nothing changes but the nodes' heartbeats.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from cluster import clock
from cluster.runtime import nudge
from cluster.store import Create, Group, Patch, Store, store
from kube.meta import Object
from kube.resources import NAMESPACES, NODES, PODS
from proof.benches.measure import TICKS, PeakMemory, cpu_s, percentile, pss_mb
from proof.harness.waiting import until
from proof.systems.system import System

RATE, SECONDS, TOGETHER = 1_000, 20, 10
IDLE_S = 60
NAMESPACE = "mirror-bench"
LOAD_S = 600


def run(system: System, count: int) -> dict[str, Any]:
    """Return of so many pods seconds, latencies in ms, memory in MB and shares of a core."""
    nudge.from_a_thread()
    _prepare(count)
    folder = Path(system.data).with_name("mirror")
    folder.mkdir()
    config = system.kubeconfig(folder / "config")
    showing = System(folder / "data", VOLCANO_UI_KUBECONFIG=str(config))
    with showing as second, second.store() as copy, PeakMemory(second) as memory:
        pid = second.children()["mirror"]
        until(lambda: len(copy.names(PODS, namespace=NAMESPACE)) == count, within_s=LOAD_S, what="all pods")
        load = {**_load(copy, pid), "nodes": len(copy.names(NODES))}
        changes = _changes(copy, pid, count)
        return {
            "load": load,
            "changes": changes,
            "idle_cpu_percent": _idle(pid),
            "memory_mb": {"most": round(memory.peak["mirror"]), "then": round(pss_mb(pid))},
        }


def _prepare(count: int) -> None:
    """Store the pods. No node takes them, and they have ended."""
    store.write(Create(NAMESPACES, {"metadata": {"name": NAMESPACE}, "status": {"phase": "Active"}}))
    for begin in range(0, count, 1000):
        groups = [Group([Create(PODS, _pod(number))]) for number in range(begin, min(begin + 1000, count))]
        assert all(isinstance(outcome, list) for outcome in store.commit(groups))


def _pod(number: int) -> Object:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", "echo hello; sleep 60"],
        "env": [{"name": f"VARIABLE_{index}", "value": "value" * 12} for index in range(20)],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    labels = {"app": "bench", "volcano.sh/job-name": f"job-{number // 10}"}
    return {
        "metadata": {"name": _name(number), "namespace": NAMESPACE, "labels": labels},
        "spec": {"containers": [container], "restartPolicy": "Never", "schedulerName": "nobody"},
        "status": {"phase": "Succeeded", "startTime": "2026-01-01T00:00:00Z"},
    }


def _name(number: int) -> str:
    return f"pod-{number:06}"


def _load(copy: Store, pid: int) -> dict[str, float]:
    """How long it took from the start of the process, which is told in ticks since the machine was started."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    begun = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / TICKS
    arrived = [change.at for change in copy.changes(0, [PODS], limit=10**6) if change.namespace == NAMESPACE]
    size = len(store.find(PODS, namespace=NAMESPACE, limit=1)[0].body)
    return {
        "first_pod_s": round(min(arrived) / 1000 - begun, 1),
        "all_s": round(max(arrived) / 1000 - begun, 1),
        "pods": len(arrived),
        "kb_each": round(size / 1024, 1),
    }


def _changes(copy: Store, pid: int, count: int) -> dict[str, float]:
    here, there, used = store.revision(), copy.revision(), cpu_s(pid)
    begun = clock.monotonic()
    for number in range(0, RATE * SECONDS, TOGETHER):
        time.sleep(max(0.0, begun + number / RATE - clock.monotonic()))  # the rate that is asked for
        names = [_name(each % count) for each in range(number, number + TOGETHER)]
        status = {"status": {"message": str(number)}}
        store.commit([Group([Patch(PODS, NAMESPACE, name, status, "status")]) for name in names])
    took = clock.monotonic() - begun
    made = _moments(store, here)
    until(lambda: made.keys() <= _moments(copy, there).keys(), within_s=120, what="the last change")
    used, seen = cpu_s(pid) - used, _moments(copy, there)
    late = [seen[change] - at for change, at in made.items()]
    return {
        "per_s": round(len(made) / took),
        "p50_ms": round(percentile(late, 0.5)),
        "p99_ms": round(percentile(late, 0.99)),
        "most_ms": max(late),
        "mirror_cpu_percent": round(100 * used / took),
    }


def _moments(log: Store, after: int) -> dict[tuple[str, str], int]:
    """When each change of the pods was written to a log, by name and version."""
    changes = log.changes(after, [PODS], limit=10**6)
    return {(each.name, each.version): each.at for each in changes if each.namespace == NAMESPACE}


def _idle(pid: int) -> float:
    time.sleep(5)  # what was changed is over for the consumers, too
    used, begun = cpu_s(pid), clock.monotonic()
    time.sleep(IDLE_S)  # the length of the measurement
    return round(100 * (cpu_s(pid) - used) / (clock.monotonic() - begun), 2)
