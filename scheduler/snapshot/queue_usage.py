"""The pods that hold nodes, by the queues that they use."""

from __future__ import annotations

from collections import Counter

from kube import usage
from scheduler.records.records import Group, Pod
from scheduler.records.shapes import PodShape


class QueueUsage(dict[tuple[str, str], Counter[PodShape]]):
    """Shapes of pods by the queue that they use (`kube.usage`) and their group's priority class, without zeros and empty counters."""

    def __init__(self) -> None:
        super().__init__()
        self.group_queues: dict[str, str] = {}
        self.namespace_queues: dict[str, str] = {}

    def queue_of(self, pod: Pod) -> str:
        """Return the queue that a pod uses; empty for a pod of another scheduler."""
        return usage.queue_of(pod, self.group_queues, self.namespace_queues)

    def count(self, pod: Pod, group: Group | None, sign: int) -> None:
        """Add a pod that holds a node (sign 1), or remove it (-1)."""
        queue = self.queue_of(pod)
        if not queue:
            return
        key = (queue, group.priority_class if group is not None and group.exists else pod.priority_class)
        used = self.setdefault(key, Counter())
        used[pod.shape] += sign
        if not used[pod.shape]:
            del used[pod.shape]
        if not used:
            del self[key]
