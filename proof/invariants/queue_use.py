"""What the pods on nodes take, by queue (reference: volcano-queue-podgroup-cli §3.5, §3.6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from proof.invariants.asks import Ask
from proof.invariants.views import DEFAULT_QUEUE, ROOT_QUEUE, Group, Namespace, Pod, Queue, Seen


class QueueUse:
    """What the pods of each queue take, and the tree of queues.

    `disturbed` says when something else than a pod changed what a queue holds
    or may hold.
    """

    def __init__(self, groups: Mapping[str, Seen], namespaces: Mapping[str, Seen], queues: Mapping[str, Seen]) -> None:
        self._groups, self._namespaces, self._queues = groups, namespaces, queues
        self._counted: dict[str, tuple[str, Ask]] = {}  # key of a pod → its queue and what it asks for
        self.own: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.disturbed: dict[str, int] = {}
        self._lines: dict[str, list[str]] = {}
        self._below: defaultdict[str, list[str]] | None = None

    def put(self, key: str, pod: Pod | None) -> None:
        """Count a pod; None when it is gone."""
        before = self._counted.pop(key, None)
        if before is not None:
            self._add(before[0], before[1], -1)
        if pod is not None and pod.holds and (queue := self.queue_of(key, pod)):
            self._counted[key] = queue, pod.ask
            self._add(queue, pod.ask, 1)

    def move(self, pods: Mapping[str, Pod], at: int) -> None:
        """Count pods anew whose queue may be another one since a time, in ms."""
        for key, pod in pods.items():
            before = self._counted.get(key)
            self.put(key, pod)
            after = self._counted.get(key)
            if after is not None and before != after:
                self.disturbed.update(dict.fromkeys(self.line(after[0]), at))

    def queue_of(self, key: str, pod: Pod) -> str:
        """Return the queue that a pod uses: its group's, else the one it names, else its namespace's."""
        if not pod.ours:
            return ""
        group = self._groups.get(pod.group)
        if type(group) is Group:
            return group.queue
        namespace = self._namespaces.get(f"/{key.partition('/')[0]}")
        of_namespace = namespace.queue if type(namespace) is Namespace else ""
        return pod.wish or of_namespace or DEFAULT_QUEUE

    def line(self, name: str) -> list[str]:
        """Return a queue and those above it."""
        if name not in self._lines:
            line: list[str] = []
            above = name
            # A circle of parents is refused; one that is stored all the same must not hang this.
            while above and above not in line:
                line.append(above)
                above = self.parent(above)
            self._lines[name] = line
        return self._lines[name]

    def parent(self, name: str) -> str:
        """Return the queue above, "" for root and for one that is not there."""
        queue = self._queues.get(f"/{name}")
        return "" if type(queue) is not Queue or name == ROOT_QUEUE else queue.spec.parent or ROOT_QUEUE

    def below(self, name: str) -> list[str]:
        """Return a queue and all below it."""
        if self._below is None:
            self._below = defaultdict(list)
            for key in self._queues:
                for above in self.line(key.removeprefix("/")):
                    self._below[above].append(key.removeprefix("/"))
        return self._below.get(name) or [name]

    def held(self, name: str, resource: str) -> int:
        """Return how much of a resource the pods of a queue and of those below it take."""
        return sum(self.own[queue][resource] for queue in self.below(name) if queue in self.own)

    def forget_tree(self, key: str, at: int) -> None:
        """Note that what a queue's spec says changed."""
        name = key.removeprefix("/")
        lines = [*self.line(name)]
        self._lines.clear()
        self._below = None
        self.disturbed.update(dict.fromkeys([*lines, *self.line(name)], at))

    def _add(self, queue: str, ask: Ask, sign: int) -> None:
        held = self.own[queue]
        for name, amount in ask.request.items():
            held[name] += sign * amount
