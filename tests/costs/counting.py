"""The queue controller, and the picture of the cluster that pages have, with many of something."""

from __future__ import annotations

from contextlib import nullcontext

import msgspec

from cluster.store import Change
from dashboard.cluster_usage import Picture
from kube.resources import NAMESPACES, POD_GROUPS, PODS, QUEUES
from queues.controller import QueueConsumer, QueuesState
from tests.costs.meter import counted

NOW = 1_767_225_600_000


def queue(name, **spec):
    return QUEUES, name, {"spec": {"parent": "root", "state": "Open", **spec}}


def namespace(name, queue):
    return NAMESPACES, name, {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": queue}}}


def pod(name, group="runs", phase="Running"):
    notes = {"scheduling.k8s.io/group-name": group}
    spec = {"schedulerName": "volcano", "nodeName": "n", "containers": [{"name": "c"}]}
    return PODS, name, {"metadata": {"annotations": notes}, "spec": spec, "status": {"phase": phase}}


def group(name, queue="team", phase="Running"):
    return POD_GROUPS, name, {"spec": {"queue": queue}, "status": {"phase": phase}}


class Counting:
    """A change is taken in, and what follows for the status of queues is planned."""

    MANY = {
        "queues": lambda number: queue(f"queue-{number}"),
        "namespaces": lambda number: namespace(f"ns-{number}", "team"),
        "groups": lambda number: group(f"group-{number}"),
        "pods": lambda number: pod(f"pod-{number}"),
    }
    CHANGES = {
        "a queue's weight": lambda turn: queue("team", weight=2 + turn),
        "a queue's wish": lambda turn: queue("team", state=("Closed", "Open")[turn]),
        "a queue's parent": lambda turn: queue("team", parent=("above", "root")[turn]),
        "a new queue": lambda turn: queue(f"new-{turn}"),
        "a namespace's queue": lambda turn: namespace("ns", f"queue-{turn}"),
        "a group's phase": lambda turn: group("runs", phase=("Inqueue", "Running")[turn]),
    }
    MOST: dict[str, int] = {}
    running = nullcontext

    def __init__(self):
        self.consumer, self.state, self.picture = QueueConsumer(), QueuesState(), Picture()
        self.revision = 0
        for each in (queue("root"), queue("above"), queue("team"), group("runs"), pod("ends-0"), pod("ends-1")):
            self._take(each)

    def add(self, kind, numbers):
        for number in numbers:
            self._take(self.MANY[kind](number))
        self._plan()

    def costs(self):
        found = {}
        for what, made in self.CHANGES.items():
            for turn in (0, 1):
                with counted() as found[what]:
                    self._take(made(turn))
                    self._plan()
        with counted() as found["a queue with all below it"]:
            self.picture.subtree("team")
        with counted() as found["the tree of queues"]:
            self.picture.below("root")
        return found

    def _take(self, made):
        kind, name, obj = made
        self.revision += 1
        in_namespace = "default" if kind.namespaced else ""
        metadata = {"name": name, "namespace": in_namespace, "uid": name, **obj.get("metadata", {})}
        body = msgspec.json.encode({**obj, "metadata": metadata})
        change = Change(self.revision, kind.id, in_namespace, name, name, "MODIFIED", NOW, body)
        self.consumer.apply(self.state, change)
        self.picture.take(change)

    def _plan(self):
        self.consumer.plan(self.state, [], [], NOW + 1000 * self.revision)
