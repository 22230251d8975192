"""Which pods of a gang should share a node, by their tasks (Volcano's plugin task-topology, reference/volcano-scheduler §3.11).

Pods of tasks with an affinity go into buckets, tasks with an anti-affinity to themselves first. Each pod goes into the
bucket with the most pods it has an affinity to, less those it has an anti-affinity to; among equals into the one that
requests least, so that buckets stay alike; into a new one if that number is negative. Pods on a node make that node's bucket.
The pods of a bucket are then placed as `scheduler.engine.kin` says. Tasks with only anti-affinities are in no bucket:
they just keep away from each other.

All of this is a preference: a bucket too large for one node is spread over several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kube.volcano.task_topology import TaskTopology
from scheduler.engine.arrays import Vector
from scheduler.engine.kin import Following, Kin
from scheduler.engine.relations import Mark
from scheduler.records.records import Pod
from scheduler.records.shapes import PodShape

MIB = 1 << 20
BYTES = ("memory", "ephemeral-storage")


class InBucket(NamedTuple):
    """The mark of the pods of a bucket."""

    group: str
    bucket: int


class OfTask(NamedTuple):
    """The mark of the pods of a task."""

    group: str
    task: str


class Waited(NamedTuple):
    """The mark of those pods of a bucket, of one task and shape, that waited when the cycle began."""

    group: str
    bucket: int
    task: str
    shape: int


@dataclass(slots=True, eq=False)
class Bucket:
    """Pods that should share a node: tasks counts them by task, load is their request, waiting and placed are those without and with a node."""

    number: int
    tasks: Counter[str] = field(default_factory=Counter)
    load: int = 0
    waiting: Counter[tuple[str, PodShape]] = field(default_factory=Counter)
    placed: Counter[str] = field(default_factory=Counter)

    def add(self, pod: Pod) -> None:
        """Take a pod in."""
        self.tasks[pod.role] += 1
        self.load += _load(pod)
        if pod.node:
            self.placed[pod.node] += 1
        else:
            self.waiting[pod.role, pod.shape] += 1


@dataclass(frozen=True, slots=True, eq=False)
class Kinship:
    """How pods of one task relate to others of their group. parted: by task with an anti-affinity to theirs, its pods by node."""

    group: str
    task: str
    bucket: Bucket | None
    parted: Mapping[str, Counter[str]]

    @property
    def kind(self) -> tuple[str, str, int]:
        """What pods of one class have in common."""
        return self.group, self.task, -1 if self.bucket is None else self.bucket.number

    def marks(self, shape: PodShape) -> tuple[Mark, ...]:
        """Return the marks of a pod of this task, bucket and shape."""
        if self.bucket is None:
            return (OfTask(self.group, self.task),)
        number = self.bucket.number
        return (
            OfTask(self.group, self.task),
            InBucket(self.group, number),
            Waited(self.group, number, self.task, shape.number),
        )

    def placed_by_mark(self) -> dict[Mark, Counter[str]]:
        """Return, for each mark that matters to these pods, how many pods that have it are on which node."""
        found: dict[Mark, Counter[str]] = {OfTask(self.group, task): on for task, on in self.parted.items() if on}
        if self.bucket is not None:
            found[InBucket(self.group, self.bucket.number)] = self.bucket.placed
        return found

    def kin(self, shape: PodShape, vector: Callable[[PodShape], Vector], weight: int) -> Kin:
        """Return this for the engine; vector gives what pods of a shape request."""
        parted = tuple(OfTask(self.group, task) for task in self.parted)
        if self.bucket is None:
            return Kin(vector(shape), None, parted, (), weight)
        number = self.bucket.number
        following = tuple(
            Following(
                Waited(self.group, number, task, other.number),
                pods - ((task, other) == (self.task, shape)),
                vector(other),
            )
            for (task, other), pods in self.bucket.waiting.items()
        )
        return Kin(vector(shape), InBucket(self.group, number), parted, following, weight)


class Kinships:
    """The kinship of the pods of a group. waiting and on_nodes are sorted by number, age and name."""

    def __init__(self, group: str, topology: TaskTopology, waiting: Sequence[Pod], on_nodes: Sequence[Pod]) -> None:
        self._group, self._topology = group, topology
        self._tasks, self._drawn = topology.tasks(), topology.drawn()
        self._buckets: list[Bucket] = []
        self._parted = {task: topology.parted_from(task) for task in self._tasks}
        self._on: dict[str, Counter[str]] = {}
        for pod in on_nodes:
            self._on.setdefault(pod.role, Counter())[pod.node] += 1
        by_node: dict[str, Bucket] = {}
        for pod in on_nodes:
            if pod.role in self._drawn:
                if pod.node not in by_node:
                    by_node[pod.node] = self._new()
                by_node[pod.node].add(pod)
        first = {task: number for number, task in enumerate(topology.order)}
        drawn = [pod for pod in waiting if pod.role in self._drawn]
        drawn.sort(key=lambda pod: (first.get(pod.role, len(first)), self.rank(pod.role)))
        self._bucket_of = {pod.key: self._fill(pod) for pod in drawn}
        by_size = sorted(self._buckets, key=lambda each: (-each.waiting.total(), each.number))
        self._ranks = {each.number: rank for rank, each in enumerate(by_size)}
        self._by_task: dict[tuple[str, int], Kinship] = {}

    def of(self, pod: Pod) -> Kinship | None:
        """Return a pod's kinship; None where its task has neither affinities nor anti-affinities."""
        if pod.role not in self._tasks:
            return None
        bucket = self._bucket_of.get(pod.key)
        key = pod.role, -1 if bucket is None else bucket.number
        found = self._by_task.get(key)
        if found is None:
            parted = {task: self._on.get(task, Counter()) for task in self._parted[pod.role]}
            found = self._by_task[key] = Kinship(self._group, pod.role, bucket, parted)
        return found

    def rank(self, task: str) -> int:
        """Return the rank of a task in a bucket: 0 with an anti-affinity to itself, 1 with an affinity to others, else 2."""
        if task in self._parted.get(task, ()):
            return 0
        return 1 if any(task in pair and len(pair) > 1 for pair in self._topology.near) else 2

    def bucket_rank(self, pod: Pod) -> int:
        """Return the rank of a pod's bucket: that with most waiting pods comes first; pods in none come last."""
        bucket = self._bucket_of.get(pod.key)
        return len(self._ranks) if bucket is None else self._ranks[bucket.number]

    def _fill(self, pod: Pod) -> Bucket:
        pulls = [(self._pull(pod.role, each), -each.load, -each.number) for each in self._buckets]
        pull, _, number = max(pulls, default=(-1, 0, 0))
        bucket = self._new() if pull < 0 else self._buckets[-number]
        bucket.add(pod)
        return bucket

    def _pull(self, task: str, bucket: Bucket) -> int:
        """Return how many pods of a bucket a task has an affinity to, less those it has an anti-affinity to."""
        near, apart = self._topology.near, self._topology.apart
        pairs = ((frozenset((task, other)), pods) for other, pods in bucket.tasks.items())
        return sum(pods * ((pair in near) - (pair in apart)) for pair, pods in pairs)

    def _new(self) -> Bucket:
        self._buckets.append(Bucket(len(self._buckets)))
        return self._buckets[-1]


def _load(pod: Pod) -> int:
    """Return how much a pod requests, as Volcano sums it up: thousandths of CPU and of devices, plus MiB."""
    load = 0
    for name, amount in pod.shape.request.items():
        if name in BYTES:
            load += amount // MIB
        elif name != "pods":
            load += amount if name == "cpu" else amount * 1000
    return load
