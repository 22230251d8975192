"""A slow placer: pod after pod, every node scored for every pod. The engine must give the same answer."""

from __future__ import annotations

from scheduler.engine.cluster import Cluster, PodClass


def _score(cluster: Cluster, node: int, some: PodClass, pods: int) -> float:
    asked = [c for c, q in enumerate(some.request) if q > 0]
    weighed = [c for c in asked if c != pods] or asked
    total = 0.0
    for column in weighed:
        whole = max(int(cluster.allocatable[node, column]), 1)
        used = whole - int(cluster.free[node, column])
        total += float(used + int(some.request[column])) / float(whole)
    return total


def _admitted(cluster: Cluster, some: PodClass, queues) -> bool:
    return all(
        room is None or all(room[c] >= q for c, q in enumerate(some.request) if q > 0)
        for room in (cluster.rooms[queue] for queue in queues)
    )


def _best(cluster: Cluster, some: PodClass, pods: int) -> int:
    best, winner = -1.0, -1
    for node in range(len(cluster.free)):
        open_ = some.verdicts[node] == 0 and not some.foreign
        if open_ and all(cluster.free[node, c] >= q for c, q in enumerate(some.request) if q > 0):
            score = _score(cluster, node, some, pods)
            if score > best:
                best, winner = score, node
    return winner


class Slow:
    def __init__(self, cluster: Cluster, pods: int) -> None:
        self.cluster, self.pods = cluster, pods

    def _one(self, gang, number, nodes) -> bool:
        some = self.cluster.classes[gang.bins[number].pod_class]
        if len(nodes[number]) == gang.bins[number].count or not _admitted(self.cluster, some, gang.queues):
            return False
        node = _best(self.cluster, some, self.pods)
        if node < 0:
            return False
        self._move(gang, some, node, 1)
        nodes[number].append(node)
        return True

    def _move(self, gang, some, node, sign) -> None:
        self.cluster.free[node] -= sign * some.request
        for queue in gang.queues:
            if self.cluster.rooms[queue] is not None:
                self.cluster.rooms[queue] -= sign * some.request

    def minimum(self, gang):
        nodes = [[] for _ in gang.bins]
        for step in gang.steps:
            while sum(len(nodes[b]) for b in step.bins) < step.need:
                if not any(self._one(gang, b, nodes) for b in step.bins):
                    for number, placed in enumerate(nodes):
                        for node in placed:
                            some = self.cluster.classes[gang.bins[number].pod_class]
                            self._move(gang, some, node, -1)
                    return None
        return nodes

    def rest(self, gang, nodes) -> None:
        for number in range(len(gang.bins)):
            while self._one(gang, number, nodes):
                pass


def place(cluster: Cluster, gangs, pods: int):
    slow = Slow(cluster, pods)
    answers = []
    start = 0
    while start < len(gangs):
        end = start
        while end < len(gangs) and gangs[end].level == gangs[start].level:
            end += 1
        run = [slow.minimum(gang) for gang in gangs[start:end]]
        for gang, nodes in zip(gangs[start:end], run, strict=True):
            if nodes is not None:
                slow.rest(gang, nodes)
        answers += run
        start = end
    return answers
