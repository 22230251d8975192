"""A scheduler's snapshot with many of something, and what one change of it costs."""

from contextlib import nullcontext

from kube import resources
from tests.costs.meter import counted
from tests.scheduler.world import World, group, namespace, node, pod, priority_class, queue

PAUSE_S = 100  # after which nothing is left to say of anybody
HARD = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


def quota(pods, in_namespace="ns"):
    return resources.RESOURCE_QUOTAS, {
        "metadata": {"name": "q", "namespace": in_namespace},
        "spec": {"hard": {"pods": str(pods)}},
    }


def hyper_node(name, *nodes):
    members = [{"type": "Node", "selector": {"exactMatch": {"name": each}}} for each in nodes]
    return resources.HYPER_NODES, {"metadata": {"name": name}, "spec": {"tier": 1, "members": members}}


def taints(number):
    return [{"key": f"key-{each}", "effect": "NoSchedule"} for each in range(number)]


class Scheduling:
    """Somebody waits for more than there is, so every cycle looks at queues and nodes; a change is followed by a cycle."""

    MANY = {
        "queues": lambda number: [queue(f"queue-{number}")],
        "classes": lambda number: [priority_class(f"class-{number}", number)],
        "namespaces": lambda number: [namespace(f"ns-{number}"), quota(5, f"ns-{number}")],
        "nodes": lambda number: [node(f"node-{number}")],
        "taints": lambda number: [node("tainted", taints=taints(number + 1))],
        "HyperNodes": lambda number: [hyper_node(f"hyper-{number}", "n1")],
        "pods": lambda number: [pod(f"runs-more-{number}", "runs", cpu="0", node="n0", phase="Running")],
        "running": lambda number: [
            group(f"runs-{number}", phase="Running"),
            pod(f"runs-{number}-0", f"runs-{number}", cpu="0", node="n0", phase="Running"),
        ],
        "waiting": lambda number: [group(f"waits-{number}"), pod(f"waits-{number}-0", f"waits-{number}", cpu="999")],
    }
    CHANGES = {
        "queue": lambda turn: [queue("team", weight=2 + turn)],
        "priority class": lambda turn: [priority_class("high", 20 + turn)],
        "node": lambda turn: [node("n1", labels={"turn": str(turn)})],
        "taint": lambda turn: [node("n1", taints=taints(turn))],
        "namespace": lambda turn: [namespace("ns", turn=str(turn))],
        "quota": lambda turn: [quota(5000 + turn)],
        "HyperNode": lambda turn: [hyper_node("h1", *["n1", "n0"][: turn + 1])],
        "pod": lambda turn: [pod(f"runs-{turn}", "runs", node="n0", phase="Succeeded")],
        "job": lambda turn: [group(f"new-{turn}"), pod(f"new-{turn}-0", f"new-{turn}")],
    }

    MOST = {"queues": 300, "waiting": 100}  # of which each cycle goes through all
    running = nullcontext

    def __init__(self):
        self.world = World(
            queue("root"), queue("default"), queue("team"),
            node("n0", cpu="100", pods=9000), node("n1"), hyper_node("h0", "n0"), hyper_node("h1", "n1"),
            priority_class("high", 10), namespace("ns"), quota(5000),
            group("big", queue="team"), pod("big-0", "big", cpu="999"),
            group("near", queue="team", **HARD), pod("near-0", "near", cpu="999"),
            group("runs", phase="Running"), *[pod(f"runs-{each}", "runs", node="n0", phase="Running") for each in (0, 1, 2)],
        )  # fmt: skip

    def add(self, kind, numbers):
        for number in numbers:
            self.world.put(*self.MANY[kind](number))

    def costs(self):
        """Return what a cycle costs in which nothing changed, and how much more one does after each change."""
        for _ in range(3):
            self.world.cycle(PAUSE_S)
        with counted() as idle:
            self.world.cycle()
        found = {"a cycle": idle}
        for change, made in self.CHANGES.items():
            for turn in (0, 1):
                with counted() as cost:
                    self.world.put(*made(turn))
                    self.world.cycle()
            with counted() as idle:
                self.world.cycle()
            cost.subtract(idle)
            found[f"a {change}"] = cost
        return found
