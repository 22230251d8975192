"""How long one scheduling cycle takes to decide: no store, no processes, only the snapshot and `schedule`.

Beside the time it took stands how much processor it had, which other work on the machine adds less to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from time import perf_counter, process_time
from typing import Any, NamedTuple

from kube import usage
from kube.resources import HYPER_NODES, NODES, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES, Resource
from proof.harness.change import Change
from scheduler.cycle.cycle import schedule
from scheduler.decisions import Decisions
from scheduler.snapshot.snapshot import Snapshot
from volcano_ui import collector

NOW = 1_800_000_000_000
CREATED = "2027-01-15T07:59:00Z"  # a minute before: nobody has waited for so long that room is kept for him
QUEUE_NAMES = ("default", "research", "vision", "speech")
IDENTICAL = (1,)
MIXED = (1, 2, 3, 4, 6, 8)  # CPUs of the pods of a gang


class Case(NamedTuple):
    """A cluster and who waits for it. full: pods hold half of it already."""

    nodes: int
    pods: int
    gang: int
    cpus: tuple[int, ...] = IDENTICAL
    full: bool = False
    entering: bool = False

    def __str__(self) -> str:
        kind = "mixed" if self.cpus is MIXED else "identical"
        words = f"{self.nodes}n_{self.pods}p_gangs_of_{self.gang}_{kind}"
        return words + ("_half_full" if self.full else "") + ("_entering" if self.entering else "")


CASES = (
    *(Case(nodes, 10_000, gang) for nodes in (1000, 5000, 10_000) for gang in (1, 20, 100, 500)),
    *(Case(10_000, 100_000, gang) for gang in (1, 20, 100, 500)),
    Case(5000, 10_000, 1, MIXED),
    Case(5000, 10_000, 100, MIXED),
    Case(5000, 10_000, 1, full=True),
    Case(5000, 10_000, 100, MIXED, full=True),
    Case(10_000, 100_000, 100, MIXED),
    Case(10_000, 100_000, 100, full=True),
    Case(5000, 10_000, 1, entering=True),
)


def run(cases: Iterable[Case] = CASES) -> dict[str, Any]:
    """Return for each case how long a cycle took, and how many pods were bound or groups let in."""
    figures = {}
    for case in cases:
        snapshot = waiting(case)
        decided, took = measured(snapshot)
        entered = sum(some.status.get("phase") == "Inqueue" for some in decided.groups)
        bound = sum(len(some.binds) for some in decided.groups)
        figures[str(case)] = {**took, "entered": entered} if case.entering else {**took, "bound": bound}
    return figures | {"nothing_changed_50000_running": idle()} | evicting() | close_together() | evicting_close()


def close_together(nodes: int = 5000, pods: int = 10_000, size: int = 100) -> dict[str, dict[str, float]]:
    """Return how long a cycle takes that places gangs which are to be close together, on three tiers of HyperNodes.

    A rack has 16 nodes, which hold 5 gangs, a row 16 racks. Gangs ask for nothing, for one rack, for one row in sub-groups of 10 pods that are each in
    one rack, or for one rack on a cluster that has no room for them there.
    """
    rack, row = {"mode": "hard", "highestTierAllowed": 1}, {"mode": "hard", "highestTierAllowed": 2}
    policy = {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": 10, "minSubGroups": size // 10}
    cases: dict[str, tuple[Mapping[str, Any], int]] = {
        "anywhere": ({}, size),
        "in_one_rack": ({"networkTopology": rack}, size),
        "in_one_row_with_sub_groups_in_racks": (
            {"networkTopology": row, "subGroupPolicy": [{**policy, "networkTopology": rack}]},
            size,
        ),
        "larger_than_a_rack": ({"networkTopology": rack}, 6 * size),
    }
    figures = {}
    for name, (extra_spec, each) in cases.items():
        snapshot = cluster(nodes)
        _network(snapshot, nodes)
        for number in range(pods // each):
            _gang(snapshot, f"g{number:06}", each, 1, None, extra_spec=extra_spec)
        decided, took = measured(snapshot)
        bound = sum(len(some.binds) for some in decided.groups)
        figures[f"close_{nodes}n_{pods}p_gangs_of_{each}_{name}"] = {**took, "bound": bound}
    return figures


def evicting_close(nodes: int = 5000) -> dict[str, dict[str, float]]:
    """Return how long it takes to find the victims of a gang of 100 that is to be close together on full nodes, and how many they are.

    The pods on them are those of `evicting`, a third of them in the queue in which the gang preempts. It asks for one rack, or for one row and
    for sub-groups of 10 pods that are each in one rack.
    """
    rack, row = {"mode": "hard", "highestTierAllowed": 1}, {"mode": "hard", "highestTierAllowed": 2}
    policy = {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": 10, "minSubGroups": 10}
    cases: dict[str, Mapping[str, Any]] = {
        "one_rack": {"networkTopology": rack},
        "one_row_with_sub_groups_in_racks": {
            "networkTopology": row,
            "subGroupPolicy": [{**policy, "networkTopology": rack}],
        },
    }
    figures = {}
    for minimum, kind in ((20, "whole_gangs"), (1, "loose_pods")):
        for where, extra_spec in cases.items():
            snapshot = cluster(nodes)
            _network(snapshot, nodes)
            _put(snapshot, PRIORITY_CLASSES, "", "high", {"value": 100})
            for number in range(nodes * 32 // 20):
                name = f"r{number:05}"
                _gang(snapshot, name, 20, 1, (number * 20, nodes), minimum=minimum, queue=QUEUE_NAMES[number % 3])
            _gang(snapshot, "g", 100, 1, None, queue=QUEUE_NAMES[0], urgency="high", extra_spec=extra_spec)
            decided, took = measured(snapshot)
            name = f"preempt_{nodes}n_full_of_{kind}_for_100_times_1_cpu_in_{where}"
            figures[name] = {**took, "victims": len(decided.evictions)}
    return figures


def _network(snapshot: Snapshot, nodes: int, width: int = 16) -> None:
    """Put nodes into racks, racks into rows, and rows into a hall."""
    names = [f"n{number:05}" for number in range(nodes)]
    for tier, kind in ((1, "Node"), (2, "HyperNode"), (3, "HyperNode")):
        size = width if tier < 3 else len(names)
        above = []
        for first in range(0, len(names), size):
            members = [
                {"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names[first : first + size]
            ]
            above.append(f"h{tier}-{first:05}")
            _put(snapshot, HYPER_NODES, "", above[-1], {"spec": {"tier": tier, "members": members}})
        names = above


def evicting(nodes: int = 5000) -> dict[str, dict[str, float]]:
    """Return how long it takes to find the victims of a gang of 100 on full nodes, and how many they are.

    The pods on them have one CPU each and are in gangs of 20, which go whole, or as far as one wants. The gang preempts in its
    queue, or reclaims for a queue in which nobody runs.
    """
    figures = {}
    for minimum, kind in ((20, "whole_gangs"), (1, "loose_pods")):
        snapshot = cluster(nodes)
        _put(snapshot, PRIORITY_CLASSES, "", "high", {"value": 100})
        for number in range(nodes * 32 // 20):
            name = f"r{number:05}"
            _gang(snapshot, name, 20, 1, (number * 20, nodes), minimum=minimum, queue=QUEUE_NAMES[number % 3])
        for cpu in (1, 8):
            for action, queue in (("preempt", QUEUE_NAMES[0]), ("reclaim", QUEUE_NAMES[3])):
                urgency = "high" if action == "preempt" else ""
                _gang(snapshot, "g", 100, cpu, None, queue=queue, urgency=urgency)
                decided, took = measured(snapshot)
                name = f"{action}_{nodes}n_full_of_{kind}_for_100_times_{cpu}_cpu"
                figures[name] = {**took, "victims": len(decided.evictions)}
    return figures


def idle() -> dict[str, float]:
    """Return how long a cycle takes in which nothing changed, with 50,000 pods that run on 5,000 nodes: the median of some."""
    snapshot = cluster(5000)
    for number in range(2500):
        _gang(snapshot, f"r{number:05}", 20, 1, (number * 20, 5000))
    snapshot.groups.settled(schedule(snapshot, NOW).reported)
    return sorted((measured(snapshot)[1] for _ in range(20)), key=lambda took: took["s"])[10]


def measured(snapshot: Snapshot) -> tuple[Decisions, dict[str, float]]:
    """Return what a cycle decides, and the seconds that it took, with Python's collector as workers set it."""
    collector.collect_rarely()
    begun, processor = perf_counter(), process_time()
    decided = schedule(snapshot, NOW)
    took = {"s": perf_counter() - begun, "processor_s": process_time() - processor}
    return decided, {name: round(seconds, 4) for name, seconds in took.items()}


def waiting(case: Case) -> Snapshot:
    """Return the snapshot of a case."""
    snapshot = cluster(case.nodes)
    if case.full:
        for number in range(case.nodes * 16 // 20):
            _gang(snapshot, f"r{number:05}", 20, 1, (number * 20, case.nodes))
    for number in range(case.pods // case.gang):
        cpu = case.cpus[number % len(case.cpus)]
        _gang(snapshot, f"g{number:06}", case.gang, cpu, None, entering=case.entering)
    return snapshot


def cluster(nodes: int) -> Snapshot:
    """Return a snapshot of nodes with 32 CPUs each, and a few queues."""
    snapshot = Snapshot(usage.VOLCANO_ALONE)
    for name in QUEUE_NAMES:
        spec = {"weight": 1 + len(name) % 3}
        _put(snapshot, QUEUES, "", name, {"spec": spec, "status": {"state": "Open"}})
    for number in range(nodes):
        offers = {"cpu": "32", "memory": "128Gi", "pods": "110"}
        status = {"allocatable": offers, "conditions": [{"type": "Ready", "status": "True"}]}
        _put(snapshot, NODES, "", f"n{number:05}", {"status": status})
    return snapshot


def _gang(
    snapshot: Snapshot,
    name: str,
    pods: int,
    cpu: int,
    running: tuple[int, int] | None,
    *,
    entering: bool = False,
    minimum: int | None = None,
    queue: str = "",
    urgency: str = "",
    extra_spec: Mapping[str, Any] | None = None,
) -> None:
    """Put a gang into a queue, or one of them; running is the number of its first node and that of all nodes, None if it waits.

    asked is more of its spec; by tens its pods have a label.
    """
    queue = queue or QUEUE_NAMES[sum(name.encode()) % len(QUEUE_NAMES)]
    phase = "Running" if running else "Pending" if entering else "Inqueue"
    spec: dict[str, Any] = {"minMember": minimum or pods, "queue": queue, "minResources": {"cpu": str(pods * cpu)}}
    spec |= {**({"priorityClassName": urgency} if urgency else {}), **(extra_spec or {})}
    _put(
        snapshot, POD_GROUPS, "ns", name, {"spec": spec, "status": {"phase": phase, "running": pods if running else 0}}
    )
    for number in range(0 if entering else pods):
        first, nodes = running or (0, 1)
        node = {"nodeName": f"n{(first + number) % nodes:05}"} if running else {}
        container = {"name": "c", "resources": {"requests": {"cpu": str(cpu), "memory": "2Gi"}}}
        body = {
            "spec": {"schedulerName": "volcano", "containers": [container], **node},
            "status": {"phase": "Running" if running else "Pending"},
        }
        labels = {"part": str(number // 10)} if extra_spec else None
        _put(snapshot, PODS, "ns", f"{name}-{number}", body, {"scheduling.k8s.io/group-name": name}, labels)


def _put(
    snapshot: Snapshot,
    kind: Resource,
    namespace: str,
    name: str,
    body: Mapping[str, Any],
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> None:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": name, "creationTimestamp": CREATED}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    encoded = json.dumps({"metadata": metadata, **body}).encode()
    snapshot.apply(Change(kind.id, namespace, name, "ADDED", NOW - 60_000, encoded))
