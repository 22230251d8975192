"""What must be true of any history of the cluster, checked by reading its whole log."""

from __future__ import annotations

from collections import Counter, defaultdict

from kube import amounts

GROUP = "scheduling.k8s.io/group-name"
FINISHED = ("Succeeded", "Failed")


def check(changes):
    """Replay a log from its first revision; raise AssertionError at the first thing that must not be."""
    world = World()
    for change in changes:
        world.take(change)
    return world


class World:
    """The cluster while its log is replayed."""

    def __init__(self):
        self.revision = 0
        self.allocatable = {}
        self.used = defaultdict(Counter)
        self.minimum = {}
        self.bound = defaultdict(set)
        self.pods = {}
        self.phases = defaultdict(list)

    def take(self, change):
        assert change.revision == self.revision + 1, f"revision {self.revision + 1} is missing from the log"
        self.revision = change.revision
        handler = {
            "nodes": self.node,
            "pods": self.pod,
            "podgroups.scheduling.volcano.sh": self.group,
            "jobs.batch.volcano.sh": self.job,
        }.get(change.resource)
        if handler:
            handler(change)

    def node(self, change):
        if change.verb != "DELETED":
            self.allocatable[change.name] = amounts.of(change.object["status"]["allocatable"])

    def group(self, change):
        if change.verb != "DELETED":
            self.minimum[change.key] = change.object["spec"].get("minMember") or 0

    def job(self, change):
        phase = (change.object.get("status") or {}).get("state", {}).get("phase")
        if phase and (not self.phases[change.uid] or self.phases[change.uid][-1] != phase):
            self.phases[change.uid].append(phase)

    def pod(self, change):
        obj = change.object
        before = self.pods.pop(change.uid, None)
        if before:
            self.used[before["node"]].subtract(before["request"])
        phase = (obj.get("status") or {}).get("phase")
        self._once(change, before, phase)
        if change.verb == "DELETED":
            return
        node = obj["spec"].get("nodeName")
        held = node and phase not in FINISHED
        request = amounts.pod_request(obj["spec"]) if held else {}
        self.pods[change.uid] = {"node": node, "request": request, "phase": phase}
        if held:
            self.used[node].update(request)
            self._fits(change, node)
        self._gang(change, obj, node, phase)

    def _once(self, change, before, phase):
        if before and before["phase"] in FINISHED:
            assert phase == before["phase"], f"pod {change.key} went from {before['phase']} to {phase}"

    def _fits(self, change, node):
        for name, amount in self.used[node].items():
            limit = self.allocatable[node].get(name, 0)
            assert amount <= limit, f"revision {change.revision}: {node} holds {amount} {name} of {limit}"

    def _gang(self, change, obj, node, phase):
        key = f"{change.namespace}/{(obj['metadata'].get('annotations') or {}).get(GROUP, '')}"
        if node:
            self.bound[key].add(change.uid)
        if phase == "Running" and key in self.minimum:
            count = len(self.bound[key])
            assert count >= self.minimum[key], f"{change.key} runs with {count} of {self.minimum[key]} placed"
